//go:build unix

package devstack

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that another goroutine starts has every open file of this one until it is loaded. A
// lock that is given back meanwhile is free at once all the same.
func TestLockIsFreeThoughAnotherProgramBegins(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), lockName)
	first, err := tryLock(path)
	require.NoError(t, err)
	_, err = tryLock(path)
	require.ErrorIs(t, err, errLocked)
	begun, err := syscall.Dup(int(first.f.Fd())) // what fork does with every open file
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Close(begun)) }()
	require.NoError(t, first.close())
	second, err := tryLock(path)
	require.NoError(t, err)
	require.NoError(t, second.close())
}

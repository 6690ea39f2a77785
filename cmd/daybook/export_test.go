package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
)

func TestExport(t *testing.T) {
	t.Parallel()
	b := posted(t)
	file := filepath.Join(t.TempDir(), "books.journal")
	b.ok("export", "--format", "hledger", "--org", "es", "--assertions", "-o", file)
	journal, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(journal), "EUR")
	first := b.ok("export", "--format", "csv", "--all-orgs")
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	piped := make(chan string)
	go func() {
		text, err := os.ReadFile(pipe)
		assert.NoError(t, err)
		piped <- string(text)
	}()
	b.ok("export", "--format", "csv", "--all-orgs", "-o", pipe)
	there, err := os.Lstat(pipe)
	require.NoError(t, err)
	require.NotZero(t, there.Mode()&os.ModeNamedPipe)
	assert.Equal(t, first, <-piped, "what is no file is written to, and not replaced")
	for _, args := range [][]string{{"export", "--all-orgs"}, {"export", "--all-orgs", "--format", "gnucash"}} {
		r := b.run(args...)
		assert.Equal(t, failure.ExitUsage, r.exit)
		assert.Contains(t, r.err, "hledger, ledger, beancount or csv")
	}
	dir := t.TempDir()
	assert.NotZero(t, b.run("export", "--format", "csv", "--all-orgs", "-o", dir).exit)
	assert.DirExists(t, dir)
	again := b.ok("export", "--format", "csv", "--all-orgs")
	assert.Equal(t, first, again, "the same bytes for the same ledger")
	assert.Equal(t, failure.ExitUsage, b.run("export", "--format", "csv").exit)
	assert.Equal(t, failure.ExitUsage, b.run("export", "--format", "pdf", "--all-orgs").exit)
	assert.Equal(t, failure.ExitUsage, b.run("export", "--format", "hledger", "--all-orgs", "--from", "2026-13-01").exit)
}

// What an export has left that was killed goes with the next export to the same file, unless it may
// be written still.
func TestExportRemovesWhatWasLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	out := filepath.Join(t.TempDir(), "out.csv")
	left := func(name string) string { return write(t, filepath.Join(filepath.Dir(out), name), "x") }
	killed, written, other := left(".out.csv.1.unfinished"), left(".out.csv.2.unfinished"),
		left(".other.csv.3.unfinished")
	for _, path := range []string{killed, other} {
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-25*time.Hour)))
	}
	b.ok("export", "--format", "csv", "--all-orgs", "-o", out)
	assert.NoFileExists(t, killed)
	for _, path := range []string{out, written, other} {
		assert.FileExists(t, path)
	}
}

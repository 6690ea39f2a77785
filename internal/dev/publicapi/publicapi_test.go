package publicapi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/publicapi"
)

// What programs can write is on file, so that no change of it goes unnoticed.
func TestAPIFile(t *testing.T) {
	t.Parallel()
	packages, err := publicapi.Load(t.Context(), "../../..")
	require.NoError(t, err)
	onFile, err := os.ReadFile(filepath.Join("..", "..", "..", "api.txt"))
	require.NoError(t, err)
	exported := strings.Join(publicapi.Lines(packages), "\n") + "\n"
	if exported == string(onFile) {
		return
	}
	before, now := set(string(onFile)), set(exported)
	for line := range before {
		if !now[line] {
			t.Errorf("the code does not export any more: %s", line)
		}
	}
	for line := range now {
		if !before[line] {
			t.Errorf("api.txt lacks: %s", line)
		}
	}
	t.Error("api.txt is out of date: run make api, look at what changes for users, and commit the result")
}

// A program can write the type of every name that it can use, and the documentation shows what the
// type has.
func TestNoInternalTypes(t *testing.T) {
	t.Parallel()
	packages, err := publicapi.Load(t.Context(), "../../..")
	require.NoError(t, err)
	assert.Empty(t, publicapi.Leaks(packages), "a public package exports a type of an internal one: define the type in "+
		"a public package, or do not export the name")
}

func set(text string) map[string]bool {
	lines := map[string]bool{}
	for line := range strings.Lines(text) {
		lines[strings.TrimSuffix(line, "\n")] = true
	}
	return lines
}

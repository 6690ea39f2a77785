package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestShellsComplete asks as the scripts of `daybook completion` do when the Tab key is pressed.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	b := posted(t)
	for asked, want := range map[string][]string{
		"exp":                               {"explain", "export"},
		"accounting list --state fa":        {"failed"},
		"tasks list --state st":             {"stuck"},
		"jobs retry --mode r":               {"reset"},
		"entries --org ":                    {"de", "es"},
		"entries --org e":                   {"es"},
		"explain d":                         {"de"},
		"workflow pause j":                  {"jobs"},
		"jobs enqueue webhook --priority h": {"high"},
		"export --format be":                {"beancount"},
		"statement income --format p":       {"pdf"},
		"archive move --kind a":             {"attempts"},
	} {
		t.Run(asked, func(t *testing.T) {
			t.Parallel()
			b := &bundle{b.DB, t}
			var got []string
			for line := range strings.SplitSeq(b.ok(append([]string{"__complete"}, strings.Split(asked, " ")...)...), "\n") {
				if word, _, _ := strings.Cut(line, "\t"); word != "" && !strings.HasPrefix(word, ":") {
					got = append(got, word)
				}
			}
			for _, word := range want {
				assert.Contains(t, got, word)
			}
		})
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		assert.Contains(t, call(t.Context(), "", "completion", shell).out, "daybook", shell)
	}
}

func TestManPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	r := call(t.Context(), "", "man", dir)
	require.Zero(t, r.exit, r.err)
	page, err := os.ReadFile(filepath.Join(dir, "daybook-jobs-list.1"))
	require.NoError(t, err)
	assert.Contains(t, string(page), `\fB--cursor\fP`)
	assert.NotContains(t, string(page), "Auto generated")
}

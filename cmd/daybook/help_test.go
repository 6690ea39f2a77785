package main

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/dev"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/moving/sample"
)

// The root's help has its commands in groups, and each command is in one.
func TestCommandsAreGrouped(t *testing.T) {
	t.Parallel()
	a, err := cli.New(strings.NewReader(""), io.Discard, io.Discard)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, c := range newRoot(a).Commands() {
		assert.NotEmpty(t, c.GroupID, c.Name())
		names[c.Name()] = true
	}
	help := call(t.Context(), "", "--help").out
	at := 0
	for _, group := range commandGroups(a) {
		next := strings.Index(help, "\n"+group.title+"\n")
		assert.Greater(t, next, at, group.title)
		at = next
		for _, c := range group.commands {
			assert.True(t, names[c.Name()], "there is a command %s", c.Name())
		}
	}
	assert.NotContains(t, help, "Additional Commands")
}

// A name that is mistyped is answered in one style: commands of the root and of groups, and flags.
func TestMistypedNames(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"statsu":                 "unknown command statsu for daybook; did you mean status?",
		"jobs lst":               "unknown command lst for daybook jobs; did you mean list?",
		"status --orgg x":        "unknown flag --orgg for daybook status; did you mean --org?",
		"jobs list --sta failed": "unknown flag --sta for daybook jobs list; did you mean --state?",
		"jobs list --zzzzzz":     "unknown flag --zzzzzz for daybook jobs list\n",
		"xyzzy":                  "unknown command xyzzy for daybook\n",
	} {
		r := call(t.Context(), "", strings.Fields(line)...)
		assert.Equal(t, failure.ExitUsage, r.exit, line)
		assert.Contains(t, r.err, want, line)
		assert.NotContains(t, r.err, "Did you mean this", line)
	}
	assert.Contains(t, call(t.Context(), "", "jobs", "list", "--state", "x").err,
		"pending, leased, completed, failed or cancelled")
	assert.Contains(t, call(t.Context(), "", "actions", "list", "--via", "x").err, " or ")
}

// What takes long, and says that it goes on, is a command.
func TestLongCommandsAreCommands(t *testing.T) {
	t.Parallel()
	a, err := cli.New(strings.NewReader(""), io.Discard, io.Discard)
	require.NoError(t, err)
	root := newRoot(a)
	for path := range longCommands {
		c, rest, err := root.Find(strings.Fields(path))
		require.NoError(t, err, path)
		assert.Empty(t, rest, path)
		assert.NotNil(t, c.RunE, path)
	}
}

// What dev has a person try runs as it is printed, from any folder.
func TestDevPrintsCommandsThatRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	files, err := sample.Write(filepath.Join(t.TempDir(), "it's a sample"))
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^  daybook (.+)$`).FindAllStringSubmatch(dev.TryLines(files), -1)
	require.NotEmpty(t, lines)
	for _, line := range lines {
		assert.NotRegexp(t, placeholder, line[1])
		words := shellWords(line[1])
		if words[0] == "trial-balance" {
			b.work()
		}
		r := b.run(words...)
		if words[0] != "doctor" { // it finds that Temporal is unavailable
			assert.Zero(t, r.exit, "%s: %s", line[1], r.err)
		}
	}
	assert.Equal(t, "completed", b.job(sample.Organization, "invoice-1").State)
	assert.Equal(t, "completed", b.job(sample.Organization, "payment-1").State)
}

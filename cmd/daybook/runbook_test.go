package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
)

var (
	// shownCommand is a line of a block of code that calls daybook; namedCommand is a span of code
	// that names a command.
	shownCommand = regexp.MustCompile(`(?m)^(?: {4,6})?(daybook .+)$`)
	namedCommand = regexp.MustCompile("`(daybook [^`]+)`")
	// word is a word of a command line, in quotes or not.
	word = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"']+`)
	// filledIn is what Prometheus fills in.
	filledIn = regexp.MustCompile(`\{\{[^}]*\}\}`)
	// notACommand are spans of code that begin like one.
	notACommand = []string{
		"daybook COMMAND --help", "daybook completion bash|zsh|fish|powershell", "daybook adopt …",
		"daybook closing ", // what a signature of a closing begins with
	}
)

// TestDocumentsNameCommandsThatExist: each command of the pages, and of the alerts, is one of the
// program with flags that it has. A line that is to be typed has the arguments that the command
// takes, too.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	files := []string{"../../README.md", "../../CONTRIBUTING.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/decisions/*.md", "../../deploy/prometheus/*.yml"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		files = append(files, found...)
	}
	count := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		plain := strings.ReplaceAll(filledIn.ReplaceAllString(string(text), "jobs"), "\\\n", " ")
		for _, m := range shownCommand.FindAllStringSubmatch(plain, -1) {
			line, _, _ := strings.Cut(m[1], " #")
			assertCommand(t, file, line, true)
			count++
		}
		for _, m := range namedCommand.FindAllStringSubmatch(plain, -1) {
			if !slices.Contains(notACommand, m[1]) {
				assertCommand(t, file, m[1], false)
			}
			count++
		}
	}
	assert.Greater(t, count, 400, "commands that were found")
}

// wordsOf are the words of a command line, without their quotes.
func wordsOf(line string) (words []string) {
	for _, w := range word.FindAllString(line, -1) {
		words = append(words, strings.Trim(w, `"'`))
	}
	return words
}

// assertCommand fails unless the program has the command and its flags and, when it is whole, takes
// its arguments.
func assertCommand(t *testing.T, file, line string, whole bool) {
	t.Helper()
	line, _, _ = strings.Cut(line, " | ") // what another program reads
	line, _, _ = strings.Cut(line, " > ")
	args := wordsOf(strings.ReplaceAll(line, " N", " 6"))[1:]
	a, err := cli.New(strings.NewReader(""), io.Discard, io.Discard)
	require.NoError(t, err)
	root := newRoot(a)
	root.InitDefaultVersionFlag()
	root.InitDefaultCompletionCmd("completion")
	command, rest, err := root.Find(args)
	if !assert.NoError(t, err, "%s: %s", file, line) {
		return
	}
	if command.HasSubCommands() && command.HasParent() && len(rest) > 0 {
		assert.True(t, strings.HasPrefix(rest[0], "-"), "%s: %s: there is no command %s %s", file, line,
			command.CommandPath(), rest[0])
	}
	assert.True(t, command != root || strings.HasPrefix(rest[0], "-"), "%s: %s", file, line)
	assert.NoError(t, command.ParseFlags(rest), "%s: %s", file, line)
	if whole {
		assert.NoError(t, command.ValidateArgs(command.Flags().Args()), "%s: %s", file, line)
		assert.NoError(t, command.ValidateRequiredFlags(), "%s: %s", file, line)
		assert.NotNil(t, command.RunE, "%s: %s", file, line)
	}
}

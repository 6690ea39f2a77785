package main

import (
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/dev/pages"
)

var (
	inBackquotes = regexp.MustCompile("`(daybook [^`]+)`")
	// filledIn is what Prometheus fills in.
	filledIn = regexp.MustCompile(`\{\{[^}]*\}\}`)
	// notACommand are spans of code that begin like one.
	notACommand = []string{
		"daybook COMMAND --help", "daybook completion bash", "daybook adopt …",
		"daybook closing", // what a signature of a closing begins with
	}
)

// TestDocumentsNameCommandsThatExist: each command of the pages, and of the alerts, is one of the
// program with flags that it has. A line that is to be typed has the arguments that the command
// takes, too.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	commands, err := pages.Commands("daybook", "CONTRIBUTING.md")
	require.NoError(t, err)
	for _, program := range []string{"docker", "kubectl"} { // in a container
		others, err := pages.Commands(program)
		require.NoError(t, err)
		for _, c := range others {
			if i := slices.Index(c.Words, "daybook"); i > 0 && (slices.Contains(c.Words, "exec") || slices.Contains(c.Words, "run")) {
				commands = append(commands, pages.Command{Page: c.Page, Line: c.Line, Words: c.Words[i:], Whole: c.Whole})
			}
		}
	}
	assert.Greater(t, len(commands), 400, "commands that were found")
	seen := map[string]bool{}
	for _, c := range commands {
		line := strings.Join(c.Words, " ")
		if again := fmt.Sprint(line, c.Whole); len(c.Words) > 1 && !slices.Contains(notACommand, line) && !seen[again] {
			seen[again] = true
			assertCommand(t, fmt.Sprintf("%s:%d", c.Page, c.Line), c.Words, c.Whole)
		}
	}
	alerts, err := filepath.Glob("../../deploy/prometheus/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, alerts)
	for _, file := range alerts {
		for _, m := range inBackquotes.FindAllStringSubmatch(filledIn.ReplaceAllString(read(t, file), "jobs"), -1) {
			assertCommand(t, file, pages.Words(m[1]), false)
		}
	}
}

// TestCommandsSetVariablesThatExist: what command lines of the pages set is read by a program.
func TestCommandsSetVariablesThatExist(t *testing.T) {
	t.Parallel()
	commands, err := pages.Commands("")
	require.NoError(t, err)
	settings := read(t, "../../docs/cli.md") + read(t, "../../docs/archive-and-erasure.md") + read(t, "../../docs/closing.md")
	set := 0
	for _, c := range commands {
		for i, word := range c.Words {
			if i > 0 && c.Words[0] == "docker" && c.Words[i-1] == "-e" {
				c.Env = append(c.Env, word)
			}
		}
		for _, one := range c.Env {
			name, value, _ := strings.Cut(one, "=")
			assert.Contains(t, settings, "`"+name+"`", "%s:%d", c.Page, c.Line)
			if strings.HasPrefix(value, "postgres://") {
				_, err := pgxpool.ParseConfig(value)
				assert.NoError(t, err, "%s:%d", c.Page, c.Line)
			}
			set++
		}
	}
	assert.Greater(t, set, 5)
}

// assertCommand fails unless the program has the command and its flags and, when it is whole, takes
// its arguments.
func assertCommand(t *testing.T, where string, words []string, whole bool) {
	t.Helper()
	line := strings.Join(words, " ")
	args := slices.Clone(words[1:])
	for i := range args {
		if args[i] == "N" {
			args[i] = "6"
		}
	}
	a, err := cli.New(strings.NewReader(""), io.Discard, io.Discard)
	require.NoError(t, err)
	root := newRoot(a)
	root.InitDefaultVersionFlag()
	root.InitDefaultCompletionCmd("completion")
	command, rest, err := root.Find(args)
	if !assert.NoError(t, err, "%s: %s", where, line) {
		return
	}
	if command.HasSubCommands() && command.HasParent() && len(rest) > 0 {
		assert.True(t, strings.HasPrefix(rest[0], "-"), "%s: %s: there is no command %s %s", where, line,
			command.CommandPath(), rest[0])
	}
	assert.True(t, command != root || strings.HasPrefix(rest[0], "-"), "%s: %s", where, line)
	assert.NoError(t, command.ParseFlags(rest), "%s: %s", where, line)
	command.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if several, ok := f.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		for _, value := range values {
			assertValue(t, command, f.Name, value, where+": "+line)
		}
	})
	if whole {
		assert.NoError(t, command.ValidateArgs(command.Flags().Args()), "%s: %s", where, line)
		assert.NoError(t, command.ValidateRequiredFlags(), "%s: %s", where, line)
		assert.NotNil(t, command.RunE, "%s: %s", where, line)
	}
}

// assertValue fails when a flag takes some words only, and the value is none of them.
func assertValue(t *testing.T, command *cobra.Command, flag, value, where string) {
	t.Helper()
	if flag == "org" || flag == "type" { // the database has them
		return
	}
	complete, ok := command.GetFlagCompletionFunc(flag)
	if !ok {
		return
	}
	takes, _ := complete(command, nil, "")
	if len(takes) > 0 && strings.ToUpper(value) != value && value != "…" {
		assert.Contains(t, takes, value, "%s: --%s", where, flag)
	}
}

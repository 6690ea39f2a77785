package main

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
)

// The root's help has its commands in groups, and each command is in one.
func TestCommandsAreGrouped(t *testing.T) {
	t.Parallel()
	a, err := newApp(strings.NewReader(""), io.Discard, io.Discard)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, c := range newRoot(a).Commands() {
		assert.NotEmpty(t, c.GroupID, c.Name())
		names[c.Name()] = true
	}
	help := call(t.Context(), "", "--help").out
	at := 0
	for _, group := range commandGroups {
		next := strings.Index(help, "\n"+group.title+"\n")
		assert.Greater(t, next, at, group.title)
		at = next
		for _, name := range group.commands {
			assert.True(t, names[name], "there is a command %s", name)
		}
	}
	assert.NotContains(t, help, "Additional Commands")
}

// A name that is mistyped is answered in one style: commands of the root and of groups, and flags.
func TestMistypedNames(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"statsu": "unknown command statsu for daybook; did you mean status?", "jobs lst": "unknown command lst for daybook jobs; did you mean list?",
		"status --orgg x": "unknown flag --orgg for daybook status; did you mean --org?", "jobs list --sta failed": "unknown flag --sta for daybook jobs list; did you mean --state?",
		"jobs list --zzzzzz": "unknown flag --zzzzzz for daybook jobs list\n", "xyzzy": "unknown command xyzzy for daybook\n",
	} {
		r := call(t.Context(), "", strings.Fields(line)...)
		assert.Equal(t, failure.ExitUsage, r.exit, line)
		assert.Contains(t, r.err, want, line)
		assert.NotContains(t, r.err, "Did you mean this", line)
	}
	assert.Contains(t, call(t.Context(), "", "jobs", "list", "--state", "x").err, "pending, leased, completed, failed or cancelled")
	assert.Contains(t, call(t.Context(), "", "actions", "list", "--via", "x").err, " or ")
}

// What takes long is a command, and says that it goes on: on the error stream, never beside JSON.
func TestLongCommandsSayThatTheyGoOn(t *testing.T) {
	t.Parallel()
	a, err := newApp(strings.NewReader(""), io.Discard, io.Discard)
	require.NoError(t, err)
	root := newRoot(a)
	for path := range longCommands {
		c, rest, err := root.Find(strings.Fields(path))
		require.NoError(t, err, path)
		assert.Empty(t, rest, path)
		assert.NotNil(t, c.RunE, path)
	}
	for _, json := range []bool{false, true} {
		reader, writer := io.Pipe()
		a := &app{stdout: io.Discard, stderr: writer, json: json, waitsEvery: time.Millisecond}
		end := a.waiting("checking")
		if json {
			end()
			require.NoError(t, writer.Close())
			said, err := io.ReadAll(reader)
			require.NoError(t, err)
			assert.Empty(t, said)
			continue
		}
		line := make([]byte, 64)
		n, err := reader.Read(line)
		require.NoError(t, err)
		assert.Regexp(t, `^checking, for `, string(line[:n]))
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, reader)
		}()
		end()
		require.NoError(t, writer.Close())
		<-drained
	}
	var out bytes.Buffer
	bar := (&app{stderr: &out, waitsEvery: 1}).newProgress("importing", 2000)
	bar.set(1000)
	bar.end()
	assert.Equal(t, "importing: 1,000 of 2,000\n", out.String())
}

// What dev prints for a shell can be pasted into one, whatever is in the password.
func TestDevPrintsWhatAShellTakes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{stdout: &out, databaseURL: `postgres://u:it's $HOME&x=1@127.0.0.1:5/d`}
	s := &devstack.Stack{DatabaseURL: a.databaseURL, AdminURL: "x", TemporalAddress: "127.0.0.1:7", TemporalUI: "http://127.0.0.1:8", Dir: "/d"}
	require.NoError(t, a.announce(s, devConsole{address: "http://127.0.0.1:9/console", token: "dbk"}, "/d/daybook.log"))
	assert.Regexp(t, `^\nConsole  `, out.String(), "it is opened first")
	assert.Contains(t, out.String(), "/d/daybook.log")
	lines := regexp.MustCompile(`(?m)^  export .*$`).FindAllString(out.String(), -1)
	require.Len(t, lines, 2)
	said, err := exec.CommandContext(t.Context(), "sh", "-c", strings.Join(lines, "\n")+"\nprintf '%s\\n%s' \"$DAYBOOK_DATABASE_URL\" \"$TEMPORAL_ADDRESS\"").Output()
	require.NoError(t, err)
	assert.Equal(t, a.databaseURL+"\n127.0.0.1:7", string(said))
}

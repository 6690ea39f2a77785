package dev

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/moving/sample"
)

// What dev prints for a shell can be pasted into one, whatever is in the password.
func TestDevPrintsWhatAShellTakes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &cli.App{Stdout: &out, DatabaseURL: `postgres://u:it's $HOME&x=1@127.0.0.1:5/d`}
	s := &devstack.Stack{
		DatabaseURL: a.DatabaseURL, AdminURL: "x", TemporalAddress: "127.0.0.1:7",
		TemporalUI: "http://127.0.0.1:8", Dir: "/d",
	}
	require.NoError(t, announce(a, s, devConsole{address: "http://127.0.0.1:9/console", token: "dbk"}, "/d/daybook.log",
		sample.Files{}))
	assert.Regexp(t, `^\nConsole  `, out.String(), "it is opened first")
	assert.Contains(t, out.String(), "/d/daybook.log")
	lines := regexp.MustCompile(`(?m)^  export .*$`).FindAllString(out.String(), -1)
	require.Len(t, lines, 2)
	said, err := exec.CommandContext(t.Context(), "sh", "-c",
		strings.Join(lines, "\n")+"\nprintf '%s\\n%s' \"$DAYBOOK_DATABASE_URL\" \"$TEMPORAL_ADDRESS\"").Output()
	require.NoError(t, err)
	assert.Equal(t, a.DatabaseURL+"\n127.0.0.1:7", string(said))
}

// Where dev starts no server, its log and the sample are in the directory that it was given, not in
// the one it was called in.
func TestDevDirectoryWithoutServers(t *testing.T) {
	t.Parallel()
	want := filepath.Join(t.TempDir(), "dev")
	dir, err := devDir(&devstack.Stack{}, devstack.Options{Dir: want})
	require.NoError(t, err)
	assert.Equal(t, want, dir)
	assert.DirExists(t, dir)
}

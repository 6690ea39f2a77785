package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
)

// TestFilesThatCannotBeUsed names a directory, and what is in a file as if that were one, to every
// command that reads or writes a file: the call is wrong, and no server is unavailable.
func TestFilesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	b := posted(t)
	dir := t.TempDir()
	below := filepath.Join(write(t, filepath.Join(dir, "file"), "x"), "below")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "de.subject.txt"), 0o700))
	for _, args := range []string{
		"export --format csv --org de -o DIR", "export --format csv --org de -o BELOW",
		"accounts import DIR --org de", "accounts import BELOW --org de",
		"rules check DIR", "rules apply BELOW --org de", "rules test DIR", "rules test BELOW",
		"import ndjson BELOW", "import gobl BELOW --org de",
		"import csv BELOW --mapping ../../internal/moving/sample/online-retail/mapping.yaml --org de",
		"import csv x.csv --mapping DIR --org de",
		"jobs enqueue webhook --org de --payload @DIR",
		"schedules create x --org de --type webhook --every 1h --payload @BELOW",
		"templates preview welcome --params DIR",
		"tasks scaffold x --out FILE", "init app BELOW --replace ../..", "man FILE", "man BELOW", "dev --dir BELOW",
		"archive move --before 1h --archive FILE", "tasks archive --before 1h --to BELOW",
	} {
		words := strings.Fields(strings.NewReplacer("DIR", dir, "BELOW", below, "FILE",
			filepath.Join(dir, "file")).Replace(args))
		r := b.run(append(words, "--json")...)
		assert.Equal(t, failure.ExitUsage, r.exit, "%s: %s", args, r.err)
		var said struct {
			Error struct{ Code, Message string }
		}
		require.NoError(t, json.Unmarshal([]byte(lastLine(r.err)), &said), r.err)
		assert.Regexp(t, "directory|--archive", said.Error.Message, args)
		assert.Contains(t, []string{"USAGE", "INVALID"}, said.Error.Code, args)
	}
	full := b.run("export", "--format", "csv", "--org", "de", "-o", "/dev/full")
	assert.Equal(t, failure.ExitFailure, full.exit, full.err)
	assert.NotContains(t, full.err, "PostgreSQL")
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

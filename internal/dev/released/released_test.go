package released

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// Once the next release is begun, the one before has its record.
func TestTheNewestReleaseHasItsRecord(t *testing.T) {
	t.Parallel()
	log, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	require.NoError(t, err)
	headings := heading.FindAllStringSubmatch(string(log), -1)
	if len(headings) > 1 && headings[0][1] == unreleased {
		assert.Equal(t, Version, headings[1][1], "CONTRIBUTING.md, A release")
	}
	for _, file := range []string{"surface.txt", "statements.sql", "dump.sql.gz"} {
		assert.FileExists(t, Path(root, file))
	}
}

// The record of a release is written while that release is made, and at no other time.
func TestWhenTheRecordMayBeWritten(t *testing.T) {
	t.Parallel()
	const made = "# Changes\n\n## " + Version + "\n\nIt has:\n\n### Jobs\n"
	for name, c := range map[string]struct {
		log     string
		problem string
	}{
		"before the first release":   {"# Changes\n\n## Unreleased\n\nIt has:\n", ""},
		"this release is made":       {made, ""},
		"this after others":          {made + "\n## 0.0.9\n", ""},
		"this release is out":        {"# Changes\n\n## Unreleased\n\n- A.\n\n" + made[11:], "its record stays"},
		"the next release is made":   {"# Changes\n\n## 9.9.9\n\n- A.\n\n" + made[11:], "another version than"},
		"a change log of no release": {"# Changes\n", "another version than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := mayKeep(c.log)
			if c.problem == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.problem)
		})
	}
}

package released

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/daybook-dev/daybook/internal/dev/pages"
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

// TestPagesNameWhatIsReleased: the files of a release that the pages name, and its version wherever
// they fetch or build it, are those of .goreleaser.yaml and of the chart.
func TestPagesNameWhatIsReleased(t *testing.T) {
	t.Parallel()
	var config struct {
		Builds   []struct{ Goos, Goarch []string }
		Archives []struct {
			Formats   []string
			Overrides []struct{ Formats []string } `yaml:"format_overrides"`
		}
		Nfpms    []struct{ Formats []string }
		Checksum struct {
			Name string `yaml:"name_template"`
		}
	}
	var chart struct {
		AppVersion string `yaml:"appVersion"`
	}
	for name, into := range map[string]any{".goreleaser.yaml": &config, "deploy/helm/daybook/Chart.yaml": &chart} {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, into), name)
	}
	formats := slices.Concat(config.Archives[0].Formats, config.Archives[0].Overrides[0].Formats, config.Nfpms[0].Formats)
	systems, processors := slices.Concat(config.Builds[0].Goos, []string{"OS"}), slices.Concat(config.Builds[0].Goarch, []string{"ARCH"})
	blocks, err := pages.Of("", pages.Shell)
	require.NoError(t, err)
	spans, err := pages.Spans()
	require.NoError(t, err)
	file := regexp.MustCompile(`\bdaybook_[0-9.]+_([a-zA-Z]+)_([a-zA-Z0-9]+)\.(tar\.gz|[a-z]+)`)
	version := regexp.MustCompile(`\bdaybook(?:/cmd/daybook@v|@v|_|:|/releases/download/v)(\d+\.\d+\.\d+)|VERSION=v(\d+\.\d+\.\d+)`)
	files, versions, sums := 0, 0, 0
	for _, b := range slices.Concat(blocks, spans) {
		for _, m := range file.FindAllStringSubmatch(b.Text, -1) {
			files++
			assert.Contains(t, systems, m[1], "%s:%d: %s", b.Page, b.Line, m[0])
			assert.Contains(t, processors, m[2], "%s:%d: %s", b.Page, b.Line, m[0])
			assert.Contains(t, formats, m[3], "%s:%d: %s", b.Page, b.Line, m[0])
		}
		for _, m := range version.FindAllStringSubmatch(b.Text, -1) {
			versions++
			assert.Equal(t, chart.AppVersion, m[1]+m[2], "%s:%d: %s", b.Page, b.Line, m[0])
		}
		if strings.Contains(b.Text, "sha256sum ") {
			sums++
			assert.Contains(t, b.Text, config.Checksum.Name, "%s:%d", b.Page, b.Line)
		}
	}
	assert.GreaterOrEqual(t, files, 5)
	assert.GreaterOrEqual(t, versions, 8)
	assert.Equal(t, 1, sums)
}

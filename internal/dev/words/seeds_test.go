package words

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page that says which test shows which feature names tests that exist.
func TestThePageOfOriginsNamesTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/seeds.md")
	require.NoError(t, err)
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	require.NoError(t, filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(text), -1) {
			declared[m[1]] = true
		}
		return err
	}))
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(named), 50)
	for _, m := range named {
		assert.True(t, declared[m[1]], "docs/seeds.md names %s, which no package declares", m[1])
	}
}

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

// The pages that say which test shows which feature or claim name tests that exist.
func TestPagesNameTests(t *testing.T) {
	t.Parallel()
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
	for _, name := range []string{"seeds.md", "security.md"} {
		page, err := os.ReadFile("../../../docs/" + name)
		require.NoError(t, err)
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1)
		require.Greater(t, len(named), 30)
		for _, m := range named {
			assert.True(t, declared[m[1]], "docs/%s names %s, which no package declares", name, m[1])
		}
	}
}

// Each claim of the page on security names the test that fails when it is untrue.
func TestEveryClaimOfSecurityHasATest(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/security.md")
	require.NoError(t, err)
	lines := strings.Split(string(page), "\n")
	for i, line := range lines {
		head := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---")
		if strings.HasPrefix(line, "| ") && !head {
			assert.Contains(t, line, "`Test", "docs/security.md:%d", i+1)
		}
	}
}

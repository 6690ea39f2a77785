package words

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGlossaryHasEachWordOnce checks that no word is explained twice, and that each section is in
// alphabetical order.
func TestGlossaryHasEachWordOnce(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/glossary.md"))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		var words []string
		for _, m := range regexp.MustCompile(`(?m)^- \*\*([^*]+)\*\*:`).FindAllStringSubmatch(body, -1) {
			assert.False(t, seen[m[1]], "%s is explained twice", m[1])
			seen[m[1]] = true
			words = append(words, m[1])
		}
		assert.NotEmpty(t, words, title)
		assert.True(t, slices.IsSorted(words), "%s: in alphabetical order: %v", title, words)
		assert.Len(t, words, strings.Count(body, "\n- "), "%s: each point begins with its word in bold", title)
	}
}

// TestGlossaryIsLinked: a reader finds it from the first page, and from the architecture.
func TestGlossaryIsLinked(t *testing.T) {
	t.Parallel()
	for page, link := range map[string]string{
		"README.md": "(docs/glossary.md)", "docs/architecture.md": "(glossary.md)",
		"CONTRIBUTING.md": "(docs/glossary.md)",
	} {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		assert.Contains(t, string(text), link, page)
	}
}

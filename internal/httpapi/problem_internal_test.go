package httpapi

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCodesAreDocumented compares the table of codes in docs/http-api.md with those that the API answers with.
func TestCodesAreDocumented(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/http-api.md")
	require.NoError(t, err)
	docs := string(data)
	want := map[string]bool{}
	for _, row := range problemTable {
		want[fmt.Sprintf("`%s` | %d |", row.code, row.status)] = true
	}
	for status, row := range statusTable {
		want[fmt.Sprintf("`%s` | %d |", row.code, status)] = true
	}
	rows := regexp.MustCompile("(?m)^\\| <a id=\"([a-z_]+)\"></a>(`[A-Z_]+` \\| [0-9]+ \\|)").FindAllStringSubmatch(docs, -1)
	for _, row := range rows {
		assert.True(t, want[row[2]], "docs/http-api.md: no error is answered like this: %s", row[2])
		delete(want, row[2])
	}
	assert.Empty(t, want, "docs/http-api.md lacks these rows")
}

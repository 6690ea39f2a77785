package console

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

// Every code that the documentation lists has words on the pages of jobs.
func TestEveryCodeHasWords(t *testing.T) {
	t.Parallel()
	found := 0
	for _, page := range []string{"../../../docs/jobs.md", "../../../docs/states.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z0-9_]+)` \\|").FindAllStringSubmatch(string(text), -1) {
			found++
			why := reasons[models.ErrorCode(row[1])]
			assert.NotEmpty(t, why.Says, "%s of %s", row[1], page)
			assert.NotEmpty(t, why.Todo, "%s of %s", row[1], page)
		}
	}
	assert.Greater(t, found, 25)
}

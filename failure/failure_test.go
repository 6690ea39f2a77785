package failure_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/workflows"
)

// docs/errors.md has a row for each class, with what the table says of it, and no other.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../docs/errors.md")
	require.NoError(t, err)
	var want, have []string
	for _, c := range failure.Classes() {
		again := map[bool]string{true: "yes", false: "no"}[c.Retryable]
		want = append(want, fmt.Sprintf("`%s` | %d | %d | %s |", c.Code, c.Status, c.Exit, again))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| <a id=\"([a-z_0-9]+)\"></a>(`[A-Z_0-9]+` \\| .* \\|) [^|]+ \\|$").FindAllStringSubmatch(string(docs), -1) {
		have = append(have, row[2])
	}
	assert.ElementsMatch(t, want, have, "docs/errors.md and failure/classes.go differ")
}

// A code has one class, and each class says everything.
func TestClassesAreWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range failure.Classes() {
		assert.False(t, seen[c.Code], "%s stands twice", c.Code)
		seen[c.Code] = true
		assert.Regexp(t, "^[A-Z][A-Z0-9_]+$", c.Code)
		assert.NotEmpty(t, c.Title, c.Code)
		assert.GreaterOrEqual(t, c.Status, 400, c.Code)
		assert.Positive(t, c.Exit, c.Code)
		if c.Status == 503 {
			assert.True(t, c.Retryable, "%s: 503 asks the caller to try again", c.Code)
		}
	}
	assert.True(t, seen[workflows.ErrTypeInvalidInput], "workflows import nothing internal, and write the code out")
}

func TestOf(t *testing.T) {
	t.Parallel()
	sentinel := failure.New(failure.JobNotFound, "no such job")
	wrapped := fmt.Errorf("show: %w: %w", errors.New("other"), sentinel)
	require.ErrorIs(t, wrapped, sentinel)
	assert.Equal(t, failure.JobNotFound, failure.Of(wrapped))
	assert.NotErrorIs(t, failure.New(failure.JobNotFound, "no such job"), sentinel,
		"each declaration is an error of its own")
	assert.Nil(t, failure.Of(errors.New("other")))
	assert.Nil(t, failure.Of(nil))
}

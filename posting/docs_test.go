package posting_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/posting"
)

// TestDocumentationExamples runs docs/rules.md: each json block is a document, posted by the yaml block before it, with
// the entries or the error of the text block after it.
func TestDocumentationExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/rules.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```(yaml|json|text)\n(.*?)```").FindAllSubmatch(page, -1)
	var rules *posting.RuleSet
	var got string
	examples := 0
	for _, b := range blocks {
		switch body := b[2]; string(b[1]) {
		case "yaml":
			rules, err = posting.Compile(body)
			require.NoError(t, err, "%s", body)
		case "json":
			var doc models.Document
			require.NoError(t, json.Unmarshal(body, &doc), "%s", body)
			impact, err := rules.Evaluate(&doc, posting.NewAccounts(rules.Accounts()...))
			if e, ok := errors.AsType[*posting.Error](err); ok {
				got = fmt.Sprintf("%s: %s\n", e.Code, e.Message)
				continue
			}
			require.NoError(t, err)
			got = entries(impact)
		case "text":
			assert.Equal(t, string(body), got)
			examples++
		}
	}
	assert.Equal(t, 7, examples)
}

package ledgerdb

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

// TestContentReaderReadsEachContentForItself reads contents that are right and wrong with one reader, in an order in which each follows each, and a long one: none
// changes how another is read.
func TestContentReaderReadsEachContentForItself(t *testing.T) {
	texts := []string{
		`{"lines": [{"kind": "product", "net": 12}]}`,
		`{}`,
		`{"lines": [{"kind": "` + strings.Repeat("x", 100_000) + `", "net": 7}]}`,
		`null`,
		`12`,
		`"text"`,
		`{"line": []}`,
		`{"lines": [{"net": "twelve"}]}`,
		`{"lines": [{"net": 12`,
		``,
	}
	var r contentReader
	for _, before := range texts {
		for _, text := range texts {
			_, _ = r.read([]byte(before))
			row := []byte(text)
			got, err := r.read(row)
			copy(row, bytes.Repeat([]byte("?"), len(row))) // as the next row is written over it

			var want models.Content
			alone := json.NewDecoder(strings.NewReader(text))
			alone.DisallowUnknownFields()
			if wrong := alone.Decode(&want); wrong != nil {
				require.Error(t, err, text)
				assert.Contains(t, err.Error(), "content: ")
				continue
			}
			require.NoError(t, err, text)
			assert.Equal(t, want, got)
		}
	}
}

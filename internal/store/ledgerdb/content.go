package ledgerdb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// readContent reads daybook.documents.content. A field that models.Content does not have is an error, as in an import: a misspelt amount would be posted as 0.
func readContent(text []byte) (c models.Content, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&c)
	if err == nil {
		return c, nil
	}
	// encoding/json has no type for this error.
	if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return c, fmt.Errorf("content: there is no field %s: correct its name, or put further values under attributes", name)
	}
	return c, fmt.Errorf("content: %w", err)
}

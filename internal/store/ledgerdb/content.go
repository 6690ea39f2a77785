package ledgerdb

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/daybook-dev/daybook/models"
)

// contentReader reads daybook.documents.content of one row after the other. It keeps the decoder, whose buffer would be made anew for each. Its zero value is
// ready.
type contentReader struct {
	text    bytes.Reader
	decoder *json.Decoder
}

// read reads one content, which is a whole value, as each jsonb is. It copies what it keeps of text. A field that models.Content does not have is an error, as in
// an import: a misspelt amount would be posted as 0.
func (r *contentReader) read(text []byte) (c models.Content, err error) {
	if r.decoder == nil {
		r.decoder = json.NewDecoder(&r.text)
		r.decoder.DisallowUnknownFields()
	}
	r.text.Reset(text)
	err = r.decoder.Decode(&c)
	if err == nil {
		return c, nil
	}
	r.decoder = nil // it may not have read all of text, or refuse to go on
	// encoding/json has no type for this error.
	if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return c, fmt.Errorf("content: there is no field %s: correct its name, or put further values under attributes", name)
	}
	return c, fmt.Errorf("content: %w", err)
}

package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/daybook-dev/daybook/internal/text/bom"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/strictjson"
)

// MaxLineBytes is the length of the longest line that NDJSON reads.
const MaxLineBytes = 8 << 20

// record is one line of the format: the fields of models.Document that a document's author sets.
// Daybook sets the others.
type record struct {
	OrgID     string              `json:"org_id"`
	ID        string              `json:"id"`
	Type      models.DocumentType `json:"type"`
	Direction models.Direction    `json:"direction"`
	Currency  string              `json:"currency"`
	IssueDate models.Date         `json:"issue_date"`
	ValueDate *models.Date        `json:"value_date"`
	Content   models.Content      `json:"content"`
}

// LineDocument is a document with the number of its line, from 1.
type LineDocument struct {
	Line     int
	Document models.Document
	// StandsFor is the document of another system that an open item stands for; empty: none.
	StandsFor string
}

// NDJSON reads documents in Daybook's own format, one JSON object a line; empty lines are skipped.
// It holds one line in memory at a time.
//
// A line that is not a valid document yields an error that names the line and wraps ErrInvalid, and
// reading goes on with the next one. If the reader fails, or a line is longer than MaxLineBytes,
// that error is the last.
func NDJSON(r io.Reader) iter.Seq2[LineDocument, error] {
	return func(yield func(LineDocument, error) bool) {
		text, err := bom.Reader(r)
		if err != nil {
			yield(LineDocument{}, invalid("%v", err))
			return
		}
		scanner := bufio.NewScanner(text)
		scanner.Buffer(make([]byte, 0, 64<<10), MaxLineBytes+1) // and the line feed
		number := 0
		for scanner.Scan() {
			number++
			line := bytes.TrimSpace(scanner.Bytes())
			if len(line) == 0 {
				continue
			}
			doc, err := parseRecord(line)
			if err != nil {
				err = fmt.Errorf("line %d: %w", number, err)
			}
			if !yield(LineDocument{Line: number, Document: doc}, err) {
				return
			}
		}
		switch err := scanner.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(LineDocument{}, fmt.Errorf("line %d: %w", number+1,
				invalid("it is longer than %d bytes; is each document on a line of its own?", MaxLineBytes)))
		case err != nil:
			yield(LineDocument{}, fmt.Errorf("line %d: %w", number+1, err))
		}
	}
}

func parseRecord(line []byte) (models.Document, error) {
	var r record
	if err := strictjson.Document(line, &r, &r.Content); err != nil {
		return models.Document{}, invalid("%v", err)
	}
	if r.ValueDate != nil && r.ValueDate.IsZero() {
		r.ValueDate = nil
	}
	doc := models.Document{
		OrgID: r.OrgID, ID: r.ID, Type: r.Type, Direction: r.Direction, Currency: r.Currency,
		IssueDate: r.IssueDate, ValueDate: r.ValueDate, Content: r.Content,
	}
	if err := Validate(doc); err != nil {
		return models.Document{}, err
	}
	return doc, nil
}

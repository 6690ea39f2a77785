package importer

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/daybook-dev/daybook/internal/text/bom"
	"github.com/daybook-dev/daybook/models"
)

// OpeningOptions are what a file of open items does not say.
type OpeningOptions struct {
	// Org is the organization, By who imports the items, Reason why.
	Org, By, Reason string
	// Against is the account that takes the other side of each item.
	Against string
	// On is the day on which the items are posted, the first of the books; zero: each on its issue date.
	On models.Date
}

// openingColumns are the columns of a file of open items, in any order; the first five are required.
var openingColumns = []string{"account", "number", "issue_date", "amount", "currency", "counterparty", "due_date", "document"}

// Opening reads the open items of another system from CSV whose first line names its columns:
// account, number, issue_date, amount, currency, and optionally counterparty, due_date and document,
// the id of the document that the item stands for. Each line is a document that posts its amount
// (debits positive, with the decimals of the currency) to its account, and the other side to one
// account for all. Its id is made of account, number and counterparty, so that a file can be
// imported again.
//
// A line that is wrong yields an error that names it and wraps ErrInvalid; reading goes on.
func Opening(r io.Reader, o OpeningOptions) iter.Seq2[LineDocument, error] {
	return func(yield func(LineDocument, error) bool) {
		text, err := bom.Reader(r)
		if err != nil {
			yield(LineDocument{}, invalid("%v", err))
			return
		}
		reader := csv.NewReader(text)
		reader.TrimLeadingSpace = true
		head, err := reader.Read()
		for i, column := range head {
			if !slices.Contains(openingColumns, column) || slices.Contains(head[:i], column) {
				err = errors.Join(err, fmt.Errorf("column %.40q", column))
			}
		}
		if err != nil || slices.ContainsFunc(openingColumns[:5], func(c string) bool { return !slices.Contains(head, c) }) {
			yield(LineDocument{}, invalid("the first line must name the columns account, number, issue_date, amount and currency, "+
				"and may name counterparty, due_date and document"))
			return
		}
		for {
			row, err := reader.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			line := LineDocument{}
			if err == nil {
				line.Line, _ = reader.FieldPos(0)
				line.Document, line.StandsFor, err = o.document(head, row)
			} else if parse, ok := errors.AsType[*csv.ParseError](err); ok {
				line.Line, err = parse.StartLine, invalid("%v", parse.Err)
			} else {
				yield(LineDocument{}, err)
				return
			}
			if err != nil {
				err = fmt.Errorf("line %d: %w", line.Line, err)
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// document is the journal of one line, and the id of the document that it stands for.
func (o OpeningOptions) document(head, row []string) (doc models.Document, standsFor string, err error) {
	cell := func(column string) string {
		if i := slices.Index(head, column); i >= 0 {
			return strings.Clone(strings.TrimSpace(row[i]))
		}
		return ""
	}
	doc = models.Document{
		OrgID: o.Org, Type: models.DocumentJournal, Direction: models.DirectionOut, Currency: cell("currency"),
		Content: models.Content{
			Number: cell("number"), Counterparty: cell("counterparty"), Source: "opening",
			Journal: &models.Journal{Reason: o.Reason, By: o.By},
		},
	}
	account, standsFor := cell("account"), cell("document")
	if account == "" || doc.Content.Number == "" {
		return doc, "", invalid("the account or the number is missing")
	}
	if doc.IssueDate, err = models.ParseDate(cell("issue_date")); err != nil {
		return doc, "", invalid("issue_date: %v", err)
	}
	if !o.On.IsZero() {
		doc.ValueDate = &o.On
	}
	if due := cell("due_date"); due != "" {
		if doc.Content.DueDate, err = models.ParseDate(due); err != nil {
			return doc, "", invalid("due_date: %v", err)
		}
	}
	exact, err := decimal(cell("amount")).rat()
	if err != nil {
		return doc, "", err
	}
	amount, err := wholeMinor(exact, doc.Currency)
	if err != nil {
		return doc, "", err
	}
	if amount == 0 {
		return doc, "", invalid("the amount is zero: it is not open")
	}
	doc.Content.Journal.Entries = []models.JournalEntry{{Account: account, Amount: amount}, {Account: o.Against, Amount: -amount}}
	doc.ID = "opening:" + strings.Join([]string{account, doc.Content.Number, doc.Content.Counterparty}, "/")
	if len(doc.ID) > maxIDBytes {
		doc.ID = "opening:" + hashedID([]byte(doc.ID))
	}
	if len(standsFor) > maxIDBytes || !utf8.ValidString(standsFor) || strings.ContainsRune(standsFor, 0) || standsFor == doc.ID {
		return doc, "", invalid("document: %.40q is no id of a document", standsFor)
	}
	return doc, standsFor, Validate(doc)
}

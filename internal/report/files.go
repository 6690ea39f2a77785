package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/text/formula"
)

// ErrTooWide: a table has more columns than a page takes.
var ErrTooWide = failure.New(failure.Invalid, "the report is too wide for a page")

// WriteCSV writes the rows of all tables, which have the same columns, as CSV: the table's caption
// as the currency, what the row is, and its values. Amounts are plain decimal numbers. A text that a
// spreadsheet would take for a formula has an apostrophe before it.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	for i := range r.Tables {
		t := &r.Tables[i]
		if i == 0 {
			head := []string{"currency", "line"}
			for i := range t.Columns {
				head = append(head, t.Columns[i].name())
			}
			if err := out.Write(head); err != nil {
				return err
			}
		}
		for _, row := range t.Rows {
			line := string(row.Kind)
			if line == "" {
				line = "account"
			}
			values := []string{formula.Guard(t.Caption), line}
			for i := range row.Cells {
				values = append(values, row.Cells[i].text())
			}
			if err := out.Write(values); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// name is what the head of a file calls a column: one of several amounts by its title.
func (c *Column) name() string {
	if strings.HasPrefix(c.ID, "amount_") {
		return formula.Guard(c.Title)
	}
	return c.ID
}

// text is the value of a cell in a file.
func (c *Cell) text() string {
	if c.Number {
		return c.Value
	}
	return formula.Guard(c.Value)
}

// WritePDF prints the report by the built-in template.
func (r *Report) WritePDF(w io.Writer, madeAt time.Time) error {
	for i := range r.Tables {
		if n := len(r.Tables[i].Columns); n > maxColumns {
			return fmt.Errorf("%w: there are %d columns, and a page takes %d; take the CSV", ErrTooWide, n, maxColumns)
		}
	}
	templates, err := OpenTemplates("")
	if err != nil {
		return err
	}
	r.MadeAt = madeAt.UTC().Format("2006-01-02 15:04 UTC")
	var page bytes.Buffer
	if err := templates.Write(&page, r); err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	_, err = PDF{MadeAt: madeAt}.Write(w, &page)
	return err
}

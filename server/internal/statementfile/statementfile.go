// Package statementfile makes statements as files, for the API and the console.
package statementfile

import (
	"bytes"
	"context"
	"mime"
	"time"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/report"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// The content types of files.
const (
	CSV = "text/csv; charset=utf-8"
	PDF = "application/pdf"
)

// File is a statement as a file.
type File struct {
	// Type and Disposition are the headers Content-Type and Content-Disposition.
	Type, Disposition string
	Bytes             []byte
}

// Make makes a statement as PDF, or else as CSV. A statement of cash and a VAT summary have the days
// of the options alone.
func Make(ctx context.Context, db books.DB, kind models.StatementKind, org string, o books.StatementOptions,
	format string, now time.Time,
) (File, error) {
	r, err := read(ctx, db, kind, org, o)
	if err != nil {
		return File{}, err
	}
	var b bytes.Buffer
	f := File{Type: CSV}
	if format == "pdf" {
		f.Type = PDF
		err = r.WritePDF(&b, now)
	} else {
		format = "csv"
		err = r.WriteCSV(&b)
	}
	f.Disposition = mime.FormatMediaType("attachment", map[string]string{"filename": string(kind) + "." + format})
	f.Bytes = b.Bytes()
	return f, err
}

// Check refuses options that a kind of statement does not have (books.ErrInvalid).
func Check(kind models.StatementKind, o books.StatementOptions) error {
	whole := kind == models.StatementCash || kind == models.StatementVAT
	if whole && (o.By != "" || o.WhereKey != "" || o.WhereValue != "" || o.Compare != books.CompareNothing) {
		return store.Refuse(books.ErrInvalid, "this statement is neither compared nor split by dimensions", "leave these filters out")
	}
	return nil
}

// read reads a statement as a report.
func read(ctx context.Context, db books.DB, kind models.StatementKind, org string, o books.StatementOptions,
) (*report.Report, error) {
	if err := Check(kind, o); err != nil {
		return nil, err
	}
	switch kind {
	case models.StatementVAT:
		s, err := books.VATSummary(ctx, db, org, books.VATOptions{From: o.From, To: o.To})
		return report.VATSummary(&s), err
	case models.StatementCash:
		s, err := books.CashStatement(ctx, db, org, books.CashOptions{From: o.From, To: o.To})
		return report.CashStatement(&s), err
	case models.StatementBalance:
		s, err := books.BalanceSheet(ctx, db, org, o)
		return report.Statement(&s), err
	case models.StatementIncome:
	}
	s, err := books.IncomeStatement(ctx, db, org, o)
	return report.Statement(&s), err
}

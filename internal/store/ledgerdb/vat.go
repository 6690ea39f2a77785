package ledgerdb

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ReadVATSummary reads the taxes of a span of posting dates, and at most so many of the documents
// that cause the differences.
func ReadVATSummary(ctx context.Context, db store.Beginner, org string, from, to models.Date, documents int,
) (models.VATSummary, error) {
	s := models.VATSummary{OrgID: org, From: from, To: to}
	err := store.ReadSnapshot(ctx, db, func(tx pgx.Tx) error { return readVAT(ctx, tx, &s, documents+1) })
	if len(s.Documents) > documents {
		s.Documents, s.More = s.Documents[:documents], true
	}
	return s, store.Wrap("read the VAT summary", err)
}

func readVAT(ctx context.Context, tx pgx.Tx, s *models.VATSummary, documents int) error {
	const stmt = `
SELECT kind, currency, direction, country, category, code, coalesce(rate::text, ''), account_code, name, coalesce(documents, 0), coalesce(base, 0)::text, tax::text,
       document_id, coalesce(posted, 0)::text
  FROM daybook.vat_report($1, $2, $3, $4)`
	var l models.VATLine
	var base, tax, document, posted string
	scanned := []any{
		&l.Kind, &l.Currency, &l.Direction, &l.Country, &l.Category, &l.Code, &l.Rate, &l.Account, &l.Name, &l.Documents,
		&base, &tax, &document, &posted,
	}
	return store.Each(ctx, tx, scanned, func() error {
		var badBase, badTax, badPosted error
		l.Base, badBase = WholeNumber(base)
		l.Tax, badTax = WholeNumber(tax)
		if document == "" {
			s.Lines = append(s.Lines, l)
			return errors.Join(badBase, badTax)
		}
		d := models.VATDifferentDocument{DocumentID: document, Currency: l.Currency, Stated: l.Tax}
		d.Posted, badPosted = WholeNumber(posted)
		s.Documents = append(s.Documents, d)
		return errors.Join(badTax, badPosted)
	}, stmt, s.OrgID, timeOf(s.From), timeOf(s.To), documents)
}

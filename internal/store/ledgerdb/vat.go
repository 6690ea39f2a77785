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
	err := store.ReadSnapshot(ctx, db, func(tx pgx.Tx) (err error) {
		if s.Lines, err = vatLines(ctx, tx, s); err != nil {
			return err
		}
		s.Documents, err = vatDocuments(ctx, tx, s, documents+1)
		return err
	})
	if len(s.Documents) > documents {
		s.Documents, s.More = s.Documents[:documents], true
	}
	return s, store.Wrap("read the VAT summary", err)
}

func vatLines(ctx context.Context, tx pgx.Tx, s models.VATSummary) ([]models.VATLine, error) {
	const stmt = `
SELECT kind, currency, direction, country, category, code, coalesce(rate::text, ''), account_code, name, coalesce(documents, 0), coalesce(base, 0)::text, tax::text
  FROM daybook.vat_summary($1, $2, $3)`
	return store.Collect(ctx, tx, func(row pgx.CollectableRow) (models.VATLine, error) {
		var l models.VATLine
		var base, tax string
		err := row.Scan(&l.Kind, &l.Currency, &l.Direction, &l.Country, &l.Category, &l.Code, &l.Rate, &l.Account, &l.Name,
			&l.Documents, &base, &tax)
		if err != nil {
			return l, err
		}
		var badBase, badTax error
		l.Base, badBase = WholeNumber(base)
		l.Tax, badTax = WholeNumber(tax)
		return l, errors.Join(badBase, badTax)
	}, stmt, s.OrgID, timeOf(s.From), timeOf(s.To))
}

func vatDocuments(ctx context.Context, tx pgx.Tx, s models.VATSummary, limit int) ([]models.VATDifferentDocument, error) {
	const stmt = `SELECT document_id, currency, stated::text, posted::text FROM daybook.vat_differences($1, $2, $3) LIMIT $4`
	return store.Collect(ctx, tx, func(row pgx.CollectableRow) (models.VATDifferentDocument, error) {
		var d models.VATDifferentDocument
		var stated, posted string
		if err := row.Scan(&d.DocumentID, &d.Currency, &stated, &posted); err != nil {
			return d, err
		}
		var badStated, badPosted error
		d.Stated, badStated = WholeNumber(stated)
		d.Posted, badPosted = WholeNumber(posted)
		return d, errors.Join(badStated, badPosted)
	}, stmt, s.OrgID, timeOf(s.From), timeOf(s.To), limit)
}

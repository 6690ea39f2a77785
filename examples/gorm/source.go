package gorm

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue/source"
)

// Sources are where the worker reads the documents of organizations that have "invoices" on record.
// It posts in transactions of pgx, which GORM cannot use: so the rows are read by SQL into the
// structs that GORM writes.
func Sources() (accounting.Sources, error) {
	invoices, err := source.New(source.Functions[int64]{
		Namespace: "invoice", Lock: lock, Read: read,
		SetPosted: setPosted,
	})
	return accounting.Sources{"invoices": invoices}, err
}

type key = source.Key[int64]

func lock(ctx context.Context, tx pgx.Tx, keys []key) ([]key, error) {
	_, ids := source.Columns(keys)
	rows, err := tx.Query(ctx, `SELECT org_id, id FROM invoices WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED`, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[key])
}

func read(ctx context.Context, tx pgx.Tx, keys []key) (map[key]source.Row, error) {
	_, ids := source.Columns(keys)
	rows, err := tx.Query(ctx,
		`SELECT id, invoice_id, text, net_cents FROM lines WHERE invoice_id = ANY ($1) ORDER BY id`, ids)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByNameLax[Line])
	if err != nil {
		return nil, err
	}
	lines := map[int64][]Line{}
	for _, l := range all {
		lines[l.InvoiceID] = append(lines[l.InvoiceID], l)
	}
	rows, err = tx.Query(ctx,
		`SELECT id, org_id, number, customer, issued_on, version, ready_at, deleted_at FROM invoices WHERE id = ANY ($1)`,
		ids)
	if err != nil {
		return nil, err
	}
	found := map[key]source.Row{}
	var i Invoice
	var deletedAt *time.Time
	_, err = pgx.ForEachRow(rows,
		[]any{&i.ID, &i.OrgID, &i.Number, &i.Customer, &i.IssuedOn, &i.Version, &i.ReadyAt, &deletedAt}, func() error {
			i.Lines = lines[i.ID]
			found[key{OrgID: i.OrgID, ID: i.ID}] = source.Row{
				Version: i.Version, ReadyAt: i.ReadyAt, DeletedAt: deletedAt,
				Document: i.document(),
			}
			return nil
		})
	return found, err
}

func setPosted(ctx context.Context, tx pgx.Tx, keys []key, live []bool) error {
	_, ids := source.Columns(keys)
	_, err := tx.Exec(ctx, `
UPDATE invoices i SET posted_at = CASE WHEN k.live THEN clock_timestamp() END
  FROM unnest($1::bigint[], $2::boolean[]) AS k (id, live)
 WHERE i.id = k.id`, ids, live)
	return err
}

// taxPercent is the tax rate of everything that is sold.
const taxPercent = 19

var taxRate = models.MustRate("19")

// document is what the rules read of an invoice.
func (i Invoice) document() *models.Document {
	d := &models.Document{
		Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(i.IssuedOn.Date()),
		Content:   models.Content{Number: i.Number, Counterparty: i.Customer},
	}
	var net int64
	for _, l := range i.Lines {
		net += l.NetCents
		d.Content.Lines = append(d.Content.Lines,
			models.Line{Kind: "item", Description: l.Text, Net: l.NetCents, Rate: taxRate, Category: "VAT"})
	}
	tax := (net*taxPercent + 50) / 100
	d.Content.Taxes = []models.Tax{{Category: "VAT", Rate: taxRate, Base: net, Amount: tax}}
	d.Content.Total, d.Content.Payable = net+tax, net+tax
	return d
}

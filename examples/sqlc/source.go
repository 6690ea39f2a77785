package sqlc

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/examples/sqlc/db"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue/source"
)

// Sources are where the worker reads the documents of organizations that have "invoices" on record.
func Sources() (accounting.Sources, error) {
	invoices, err := source.New(source.Functions[[16]byte]{
		Namespace: "invoice", Lock: lock, Read: read,
		SetPosted: setPosted,
	})
	return accounting.Sources{"invoices": invoices}, err
}

type key = source.Key[[16]byte]

func lock(ctx context.Context, tx pgx.Tx, keys []key) ([]key, error) {
	rows, err := db.New(tx).LockInvoices(ctx, uuids(keys))
	locked := make([]key, len(rows))
	for i, r := range rows {
		locked[i] = key{OrgID: r.OrgID, ID: r.ID.Bytes}
	}
	return locked, err
}

func read(ctx context.Context, tx pgx.Tx, keys []key) (map[key]source.Row, error) {
	q := db.New(tx)
	invoices, err := q.ReadInvoices(ctx, uuids(keys))
	if err != nil {
		return nil, err
	}
	all, err := q.ReadLines(ctx, uuids(keys))
	if err != nil {
		return nil, err
	}
	lines := map[pgtype.UUID][]db.Line{}
	for _, l := range all {
		lines[l.InvoiceID] = append(lines[l.InvoiceID], l)
	}
	rows := map[key]source.Row{}
	for i := range invoices {
		v := &invoices[i]
		rows[key{OrgID: v.OrgID, ID: v.ID.Bytes}] = source.Row{
			Version: v.Version, ReadyAt: timeOf(v.ReadyAt), DeletedAt: timeOf(v.DeletedAt),
			Document: document(v, lines[v.ID]),
		}
	}
	return rows, nil
}

func setPosted(ctx context.Context, tx pgx.Tx, keys []key, live []bool) error {
	p := db.SetPostedParams{Ids: uuids(keys), Live: []pgtype.UUID{}}
	for i, id := range p.Ids {
		if live[i] {
			p.Live = append(p.Live, id)
		}
	}
	return db.New(tx).SetPosted(ctx, p)
}

func uuids(keys []key) []pgtype.UUID {
	ids := make([]pgtype.UUID, len(keys))
	for i, k := range keys {
		ids[i] = pgtype.UUID{Bytes: k.ID, Valid: true}
	}
	return ids
}

func timeOf(t pgtype.Timestamptz) *time.Time {
	if !t.Valid {
		return nil
	}
	return &t.Time
}

// taxPercent is the tax rate of everything that is sold.
const taxPercent = 19

var taxRate = models.MustRate("19")

// document is what the rules read of an invoice.
func document(v *db.Invoice, lines []db.Line) *models.Document {
	d := &models.Document{
		Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
		IssueDate: models.NewDate(v.IssuedOn.Time.Date()),
		Content:   models.Content{Number: v.Number, Counterparty: v.Customer},
	}
	var net int64
	for _, l := range lines {
		net += l.NetCents
		d.Content.Lines = append(d.Content.Lines,
			models.Line{Kind: "item", Description: l.Text, Net: l.NetCents, Rate: taxRate, Category: "VAT"})
	}
	tax := (net*taxPercent + 50) / 100
	d.Content.Taxes = []models.Tax{{Category: "VAT", Rate: taxRate, Base: net, Amount: tax}}
	d.Content.Total, d.Content.Payable = net+tax, net+tax
	return d
}

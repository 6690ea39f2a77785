// Package sqlc is an example: invoices in a table of the application's own, written by code that
// sqlc generates, with UUIDs as keys. README.md says what it shows.
package sqlc

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/examples/sqlc/db"
	"github.com/daybook-dev/daybook/queue"
)

//go:generate sqlc generate

//go:embed schema.sql
var schema string

// documentID is the one place that knows how an invoice's document is called.
func documentID(invoice pgtype.UUID) string { return queue.DocumentID("invoice", invoice.Bytes) }

// Line is a line of an invoice.
type Line struct {
	Text     string
	NetCents int64
}

// Create writes an invoice and has it posted, in the caller's transaction.
func Create(ctx context.Context, tx pgx.Tx, org, number, customer string, issuedOn time.Time,
	lines []Line,
) (pgtype.UUID, error) {
	q := db.New(tx)
	created, err := q.CreateInvoice(ctx, db.CreateInvoiceParams{
		OrgID: org, Number: number, Customer: customer, IssuedOn: pgtype.Date{Time: issuedOn, Valid: true},
		ReadyAt: pgtype.Timestamptz{Time: time.Now(), Valid: true},
	})
	if err != nil {
		return created.ID, err
	}
	for i, l := range lines {
		if err := q.PutLine(ctx, db.PutLineParams{
			InvoiceID: created.ID, LineNo: int32(i + 1), Text: l.Text,
			NetCents: l.NetCents,
		}); err != nil {
			return created.ID, err
		}
	}
	return created.ID, enqueue(ctx, tx, org, created.ID, created.Version)
}

// PutLine replaces or adds a line, and has the invoice posted anew.
func PutLine(ctx context.Context, tx pgx.Tx, org string, id pgtype.UUID, no int32, l Line) error {
	return change(ctx, tx, org, id, func(q *db.Queries) error {
		return q.PutLine(ctx, db.PutLineParams{InvoiceID: id, LineNo: no, Text: l.Text, NetCents: l.NetCents})
	})
}

// Reopen makes an invoice a draft again: what is posted of it is reversed until Issue.
func Reopen(ctx context.Context, tx pgx.Tx, org string, id pgtype.UUID) error {
	return change(ctx, tx, org, id, func(q *db.Queries) error { return q.SetReady(ctx, db.SetReadyParams{ID: id}) })
}

// Issue has an invoice posted again that was reopened.
func Issue(ctx context.Context, tx pgx.Tx, org string, id pgtype.UUID) error {
	return change(ctx, tx, org, id, func(q *db.Queries) error {
		return q.SetReady(ctx, db.SetReadyParams{ID: id, ReadyAt: pgtype.Timestamptz{Time: time.Now(), Valid: true}})
	})
}

// Delete marks an invoice deleted: what is posted of it is reversed for good.
func Delete(ctx context.Context, tx pgx.Tx, org string, id pgtype.UUID) error {
	return change(ctx, tx, org, id, func(q *db.Queries) error { return q.SetDeleted(ctx, id) })
}

// Remove removes the row. What is posted of the invoice is reversed, by the deletion that is kept
// beside its job: each invoice has one, since Create enqueues it.
func Remove(ctx context.Context, tx pgx.Tx, org string, id pgtype.UUID) error {
	if err := db.New(tx).RemoveInvoice(ctx, db.RemoveInvoiceParams{OrgID: org, ID: id}); err != nil {
		return err
	}
	_, err := queue.MarkDocumentDeleted(ctx, tx, queue.Document{OrgID: org, ID: documentID(id)})
	return err
}

// change gives an invoice its next version, which locks its row, changes it and enqueues it.
func change(ctx context.Context, tx pgx.Tx, org string, id pgtype.UUID, f func(q *db.Queries) error) error {
	q := db.New(tx)
	version, err := q.NextVersion(ctx, db.NextVersionParams{OrgID: org, ID: id})
	if err != nil {
		return err
	}
	if err := f(q); err != nil {
		return err
	}
	return enqueue(ctx, tx, org, id, version)
}

func enqueue(ctx context.Context, tx pgx.Tx, org string, id pgtype.UUID, version int64) error {
	_, err := queue.EnqueueAccountingJob(ctx, tx,
		queue.AccountingJob{OrgID: org, DocumentID: documentID(id), Version: version})
	return err
}

package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/queue"
)

// org is the organization whose books this program keeps.
const org = "app"

// document is the document of an order.
func document(order int64) queue.Document {
	return queue.Document{OrgID: org, ID: queue.DocumentID("order", order)}
}

// Place writes an order, and has its invoice posted and its receipt written.
func Place(ctx context.Context, pool *pgxpool.Pool, customer string, netCents int64) (id int64, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		id, err = PlaceIn(ctx, tx, customer, netCents)
		return err
	})
	return id, err
}

// PlaceIn is Place in a transaction of the caller's: the order, the posting that is to follow and
// the receipt's job are committed together, or not at all.
func PlaceIn(ctx context.Context, tx pgx.Tx, customer string, netCents int64) (id int64, err error) {
	err = tx.QueryRow(ctx, `INSERT INTO app.orders (org_id, customer, net_cents) VALUES ($1, $2, $3) RETURNING id`,
		org, customer, netCents).Scan(&id)
	if err != nil {
		return 0, err
	}
	if err := post(ctx, tx, id, 1); err != nil {
		return 0, err
	}
	_, err = queue.EnqueueJob(ctx, tx, org, Receipt{OrderID: id},
		queue.JobOptions{IdempotencyKey: fmt.Sprintf("receipt/%d", id)})
	return id, err
}

// Cancel cancels an order: what is posted of it is reversed.
func Cancel(ctx context.Context, pool *pgxpool.Pool, id int64) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var version int64
		err := tx.QueryRow(ctx, `
UPDATE app.orders SET cancelled_at = now(), version = version + 1
 WHERE id = $1 AND cancelled_at IS NULL
RETURNING version`, id).Scan(&version)
		if err != nil {
			return fmt.Errorf("cancel order %d: %w", id, err)
		}
		return post(ctx, tx, id, version)
	})
}

// post has the ledger follow a version of an order.
func post(ctx context.Context, tx pgx.Tx, id, version int64) error {
	_, err := queue.EnqueueAccountingJob(ctx, tx,
		queue.AccountingJob{OrgID: org, DocumentID: document(id).ID, Version: version})
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// Receipt is the payload of a job: write the receipt of an order.
type Receipt struct {
	OrderID int64 `json:"order_id"`
}

// JobType names the type.
func (Receipt) JobType() string { return "receipt" }

// registry has the handlers of this program's jobs. Register your own here.
func registry(pool *pgxpool.Pool) *jobs.Registry {
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.Policy{Owner: "app", MaxAttempts: 5},
		func(ctx context.Context, job *jobs.Job[Receipt]) error { return writeReceipt(ctx, pool, job) })
	return r
}

// writeReceipt writes a receipt in the transaction that completes the job: exactly once.
func writeReceipt(ctx context.Context, pool *pgxpool.Pool, job *jobs.Job[Receipt]) error {
	order := job.Payload.OrderID
	var customer string
	var cents int64
	err := pool.QueryRow(ctx, `SELECT customer, net_cents + tax_cents FROM app.orders WHERE id = $1`,
		order).Scan(&customer, &cents)
	if errors.Is(err, pgx.ErrNoRows) {
		return jobs.WithCode(models.CodeNotFound, fmt.Errorf("there is no order %d", order)) // final
	}
	if err != nil {
		return err // tried again, by the policy
	}
	text := fmt.Sprintf("%s pays %d.%02d EUR for order %d.", customer, cents/100, cents%100, order)
	job.InTx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO app.receipts (order_id, text) VALUES ($1, $2)`, order, text)
		return err
	})
	return nil
}

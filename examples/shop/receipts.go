package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// receipt is the payload of the shop's own job type.
type receipt struct {
	OrderID string `json:"order_id"`
}

// JobType names the type.
func (receipt) JobType() string { return "shop.receipt" }

// writeReceipt is the type's handler.
func (s *shop) writeReceipt(ctx context.Context, job *jobs.Job[receipt]) error {
	var customer string
	var cents int64
	err := s.pool.QueryRow(ctx, `SELECT customer, net_cents + tax_cents FROM shop.orders WHERE id = $1`,
		job.Payload.OrderID).Scan(&customer, &cents)
	if errors.Is(err, pgx.ErrNoRows) {
		// Trying again would not help.
		return jobs.WithCode(models.CodeNotFound, fmt.Errorf("there is no order %s", job.Payload.OrderID))
	}
	if err != nil {
		return err // tried again by the policy
	}
	text := fmt.Sprintf("%s pays %d.%02d EUR for order %s.", customer, cents/100, cents%100, job.Payload.OrderID)

	// The receipt is committed together with the job's completion: exactly once.
	job.InTx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO shop.receipts (order_id, text) VALUES ($1, $2)`, job.Payload.OrderID, text)
		return err
	})
	return nil
}

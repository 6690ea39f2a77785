package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// bookedHook is the name under which the shop's organization has afterPosting on record.
const bookedHook = "shop-booked"

func (s *shop) hooks() accounting.Hooks { return accounting.Hooks{bookedHook: s.afterPosting} }

// afterPosting has a webhook follow each booking. It runs in the transaction that posts: the
// booking, the mark on the order and the webhook's job are committed together, whatever dies when.
func (s *shop) afterPosting(ctx context.Context, tx pgx.Tx, posted []accounting.Posted) error {
	var orders []string
	var follow []queue.NewJob
	for _, p := range posted {
		if p.Impact.Kind != models.ImpactPost {
			continue // taken back
		}
		told, err := s.told("order.booked", p.Impact.DocumentID)
		if err != nil {
			return err
		}
		orders = append(orders, p.Impact.DocumentID)
		follow = append(follow, queue.NewJob{OrgID: org, Payload: told, Options: queue.JobOptions{
			Queue: jobQueue, IdempotencyKey: fmt.Sprintf("booked/%d", p.Impact.ID),
			Links: []queue.Link{{Kind: "order", ID: p.Impact.DocumentID}},
		}})
	}
	if len(follow) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE shop.orders SET booked_at = clock_timestamp() WHERE id = ANY ($1)`,
		orders); err != nil {
		return err
	}
	_, err := queue.EnqueueJobs(ctx, tx, follow)
	return err
}

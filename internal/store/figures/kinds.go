package figures

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// countLimit bounds a statement that counts.
const countLimit = 5 * time.Second

// stateCanceled is the SQLSTATE of a statement that took longer than it may.
const stateCanceled = "57014"

// CountKinds counts the jobs of every kind in a transaction, whose statements it bounds from then
// on: the planner is to use the partial indexes whatever the statistics say. A kind that takes too
// long to count has what the indexes' statistics say, and the oldest due job of before.
// organizations has it count the due jobs of organizations as well.
func CountKinds(ctx context.Context, tx pgx.Tx, before Gauges, organizations bool) (kinds []Kind, err error) {
	const bound = `
SELECT set_config('statement_timeout', $1, true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`
	if _, err := tx.Exec(ctx, bound, countLimit.String()); err != nil {
		return nil, store.Wrap("bound what counting may take", err)
	}
	for _, queue := range store.Queues() {
		k, err := countOrEstimate(ctx, tx, before.Kind(queue.Name), queue.Name, organizations)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, k)
	}
	return kinds, nil
}

func countOrEstimate(ctx context.Context, tx pgx.Tx, before Kind, kind string, organizations bool) (k Kind, err error) {
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) (err error) {
		if k, err = Count(ctx, tx, kind); err != nil || !organizations {
			return err
		}
		k.Organizations, err = CountOrganizations(ctx, tx, kind)
		return err
	})
	if store.SQLState(err) == stateCanceled && ctx.Err() == nil {
		if k, err = EstimateAll(ctx, tx, kind); err == nil {
			k.OldestDueAt = before.OldestDueAt
		}
	}
	return k, err
}

// Aged notes how old the oldest due job of each kind is at a moment.
func Aged(kinds []Kind, at time.Time) {
	for i, k := range kinds {
		if k.OldestDueAt != nil {
			kinds[i].OldestDueAge = max(0, at.Sub(*k.OldestDueAt))
		}
	}
}

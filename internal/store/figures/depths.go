package figures

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Depth is how deep the queue of a kind was: the highest figures of a span.
type Depth struct {
	// At is when the span begins.
	At   time.Time
	Kind string
	Counts
	// OldestDue is for how long the oldest due job had been due.
	OldestDue time.Duration
}

// addDepths adds a sample to its minute, its ten minutes and its hour.
func addDepths(ctx context.Context, db store.DB, kinds []Kind) error {
	const stmt = `
INSERT INTO daybook.depths AS d (seconds, at, kind, due, waiting, leased, failed, oldest_due_seconds)
SELECT s.seconds, date_bin(make_interval(secs => s.seconds), statement_timestamp(), '2000-01-01 00:00:00+00'), r.*
  FROM unnest(@kinds::text[], @due::bigint[], @waiting::bigint[], @leased::bigint[], @failed::bigint[], @oldest::float8[]) AS r (kind, due, waiting, leased, failed, oldest)
 CROSS JOIN (VALUES (60), (600), (3600)) AS s (seconds)
 ORDER BY s.seconds, r.kind
ON CONFLICT (seconds, at, kind) DO UPDATE
   SET due = greatest(d.due, excluded.due), waiting = greatest(d.waiting, excluded.waiting), leased = greatest(d.leased, excluded.leased),
       failed = greatest(d.failed, excluded.failed), oldest_due_seconds = greatest(d.oldest_due_seconds, excluded.oldest_due_seconds)`
	names, oldest := make([]string, len(kinds)), make([]float64, len(kinds))
	due, waiting, leased, failed := make([]int64, len(kinds)), make([]int64, len(kinds)), make([]int64, len(kinds)),
		make([]int64, len(kinds))
	for i, k := range kinds {
		names[i], oldest[i] = k.Kind, k.OldestDueAge.Seconds()
		due[i], waiting[i], leased[i], failed[i] = k.Due, k.Waiting, k.Leased, k.Failed
	}
	_, err := db.Exec(ctx, stmt,
		store.Args{"kinds": names, "due": due, "waiting": waiting, "leased": leased, "failed": failed, "oldest": oldest})
	return store.Wrap("add to the depths of the queues", err)
}

// Depths reads how deep the queues were, step by step, the earliest first; a step without a sample
// has no row. Of the filter Since, Until, Step and Kind count.
func Depths(ctx context.Context, q store.Querier, f Filter) ([]Depth, error) {
	const stmt = `
SELECT date_bin(make_interval(secs => @step), at, @since) AS begins, kind, max(due), max(waiting), max(leased), max(failed), max(oldest_due_seconds)
  FROM daybook.depths
 WHERE seconds = @grain AND at >= @since AND at < @until AND (@kind = '' OR kind = @kind)
 GROUP BY 1, 2
 ORDER BY 1, 2`
	span, err := f.span()
	if err != nil {
		return nil, err
	}
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (d Depth, err error) {
		var seconds float64
		err = row.Scan(&d.At, &d.Kind, &d.Due, &d.Waiting, &d.Leased, &d.Failed, &seconds)
		d.OldestDue = time.Duration(seconds * float64(time.Second))
		return d, err
	}, stmt, store.Args{
		"grain": span.grain, "step": span.step.Seconds(), "since": span.since, "until": span.until,
		"kind": f.Kind,
	})
	return list, store.Wrap("read the depths of the queues", err)
}

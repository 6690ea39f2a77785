package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/internal/store/due"
)

// jobRow is a job that a statement has leased or locked, and its place in the queue.
type jobRow struct {
	due.Place
	job Job
}

// eachJob sends a batch whose last statement returns jobs: for each its priority, ready_at, the
// fields, and more columns. It calls f for each of them, with a row that it uses again. It returns
// the ids of those that cannot be read, which readable leaves out: those with a time that is
// infinite, for which Go has no value.
func (s *Store) eachJob(
	ctx context.Context, q batcher, batch *pgx.Batch, f func(r *jobRow), fields func(j *Job) []any, more ...any,
) (unreadable []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	var r jobRow
	var infinite bool
	columns := append(append([]any{&r.Priority, &r.At}, fields(&r.job)...), more...)
	for i, c := range columns {
		if at, ok := c.(*time.Time); ok {
			columns[i] = finiteTime{at, &infinite}
		}
	}
	var received time.Time
	_, err = lastRows(ctx, q, batch, func(row pgx.CollectableRow) (struct{}, error) {
		r, infinite = jobRow{}, false
		if received.IsZero() {
			received = time.Now()
		}
		if err := row.Scan(columns...); err != nil {
			return struct{}{}, err
		}
		if infinite {
			unreadable = append(unreadable, r.job.ID)
		}
		r.Org, r.Slot, r.ID = r.job.OrgID, due.Slot(r.job.Type, r.job.Queue, r.job.MinVersion), r.job.ID
		r.job.Priority, r.job.ReadyHere = r.Priority, readyHere(received, r.At, r.job.StartedAt)
		f(&r)
		return struct{}{}, nil
	})
	return unreadable, err
}

// finiteTime scans a timestamp, and notes one that is infinite, which leaves the time as it is.
type finiteTime struct {
	time     *time.Time
	infinite *bool
}

// ScanTimestamptz implements pgx's interface.
func (t finiteTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	if !v.Valid || v.InfinityModifier != pgtype.Finite {
		*t.infinite = true
		return nil
	}
	*t.time = v.Time
	return nil
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/workflows"
)

// drawn is the number of the newest impact: each document that is posted has drawn one, or more
// when its versions replace each other. It costs next to nothing to ask for, and is never behind
// what is posted. It may be ahead of it, by what is about to be committed.
func drawn(ctx context.Context, pool *pgxpool.Pool) (int64, error) {
	return one[int64](ctx, pool, `SELECT coalesce(pg_sequence_last_value('daybook.impact_id_seq'), 0)`)
}

// awaitEmpty waits until empty says so, and returns when it was asked for the last time, by
// PostgreSQL's clock, which is this machine's: what a full queue takes to tell that it is empty is
// not counted. It does not ask before near does, which is cheap: a queue that is busy is expensive
// to ask. near also tells how far the work has come.
func awaitEmpty(ctx context.Context, interval time.Duration, near func(context.Context) (bool, int64, error),
	empty func(context.Context) (time.Time, bool, error),
) (at time.Time, err error) {
	err = await(ctx, interval, func(ctx context.Context) (bool, int64, error) {
		ready, n, err := near(ctx)
		if err == nil && ready {
			at, ready, err = empty(ctx)
		}
		return ready, n, err
	})
	if err != nil {
		err = fmt.Errorf("wait for the queue to be empty: %w", err)
	}
	return at, err
}

// awaitEnds waits until no job of the accounting queue is pending or leased any more, and says when
// that was.
func awaitEnds(ctx context.Context, pool *pgxpool.Pool, jobs int) (time.Time, error) {
	return awaitEmpty(ctx, 5*time.Millisecond, func(ctx context.Context) (bool, int64, error) {
		n, err := drawn(ctx, pool)
		return n >= int64(jobs), n, err
	}, func(ctx context.Context) (at time.Time, empty bool, err error) {
		var open bool
		err = pool.QueryRow(ctx, `
SELECT EXISTS (SELECT FROM daybook.accounting_work_queue WHERE state = 'pending')
    OR EXISTS (SELECT FROM daybook.accounting_work_queue WHERE state = 'leased'), statement_timestamp()`).Scan(&open,
			&at)
		return at, !open, err
	})
}

// drainDaybook posts the documents that wait, by a new worker and a new run of the workflow, and
// returns how long it took from the start of the workflow until no job was open. posted is how many
// documents the database has posted then.
func (b *bench) drainDaybook(ctx context.Context, d *database, s settings, posted int) (took time.Duration, err error) {
	err = b.withWorker(ctx, d, func(ctx context.Context, _ *worker) error {
		began := time.Now()
		run, err := b.startWorkflow(ctx, workflows.AccountingWorkflow, workflows.AccountingTaskQueue, s)
		if err != nil {
			return err
		}
		ended, err := awaitEnds(ctx, d.pool, posted)
		if err != nil {
			return err
		}
		took = ended.Sub(began)
		return b.endWorkflow(ctx, run)
	})
	return took, err
}

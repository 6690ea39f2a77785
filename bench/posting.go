package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/workflows"
)

// attempted is the number that the newest attempt of the log drew: of those at documents, for a job's row keeps the attempt that completed it. It costs next
// to nothing to ask for, and is never behind the attempts that are logged.
func attempted(ctx context.Context, pool *pgxpool.Pool) (int64, error) {
	return one[int64](ctx, pool, `SELECT coalesce(pg_sequence_last_value('daybook.attempt_log_id_seq'), 0)`)
}

// awaitEmpty returns when ended says so. It does not ask before near does, which is cheap: a queue that is busy is expensive to ask. near also tells
// how far the work has come.
func awaitEmpty(ctx context.Context, near func(context.Context) (bool, int64, error), ended func(context.Context) (bool, error)) error {
	err := await(ctx, 5*time.Millisecond, func(ctx context.Context) (bool, int64, error) {
		ready, n, err := near(ctx)
		if err == nil && ready {
			ready, err = ended(ctx)
		}
		return ready, n, err
	})
	if err != nil {
		return fmt.Errorf("wait for the queue to be empty: %w", err)
	}
	return nil
}

// awaitEnds returns when no job of the accounting queue is pending or leased any more.
func awaitEnds(ctx context.Context, pool *pgxpool.Pool, jobs int) error {
	return awaitEmpty(ctx, func(ctx context.Context) (bool, int64, error) {
		n, err := attempted(ctx, pool)
		return n >= int64(jobs), n, err
	}, func(ctx context.Context) (bool, error) {
		open, err := one[bool](ctx, pool, `SELECT EXISTS (SELECT FROM daybook.accounting_work_queue WHERE state = 'pending')
    OR EXISTS (SELECT FROM daybook.accounting_work_queue WHERE state = 'leased')`)
		return !open, err
	})
}

// drainDaybook posts the documents that wait, by a new worker and a new run of the workflow, and returns how long it took from
// the start of the workflow until no job was open. posted is how many documents the database has posted then.
func (b *bench) drainDaybook(ctx context.Context, d *database, s settings, posted int) (took time.Duration, err error) {
	err = b.withWorker(ctx, d, func(ctx context.Context, _ *worker) error {
		began := time.Now()
		run, err := b.startWorkflow(ctx, workflows.AccountingWorkflow, workflows.AccountingTaskQueue, s)
		if err != nil {
			return err
		}
		if err := awaitEnds(ctx, d.pool, posted); err != nil {
			return err
		}
		took = time.Since(began)
		return b.endWorkflow(ctx, run)
	})
	return took, err
}

package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/daybook-dev/daybook/queue"
)

// enqueuer enqueues jobs in a transaction of the application.
type enqueuer func(ctx context.Context, tx pgx.Tx, jobs []faultJob) error

// enqueue is how the queue takes jobs.
func (q loadedQueue) enqueue(ctx context.Context, pool *pgxpool.Pool) (enqueuer, error) {
	switch {
	case q.river != nil:
		return riverEnqueuer(pool, *q.river)
	case q.dbos != nil:
		return dbosEnqueuer(ctx, pool)
	case q.pgboss != nil:
		return func(ctx context.Context, tx pgx.Tx, jobs []faultJob) error {
			return enqueuePgboss(ctx, tx, q.pgboss.heartbeat, jobs)
		}, nil
	}
	return enqueueOwn, nil
}

func enqueueOwn(ctx context.Context, tx pgx.Tx, jobs []faultJob) error {
	orgs := organizations()
	if len(jobs) == 1 {
		_, err := queue.EnqueueJob(ctx, tx, orgs[jobs[0].Number%len(orgs)], jobs[0], queue.JobOptions{})
		return err
	}
	some := make([]queue.NewJob, len(jobs))
	for i, j := range jobs {
		some[i] = queue.NewJob{OrgID: orgs[j.Number%len(orgs)], Payload: j}
	}
	_, err := queue.EnqueueJobs(ctx, tx, some)
	return err
}

func riverEnqueuer(pool *pgxpool.Pool, s riverSettings) (enqueuer, error) {
	// A client announces at most one insert a queue in its FetchCooldown.
	inserts, err := river.NewClient(riverpgxv5.New(pool), &river.Config{FetchCooldown: s.fetchCooldown})
	if err != nil {
		return nil, fmt.Errorf("make River's client that inserts: %w", err)
	}
	return func(ctx context.Context, tx pgx.Tx, jobs []faultJob) error {
		if len(jobs) == 1 {
			_, err := inserts.InsertTx(ctx, tx, jobs[0], nil)
			return err
		}
		some := make([]river.InsertManyParams, len(jobs))
		for i, j := range jobs {
			some[i].Args = j
		}
		_, err := inserts.InsertManyTx(ctx, tx, some)
		return err
	}, nil
}

func dbosEnqueuer(ctx context.Context, pool *pgxpool.Pool) (enqueuer, error) {
	// It is not launched, so it listens to nothing, and not shut down, because that would close the
	// pool, which is the caller's.
	c, err := dbos.NewContext(ctx, dbos.Config{
		AppName: dbosApp, ApplicationVersion: dbosApp, SystemDBPool: pool, SkipMigrations: true,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, fmt.Errorf("make DBOS's context that enqueues: %w", err)
	}
	return func(_ context.Context, tx pgx.Tx, jobs []faultJob) error {
		for _, j := range jobs {
			if err := enqueueDBOS(c, tx, j); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

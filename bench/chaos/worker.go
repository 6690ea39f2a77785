package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/workers"
)

const (
	// workerEnv makes a process of this program a worker of an application's own: it holds a
	// workerConfig as JSON.
	workerEnv = "CHAOS_WORKER"
	// fleet is the fleet of the application's workers, and the named queue of its jobs.
	fleet = "chaos"
)

// workerConfig says what a worker process works.
type workerConfig struct{ Name, DatabaseURL, TemporalAddress string }

// The jobs of the application. Each writes its key into chaos.effects: how, is what tells them apart.
type (
	// keyed is what all have.
	keyed struct {
		Key int64 `json:"key"`
		// Millis is how long the handler takes besides.
		Millis int `json:"millis"`
	}
	plainJob   struct{ keyed }
	ownJob     struct{ keyed }
	sharedJob  struct{ keyed }
	stepsJob   struct{ keyed }
	orderedJob struct{ keyed }
	slowJob    struct{ keyed }
	limitedJob struct {
		keyed
		Customer string `json:"customer"`
	}
)

// JobType implements queue.Payload.
func (plainJob) JobType() string { return "chaos_plain" }

// JobType implements queue.Payload.
func (ownJob) JobType() string { return "chaos_own" }

// JobType implements queue.Payload.
func (sharedJob) JobType() string { return "chaos_shared" }

// JobType implements queue.Payload.
func (stepsJob) JobType() string { return "chaos_steps" }

// JobType implements queue.Payload.
func (orderedJob) JobType() string { return "chaos_ordered" }

// JobType implements queue.Payload.
func (slowJob) JobType() string { return "chaos_slow" }

// JobType implements queue.Payload.
func (limitedJob) JobType() string { return "chaos_limited" }

const insertEffect = `INSERT INTO chaos.effects (kind, key) VALUES ($1, $2)`

// runWorker works the application's jobs until ctx ends.
func runWorker(ctx context.Context, text string) error {
	var c workerConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("read %s: %w", workerEnv, err)
	}
	log := slog.New(workers.FoldRepeats(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	config, err := pgxpool.ParseConfig(c.DatabaseURL)
	if err != nil {
		return err
	}
	config.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	temporal, err := client.NewLazyClient(client.Options{
		HostPort: c.TemporalAddress, Namespace: devstack.Namespace, Logger: sdklog.NewStructuredLogger(log),
	})
	if err != nil {
		return err
	}
	defer temporal.Close()
	worker, err := workers.NewJobs(workers.JobsOptions{
		Client: temporal, Pool: pool, Registry: registry(pool), Fleet: fleet, Name: c.Name, Log: log, MaxConcurrentActivities: 6,
	})
	if err != nil {
		return err
	}
	defer worker.Close()
	return worker.Run(ctx)
}

// registry has the application's handlers. None of them ever fails by itself: every attempt beyond
// the first is the doing of what goes wrong around it.
func registry(pool *pgxpool.Pool) *jobs.Registry {
	r := jobs.NewRegistry()
	// So many that no number of killed workers makes a dead letter.
	policy := jobs.Policy{Owner: "chaos", MaxAttempts: 100, Base: time.Second, Cap: time.Second, Parallel: 20, Timeout: 10 * time.Minute}
	shared, limited := policy, policy
	shared.SharedTransaction = true
	limited.Limit = jobs.Limit{By: "payload.customer", Parallel: 2}
	jobs.Register(r, policy, func(ctx context.Context, j *jobs.Job[plainJob]) error {
		j.Payload.work(ctx)
		return insertUntilDone(ctx, pool, j.Payload.Key)
	})
	jobs.Register(r, policy, func(ctx context.Context, j *jobs.Job[ownJob]) error { return inTx(ctx, j, j.Payload.keyed, "own") })
	jobs.Register(r, shared,
		func(ctx context.Context, j *jobs.Job[sharedJob]) error {
			return inTx(ctx, j, j.Payload.keyed, "shared")
		})
	jobs.Register(r, limited,
		func(ctx context.Context, j *jobs.Job[limitedJob]) error {
			return inTx(ctx, j, j.Payload.keyed, "limited")
		})
	jobs.Register(r, policy,
		func(ctx context.Context, j *jobs.Job[orderedJob]) error {
			return inTx(ctx, j, j.Payload.keyed, "ordered")
		})
	jobs.Register(r, policy,
		func(ctx context.Context, j *jobs.Job[slowJob]) error { return inTx(ctx, j, j.Payload.keyed, "slow") })
	jobs.Register(r, policy, steps)
	return r
}

// inTx writes the effect in the transaction that completes the job.
func inTx(ctx context.Context, j interface {
	InTx(f func(ctx context.Context, tx pgx.Tx) error)
}, p keyed, kind string,
) error {
	p.work(ctx)
	j.InTx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insertEffect, kind, p.Key)
		return err
	})
	return nil
}

// steps has two steps that write in the transactions that keep them.
func steps(ctx context.Context, j *jobs.Job[stepsJob]) error {
	for _, name := range []string{"step-1", "step-2"} {
		j.Payload.work(ctx)
		_, err := jobs.StepInTx(ctx, j, name, func(ctx context.Context, tx pgx.Tx) (bool, error) {
			_, err := tx.Exec(ctx, insertEffect, name, j.Payload.Key)
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// insertUntilDone writes the effect on a connection of the handler's own, again and again until that
// is done.
func insertUntilDone(ctx context.Context, pool *pgxpool.Pool, key int64) error {
	for {
		try, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := pool.Exec(try, insertEffect, "plain", key)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// work takes its time.
func (k keyed) work(ctx context.Context) { pause(ctx, time.Duration(k.Millis)*time.Millisecond) }

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

package languages_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

// envGoWorker has the test program be a worker in Go of a database, as the programs in testdata are
// in their languages.
const envGoWorker = "DAYBOOK_TEST_GO_WORKER"

func runGoWorker(address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(context.Background(), address)
	if err != nil {
		return err
	}
	defer pool.Close()
	registry := jobs.NewRegistry()
	jobs.RegisterRaw(registry, "quick",
		jobs.Policy{MaxAttempts: 3, Timeout: 2 * time.Second, Base: time.Minute, Cap: 10 * time.Minute}, handle)
	jobs.RegisterRaw(registry, "patient", jobs.Policy{MaxAttempts: 2, Timeout: time.Hour}, handle)
	due, err := workers.NewDueJobs(workers.DueJobsOptions{
		Pool: pool, Registry: registry, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	defer due.Close()
	for ctx.Err() == nil {
		if _, err := due.Run(ctx, 100); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// handle does what the payload asks for.
func handle(ctx context.Context, job *jobs.Job[queue.RawPayload]) error {
	var p struct{ Do, Note string }
	if err := json.Unmarshal(job.Payload.Data, &p); err != nil {
		return err
	}
	no := errors.New("no")
	note := func() {
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO app.effects (job_id, note) VALUES ($1, $2)`, job.ID, p.Note)
			return err
		})
	}
	switch p.Do {
	case "complete":
		job.SetResult(map[string]any{
			"attempt": job.Attempt, "of": job.MaxAttempts, "org": job.OrgID, "key": job.IdempotencyKey,
		})
	case "note":
		note()
	case "refuse":
		note()
		job.InTx(func(context.Context, pgx.Tx) error { return errors.New("refused") })
	case "error":
		return no
	case "code":
		return jobs.WithCode("DISK_FULL", no)
	case "no code":
		return jobs.WithCode("disk full", no)
	case "reserved":
		return jobs.WithCode(models.CodeSnoozed, no)
	case "final code":
		return jobs.WithCode(models.CodeNotFound, no)
	case "final":
		return jobs.Final(no)
	case "retry after":
		return jobs.RetryAfter(2*time.Minute, jobs.WithCode(models.CodeNotFound, no))
	case "snooze":
		return jobs.Snooze(5 * time.Minute)
	case "cancel":
		return jobs.Cancel("nothing to do")
	case "no result":
		job.SetResult(map[string]string{"text": "\x00"})
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	case "hang once":
		if job.Attempt == 1 {
			<-ctx.Done()
			return ctx.Err()
		}
		note()
	case "nap":
		time.Sleep(300 * time.Millisecond)
	default:
		return handleSteps(ctx, job, p.Do, p.Note)
	}
	return nil
}

// goWorker ends the program as a worker, if it is asked to be one.
func goWorker() {
	address := os.Getenv(envGoWorker)
	if address == "" {
		return
	}
	if err := runGoWorker(address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

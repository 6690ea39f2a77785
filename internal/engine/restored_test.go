package engine_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// guarded returns a store as a worker has it, on one connection, so that every statement was
// prepared before.
func guarded(t *testing.T, db *pgtest.DB, kind *store.Kind) *store.Store {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.URL)
	require.NoError(t, err)
	config.MaxConns = 3
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s := store.NewQueue(pool, kind)
	s.GuardSchema(func(ctx context.Context) error { return migrations.Verify(ctx, pool) }, slog.New(slog.DiscardHandler))
	return s
}

// restoring replaces the schema by one as it is while a dump is restored: the rows of some tables
// are there, those of others and the constraints are not.
func (b *bundle) restoring() {
	b.t.Helper()
	b.exec(`DROP SCHEMA daybook, queues, internal CASCADE`)
	require.NoError(b.t, migrations.Up(b.t.Context(), b.URL))
	b.Pool.Reset() // the test's own sessions
	b.exec(`ALTER TABLE daybook.confirmations DROP CONSTRAINT confirmations_impact_id_fkey`)
	fixture.Ready(b.t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
}

// restored restores what is left.
func (b *bundle) restored() {
	b.t.Helper()
	fixture.Organization(b.t, b.Pool, org)
	b.exec(`ALTER TABLE daybook.confirmations ADD CONSTRAINT confirmations_impact_id_fkey FOREIGN KEY (impact_id) REFERENCES daybook.impacts (id)`)
}

// A worker that lives while a dump is restored touches nothing until all of it is there, and then
// goes on.
func TestWorkerPausesWhileADumpIsRestored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := engine.New(guarded(t, b.DB, store.Accounting), ledger.New(nil),
		engine.Options{Direct: true, Log: slog.New(slog.DiscardHandler)})
	defer e.Close()
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-0", 1000))
	r, err := e.Process(t.Context(), request(1))
	require.NoError(t, err)
	require.Equal(t, 1, r.Completed)

	b.restoring()
	for n := range 3 {
		_, err = e.Process(t.Context(), request(2+n))
		require.Error(t, err)
		assert.True(t, store.IsTransient(err), "%v", err)
	}
	job := b.job("inv-1")
	assert.Equal(t, models.JobPending, job.State)
	assert.Zero(t, job.RunCount)
	assert.Nil(t, job.LastErrorCode)
	require.ErrorIs(t, err, migrations.ErrIncomplete)

	b.restored()
	require.Eventually(t, func() bool {
		r, err = e.Process(t.Context(), request(9))
		return err == nil
	}, pgtest.Patience, 50*time.Millisecond, "the schema is whole")
	assert.Equal(t, 1, r.Completed)
	assert.Len(t, fixture.Attempts(t, b.Pool, org, "inv-1"), 1)
}

type restoredJob struct{}

func (restoredJob) JobType() string { return "restored" }

// Sessions whose prepared statements were made for the tables before charge no job for that.
func TestStalePlansAreNoAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(context.Context, *jobs.Job[restoredJob]) error { return nil })
	e := engine.NewJobs(guarded(t, b.DB, store.Jobs), registry, engine.Options{Log: slog.New(slog.DiscardHandler)})
	defer e.Close()
	work := func(n int) (engine.Report, error) {
		return e.Process(t.Context(),
			engine.TurnRequest{Turn: turn(n), Batch: 10, Length: 300 * time.Millisecond, Linger: true})
	}
	enqueue := func() string {
		job, err := queue.EnqueueJob(t.Context(), b.Pool, org, restoredJob{}, queue.JobOptions{})
		require.NoError(t, err)
		return job.ID
	}
	enqueue()
	for n := range 8 {
		_, err := work(n)
		require.NoError(t, err)
	}
	b.exec(`DROP SCHEMA daybook, queues, internal CASCADE`)
	require.NoError(t, migrations.Up(t.Context(), b.URL))
	b.Pool.Reset() // the test's own sessions
	id := enqueue()
	require.Eventually(t, func() bool {
		_, _ = work(20)
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, id) == 1
	}, pgtest.Patience, 50*time.Millisecond)
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT run_count FROM daybook.jobs WHERE id = $1`, id))
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE job_id = $1`, id))
}

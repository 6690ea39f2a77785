package workers_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

// codes are what doctor finds about a type.
func (b *bundle) codes(jobType string) (codes []health.Code) {
	b.t.Helper()
	for _, f := range health.Check(b.t.Context(), health.Options{Pool: b.Pool}).Findings {
		if f.Type == jobType {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// A worker that has stopped is no worker that has a handler: doctor says so at once. One that runs
// again is on record again.
func TestStoppedWorkerHasNoHandler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := func(name string, r *jobs.Registry) *workers.Worker {
		w, err := workers.NewJobs(workers.JobsOptions{
			Client: b.client, Pool: b.Pool, Registry: r, Name: name,
			Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		t.Cleanup(w.Close)
		return w
	}
	other := jobs.NewRegistry()
	jobs.RegisterRaw(other, "mail", jobs.Policy{},
		func(context.Context, *jobs.Job[queue.RawPayload]) error { return nil })
	b.runWorker(made("other", other))
	w := made("stops", errands())
	onRecord := func() bool {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM daybook.job_workers WHERE name = 'stops' AND stopped_at IS NULL`) == 1
	}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- w.Run(ctx) }()
		b.eventually("it is on record", 10*time.Second, onRecord)
		cancel()
		require.NoError(t, <-ran)
		assert.False(t, onRecord())
	}
	b.exec(`INSERT INTO daybook.jobs (org_id, type, payload, ready_at) SELECT $1, t, '{}', now() - interval '2 minutes' FROM unnest('{errand,mail}'::text[]) t`, org)
	assert.Equal(t, []health.Code{health.HandlerMissing}, b.codes("errand"))
	assert.Equal(t, []health.Code{health.OldestDue}, b.codes("mail"), "the other one runs")
}

// A worker that cannot be put on record says which table is locked, and by whom, and goes on when
// it is not.
func TestStartSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.job_workers`)
	require.NoError(t, err)
	read, write := io.Pipe()
	w, err := workers.NewJobs(workers.JobsOptions{
		Client: b.client, Pool: b.Pool, Registry: errands(), Name: "waits",
		Log: slog.New(slog.NewTextHandler(write, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	b.runWorker(w)
	line, err := bufio.NewReader(read).ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, "the worker waits for the database before its first job")
	assert.Contains(t, line, "has locked daybook.job_workers")
	go func() { _, _ = io.Copy(io.Discard, read) }()
	t.Cleanup(func() { _ = write.Close() })
	require.NoError(t, tx.Rollback(t.Context()))
	b.eventually("it is on record", 20*time.Second, func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.job_workers WHERE name = 'waits'`) == 1
	})
}

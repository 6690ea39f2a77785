package workers_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

// TestEventsReachOtherProcesses: a listener hears of a dead letter, and is told that events may
// have been missed when its connection was lost.
func TestEventsReachOtherProcesses(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Owner: "growth"},
		func(context.Context, *jobs.Job[observedJob]) error { return jobs.Final(errors.New("no luck")) })
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := make(chan queue.Event, 100), make(chan error, 1)
	go func() {
		ended <- queue.ListenEvents(ctx, db.Pool, queue.EventFilter{Names: []queue.EventName{queue.EventFailed}},
			func(e queue.Event) { heard <- e })
	}()
	listening := func() {
		require.Eventually(t, func() bool {
			var n int
			err := db.Pool.QueryRow(t.Context(),
				`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%LISTEN daybook_events'`).Scan(&n)
			return err == nil && n == 1
		}, time.Minute, 20*time.Millisecond)
	}
	next := func() queue.Event {
		select {
		case e := <-heard:
			return e
		case <-time.After(time.Minute):
			require.Fail(t, "nothing was heard")
			return queue.Event{}
		}
	}
	fail := func() string {
		job, err := queue.EnqueueJob(t.Context(), db.Pool, "acme", observedJob{}, queue.JobOptions{})
		require.NoError(t, err)
		due, err := workers.NewDueJobs(workers.DueJobsOptions{
			Pool: db.Pool, Registry: registry, NotifyEvents: true,
			Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		_, err = due.Run(t.Context(), 10)
		require.NoError(t, err)
		due.Close()
		return job.ID
	}
	listening()
	id := fail()
	e := next()
	assert.WithinDuration(t, time.Now(), e.At, time.Minute)
	assert.NotEmpty(t, e.Worker)
	e.At, e.Worker = time.Time{}, ""
	assert.Equal(t, queue.Event{
		Name: queue.EventFailed, Kind: "jobs", OrgID: "acme", Type: "observed", JobID: id,
		Attempt: 1, Code: models.CodeHandlerError, Counted: true,
	}, e)

	_, err := db.Pool.Exec(t.Context(),
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%LISTEN daybook_events'`)
	require.NoError(t, err)
	assert.Equal(t, queue.EventMissed, next().Name)
	listening()
	id = fail()
	assert.Equal(t, id, next().JobID)
	cancel()
	assert.NoError(t, <-ended)
}

// TestListenersMayIdle: a limit on idle sessions, which the database or the role may have, ends no
// listener: it would tell of missed events again and again.
func TestListenersMayIdle(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `ALTER DATABASE `+db.Name+` SET idle_session_timeout = '200ms'`)
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), db.URL)
	require.NoError(t, err)
	defer pool.Close()
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := make(chan queue.Event, 100), make(chan error, 1)
	go func() {
		ended <- queue.ListenEvents(ctx, pool, queue.EventFilter{}, func(e queue.Event) { heard <- e })
	}()
	const listener = `SELECT coalesce(min(pid), 0) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' AND query LIKE '%LISTEN daybook_events'`
	require.Eventually(t, func() bool { return fixture.Count(t, db.Pool, listener) > 0 }, time.Minute, 5*time.Millisecond)
	listening := fixture.Count(t, db.Pool, listener)
	// Another session, which idles for as long, is ended.
	other, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	_, err = other.WaitForNotification(t.Context())
	require.ErrorContains(t, err, "57P05")
	_ = other.Close(t.Context())
	assert.Equal(t, listening, fixture.Count(t, db.Pool, listener))
	assert.Empty(t, heard)
	cancel()
	assert.NoError(t, <-ended)
}

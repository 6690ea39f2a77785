package workers_test

import (
	"context"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

// TestTwoPrimaries: while two servers of the address take writes, no job begins, and doctor says so
// first. When the older one has stopped, work goes on at the promoted one.
func TestTwoPrimaries(t *testing.T) {
	t.Parallel()
	start := func(of *devstack.Stack) *devstack.Stack {
		s, err := devstack.Start(t.Context(),
			devstack.Options{Private: true, NoTemporal: true, FastAndUnsafe: true, StandbyOf: of})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Stop(context.WithoutCancel(t.Context())) })
		return s
	}
	old := start(nil)
	require.NoError(t, migrations.Up(t.Context(), old.DatabaseURL))
	promoted := start(old)
	pool := poolOf(t, bothHosts(t, old, promoted))
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[slowJob]) error { return nil })
	due, err := workers.NewDueJobs(workers.DueJobsOptions{Pool: pool, Registry: r, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer due.Close()
	enqueue := func(address string) {
		_, err := queue.EnqueueJob(t.Context(), poolOf(t, address), "acme", slowJob{1}, queue.JobOptions{})
		require.NoError(t, err)
	}
	enqueue(old.DatabaseURL)
	report, err := due.Run(t.Context(), 10)
	require.NoError(t, err)
	assert.Equal(t, 1, report.Completed)
	assert.True(t, health.Check(t.Context(), health.Options{Pool: pool}).Working)

	admin := poolOf(t, promoted.AdminURL)
	require.Eventually(t, func() bool { // what it does not have yet, it would never get
		var n int
		err := admin.QueryRow(t.Context(), `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`).Scan(&n)
		return err == nil && n == 1
	}, time.Minute, 50*time.Millisecond)
	_, err = admin.Exec(t.Context(), `SELECT pg_promote()`)
	require.NoError(t, err)

	enqueue(old.DatabaseURL)
	enqueue(promoted.DatabaseURL)
	require.Eventually(t, func() bool {
		_, err = due.Run(t.Context(), 0) // takes nothing until it is noticed
		return err != nil
	}, time.Minute, 50*time.Millisecond)
	require.ErrorContains(t, err, "do not agree on one primary")
	assert.ErrorContains(t, err, "(timeline 2)")
	found := health.Check(t.Context(), health.Options{Pool: pool})
	require.NotEmpty(t, found.Findings)
	assert.Equal(t, health.SplitBrain, found.Findings[0].Code)
	assert.False(t, found.Working)
	assert.Contains(t, found.Summary, "(timeline 1)")
	for _, address := range []string{old.DatabaseURL, promoted.DatabaseURL} {
		var states string
		require.NoError(t, poolOf(t, address).QueryRow(t.Context(),
			`SELECT string_agg(state::text, ' ' ORDER BY id) FROM daybook.jobs`).Scan(&states))
		assert.Equal(t, "completed pending", states)
	}

	require.NoError(t, old.Stop(t.Context()))
	require.Eventually(t, func() bool {
		report, err = due.Run(t.Context(), 10)
		return err == nil && report.Completed == 1
	}, time.Minute, 50*time.Millisecond)
}

func poolOf(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// bothHosts is an address with two servers.
func bothHosts(t *testing.T, a, b *devstack.Stack) string {
	t.Helper()
	first, err := url.Parse(a.DatabaseURL)
	require.NoError(t, err)
	second, err := url.Parse(b.DatabaseURL)
	require.NoError(t, err)
	first.Host += "," + second.Host
	query := first.Query()
	query.Set("target_session_attrs", "read-write")
	first.RawQuery = query.Encode()
	return first.String()
}

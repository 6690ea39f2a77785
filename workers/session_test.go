package workers_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/testdb"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers"
)

// TestWorkersRefuseSessionsThatChangeTexts which are not ASCII.
func TestWorkersRefuseSessionsThatChangeTexts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `ALTER DATABASE `+b.Name+` SET client_encoding = 'LATIN1'`)
	require.NoError(t, err)
	b.refused()
}

// TestWorkersRefuseSessionsWithoutTriggers as a superuser may have them.
func TestWorkersRefuseSessionsWithoutTriggers(t *testing.T) {
	t.Parallel()
	if os.Getenv(testdb.EnvDatabaseURL) != "" {
		t.Skip("the server's superuser is not known")
	}
	b := setup(t)
	address, err := url.Parse(b.URL)
	require.NoError(t, err)
	password, _ := address.User.Password()
	address.User = url.UserPassword("postgres", password) // a dev stack's superuser has the same one
	admin, err := pgx.Connect(t.Context(), address.String())
	require.NoError(t, err)
	_, err = admin.Exec(t.Context(), `ALTER DATABASE `+b.Name+` SET session_replication_role = 'replica'`)
	require.NoError(t, errors.Join(err, admin.Close(t.Context())))
	b.refused()
}

// refused makes a worker of each kind in new sessions.
func (b *bundle) refused() {
	t := b.t
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	registry := jobs.NewRegistry()
	jobs.RegisterRaw(registry, "a", jobs.Policy{},
		func(context.Context, *jobs.Job[queue.RawPayload]) error { return nil })
	documents, err := workers.NewAccounting(workers.AccountingOptions{Client: b.client, Pool: pool})
	require.NoError(t, err)
	background, err := workers.NewJobs(workers.JobsOptions{Client: b.client, Pool: pool, Registry: registry})
	require.NoError(t, err)
	work, err := workers.NewTasks(workers.TasksOptions{Client: b.client, Pool: pool, Registry: tasks.NewRegistry()})
	require.NoError(t, err)
	for _, w := range []*workers.Worker{documents, background, work} {
		t.Cleanup(w.Close)
		require.ErrorIs(t, w.Run(t.Context()), store.ErrSession)
	}
	due, err := workers.NewDueJobs(workers.DueJobsOptions{Pool: pool, Registry: registry})
	require.NoError(t, err)
	t.Cleanup(due.Close)
	_, err = due.Run(t.Context(), 1)
	require.ErrorIs(t, err, store.ErrSession)
}

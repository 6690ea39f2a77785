package workers_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/queue"
)

// crash ends a server at once, as a crash does.
func crash(t *testing.T, s *devstack.Stack) {
	t.Helper()
	var data string
	require.NoError(t, poolOf(t, s.AdminURL).QueryRow(t.Context(), `SHOW data_directory`).Scan(&data))
	file, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	require.NoError(t, err)
	line, _, _ := bytes.Cut(file, []byte("\n"))
	pid, err := strconv.Atoi(string(line))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGQUIT))
}

// TestFailover: the primary crashes under load and the standby is promoted. Work goes on within five
// seconds; of what the new primary has, nothing is charged, nothing is done twice and nothing is
// stuck.
func TestFailover(t *testing.T) {
	t.Parallel()
	old := postgresOf(t, nil, "", 0)
	require.NoError(t, migrations.Up(t.Context(), old.DatabaseURL))
	_, err := poolOf(t, old.DatabaseURL).Exec(t.Context(), `CREATE TABLE effects (job text)`)
	require.NoError(t, err)
	standby := postgresOf(t, old, "", 0)
	admin := poolOf(t, standby.AdminURL)
	config, err := pgxpool.ParseConfig(pgtest.Servers(t, old.DatabaseURL, standby.DatabaseURL))
	require.NoError(t, err)
	config.MaxConns = 20
	queue.SideBySide(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	b := setup(t)
	own := b.Pool
	t.Cleanup(func() { pool.Close(); b.Pool = own })
	b.Pool = pool
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.Policy{}, func(_ context.Context, job *jobs.Job[slowJob]) error {
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO effects VALUES ($1)`, job.ID)
			return err
		})
		return nil
	})
	b.startJobs(r)
	b.runJobs(`{}`)

	load, stop := context.WithCancel(t.Context())
	defer stop()
	var acknowledged atomic.Int64
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ; load.Err() == nil; <-tick.C {
			ctx, cancel := context.WithTimeout(load, 2*time.Second)
			if _, err := queue.EnqueueJob(ctx, pool, org, slowJob{1}, queue.JobOptions{}); err == nil {
				acknowledged.Add(1)
			}
			cancel()
		}
	}()
	completed := func() (n int) {
		if err := admin.QueryRow(t.Context(), `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`).Scan(&n); err != nil {
			return -1
		}
		return n
	}
	b.eventually("it works", time.Minute, func() bool { return completed() > 100 })

	crash(t, old)
	b.eventually("it is promoted", time.Minute, func() bool { // recovery may cancel a statement that asks for it
		var standby bool
		err := admin.QueryRow(t.Context(), `SELECT pg_is_in_recovery() AND pg_promote(false)`).Scan(&standby)
		return err == nil && !standby
	})
	promoted, before, crowd := time.Now(), completed(), watchCrowd(t)
	b.eventually("it works again", time.Minute, func() bool { return completed() > before })
	gap := time.Since(promoted)
	assert.Less(t, gap, crowd.within(5*time.Second))
	more := completed()
	b.eventually("it goes on", time.Minute, func() bool { return completed() > more+100 })
	stop()
	<-loaded

	b.eventually("nothing is stuck", time.Minute, func() bool {
		return b.jobsIn("completed") == fixture.Count(t, pool, `SELECT count(*) FROM daybook.jobs`)
	})
	all := b.jobsIn("completed")
	assert.Equal(t, all, fixture.Count(t, pool, `SELECT count(*) FROM effects`), "each once")
	assert.Equal(t, all, fixture.Count(t, pool, `SELECT count(DISTINCT job) FROM effects`))
	assert.Zero(t, fixture.Count(t, pool, `SELECT count(*) FROM daybook.attempts WHERE outcome <> 'completed'`), "nothing is charged")
	t.Logf("work went on %s after the promotion; %d were acknowledged, %d are there (replication is asynchronous)",
		gap.Round(10*time.Millisecond), acknowledged.Load(), all)
}

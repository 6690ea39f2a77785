package workers_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// nap is a job that lasts for as long as its process lives.
type nap struct {
	Number int `json:"number"`
}

func (nap) JobType() string { return "nap" }

// naps are the handlers of the worker process of a name.
func naps(worker string) *jobs.Registry {
	r := jobs.NewRegistry()
	registerKeyed(r, worker)
	registerVersioned(r, worker)
	jobs.Register(r, jobs.Policy{Timeout: time.Hour}, func(ctx context.Context, _ *jobs.Job[nap]) error {
		<-ctx.Done()
		return ctx.Err()
	})
	jobs.Register(r, jobs.Policy{Timeout: time.Hour, MaxAttempts: 1}, func(ctx context.Context, job *jobs.Job[held]) error {
		conn, err := pgx.Connect(ctx, os.Getenv(envDatabase))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO effects VALUES ($1)`, job.ID)
			return err
		})
		_, err = conn.Exec(ctx, `SELECT pg_advisory_lock_shared(0, 0)`)
		return err
	})
	return r
}

// held is a job that waits until the test lets go of a lock, and then writes its effect.
type held struct{}

func (held) JobType() string { return "held" }

// napping has a worker process be at a job, and starts another one, which knows that it lives.
func (b *bundle) napping() (victim *os.Process) {
	b.t.Helper()
	victim = b.process("victim", envNaps+"=yes")
	b.runJobs(`{}`)
	_, err := queue.EnqueueJob(b.t.Context(), b.Pool, org, nap{}, queue.JobOptions{})
	require.NoError(b.t, err)
	b.eventually("the victim works", time.Minute, func() bool { return b.nappers("victim") == 1 })
	b.process("survivor", envNaps+"=yes")
	b.bothLive()
	// Each looks about every 2.5 seconds which workers live.
	time.Sleep(4 * time.Second)
	return victim
}

// bothLive waits until both workers hold their locks.
func (b *bundle) bothLive() {
	b.t.Helper()
	b.eventually("both live", time.Minute, func() bool {
		return fixture.Count(b.t, b.Pool, `
SELECT count(DISTINCT objid) FROM pg_locks
 WHERE classid = daybook.lock_class('workers')::oid AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == 2
	})
}

// nappers counts the jobs that a worker is at, or is charged with.
func (b *bundle) nappers(worker string) int {
	b.t.Helper()
	return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'leased' AND worker = $1 AND working`,
		worker)
}

// TestPausedWorkerIsNotCharged: a worker that does not run for longer than its leases last loses
// its jobs. They are worked elsewhere, are not charged, and take effect once, also when it runs on.
func TestPausedWorkerIsNotCharged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE effects (job text)`)
	gate, err := pgx.Connect(t.Context(), b.URL)
	require.NoError(t, err)
	defer func() { _ = gate.Close(context.WithoutCancel(t.Context())) }()
	_, err = gate.Exec(t.Context(), `SELECT pg_advisory_lock(0, 0)`)
	require.NoError(t, err)
	const n = 5
	for range n {
		_, err := queue.EnqueueJob(t.Context(), b.Pool, org, held{}, queue.JobOptions{})
		require.NoError(t, err)
	}
	paused := b.process("paused", envNaps+"=yes")
	b.runJobs(`{}`)
	b.eventually("it works", time.Minute, func() bool { return b.nappers("paused") == n })
	b.process("other", envNaps+"=yes")
	b.bothLive()

	require.NoError(t, paused.Signal(syscall.SIGSTOP))
	b.eventually("the other one works", time.Minute, func() bool { return b.nappers("other") == n })
	require.NoError(t, paused.Signal(syscall.SIGCONT))
	require.NoError(t, gate.Close(t.Context()))
	b.eventually("all is done", time.Minute, func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`) == n
	})
	assert.Equal(t, n, fixture.Count(t, b.Pool, `SELECT count(*) FROM effects`))
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE outcome <> 'completed'`))
}

// TestKilledWorkersJobBeginsElsewhere: before its lease expires, which takes ten seconds. It is four
// on a machine that does nothing else.
func TestKilledWorkersJobBeginsElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.napping().Kill())
	killed, crowd := time.Now(), watchCrowd(t)
	b.eventually("the survivor works", time.Minute, func() bool { return b.nappers("survivor") == 1 })
	took := time.Since(killed)
	assert.Less(t, took, crowd.within(8*time.Second))
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE outcome = 'lost'`))
	t.Logf("the job began elsewhere within %s", took.Round(100*time.Millisecond))
}

// TestLivingWorkerKeepsItsJob: all sessions of a worker are ended, again and again, and then it
// does not run for a while, but has sessions.
func TestLivingWorkerKeepsItsJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	victim := b.napping()
	for began := time.Now(); time.Since(began) < 12*time.Second; time.Sleep(300 * time.Millisecond) {
		b.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim' AND datname = current_database()`)
	}
	b.bothLive()
	require.NoError(t, victim.Signal(syscall.SIGSTOP))
	time.Sleep(5 * time.Second)
	require.NoError(t, victim.Signal(syscall.SIGCONT))
	assert.Equal(t, 1, b.nappers("victim"))
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE outcome = 'lost'`))
}

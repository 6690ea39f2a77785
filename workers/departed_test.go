package workers_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

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
	return r
}

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

// TestKilledWorkersJobBeginsElsewhere: within seconds of the kill, and before its lease expires.
func TestKilledWorkersJobBeginsElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, b.napping().Kill())
	killed, crowd := time.Now(), watchCrowd(t)
	b.eventually("the survivor works", time.Minute, func() bool { return b.nappers("survivor") == 1 })
	took := time.Since(killed)
	assert.Less(t, took, crowd.within(5*time.Second))
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

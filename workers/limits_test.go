package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// keyed is a job with a limit by its key. A Stuck one does not end in the process victim.
type keyed struct {
	Key   string `json:"key"`
	Stuck bool   `json:"stuck"`
}

func (keyed) JobType() string { return "keyed" }

// rekeyed is a job of another type with the same members.
type rekeyed keyed

func (rekeyed) JobType() string { return "rekeyed" }

// keyedParallel is how many jobs of a key run at a time.
const keyedParallel = 2

func registerKeyed(r *jobs.Registry, worker string) {
	limit := jobs.Limit{By: "payload.key", Parallel: keyedParallel}
	work := func(ctx context.Context, stuck bool) error {
		if stuck && worker == "victim" {
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(5 * time.Millisecond)
		return nil
	}
	jobs.Register(r, jobs.Policy{Timeout: time.Hour, Limit: limit}, func(ctx context.Context, job *jobs.Job[keyed]) error {
		return work(ctx, job.Payload.Stuck)
	})
	jobs.Register(r, jobs.Policy{Timeout: time.Hour}, func(ctx context.Context, job *jobs.Job[rekeyed]) error {
		return work(ctx, job.Payload.Stuck)
	})
}

// mostAtOnce is the largest number of attempts of a key that were under way at one time.
const mostAtOnce = `
SELECT coalesce(max(n), 0) FROM (
    SELECT (SELECT count(*) FROM daybook.attempt_log o JOIN daybook.jobs oj ON oj.id = o.job_id
             WHERE oj.limit_key = j.limit_key AND o.started_at <= a.started_at AND o.ended_at > a.started_at) AS n
      FROM daybook.attempt_log a JOIN daybook.jobs j ON j.id = a.job_id
     WHERE j.limit_key IS NOT NULL) x`

// TestKilledWorkerFreesThePlacesOfKeys kills the one of two workers that holds all places of all
// keys, long after it began: the other works what waits, and never more of a key than its limit says.
// The limit is that of their type, or that of a queue with jobs of two types.
func TestKilledWorkerFreesThePlacesOfKeys(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "bank"} {
		t.Run("queue "+in, func(t *testing.T) {
			t.Parallel()
			testKilledKeyHolder(t, in)
		})
	}
}

func testKilledKeyHolder(t *testing.T, in string) {
	b := setup(t)
	_, err := queue.SetQueue(t.Context(), b.Pool, queue.NamedQueue{
		Name: "bank", Limit: queue.Limit{By: "payload.key", Parallel: keyedParallel},
	})
	require.NoError(t, err)
	victim := b.process("victim", envNaps+"=yes")
	b.runJobs(`{}`)
	keys := []string{"a", "b", "c"}
	const each = 30
	var all []queue.NewJob
	for i := range each {
		for _, key := range keys {
			var payload queue.Payload = keyed{Key: key, Stuck: i%3 == 2}
			if in != "" && i%2 == 1 {
				payload = rekeyed{Key: key, Stuck: i%3 == 2}
			}
			all = append(all, queue.NewJob{OrgID: org, Payload: payload, Options: queue.JobOptions{Queue: in}})
		}
	}
	b.eventually("the victim has set its limit", time.Minute, func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.job_limits WHERE scope IN ('keyed', 'queue/bank')`) == 2
	})
	_, err = queue.EnqueueJobs(t.Context(), b.Pool, all)
	require.NoError(t, err)
	places := keyedParallel * len(keys)
	b.eventually("the victim holds all places", time.Minute, func() bool {
		return fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.jobs WHERE working AND worker = 'victim' AND (payload->>'stuck')::boolean`) == places
	})
	b.process("survivor", envNaps+"=yes")
	b.bothLive()
	b.exec(`UPDATE daybook.jobs SET ready_at = ready_at - interval '1 hour' WHERE working`)
	done := b.jobsIn("completed")
	time.Sleep(time.Second)
	assert.Equal(t, done, b.jobsIn("completed"), "all places are taken")

	require.NoError(t, victim.Kill())
	killed, crowd := time.Now(), watchCrowd(t)
	b.eventually("the survivor has worked all", 2*time.Minute, func() bool {
		return b.jobsIn("completed") == len(all)
	})
	took := time.Since(killed)
	assert.Less(t, took, crowd.within(10*time.Second))
	t.Logf("all were worked within %s", took.Round(100*time.Millisecond))
	assert.Equal(t, places, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE outcome = 'lost'`))
	assert.LessOrEqual(t, fixture.Count(t, b.Pool, mostAtOnce), keyedParallel)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.job_wait_checks`))
}

package jobs_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// limit sets the limit of greetings, as a worker does when it starts.
func (b *bundle) limit(l jobs.Limit) {
	b.t.Helper()
	require.NoError(b.t, b.store.NoteKeyLimits(b.t.Context(), []store.KeyLimit{{
		LimitScope: store.LimitScope{Type: "greet"}, By: l.By, Parallel: l.Parallel, Rate: l.Rate, RateSeconds: l.Per.Seconds(),
	}}))
}

// keyed enqueues n greetings of each key.
func (b *bundle) keyed(n int, keys ...string) {
	for _, key := range keys {
		b.exec(`SELECT daybook.enqueue_job($1, 'greet', jsonb_build_object('name', $2::text)) FROM generate_series(1, $3::int) i`,
			org, key, n)
	}
}

// open are the jobs that have not ended, inLine those that wait for their key's limit.
const (
	open   = `SELECT count(*) FROM daybook.jobs WHERE finished_at IS NULL`
	inLine = `SELECT count(*) FROM daybook.jobs WHERE finished_at IS NULL AND fleet = -2`
)

// TestLimitOfAKey: over two workers, no more jobs of a key run than its limit says, also of those
// that are tried again, and no other job waits for them.
func TestLimitOfAKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const each = 20
	var mu sync.Mutex
	crowds := map[string]*crowd{}
	free := make(chan struct{})
	policy := jobs.Policy{Base: 5 * time.Millisecond, Limit: jobs.Limit{By: "payload.name", Parallel: 2}}
	jobs.Register(b.registry, policy, func(ctx context.Context, job *jobs.Job[greet]) error {
		mu.Lock()
		at := crowds[job.Payload.Name]
		if at == nil {
			at = &crowd{}
			crowds[job.Payload.Name] = at
		}
		mu.Unlock()
		at.enter()
		defer at.leave()
		if job.Payload.Name == "busy" {
			select {
			case <-free:
			case <-ctx.Done():
			}
		}
		time.Sleep(2 * time.Millisecond)
		if job.Attempt == 1 {
			return errors.New("try again")
		}
		return nil
	})
	b.limit(policy.Limit)
	b.keyed(each, "busy", "a", "b", "")
	_, err := queue.EnqueueJobs(t.Context(), b.Pool, slices.Repeat([]queue.NewJob{
		{OrgID: org, Payload: greet{Name: "c"}}, {OrgID: org, Payload: greet{Name: "d"}, Options: queue.JobOptions{LimitKey: "a"}},
	}, each))
	require.NoError(t, err)
	b.lanes(2, b.engineOn(b.Pool), "one")
	b.lanes(2, b.engineOn(b.Pool), "two")
	b.until(5*each, completed)
	assert.Equal(t, each, b.count(open), "busy")
	close(free)
	b.until(0, open)

	assert.Equal(t, 6*each, b.count(completed))
	for _, key := range []string{"busy", "a", "b", "c", "d"} {
		assert.LessOrEqual(t, crowds[key].most.Load(), int32(2), key)
	}
	assert.Greater(t, crowds[""].most.Load(), int32(2), "without a key there is no limit")
	b.until(0, `SELECT count(*) FROM daybook.job_wait_checks`)
}

// TestRateOfAKey: over two workers, attempts of a key begin no faster than the rate of its type, or of
// its queue, says, and other keys do not wait for it.
func TestRateOfAKey(t *testing.T) {
	t.Parallel()
	t.Run("type", func(t *testing.T) {
		t.Parallel()
		testRate(t, "", (*bundle).limit)
	})
	t.Run("queue", func(t *testing.T) {
		t.Parallel()
		testRate(t, "bank", (*bundle).inBank)
	})
}

func testRate(t *testing.T, in string, limit func(*bundle, jobs.Limit)) {
	b := setup(t)
	const rate, each = 40, 60
	policy := jobs.Policy{Limit: jobs.Limit{By: "payload.name", Rate: rate, Per: time.Second}}
	var mu sync.Mutex
	began := map[string][]time.Time{}
	jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
		mu.Lock()
		defer mu.Unlock()
		began[job.Payload.Name] = append(began[job.Payload.Name], time.Now())
		return nil
	})
	limit(b, policy.Limit)
	b.enqueueIn(in, "greet", "a", each)
	b.enqueueIn(in, "greet", "b", each)
	b.lanes(1, b.engineOn(b.Pool), "one")
	b.lanes(1, b.engineOn(b.Pool), "two")
	b.until(0, open)

	require.Len(t, began, 2)
	for _, at := range began {
		slices.SortFunc(at, time.Time.Compare)
		require.Len(t, at, each)
		for first := range at {
			for last := first; last < each; last++ {
				// At once may begin 2, which is what 50 ms allow, and what was due in the last 250 ms.
				most := 2 + rate*at[last].Sub(at[first]).Seconds() + rate/4 + 1
				require.LessOrEqual(t, float64(last-first+1), most, "%s", at[last].Sub(at[first]))
			}
		}
		// All but the first two have to wait for their turn.
		assert.GreaterOrEqual(t, at[each-1].Sub(at[0]).Seconds(), float64(each-2)/rate-0.3)
	}
	require.Eventually(t, func() bool { return b.count(`SELECT count(*) FROM daybook.job_limit_rates`) == 0 }, long,
		20*time.Millisecond, "a key at rest has no row")
}

// TestRateIsRaised: what waits follows a higher rate within moments, whatever the lower one would have
// had it wait.
func TestRateIsRaised(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Rate: 1, Per: time.Hour})
	b.keyed(3, "k")
	b.check()
	require.Equal(t, 2, b.count(inLine), "one an hour")
	b.limit(jobs.Limit{By: "payload.name", Rate: 100, Per: time.Second})
	require.Eventually(t, func() bool {
		b.check()
		return b.count(inLine) == 0
	}, long, 20*time.Millisecond)
}

// TestLimitAndEveryEnd: however an attempt ends, and whatever a person does, the next job of its key
// begins.
func TestLimitAndEveryEnd(t *testing.T) {
	t.Parallel()
	failure := errors.New("no")
	for name, c := range map[string]struct {
		err error
		end func(b *bundle, id string)
	}{
		"completed":   {},
		"dead letter": {err: jobs.Final(failure)},
		"retried":     {err: failure},
		"snoozed":     {err: jobs.Snooze(time.Hour)},
		"cancelled":   {err: jobs.Cancel("no")},
		"cancelled before it began": {end: func(b *bundle, id string) {
			b.exec(`SELECT daybook.cancel_job($1)`, id)
		}},
		"cancelled in a transaction that sees less": {end: func(b *bundle, id string) {
			b.exec(`BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT daybook.cancel_job('` + id + `'); COMMIT`)
		}},
		"put off": {end: func(b *bundle, id string) { b.exec(`SELECT daybook.retry_job($1, 'later')`, id) }},
		"removed": {end: func(b *bundle, id string) { b.exec(`DELETE FROM daybook.jobs WHERE id = $1`, id) }},
		"moved on": {end: func(b *bundle, id string) {
			b.exec(`UPDATE daybook.jobs SET ready_at = ready_at + interval '1 hour' WHERE id = $1`, id)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			policy := jobs.Policy{Base: time.Hour, Limit: jobs.Limit{Parallel: 1}}
			jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
				if job.Payload.Name == "first" {
					return c.err
				}
				return nil
			})
			b.limit(policy.Limit)
			first := b.enqueue(greet{Name: "first"}, queue.JobOptions{LimitKey: "k"})
			b.check()
			next := b.enqueue(greet{Name: "next"}, queue.JobOptions{LimitKey: "k"})
			b.check()
			assert.Equal(t, 1, b.count(inLine))
			if c.end != nil {
				c.end(b, first)
			} else {
				b.work()
			}
			b.check()
			b.work()
			assert.Equal(t, models.JobCompleted, b.row(next).State)
		})
	}
}

// TestRetriesOfAKeyAreLimited: many dead letters of a key that are tried again at once wait for each
// other.
func TestRetriesOfAKeyAreLimited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var at crowd
	var fail atomic.Bool
	fail.Store(true)
	policy := jobs.Policy{Limit: jobs.Limit{By: "org_id", Parallel: 3}}
	jobs.Register(b.registry, policy, func(context.Context, *jobs.Job[greet]) error {
		if fail.Load() {
			return jobs.Final(errors.New("no"))
		}
		at.enter()
		defer at.leave()
		time.Sleep(time.Millisecond)
		return nil
	})
	b.limit(policy.Limit)
	b.keyed(60, "a")
	b.lanes(2, b.engineOn(b.Pool), "one")
	b.until(60, `SELECT count(*) FROM daybook.jobs WHERE state = 'failed'`)
	fail.Store(false)
	b.exec(`SELECT daybook.retry_jobs(array_agg(id), '{failed}', 'reset') FROM daybook.jobs`)
	b.until(60, completed)
	assert.LessOrEqual(t, at.most.Load(), int32(3))
}

// TestLimitChanges: what waits follows the limit when that is changed or removed, and a person's
// limit goes before that of the policy.
func TestLimitChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Parallel: 1})
	b.keyed(5, "a", "b")
	inLineNow := func() int {
		b.check()
		return b.count(inLine)
	}
	assert.Equal(t, 8, inLineNow())
	b.limit(jobs.Limit{By: "payload.name", Parallel: 3})
	assert.Equal(t, 4, inLineNow())
	b.exec(`SELECT daybook.set_job_limit('greet', by => 'payload.name', parallel => 4)`)
	assert.Equal(t, 2, inLineNow())
	b.limit(jobs.Limit{})
	assert.Equal(t, 2, inLineNow(), "a person's limit stays")
	b.exec(`SELECT daybook.set_job_limit('greet')`)
	assert.Equal(t, 0, inLineNow())
	assert.Equal(t, 10, b.count(`SELECT count(*) FROM daybook.jobs WHERE fleet = 0`))
}

// TestLimitedJobsOfASequence: a job that waits for its turn holds no place of its key.
func TestLimitedJobsOfASequence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var order []string
	policy := jobs.Policy{Limit: jobs.Limit{Parallel: 1}}
	jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
		order = append(order, job.Payload.Name)
		return nil
	})
	b.limit(policy.Limit)
	one := b.enqueue(greet{Name: "one"}, queue.JobOptions{Sequence: "s", LimitKey: "other", RunAt: time.Now().Add(time.Hour)})
	b.enqueue(greet{Name: "two"}, queue.JobOptions{Sequence: "s", LimitKey: "k"})
	b.check()
	b.enqueue(greet{Name: "three"}, queue.JobOptions{LimitKey: "k"})
	b.check()
	b.work()
	assert.Equal(t, []string{"three"}, order)
	b.exec(`SELECT daybook.retry_job($1)`, one)
	for range 100 { // the engine checks beside this, so a round may find nothing to work
		b.check()
		b.work()
		if len(order) == 3 {
			break
		}
	}
	assert.Equal(t, []string{"three", "one", "two"}, order)
}

// TestReclaimedJobsFreeTheirPlaces: what a worker held whose leases have ended lines up again, and
// others of the key begin.
func TestReclaimedJobsFreeTheirPlaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const hold = `SELECT count(*) FROM daybook.jobs WHERE finished_at IS NULL AND fleet >= 0`
	b.limit(jobs.Limit{By: "payload.name", Parallel: 2})
	b.keyed(6, "k")
	b.check()
	assert.Equal(t, 2, b.count(hold))
	b.exec(`UPDATE daybook.jobs SET state = 'leased', turn_id = 'dead', fence = 1, worker = 'dead', leased_generation = generation, run_count = 1,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp() WHERE fleet >= 0`)
	b.check()
	assert.Equal(t, 2, b.count(hold), "a lease keeps its place")
	_, err := b.store.ReclaimTurns(t.Context(), b.turn(), []string{"dead"}, true)
	require.NoError(t, err)
	b.check()
	assert.Equal(t, 2, b.count(hold))
	assert.Equal(t, 4, b.count(inLine), "those that were reclaimed wait with the others, in the order of their times")
}

package jobs_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// inBank declares the queue bank with a limit by key.
func (b *bundle) inBank(l jobs.Limit) {
	b.t.Helper()
	_, err := queue.SetQueue(b.t.Context(), b.Pool, queue.NamedQueue{Name: "bank", Limit: l})
	require.NoError(b.t, err)
}

// enqueueIn enqueues n jobs of a type and a key in a named queue; empty: in none.
func (b *bundle) enqueueIn(name, jobType, key string, n int) {
	b.exec(`SELECT daybook.enqueue_job($1, $2, jsonb_build_object('name', $3::text), queue => nullif($4::text, '')) FROM generate_series(1, $5::int) i`,
		org, jobType, key, name, n)
}

// TestLimitOfAQueue: over two workers, no more jobs of a key run than the limit of their queue says,
// whatever their types, and neither other keys nor jobs outside of the queue wait for them.
func TestLimitOfAQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const each = 20
	var mu sync.Mutex
	crowds := map[string]*crowd{}
	free := make(chan struct{})
	work := func(ctx context.Context, key string) {
		mu.Lock()
		at := crowds[key]
		if at == nil {
			at = &crowd{}
			crowds[key] = at
		}
		mu.Unlock()
		at.enter()
		defer at.leave()
		if key == "busy" {
			select {
			case <-free:
			case <-ctx.Done():
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[greet]) error {
		work(ctx, job.Payload.Name)
		return nil
	})
	jobs.RegisterRaw(b.registry, "wave", jobs.Policy{}, func(ctx context.Context, job *jobs.Job[queue.RawPayload]) error {
		var p greet
		if err := json.Unmarshal(job.Payload.Data, &p); err != nil {
			return err
		}
		work(ctx, p.Name)
		return nil
	})
	b.inBank(jobs.Limit{By: "payload.name", Parallel: 2})
	for _, jobType := range []string{"greet", "wave"} {
		for _, key := range []string{"busy", "a", "b"} {
			b.enqueueIn("bank", jobType, key, each)
		}
		b.enqueueIn("", jobType, "outside", each)
	}
	b.lanes(2, b.engineOn(b.Pool), "one")
	b.lanes(2, b.engineOn(b.Pool), "two")
	b.until(6*each, completed)
	assert.Equal(t, 2*each, b.count(open), "busy")
	close(free)
	b.until(0, open)
	for _, key := range []string{"busy", "a", "b"} {
		assert.LessOrEqual(t, crowds[key].most.Load(), int32(2), key)
	}
	assert.Greater(t, crowds["outside"].most.Load(), int32(2))
}

// TestQueueGetsAndLosesItsLimit: a job keeps the limit that it was enqueued with when its queue gets
// one, and what waits for a limit that goes may begin.
func TestQueueGetsAndLosesItsLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Parallel: 1})
	b.inBank(jobs.Limit{})
	b.enqueueIn("bank", "greet", "k", 3)
	b.check()
	b.inBank(jobs.Limit{By: "payload.name", Parallel: 2})
	b.enqueueIn("bank", "greet", "k", 3)
	b.exec(`SELECT daybook.enqueue_job($1, 'greet', '{}', queue => 'bank')`, org)
	b.check()
	const placesOf = ` AND limit_scope = $1`
	assert.Equal(t, 1, b.count(admitted+placesOf, "greet"))
	assert.Equal(t, 2, b.count(inLine+placesOf, "greet"))
	assert.Equal(t, 2, b.count(admitted+placesOf, "queue/bank"))
	assert.Equal(t, 1, b.count(inLine+placesOf, "queue/bank"))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE limit_scope IS NULL AND fleet = 0`), "it has no key")

	b.inBank(jobs.Limit{})
	b.check()
	assert.Equal(t, 3, b.count(admitted+placesOf, "queue/bank"))
	assert.Equal(t, 2, b.count(inLine+placesOf, "greet"))
}

// TestQueueOrItsTypesLimit: a job that the limit of its queue gives no key has that of its type.
func TestQueueOrItsTypesLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.limit(jobs.Limit{By: "payload.name", Parallel: 1})
	b.inBank(jobs.Limit{By: "payload.account", Parallel: 1})
	scope := func(payload string, o queue.JobOptions) (scope, key string) {
		o.Queue = "bank"
		job, err := queue.EnqueueJob(t.Context(), b.Pool, org, queue.RawPayload{Type: "greet", Data: []byte(payload)}, o)
		require.NoError(t, err)
		require.NoError(t, b.Pool.QueryRow(t.Context(),
			`SELECT coalesce(limit_scope, ''), coalesce(limit_key, '') FROM daybook.jobs WHERE id = $1`, job.ID).Scan(&scope, &key))
		return scope, key
	}
	for _, c := range []struct {
		payload string
		options queue.JobOptions
		want    [2]string
	}{
		{`{"name": "n", "account": "a"}`, queue.JobOptions{}, [2]string{"queue/bank", "a"}},
		{`{"name": "n"}`, queue.JobOptions{}, [2]string{"greet", "n"}},
		{`{"name": "n"}`, queue.JobOptions{LimitKey: "own"}, [2]string{"queue/bank", "own"}},
		{`{"name": ""}`, queue.JobOptions{}, [2]string{"", ""}},
		{`{"name": "n", "account": "d"}`, queue.JobOptions{Debounce: queue.Debounce{Key: "d", Wait: time.Minute}}, [2]string{"queue/bank", "d"}},
		{`{"name": "n"}`, queue.JobOptions{Debounce: queue.Debounce{Key: "d", Wait: time.Minute}}, [2]string{"greet", "n"}},
	} {
		s, k := scope(c.payload, c.options)
		assert.Equal(t, c.want, [2]string{s, k}, c.payload)
	}
	made, err := queue.EnqueueJobs(t.Context(), b.Pool, []queue.NewJob{
		{OrgID: org, Payload: queue.RawPayload{Type: "greet", Data: []byte(`{"account": "a"}`)}, Options: queue.JobOptions{Queue: "bank"}},
		{OrgID: org, Payload: queue.RawPayload{Type: "greet", Data: []byte(`{"name": "n", "account": "a"}`)}},
		{OrgID: org, Payload: queue.RawPayload{Type: "wave", Data: []byte(`{"account": "a"}`)}},
	})
	require.NoError(t, err)
	for i, want := range []string{"queue/bank", "greet", ""} {
		assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND coalesce(limit_scope, '') = $2`, made[i].ID, want))
	}
	none := b.enqueue(greet{}, queue.JobOptions{Queue: "bank"})
	b.exec(`SELECT daybook.edit_job($1, '{"account": "e"}')`, none)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND limit_scope = 'queue/bank' AND limit_key = 'e'`, none))
}

// TestDeadLetterInALimitedQueue: a dead letter that is tried again, also with another payload, waits in
// its line of its queue.
func TestDeadLetterInALimitedQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.inBank(jobs.Limit{By: "payload.name", Parallel: 1})
	b.enqueueIn("bank", "greet", "k", 1)
	b.enqueueIn("bank", "wave", "other", 1)
	b.exec(`UPDATE daybook.jobs SET state = 'failed', finished_at = clock_timestamp(), run_count = 1, last_error = 'no', last_error_code = 'NO'`)
	b.enqueueIn("bank", "greet", "k", 1)
	b.check()
	b.exec(`SELECT daybook.retry_job(id) FROM daybook.jobs WHERE state = 'failed' AND type = 'greet'`)
	b.exec(`SELECT daybook.edit_job(id, '{"name": "k"}', retry => 'now') FROM daybook.jobs WHERE state = 'failed'`)
	b.check()
	assert.Equal(t, 1, b.count(admitted+` AND limit_key = 'k'`))
	assert.Equal(t, 2, b.count(inLine+` AND limit_scope = 'queue/bank' AND limit_key = 'k'`))
}

// TestPausedLine: nothing of a paused organization or queue begins, what is admitted meanwhile keeps its
// place, other jobs go on, and afterwards the whole line is worked, within its limit.
func TestPausedLine(t *testing.T) {
	t.Parallel()
	limit := jobs.Limit{By: "payload.name", Parallel: 2}
	for name, c := range map[string]struct {
		limit         func(b *bundle)
		pause, resume string
	}{
		"organization": {
			limit:  func(b *bundle) { b.limit(limit) },
			pause:  `INSERT INTO daybook.organizations (id, paused_at) VALUES ('` + org + `', now()) ON CONFLICT (id) DO UPDATE SET paused_at = now()`,
			resume: `UPDATE daybook.organizations SET paused_at = NULL`,
		},
		"queue, limit of the type": {
			limit: func(b *bundle) { b.limit(limit) }, pause: `SELECT daybook.pause_queue('bank')`,
			resume: `SELECT daybook.pause_queue('bank', false)`,
		},
		"queue, its own limit": {
			limit: func(b *bundle) { b.inBank(limit) }, pause: `SELECT daybook.pause_queue('bank')`,
			resume: `SELECT daybook.pause_queue('bank', false)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var at crowd
			jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
				if job.Payload.Name == "k" {
					at.enter()
					defer at.leave()
				}
				return nil
			})
			b.inBank(jobs.Limit{})
			c.limit(b)
			b.exec(c.pause)
			b.enqueueIn("bank", "greet", "k", 10)
			b.exec(`SELECT daybook.enqueue_job('else', 'greet', '{"name": "free"}') FROM generate_series(1, 10)`)
			b.lanes(1, b.engineOn(b.Pool), "one")
			b.until(8, inLine)
			b.until(10, completed)
			assert.Equal(t, 2, b.count(admitted+` AND org_id = $1`, org))
			b.exec(c.resume)
			b.until(20, completed)
			assert.LessOrEqual(t, at.most.Load(), int32(2))
			b.until(0, open)
		})
	}
}

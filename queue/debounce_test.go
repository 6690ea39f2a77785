package queue_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// debounced are the options of a request with the key "customer-17".
func debounced(wait, longest time.Duration, keep queue.Keep) queue.JobOptions {
	return queue.JobOptions{Debounce: queue.Debounce{Key: "customer-17", Wait: wait, MaxWait: longest, Keep: keep}}
}

// What a request does to a job that waits and was never tried, by each function that enqueues.
func TestDebouncedJobThatWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keep    queue.Keep
		payload string
		want    queue.Result
	}{
		"newest": {"", `{"user_id": "second"}`, queue.Replaced},
		"first":  {queue.KeepFirst, `{"note": "a", "user_id": "first"}`, queue.Rescheduled},
		"merged": {queue.KeepMerged, `{"note": "a", "user_id": "second"}`, queue.Replaced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			first := b.newJob(welcome{UserID: "first", Note: "a"}, debounced(hour, 0, c.keep))
			assert.Equal(t, queue.EnqueuedJob{ID: first.ID, Result: queue.Enqueued}, first)
			before := b.queued(first.ID)
			assert.WithinDuration(t, before.CreatedAt.Add(hour), before.ReadyAt, time.Second)

			again := debounced(2*hour, 0, c.keep)
			again.Priority = queue.High
			assert.Equal(t, queue.EnqueuedJob{ID: first.ID, Duplicate: true, Result: c.want}, b.newJob(welcome{UserID: "second"}, again))
			after := b.queued(first.ID)
			assert.JSONEq(t, c.payload, string(after.Payload))
			assert.WithinDuration(t, before.CreatedAt.Add(2*hour), after.ReadyAt, time.Minute)
			assert.Equal(t, after.ReadyAt, after.FirstReadyAt)
			assert.Equal(t, queue.High, after.Priority)
			assert.Equal(t, "customer-17", *after.DebounceKey)

			rs, err := queue.EnqueueJobs(t.Context(), b.Pool, []queue.NewJob{
				{OrgID: org, Payload: welcome{UserID: "third"}, Options: again},
				{OrgID: org, Payload: welcome{}},
				{OrgID: org + "2", Payload: welcome{}, Options: again},
				{OrgID: org, Payload: queue.RawPayload{Type: "other"}, Options: again},
			})
			require.NoError(t, err)
			assert.Equal(t, first.ID, rs[0].ID)
			assert.Equal(t, c.want, rs[0].Result)
			for _, r := range rs[1:] {
				assert.Equal(t, queue.Enqueued, r.Result, "no other organization, type or job without a key is meant")
			}
		})
	}
}

// In one call, requests for new keys make jobs, and those for a key that has one, also by an earlier
// request of the call, change it. The answers are in the order of the requests.
func TestManyDebouncedJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := debounced(hour, 0, "")
	request := func(key, user string) queue.NewJob {
		o.Debounce.Key = key
		return queue.NewJob{OrgID: org, Payload: welcome{UserID: user}, Options: o}
	}
	o.Debounce.Key = "b"
	there := b.newJob(welcome{UserID: "0"}, o).ID

	rs, err := queue.EnqueueJobs(t.Context(), b.Pool, []queue.NewJob{
		request("c", "1"), request("b", "2"), request("a", "3"), request("c", "4"),
	})
	require.NoError(t, err)
	assert.Equal(t, queue.EnqueuedJob{ID: there, Duplicate: true, Result: queue.Replaced}, rs[1])
	assert.Equal(t, queue.EnqueuedJob{ID: rs[0].ID, Duplicate: true, Result: queue.Replaced}, rs[3])
	for i, user := range map[int]string{0: "4", 1: "2", 2: "3"} {
		assert.Equal(t, i != 1, rs[i].Result == queue.Enqueued)
		assert.JSONEq(t, `{"user_id": "`+user+`"}`, string(b.queued(rs[i].ID).Payload))
	}
}

// However many requests follow, the job is due at MaxWait after the first.
func TestDebouncedJobIsDueAtMaxWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := debounced(hour, 90*time.Minute, "")
	id := b.newJob(welcome{}, o).ID
	made := b.queued(id).CreatedAt
	for range 3 {
		b.newJob(welcome{}, o)
	}
	assert.WithinDuration(t, made.Add(hour), b.queued(id).ReadyAt, time.Minute)

	b.exec(`UPDATE daybook.jobs SET created_at = created_at - interval '1 hour'`)
	b.newJob(welcome{}, o)
	assert.WithinDuration(t, made.Add(30*time.Minute), b.queued(id).ReadyAt, time.Second)

	b.exec(`UPDATE daybook.jobs SET created_at = created_at - interval '1 hour', ready_at = statement_timestamp() - interval '7 minutes', first_ready_at = statement_timestamp() - interval '7 minutes'`)
	due := b.queued(id).ReadyAt
	assert.Equal(t, queue.Replaced, b.newJob(welcome{UserID: "newest"}, o).Result)
	after := b.queued(id)
	assert.Equal(t, due, after.ReadyAt, "it keeps its place among those that are due")
	assert.JSONEq(t, `{"user_id": "newest"}`, string(after.Payload))
}

// A payload that an attempt had stays: what is asked for later is a job of its own, which begins
// when the earlier one has ended.
func TestDebouncedJobThatHasBegun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keep  queue.Keep
		state models.JobState
		// earlier is what becomes of the job that has begun; result is of the request.
		earlier models.JobState
		result  queue.Result
	}{
		"newest, running":                {queue.KeepNewest, models.JobLeased, models.JobLeased, queue.Enqueued},
		"first, running":                 {queue.KeepFirst, models.JobLeased, models.JobLeased, queue.Enqueued},
		"merged, running":                {queue.KeepMerged, models.JobLeased, models.JobLeased, queue.Enqueued},
		"newest, waits after an attempt": {queue.KeepNewest, models.JobPending, models.JobCancelled, queue.Enqueued},
		"first, waits after an attempt":  {queue.KeepFirst, models.JobPending, models.JobPending, queue.Unchanged},
		"merged, waits after an attempt": {queue.KeepMerged, models.JobPending, models.JobPending, queue.Enqueued},
		"newest, a dead letter":          {queue.KeepNewest, models.JobFailed, models.JobFailed, queue.Enqueued},
		"newest, completed":              {queue.KeepNewest, models.JobCompleted, models.JobCompleted, queue.Enqueued},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			o := debounced(0, 0, c.keep)
			first := b.newJob(welcome{UserID: "first"}, o)
			b.end(first.ID, c.state)
			b.exec(`UPDATE daybook.jobs SET last_attempted_at = clock_timestamp()`)
			before := b.queued(first.ID)

			second := b.newJob(welcome{UserID: "second"}, o)
			assert.Equal(t, c.result, second.Result)
			after := b.queued(first.ID)
			assert.Equal(t, c.earlier, after.State)
			assert.JSONEq(t, `{"user_id": "first"}`, string(after.Payload))
			if c.result == queue.Unchanged {
				assert.Equal(t, first.ID, second.ID)
				assert.Equal(t, before.ReadyAt, after.ReadyAt)
				return
			}
			waits := after.State == models.JobLeased || after.State == models.JobPending
			assert.Equal(t, waits, b.queued(second.ID).ReadyAt.Year() == 9999, "it waits for the end of the earlier one")
			if after.State == models.JobCancelled {
				assert.Equal(t, models.CodeReplaced, *after.LastErrorCode)
			}

			assert.Equal(t, second.ID, b.newJob(welcome{UserID: "third"}, o).ID, "further requests go to the new one")
			b.exec(`UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp(), turn_id = NULL, fence = NULL, leased_generation = NULL,
			               attempt_started_at = NULL, worker = NULL, working = false WHERE id = $1 AND state IN ('pending', 'leased')`, first.ID)
			assert.Less(t, b.queued(second.ID).ReadyAt.Year(), 9999)
		})
	}
}

// A running job whose attempt fails is not tried again with its old payload, if only the newest
// counts; otherwise it is, and the new one goes on after it.
func TestDebouncedJobWhoseEarlierOneFails(t *testing.T) {
	t.Parallel()
	for keep, want := range map[queue.Keep]models.JobState{
		queue.KeepNewest: models.JobCancelled, queue.KeepFirst: models.JobPending, queue.KeepMerged: models.JobPending,
	} {
		t.Run(string(keep), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			first := b.newJob(welcome{UserID: "first"}, debounced(0, 0, keep))
			b.end(first.ID, models.JobLeased)
			second := b.newJob(welcome{UserID: "second"}, debounced(0, 0, keep))
			b.exec(`UPDATE daybook.jobs SET state = 'pending', turn_id = NULL, fence = NULL, leased_generation = NULL, attempt_started_at = NULL,
			               worker = NULL, working = false WHERE id = $1`, first.ID)
			assert.Equal(t, want, b.queued(first.ID).State)
			assert.Equal(t, want == models.JobPending, b.queued(second.ID).ReadyAt.Year() == 9999)
		})
	}
}

// A job that another one waits for is not cancelled for a newer one, which would fail the other.
func TestDebouncedJobThatAnotherAwaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.newJob(welcome{UserID: "first"}, debounced(0, 0, ""))
	b.newJob(welcome{}, queue.JobOptions{After: []string{first.ID}})
	b.end(first.ID, models.JobPending)
	b.exec(`UPDATE daybook.jobs SET last_attempted_at = clock_timestamp() WHERE id = $1`, first.ID)
	second := b.newJob(welcome{UserID: "second"}, debounced(0, 0, ""))
	assert.Equal(t, models.JobPending, b.queued(first.ID).State)
	assert.Equal(t, 9999, b.queued(second.ID).ReadyAt.Year())
}

// Payloads are merged by the function that a request names.
func TestDebouncedPayloadsAreMergedByAFunction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE FUNCTION public."add ids"(older jsonb, newer jsonb) RETURNS jsonb LANGUAGE sql
	        AS $$ SELECT jsonb_build_object('ids', older -> 'ids' || (newer -> 'ids')) $$`)
	o := debounced(hour, 0, queue.KeepMerged)
	o.Debounce.Merge = `public."add ids"`
	ids := func(list string) queue.RawPayload {
		return queue.RawPayload{Type: "sync", Data: json.RawMessage(`{"ids": ` + list + `}`)}
	}
	id := b.newJob(ids(`[1, 2]`), o).ID
	b.newJob(ids(`[3]`), o)
	assert.JSONEq(t, `{"ids": [1, 2, 3]}`, string(b.queued(id).Payload))

	b.exec(`CREATE FUNCTION public.nothing(jsonb, jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb'`)
	o.Debounce.Merge = "nothing"
	_, err := queue.EnqueueJob(t.Context(), b.Pool, org, ids(`[4]`), o)
	require.ErrorIs(t, err, queue.ErrPayloadInvalid)
	o.Debounce.Merge = "jsonb_contains"
	_, err = queue.EnqueueJob(t.Context(), b.Pool, org, ids(`[4]`), o)
	require.ErrorContains(t, err, "there is no function jsonb_contains(jsonb, jsonb) that returns jsonb")
	assert.JSONEq(t, `{"ids": [1, 2, 3]}`, string(b.queued(id).Payload))
}

// What has no clear meaning is refused before anything is written, in SQL as well.
func TestDebounceIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	with := func(change func(o *queue.JobOptions)) queue.JobOptions {
		o := debounced(hour, 0, "")
		change(&o)
		return o
	}
	for name, o := range map[string]queue.JobOptions{
		"no key":           with(func(o *queue.JobOptions) { o.Debounce.Key = "" }),
		"a negative wait":  with(func(o *queue.JobOptions) { o.Debounce.Wait = -1 }),
		"a short MaxWait":  with(func(o *queue.JobOptions) { o.Debounce.MaxWait = time.Minute }),
		"an unknown mode":  with(func(o *queue.JobOptions) { o.Debounce.Keep = "last" }),
		"a needless merge": with(func(o *queue.JobOptions) { o.Debounce.Merge = "f" }),
		"a key":            with(func(o *queue.JobOptions) { o.IdempotencyKey = "k" }),
		"a time":           with(func(o *queue.JobOptions) { o.RunAt = time.Now() }),
		"unique":           with(func(o *queue.JobOptions) { o.Unique = true }),
		"a sequence":       with(func(o *queue.JobOptions) { o.Sequence = "s" }),
		"jobs to wait for": with(func(o *queue.JobOptions) { o.After = []string{"j"} }),
	} {
		_, err := queue.EnqueueJob(t.Context(), b.Pool, org, welcome{}, o)
		require.ErrorIs(t, err, queue.ErrInvalidDebounce, name)
	}
	for _, args := range []string{
		`debounce => '[]'`, `debounce => '{"key": "k"}'`, `debounce => '{"key": 1, "wait_seconds": 1}'`,
		`debounce => '{"key": "k", "wait_seconds": 1e400}'`, `debounce => '{"key": "k", "wait_seconds": "1"}'`,
		`debounce => '{"key": "k", "wait_seconds": 1, "max_wait_seconds": "2"}'`, `debounce => '{"key": "k", "wait_seconds": 2, "max_wait_seconds": 1}'`,
		`debounce => '{"key": "k", "wait_seconds": 1, "keep": "last"}'`, `debounce => '{"key": "k", "wait_seconds": 1, "merge": "f"}'`,
		`debounce => '{"key": "k", "wait_seconds": 1, "more": 1}'`, `debounce => '{"key": "k", "wait_seconds": 1}', ready_at => now()`,
		`debounce => '{"key": "k", "wait_seconds": 1}', unique_payload => true`,
		`debounce => '{"key": "k", "wait_seconds": 1}', idempotency_key => 'k'`,
	} {
		_, err := b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_job('o', 't', '{}', `+args+`)`)
		assert.ErrorContains(t, err, "DB010", args)
	}
	assert.Zero(t, b.number(`SELECT count(*) FROM daybook.jobs`))
}

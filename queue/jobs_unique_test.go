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

// What a request for a unique job does that is there already, by all of the functions that enqueue.
func TestUniqueJobIsAskedForAgain(t *testing.T) {
	t.Parallel()
	now, later := queue.JobOptions{Unique: true}, queue.JobOptions{Unique: true, RunAt: time.Now().Add(hour)}
	for name, c := range map[string]struct {
		first, again queue.JobOptions
		// state is what the job is in when it is asked for again; empty: as it was enqueued.
		state models.JobState
		want  queue.Result
	}{
		"due already":                    {now, now, "", queue.Unchanged},
		"due later, asked for now":       {later, now, "", queue.Rescheduled},
		"due now, asked for later":       {now, later, "", queue.Unchanged},
		"waits after an attempt":         {now, now, models.JobPending, queue.Unchanged},
		"running":                        {now, now, models.JobLeased, queue.Coalesced},
		"running, asked for an hour off": {now, later, models.JobLeased, queue.Coalesced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			first := b.newJob(welcome{}, c.first)
			assert.Equal(t, queue.Enqueued, first.Result)
			if c.state != "" {
				b.end(first.ID, c.state)
				b.exec(`UPDATE daybook.jobs SET last_attempted_at = clock_timestamp()`)
			}
			before := b.queued(first.ID)
			assert.Equal(t, queue.EnqueuedJob{ID: first.ID, Duplicate: true, Result: c.want}, b.newJob(welcome{}, c.again))
			after := b.queued(first.ID)
			assert.Equal(t, c.want == queue.Coalesced, after.Generation > before.Generation)
			assert.Equal(t, c.want == queue.Rescheduled, after.ReadyAt.Before(before.ReadyAt))
			assert.Equal(t, c.want == queue.Rescheduled, after.FirstReadyAt.Before(before.FirstReadyAt))

			rs, err := queue.EnqueueJobs(t.Context(), b.Pool,
				[]queue.NewJob{
					{OrgID: org, Payload: welcome{UserID: "other"}},
					{OrgID: org, Payload: welcome{}, Options: c.again},
				})
			require.NoError(t, err)
			assert.Equal(t, queue.Enqueued, rs[0].Result)
			assert.Equal(t, first.ID, rs[1].ID)
		})
	}
}

// A unique job that is due already and is given a higher priority is the newest of it: a worker's
// cursor may have passed its old time.
func TestUniqueJobOfAHigherPriorityIsAheadOfCursors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{}, queue.JobOptions{Unique: true, Priority: queue.Low}).ID
	before := b.queued(id)
	assert.Equal(t, queue.Unchanged, b.newJob(welcome{}, queue.JobOptions{Unique: true, Priority: queue.High}).Result)
	after := b.queued(id)
	assert.Equal(t, queue.High, after.Priority)
	assert.True(t, after.ReadyAt.After(before.ReadyAt), "its time is that of the request")
	assert.Equal(t, before.FirstReadyAt, after.FirstReadyAt)

	b.newJob(welcome{}, queue.JobOptions{Unique: true, Priority: queue.Normal})
	assert.Equal(t, after.ReadyAt, b.queued(id).ReadyAt, "a lower priority changes nothing")
}

// A unique job that is to be cancelled and is asked for again runs after its attempt.
func TestUniqueJobIsAskedForAfterItsCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	unique := queue.JobOptions{Unique: true}
	id := b.newJob(welcome{}, unique).ID
	b.end(id, models.JobLeased)
	_, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	assert.Equal(t, queue.Coalesced, b.newJob(welcome{}, unique).Result)
	j := b.queued(id)
	assert.False(t, j.CancelRequested)
	assert.NotEqual(t, *j.LeasedGeneration, j.Generation, "it is pending again after its attempt")
}

// The two names of the type webhook are one, for keys and for unique jobs.
func TestWebhookAndItsAliasAreOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	enqueue := func(jobType string, o queue.JobOptions) queue.EnqueuedJob {
		return b.newJob(queue.RawPayload{Type: jobType, Data: json.RawMessage(`{"url": "https://example.com"}`)}, o)
	}
	for name, o := range map[string]queue.JobOptions{"key": {IdempotencyKey: "k"}, "unique": {Unique: true}} {
		first := enqueue("webhook", o)
		require.False(t, first.Duplicate, name)
		assert.Equal(t, queue.EnqueuedJob{ID: first.ID, Duplicate: true, Result: queue.Unchanged},
			enqueue("webhook_delivery", o), name)
	}
	assert.False(t, enqueue("email", queue.JobOptions{Unique: true}).Duplicate)
}

// No row can have a time that a program cannot read: an infinite one would stop the leases of all,
// one after the year 9999 every list as JSON.
func TestTimesOfJobsAreReadable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{}, queue.JobOptions{}).ID
	for _, column := range []string{"ready_at", "first_ready_at", "created_at", "updated_at", "last_attempted_at"} {
		for _, at := range []string{"infinity", "-infinity", "10000-01-01 00:00:00+00"} {
			_, err := b.Pool.Exec(t.Context(), `UPDATE daybook.jobs SET `+column+` = $2::text::timestamptz WHERE id = $1`, id,
				at)
			assertState(t, "23514", err, column+" "+at)
		}
	}
	for _, at := range []string{"infinity", "10000-01-01 00:00:00+00"} {
		_, err := b.Pool.Exec(t.Context(), `SELECT daybook.enqueue_job('o', 'x', '{}', ready_at => $1::text::timestamptz)`,
			at)
		assertState(t, "DB010", err, "enqueue_job "+at)
		_, err = b.Pool.Exec(t.Context(),
			`SELECT * FROM daybook.enqueue_jobs(ARRAY['o'], ARRAY['x'], ARRAY['{}'::jsonb], ready_ats => ARRAY[$1::text::timestamptz])`, at)
		assertState(t, "DB010", err, "enqueue_jobs "+at)
	}
}

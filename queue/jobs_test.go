package queue_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestEnqueueJobWithNothingButAPayload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.clock()
	r := b.newJob(welcome{UserID: "u_1"}, queue.JobOptions{})
	assert.False(t, r.Duplicate)
	j := b.queued(r.ID)
	assert.Equal(t, org, j.OrgID)
	assert.Equal(t, "welcome", j.Type)
	assert.JSONEq(t, `{"user_id": "u_1"}`, string(j.Payload))
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.PriorityNormal, j.Priority)
	assert.Nil(t, j.IdempotencyKey)
	assert.Nil(t, j.MaxAttempts)
	assert.Nil(t, j.UniqueHash)
	assert.False(t, j.ReadyAt.Before(before))
	assert.Equal(t, j.ReadyAt, j.FirstReadyAt)
	assert.Empty(t, b.links(r.ID))
	assert.NotEqual(t, r.ID, b.newJob(welcome{UserID: "u_1"}, queue.JobOptions{}).ID, "without a key, each is a job")
}

func TestEnqueueJobWithEverything(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := b.clock().Add(hour).Round(time.Millisecond)
	links := []queue.Link{{"form", "f_1"}, {"order", `ä "o" \ {}`}, {"form", "f_1"}}
	r := b.newJob(&welcome{UserID: "u_1"},
		queue.JobOptions{IdempotencyKey: "k", RunAt: at, Priority: queue.High, MaxAttempts: 7, Links: links, Unique: true})
	j := b.queued(r.ID)
	assert.Equal(t, "k", *j.IdempotencyKey)
	assert.True(t, at.Equal(j.ReadyAt))
	assert.Equal(t, models.PriorityHigh, j.Priority)
	assert.Equal(t, 7, *j.MaxAttempts)
	assert.Equal(t, j.InputHash, j.UniqueHash)
	assert.Equal(t, links[:2], b.links(r.ID), "a link that is given twice is one")
}

// What is due in the past is due now: the lease's marks never look back.
func TestJobsAreNeverDueInThePast(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.clock()
	r := b.newJob(welcome{}, queue.JobOptions{RunAt: before.Add(-hour)})
	assert.False(t, b.queued(r.ID).ReadyAt.Before(before))
	many, err := queue.EnqueueJobs(t.Context(), b.Pool,
		[]queue.NewJob{{OrgID: org, Payload: welcome{}, Options: queue.JobOptions{RunAt: before.Add(-hour)}}})
	require.NoError(t, err)
	assert.False(t, b.queued(many[0].ID).ReadyAt.Before(before))
}

func TestTheSameKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := queue.JobOptions{IdempotencyKey: "k"}
	first := b.newJob(welcome{UserID: "u_1"}, key)
	for _, state := range models.JobStates() {
		b.end(first.ID, state)
		again := b.newJob(queue.RawPayload{Type: "welcome", Data: json.RawMessage(` { "user_id" : "\u0075_1" } `)}, key)
		assert.Equal(t, queue.EnqueuedJob{ID: first.ID, Duplicate: true, Result: queue.Unchanged}, again,
			"while it is %s, written otherwise", state)
		for name, p := range map[string]queue.Payload{
			"another payload": welcome{UserID: "u_2"},
			"another type":    queue.RawPayload{Type: "farewell", Data: json.RawMessage(`{"user_id": "u_1"}`)},
		} {
			_, err := queue.EnqueueJob(t.Context(), b.Pool, org, p, key)
			require.ErrorIs(t, err, queue.ErrKeyReused, name)
			require.ErrorContains(t, err, "use a key of its own", name)
			_, err = queue.EnqueueJobs(t.Context(), b.Pool,
				[]queue.NewJob{{OrgID: org, Payload: welcome{}}, {OrgID: org, Payload: p, Options: key}})
			require.ErrorIs(t, err, queue.ErrKeyReused, name)
		}
		if state != models.JobCancelled {
			b.exec(`UPDATE daybook.jobs SET state = 'pending', finished_at = NULL, turn_id = NULL, fence = NULL, leased_generation = NULL, worker = NULL, attempt_started_at = NULL, working = false WHERE id = $1`, first.ID)
		}
	}
	other, err := queue.EnqueueJob(t.Context(), b.Pool, "org_2", welcome{UserID: "u_2"}, key)
	require.NoError(t, err)
	assert.False(t, other.Duplicate, "a key is its organization's")
	assert.Equal(t, 2, b.queuedJobs(), "the refused bulk requests left nothing")
}

func TestUniqueJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	unique := queue.JobOptions{Unique: true}
	b.newJob(welcome{UserID: "u_1"}, queue.JobOptions{})
	first := b.newJob(welcome{UserID: "u_1"}, unique)
	assert.False(t, first.Duplicate, "a job that did not ask to be unique stops no other")
	for state, want := range map[models.JobState]queue.Result{
		models.JobPending: queue.Unchanged,
		models.JobLeased:  queue.Coalesced,
	} {
		b.end(first.ID, state)
		assert.Equal(t, queue.EnqueuedJob{ID: first.ID, Duplicate: true, Result: want},
			b.newJob(welcome{UserID: "u_1"}, unique), state)
		b.exec(`UPDATE daybook.jobs SET turn_id = NULL, fence = NULL, leased_generation = NULL, worker = NULL, attempt_started_at = NULL, working = false, state = 'pending'`)
	}
	assert.False(t, b.newJob(welcome{UserID: "u_2"}, unique).Duplicate, "another payload")
	assert.False(t, b.newJob(queue.RawPayload{Type: "farewell", Data: json.RawMessage(`{"user_id": "u_1"}`)},
		unique).Duplicate, "another type")

	b.exec(`UPDATE daybook.jobs SET turn_id = NULL, fence = NULL, leased_generation = NULL, worker = NULL, attempt_started_at = NULL, working = false, state = 'completed', finished_at = now() WHERE id = $1`, first.ID)
	next := b.newJob(welcome{UserID: "u_1"}, queue.JobOptions{Unique: true, IdempotencyKey: "k"})
	assert.False(t, next.Duplicate, "after the first was completed")
	assert.Equal(t, queue.EnqueuedJob{ID: next.ID, Duplicate: true, Result: queue.Unchanged},
		b.newJob(welcome{UserID: "u_1"}, queue.JobOptions{Unique: true, IdempotencyKey: "l"}), "another key")
}

func TestEnqueueJobsInTheirOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.newJob(welcome{UserID: "u_1"}, queue.JobOptions{IdempotencyKey: "k1"})
	at := b.clock().Add(hour).Round(time.Millisecond)
	jobs := []queue.NewJob{
		{
			OrgID: org, Payload: welcome{UserID: "z"},
			Options: queue.JobOptions{Priority: queue.Low, Links: []queue.Link{{"form", "f"}}},
		},
		{OrgID: org, Payload: welcome{UserID: "u_1"}, Options: queue.JobOptions{IdempotencyKey: "k1"}},
		{OrgID: "org_2", Payload: welcome{UserID: "u_2"}, Options: queue.JobOptions{IdempotencyKey: "k2", MaxAttempts: 9}},
		{
			OrgID: "org_2", Payload: welcome{UserID: "u_2"},
			Options: queue.JobOptions{IdempotencyKey: "k2", Links: []queue.Link{{"form", "of the second"}}},
		},
		{OrgID: org, Payload: welcome{UserID: "one"}, Options: queue.JobOptions{Unique: true, RunAt: at}},
		{OrgID: org, Payload: &welcome{UserID: "one"}, Options: queue.JobOptions{Unique: true}},
	}
	rs, err := queue.EnqueueJobs(t.Context(), b.Pool, jobs)
	require.NoError(t, err)
	require.Len(t, rs, len(jobs))
	var duplicates []bool
	for _, r := range rs {
		duplicates = append(duplicates, r.Duplicate)
	}
	assert.Equal(t, []bool{false, true, false, true, false, true}, duplicates)
	assert.Equal(t, first.ID, rs[1].ID)
	assert.Equal(t, rs[2].ID, rs[3].ID)
	assert.Equal(t, rs[4].ID, rs[5].ID)
	assert.Equal(t, 4, b.queuedJobs())
	assert.Equal(t, models.PriorityLow, b.queued(rs[0].ID).Priority)
	assert.Equal(t, []queue.Link{{"form", "f"}}, b.links(rs[0].ID))
	assert.Equal(t, 9, *b.queued(rs[2].ID).MaxAttempts)
	assert.Empty(t, b.links(rs[2].ID), "a duplicate adds nothing")
	assert.Equal(t, queue.Rescheduled, rs[5].Result)
	assert.True(t, b.queued(rs[4].ID).ReadyAt.Before(at), "the second of the unique ones asks for it earlier")

	none, err := queue.EnqueueJobs(t.Context(), b.Pool, nil)
	require.NoError(t, err)
	assert.Empty(t, none)
}

// More than a statement takes are answered in their order, too, and all duplicates of each other
// are found.
func TestEnqueueJobsInManyStatements(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs := make([]queue.NewJob, queue.MaxMany+1000)
	for i := range jobs {
		jobs[i] = queue.NewJob{OrgID: org, Payload: queue.RawPayload{Type: "t"}}
	}
	for _, i := range []int{0, 500, queue.MaxMany + 1} {
		jobs[i].Options.IdempotencyKey = "k"
	}
	rs, err := queue.EnqueueJobs(t.Context(), b.Pool, jobs)
	require.NoError(t, err)
	assert.Equal(t, len(jobs)-2, b.queuedJobs())
	assert.Equal(t, rs[0].ID, rs[500].ID)
	assert.Equal(t, queue.EnqueuedJob{ID: rs[0].ID, Duplicate: true, Result: queue.Unchanged}, rs[queue.MaxMany+1])
	assert.False(t, rs[0].Duplicate)
}

func TestRequestsThatAreWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok := welcome{UserID: "u"}
	many := make([]queue.Link, models.MaxJobLinks+1)
	for i := range many {
		many[i] = queue.Link{Kind: "k", ID: strings.Repeat("i", i+1)}
	}
	for _, c := range []struct {
		name    string
		org     string
		payload queue.Payload
		options queue.JobOptions
		want    error
		says    string
	}{
		{"no organization", "", ok, queue.JobOptions{}, queue.ErrEmptyID, "name the organization"},
		{"long organization", strings.Repeat("o", 256), ok, queue.JobOptions{}, queue.ErrIDTooLong, ""},
		{"no payload", org, nil, queue.JobOptions{}, queue.ErrPayloadInvalid, "nil"},
		{"no type", org, queue.RawPayload{}, queue.JobOptions{}, queue.ErrInvalidJobType, ""},
		{"a type with a space", org, queue.RawPayload{Type: "a b"}, queue.JobOptions{}, queue.ErrInvalidJobType, `"a b"`},
		{
			"a type that begins with a digit", org,
			queue.RawPayload{Type: "1a"},
			queue.JobOptions{},
			queue.ErrInvalidJobType,
			"",
		},
		{
			"long type", org,
			queue.RawPayload{Type: strings.Repeat("t", 65)},
			queue.JobOptions{},
			queue.ErrInvalidJobType,
			"",
		},
		{"long key", org, ok, queue.JobOptions{IdempotencyKey: strings.Repeat("k", 256)}, queue.ErrKeyTooLong, ""},
		{"another priority", org, ok, queue.JobOptions{Priority: 4}, queue.ErrInvalidPriority, ""},
		{"negative attempts", org, ok, queue.JobOptions{MaxAttempts: -1}, queue.ErrInvalidMaxAttempts, ""},
		{"too many attempts", org, ok, queue.JobOptions{MaxAttempts: 1001}, queue.ErrInvalidMaxAttempts, ""},
		{
			"a link without id", org, ok,
			queue.JobOptions{Links: []queue.Link{{Kind: "k"}}},
			queue.ErrInvalidLink,
			`kind "k", id ""`,
		},
		{
			"a link with a long kind", org, ok,
			queue.JobOptions{Links: []queue.Link{{strings.Repeat("k", 65), "i"}}},
			queue.ErrInvalidLink, "",
		},
		{"too many links", org, ok, queue.JobOptions{Links: many}, queue.ErrInvalidLink, "33"},
		{
			"a payload that is no object", org,
			queue.RawPayload{Type: "t", Data: json.RawMessage(`[]`)},
			queue.JobOptions{},
			queue.ErrPayloadInvalid, "must be a JSON object",
		},
		{
			"a payload that is no JSON", org,
			queue.RawPayload{Type: "t", Data: json.RawMessage(`{`)},
			queue.JobOptions{},
			queue.ErrPayloadInvalid, "",
		},
		{
			"a large payload", org,
			welcome{Note: strings.Repeat("n", models.MaxPayloadBytes)},
			queue.JobOptions{SkipValidation: true},
			queue.ErrPayloadTooLarge, "may have 131072",
		},
		{"a payload without a schema", org, recursive{}, queue.JobOptions{}, nil, "no JSON Schema can be derived"},
	} {
		_, err := queue.EnqueueJob(t.Context(), b.Pool, c.org, c.payload, c.options)
		require.Error(t, err, c.name)
		if c.want != nil {
			assert.ErrorIs(t, err, c.want, c.name)
		}
		assert.ErrorContains(t, err, c.says, c.name)
		_, err = queue.EnqueueJobs(t.Context(), b.Pool,
			[]queue.NewJob{{OrgID: org, Payload: ok}, {OrgID: c.org, Payload: c.payload, Options: c.options}})
		assert.ErrorContains(t, err, "job 1: ", c.name)
	}
	assert.Zero(t, b.queuedJobs())
	b.newJob(recursive{}, queue.JobOptions{SkipValidation: true})
	b.newJob(ok, queue.JobOptions{
		Links: many[:models.MaxJobLinks], MaxAttempts: 1000,
		IdempotencyKey: strings.Repeat("k", 255),
	})
}

type recursive struct {
	Inner *recursive `json:"inner,omitempty"`
}

func (recursive) JobType() string { return "recursive" }

func (b *bundle) queuedJobs() int {
	b.t.Helper()
	return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM daybook.jobs`)
}

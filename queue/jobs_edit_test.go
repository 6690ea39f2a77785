package queue_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// A dead letter gets another payload and goes on: its attempts, links and key stay, and its old
// payload is kept.
func TestEditJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := queue.JobOptions{IdempotencyKey: "welcome/u1", Links: []queue.Link{{Kind: "user", ID: "u1"}}}
	id := b.newJob(welcome{UserID: "u1"}, o).ID
	b.end(id, models.JobFailed)

	r, err := queue.EditJob(t.Context(), b.Pool, id, welcome{UserID: "u2"}, queue.EditOptions{By: "ann"})
	require.NoError(t, err)
	assert.Equal(t, queue.Response{JobID: id, Result: queue.Edited}, r)
	j := b.queued(id)
	assert.Equal(t, models.JobFailed, j.State, "it stays a dead letter")

	r, err = queue.EditJob(t.Context(), b.Pool, id, welcome{UserID: "u3"}, queue.EditOptions{Retry: queue.RetryNow})
	require.NoError(t, err)
	assert.Equal(t, queue.Requeued, r.Result)
	j = b.queued(id)
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, 2, j.RunCount)
	assert.JSONEq(t, `{"user_id": "u3"}`, string(j.Payload))
	require.Len(t, j.Edits, 2)
	assert.JSONEq(t, `{"user_id": "u1"}`, string(j.Edits[0].Payload))
	assert.Equal(t, "ann", j.Edits[0].By)
	assert.Equal(t, 2, j.Edits[0].Attempts)
	assert.WithinDuration(t, b.clock(), j.Edits[0].At, hour)
	assert.JSONEq(t, `{"user_id": "u2"}`, string(j.Edits[1].Payload))
	assert.NotEmpty(t, j.Edits[1].By, "the role of the database")
	assert.Len(t, b.links(id), 1)

	again := b.newJob(welcome{UserID: "u1"}, o)
	assert.True(t, again.Duplicate, "the request that made it leads to it")
	assert.Equal(t, id, again.ID)
	_, err = queue.EnqueueJob(t.Context(), b.Pool, org, welcome{UserID: "u3"}, o)
	require.ErrorIs(t, err, queue.ErrKeyReused)
}

// Which states may be edited, and what is said of the others.
func TestEditJobByState(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for state, refused := range map[models.JobState]error{
		models.JobPending: nil, models.JobFailed: nil, models.JobCancelled: nil,
		models.JobLeased: queue.ErrJobRunning, models.JobCompleted: queue.ErrJobCompleted,
	} {
		id := b.newJob(welcome{}, queue.JobOptions{}).ID
		b.end(id, state)
		_, err := queue.EditJob(t.Context(), b.Pool, id, welcome{UserID: "u"}, queue.EditOptions{})
		require.ErrorIs(t, err, refused, state)
		j := b.queued(id)
		assert.Equal(t, state, j.State)
		assert.Equal(t, refused == nil, len(j.Edits) == 1, state)
	}
}

func TestEditJobRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{UserID: "u1"}, queue.JobOptions{}).ID
	b.end(id, models.JobFailed)
	edit := func(p queue.Payload, o queue.EditOptions) error {
		_, err := queue.EditJob(t.Context(), b.Pool, id, p, o)
		return err
	}
	raw := func(jobType, data string) queue.RawPayload {
		return queue.RawPayload{Type: jobType, Data: json.RawMessage(data)}
	}
	large := `{"a": "` + strings.Repeat("x", models.MaxPayloadBytes) + `"}`
	require.ErrorIs(t, edit(nil, queue.EditOptions{}), queue.ErrPayloadInvalid)
	require.ErrorIs(t, edit(raw("welcome", `[]`), queue.EditOptions{}), queue.ErrPayloadInvalid)
	require.ErrorIs(t, edit(raw("welcome", large), queue.EditOptions{}), queue.ErrPayloadTooLarge)
	require.ErrorIs(t, edit(raw("other", `{}`), queue.EditOptions{}), queue.ErrInvalid)
	require.ErrorIs(t, edit(raw("", `{}`), queue.EditOptions{}), queue.ErrInvalidJobType)
	require.ErrorIs(t, edit(welcome{}, queue.EditOptions{Retry: "soon"}), queue.ErrInvalidRetryMode)
	require.ErrorIs(t, edit(welcome{}, queue.EditOptions{By: "\x00"}), queue.ErrInvalidText)
	_, err := queue.EditJob(t.Context(), b.Pool, "none", welcome{}, queue.EditOptions{})
	require.ErrorIs(t, err, queue.ErrJobNotFound)
	assert.Empty(t, b.queued(id).Edits)

	r, err := queue.EditJob(t.Context(), b.Pool, id, welcome{UserID: "u1"}, queue.EditOptions{})
	require.NoError(t, err)
	assert.Equal(t, queue.Unchanged, r.Result)
	assert.NotEmpty(t, r.Reason)
	r, err = queue.EditJob(t.Context(), b.Pool, id, welcome{UserID: "u1"}, queue.EditOptions{Retry: queue.RetryNow})
	require.NoError(t, err)
	assert.Equal(t, queue.Requeued, r.Result)
	assert.Empty(t, b.queued(id).Edits, "nothing was edited")
}

// Of many who edit the job that they have all read, one does.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{}, queue.JobOptions{}).ID
	b.end(id, models.JobFailed)
	seen := b.queued(id).Generation
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() {
			p := welcome{UserID: strings.Repeat("u", i+1)}
			_, errs[i] = queue.EditJob(t.Context(), b.Pool, id, p, queue.EditOptions{Generation: &seen})
		})
	}
	wait.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
			continue
		}
		require.ErrorIs(t, err, queue.ErrJobChanged)
	}
	assert.Equal(t, 1, done)
	assert.Len(t, b.queued(id).Edits, 1)
}

// A unique job is the only open one of the payload that it has now.
func TestEditOfUniqueJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	unique := queue.JobOptions{Unique: true}
	id := b.newJob(welcome{UserID: "u1"}, unique).ID
	b.end(id, models.JobFailed)
	open := b.newJob(welcome{UserID: "u2"}, unique).ID
	_, err := queue.EditJob(t.Context(), b.Pool, id, welcome{UserID: "u2"}, queue.EditOptions{Retry: queue.RetryNow})
	require.ErrorIs(t, err, queue.ErrJobDuplicate)
	assert.Empty(t, b.queued(id).Edits, "all of it, or nothing")
	_, err = queue.EditJob(t.Context(), b.Pool, id, welcome{UserID: "u2"}, queue.EditOptions{})
	require.NoError(t, err, "a dead letter may be beside it")
	r, err := queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{})
	require.NoError(t, err)
	assert.Equal(t, queue.Unchanged, r.Result)
	assert.Contains(t, r.Reason, "job "+open+" is open, and one of the two may be: it has the same payload")

	_, err = queue.EditJob(t.Context(), b.Pool, id, welcome{UserID: "u3"}, queue.EditOptions{Retry: queue.RetryReset})
	require.NoError(t, err)
	assert.Equal(t, id, b.newJob(welcome{UserID: "u3"}, unique).ID)
	_, err = queue.EditJob(t.Context(), b.Pool, open, welcome{UserID: "u3"}, queue.EditOptions{})
	require.ErrorIs(t, err, queue.ErrJobDuplicate, "both wait")
	assert.NotEqual(t, id, b.newJob(welcome{UserID: "u1"}, unique).ID, "the first payload is free again")
}

// A dead letter keeps its place in its sequence.
func TestEditInASequence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := queue.JobOptions{Sequence: "s"}
	first := b.newJob(welcome{UserID: "u1"}, o).ID
	b.exec(`SELECT daybook.check_waits()`) // a worker gives the first one its turn
	require.False(t, waits(b, first))
	b.end(first, models.JobFailed)
	second := b.newJob(welcome{UserID: "u2"}, o).ID
	require.True(t, waits(b, second))
	_, err := queue.EditJob(t.Context(), b.Pool, second, welcome{UserID: "u3"}, queue.EditOptions{Retry: queue.RetryNow})
	require.NoError(t, err)
	assert.True(t, waits(b, second), "an edited job waits for its turn as before")
	_, err = queue.EditJob(t.Context(), b.Pool, first, welcome{UserID: "u4"}, queue.EditOptions{Retry: queue.RetryNow})
	require.NoError(t, err)
	assert.False(t, waits(b, first))
	assert.True(t, waits(b, second))
}

func waits(b *bundle, id string) bool {
	j := b.queued(id)
	return j.Waits()
}

// RFC 6902, with the cases of its appendix A.
func TestPatchJSON(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ doc, patch, want string }{
		{`{"foo": "bar"}`, `[{"op": "add", "path": "/baz", "value": "qux"}]`, `{"baz": "qux", "foo": "bar"}`},
		{`{"foo": ["bar", "baz"]}`, `[{"op": "add", "path": "/foo/1", "value": "qux"}]`, `{"foo": ["bar", "qux", "baz"]}`},
		{`{"baz": "qux", "foo": "bar"}`, `[{"op": "remove", "path": "/baz"}]`, `{"foo": "bar"}`},
		{`{"foo": ["bar", "qux", "baz"]}`, `[{"op": "remove", "path": "/foo/1"}]`, `{"foo": ["bar", "baz"]}`},
		{`{"baz": "qux"}`, `[{"op": "replace", "path": "/baz", "value": "boo"}]`, `{"baz": "boo"}`},
		{
			`{"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}`,
			`[{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]`,
			`{"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}`,
		},
		{
			`{"foo": ["all", "grass", "cows", "eat"]}`, `[{"op": "move", "from": "/foo/1", "path": "/foo/3"}]`,
			`{"foo": ["all", "cows", "eat", "grass"]}`,
		},
		{`{"baz": "qux"}`, `[{"op": "test", "path": "/baz", "value": "bar"}]`, ``},
		{`{"n": [1, 1.0]}`, `[{"op": "test", "path": "/n", "value": [1.0, 1]}, {"op": "copy", "from": "/n/0", "path": "/m"}]`, `{"n": [1, 1], "m": 1}`},
		{`{"foo": "bar"}`, `[{"op": "add", "path": "/child", "value": {"grandchild": {}}, "xyz": 1}]`, `{"foo": "bar", "child": {"grandchild": {}}}`},
		{`{"foo": "bar"}`, `[{"op": "add", "path": "/baz/bat", "value": "qux"}]`, ``},
		{`{"/": 9, "~1": 10}`, `[{"op": "test", "path": "/~01", "value": 10}, {"op": "remove", "path": "/~1"}]`, `{"~1": 10}`},
		{`{"foo": ["bar"]}`, `[{"op": "add", "path": "/foo/-", "value": ["abc"]}]`, `{"foo": ["bar", ["abc"]]}`},
		{`{"foo": []}`, `[{"op": "add", "path": "/foo/0", "value": null}]`, `{"foo": [null]}`},
		{`{"foo": []}`, `[{"op": "add", "path": "/foo/1", "value": 1}]`, ``},
		{`{"foo": [1]}`, `[{"op": "add", "path": "/foo/-1", "value": 1}]`, ``},
		{`{"foo": [1]}`, `[{"op": "remove", "path": "/foo/-"}]`, ``},
		{`{"": 1}`, `[{"op": "replace", "path": "/", "value": 2}]`, `{"": 2}`},
		{`{"a": null}`, `[{"op": "replace", "path": "/a", "value": 2}]`, `{"a": 2}`},
		{`{"a": 1}`, `[{"op": "replace", "path": "", "value": {"b": 2}}]`, `{"b": 2}`},
		{`{"a": 1}`, `[{"op": "remove", "path": "/b"}]`, ``},
		{`{"a": 1}`, `[{"op": "replace", "path": "/b", "value": 1}]`, ``},
		{`{"a": 1}`, `[{"op": "copy", "from": "/b", "path": "/c"}]`, ``},
		{`{"a%": 1}`, `[{"op": "move", "from": "/a%", "path": "/ab"}]`, `{"ab": 1}`},
		{`{"a_b": 1, "a-b": {}}`, `[{"op": "move", "from": "/a_b", "path": "/a-b/c"}]`, `{"a-b": {"c": 1}}`},
	} {
		var got *string
		err := b.Pool.QueryRow(t.Context(), `SELECT daybook.patch_json($1::text::jsonb, $2::text::jsonb)::text`, c.doc, c.patch).Scan(&got)
		require.NoError(t, err, c.patch)
		if c.want == "" {
			assert.Nil(t, got, "%s on %s", c.patch, c.doc)
		} else if assert.NotNil(t, got, "%s on %s", c.patch, c.doc) {
			assert.JSONEq(t, c.want, *got)
		}
	}
	for _, bad := range []string{
		`{}`, `[]`, `[1]`, `[{"op": "add", "path": "a", "value": 1}]`, `[{"op": "add", "path": "/~2", "value": 1}]`,
		`[{"op": "spam", "path": "/a"}]`, `[{"op": "add", "path": "/a"}]`, `[{"path": "/a"}]`, `[{"op": "copy", "path": "/a"}]`,
		`[{"op": "move", "from": "/a", "path": "/a/b"}]`, `[{"op": "remove", "path": ""}]`, `[{"op": "add", "value": 1}]`,
	} {
		_, err := b.Pool.Exec(t.Context(), `SELECT daybook.patch_json('{"a": {}}', $1::text::jsonb)`, bad)
		assert.ErrorContains(t, err, "DB010", bad)
	}
}

// An edit commits or rolls back with the caller's transaction.
func TestEditInATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{UserID: "u1"}, queue.JobOptions{}).ID
	undo := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := queue.EditJob(t.Context(), tx, id, welcome{UserID: "u2"}, queue.EditOptions{})
		require.NoError(t, err)
		return assert.AnError
	})
	require.ErrorIs(t, undo, assert.AnError)
	assert.Empty(t, b.queued(id).Edits)
}

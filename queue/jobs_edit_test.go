package queue_test

import (
	"encoding/json"
	"fmt"
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
		{`{"a": 1}`, `[{"op": "test", "path": "/a", "value": 2}, {"op": "replace", "path": "", "value": {"b": 2}}]`, ``},
		{`{"a": 1}`, `[{"op": "remove", "path": "/b"}, {"op": "add", "path": "", "value": {"b": 2}}]`, ``},
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

// A patch whose copies of copies would fill the memory of the database is refused.
func TestPatchOfCopies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var patch strings.Builder
	for i := range 40 {
		fmt.Fprintf(&patch, `, {"op": "copy", "from": "", "path": "/c%d"}`, i)
	}
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.patch_json('{"a": 1}', $1::text::jsonb)`, "["+patch.String()[1:]+"]")
	require.ErrorContains(t, err, "DB020")
}

// editMany edits jobs by daybook.edit_jobs, and returns how many.
func (b *bundle) editMany(ids []string, patch string, retry any) (n int) {
	b.t.Helper()
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `SELECT daybook.edit_jobs($1, '{failed,pending}', $2::text::jsonb, 'ann', $3)`, ids, patch, retry).
		Scan(&n))
	return n
}

// Of many jobs that are edited and tried again, those that cannot be tried again are left as they
// were, and the others are not held up by them.
func TestEditJobsWithRetry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for i := range 6 {
		id := b.newJob(welcome{UserID: fmt.Sprint(i), Note: "old"}, queue.JobOptions{Unique: i < 3}).ID
		b.end(id, models.JobFailed)
		ids = append(ids, id)
	}
	b.newJob(welcome{UserID: "1", Note: "new"}, queue.JobOptions{Unique: true})
	b.exec(`UPDATE daybook.jobs SET queue = 'gone' WHERE id = $1`, ids[5])
	assert.Equal(t, 4, b.editMany(ids, `[{"op": "replace", "path": "/note", "value": "new"}]`, "now"))
	for i, id := range ids {
		j := b.queued(id)
		if i == 1 || i == 5 {
			assert.Equal(t, models.JobFailed, j.State, i)
			assert.Empty(t, j.Edits, i)
			continue
		}
		assert.Equal(t, models.JobPending, j.State, i)
		require.Len(t, j.Edits, 1, i)
		assert.Equal(t, "ann", j.Edits[0].By)
	}
	// Of two that would be the same, one is.
	assert.Equal(t, 1, b.editMany([]string{ids[0], ids[2]}, `[{"op": "replace", "path": "/user_id", "value": "x"}]`, nil))
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.edit_jobs('{}', '{failed}', '[{"op": "spam", "path": "/a"}]')`)
	require.ErrorContains(t, err, "DB010", "a patch that no job has to do with is checked too")
}

// TestEditsBesideOthers has two edits, a retry and a cancellation of the same jobs run at once, as
// the batches of bulk operations do: none fails, and each job is as one of them has left it.
func TestEditsBesideOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ids := make([]string, 200)
	for i := range ids {
		ids[i] = b.newJob(welcome{UserID: fmt.Sprint(i)}, queue.JobOptions{Unique: i%2 == 0, Sequence: fmt.Sprint(i % 10)}).ID
	}
	b.exec(`UPDATE daybook.jobs SET state = 'failed', run_count = 1, last_error = 'e', last_error_code = 'X', finished_at = now()`)
	var wait sync.WaitGroup
	errs := make([]error, 4)
	for i, statement := range []string{
		`SELECT daybook.edit_jobs($1, '{failed,pending,cancelled}', '[{"op": "add", "path": "/note", "value": "a"}]', retry => 'now')`,
		`SELECT daybook.edit_jobs($1, '{failed,pending,cancelled}', '[{"op": "add", "path": "/note", "value": "b"}]', retry => 'reset')`,
		`SELECT daybook.retry_jobs($1, '{failed,cancelled}', 'now')`, `SELECT daybook.cancel_jobs($1, '{failed,pending}')`,
	} {
		wait.Go(func() {
			for range 10 {
				if _, err := b.Pool.Exec(t.Context(), statement, ids); err != nil {
					errs[i] = err
				}
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	for _, id := range ids {
		j := b.queued(id)
		assert.Contains(t, []models.JobState{models.JobPending, models.JobFailed, models.JobCancelled}, j.State)
		assert.NotContains(t, string(j.Payload), `"old"`)
	}
}

// A job whose payload is encrypted gets no further member in plain, which could be one of those that
// are encrypted; the plain ones may change, and what is encrypted is not reached by a patch.
func TestEditOfEncryptedMembersInPlain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.newJob(welcome{UserID: "u1"}, queue.JobOptions{}).ID
	const stored = `{"user_id": "u1", "$encrypted": {"key": "k", "wrapped": "AA==", "data": "AA=="}}`
	b.exec(`UPDATE daybook.jobs SET payload = $2::text::jsonb WHERE id = $1`, id, stored)
	b.end(id, models.JobFailed)
	raw := queue.RawPayload{Type: "welcome", Data: json.RawMessage(strings.Replace(stored, `"u1"`, `"u2", "iban": "XX00"`, 1))}
	_, err := queue.EditJob(t.Context(), b.Pool, id, raw, queue.EditOptions{})
	require.ErrorIs(t, err, queue.ErrInvalid)
	require.ErrorContains(t, err, "further members in plain")
	for _, patch := range []string{
		`{"op": "add", "path": "/iban", "value": "XX00"}`, `{"op": "remove", "path": "/$encrypted"}`,
		`{"op": "replace", "path": "/$encrypted/key", "value": "x"}`, `{"op": "replace", "path": "", "value": {"$encrypted": 1}}`,
		`{"op": "copy", "from": "/$encrypted", "path": "/copied"}`,
	} {
		assert.Zero(t, b.editMany([]string{id}, "["+patch+"]", nil), patch)
	}
	assert.JSONEq(t, stored, string(b.queued(id).Payload))
	assert.Equal(t, 1, b.editMany([]string{id}, `[{"op": "replace", "path": "/user_id", "value": "u2"}]`, nil))
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

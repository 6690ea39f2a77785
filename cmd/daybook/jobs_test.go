package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/queue"
)

// background enqueues a background job and returns its id.
func (b *bundle) background(args ...string) string {
	b.t.Helper()
	var e answers.EnqueuedJob
	b.json(&e, append([]string{"jobs", "enqueue", "--create"}, args...)...)
	return e.ID
}

func (b *bundle) backgroundJob(id string) answers.JobDetail {
	b.t.Helper()
	var d answers.JobDetail
	b.json(&d, "jobs", "show", id)
	return d
}

// deadLetter makes a job a dead letter, as a worker would.
func (b *bundle) deadLetter(id, code string) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), `
UPDATE daybook.jobs SET state = 'failed', run_count = 3, last_error = 'no', last_error_code = $2, finished_at = clock_timestamp() WHERE id = $1`, id, code)
	require.NoError(b.t, err)
}

func TestBackgroundEnqueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.background("webhook", "--org", "acme", "--payload", `{"url":"https://example.com"}`, "--key", "k", "--delay",
		"1h", "--priority", "high",
		"--max-attempts", "7", "--link", "order=17", "--link", "form=a=b")
	d := b.backgroundJob(id)
	assert.Equal(t, "webhook", d.Type)
	assert.JSONEq(t, `{"url":"https://example.com"}`, string(d.Payload))
	assert.Equal(t, "high", d.Priority)
	assert.Equal(t, 7, d.MaxAttempts)
	assert.WithinDuration(t, time.Now().Add(time.Hour), d.RunAt, time.Minute)
	require.Len(t, d.Links, 2)
	assert.Equal(t, "a=b", d.Links[0].ID)

	again := []string{"jobs", "enqueue", "--create", "webhook", "--org", "acme", "--key", "k", "--payload"}
	assert.Contains(t, b.ok(append(again, `{"url":"https://example.com"}`)...), "there already (job "+id)
	own := []string{"jobs", "enqueue", "--create", "own", "--org", "acme", "--key", "own"}
	assert.Contains(t, b.run(own...).err, "Note: own is none of Daybook's own types. Its jobs wait")
	assert.Contains(t, b.run("jobs", "enqueue", "emial", "--org", "acme").err,
		"Note: emial is none of Daybook's own types; did you mean email? Its jobs wait")
	r := b.run(own...)
	assert.Contains(t, r.out, "there already")
	assert.NotContains(t, r.err, "Note: own", "it was said when the job was made")
	r = b.run(append(again, `{"url":"https://example.com/other"}`, "--json")...)
	assert.Equal(t, failure.ExitConflict, r.exit)
	assert.Contains(t, r.err, "KEY_REUSED")

	file := write(t, t.TempDir()+"/payload.json", `{"n":1}`)
	assert.JSONEq(t, `{"n":1}`,
		string(b.backgroundJob(b.background("t", "--org", "acme", "--payload", "@"+file)).Payload))
	out := call(t.Context(), `{"n":2}`, "--database-url", b.URL, "jobs", "enqueue", "--create", "t", "--org", "acme",
		"--payload", "@-")
	assert.Zero(t, out.exit, out.err)

	for code, args := range map[string][]string{
		"PAYLOAD_INVALID":   {"t", "--org", "acme", "--payload", "[]"},
		"PAYLOAD_TOO_LARGE": {"t", "--org", "acme", "--payload", `{"a":"` + strings.Repeat("x", 131072) + `"}`},
		"INVALID":           {"1t", "--org", "acme"},
		"USAGE":             {"t", "--org", "acme", "--run-at", "tomorrow"},
		"FILE_NOT_FOUND":    {"t", "--org", "acme", "--payload", "@/nothing"},
	} {
		r := b.run(append([]string{"jobs", "enqueue", "--create", "--json"}, args...)...)
		assert.Contains(t, r.err, `"`+code+`"`)
	}
}

func TestBackgroundEnqueueChecksBuiltinTypes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	enqueue := func(args ...string) result {
		return b.run(append([]string{"jobs", "enqueue", "--create", "--org", "acme", "--payload", `{"uri":1}`}, args...)...)
	}
	for _, name := range []string{"webhook", "webhook_delivery", "email", "report", "cleanup", "db_function"} {
		r := enqueue(name, "--json")
		assert.Equal(t, failure.ExitUsage, r.exit, name)
		assert.Contains(t, r.err, `"PAYLOAD_INVALID"`, name)
	}
	var l struct{ Jobs []struct{ ID string } }
	b.json(&l, "jobs", "list")
	assert.Empty(t, l.Jobs, "nothing was enqueued")

	r := enqueue("webhook")
	assert.Contains(t, r.err, "uri")
	for _, wrong := range []struct{ jobType, payload, says string }{
		{"webhook", `{}`, "url is missing: give url or webhookUrl"},
		{"webhook_delivery", `{"url":"ftp://x"}`, "url must begin with"},
		{"email", `{}`, `missing field "to"`},
		{"email", `{"to":[],"subject":"s","text":"t"}`, "to is empty"},
		{"email", `{"to":["a@example.com"],"subject":"s"}`, "text is missing"},
		{"report", `{"kind":"account_ledger"}`, "account is required"},
		{"db_function", `{"function":"refresh"}`, "function is not like schema.name"},
	} {
		r := b.run("jobs", "enqueue", "--create", wrong.jobType, "--org", "acme", "--payload", wrong.payload, "--json")
		assert.Equal(t, failure.ExitUsage, r.exit, wrong)
		assert.Contains(t, r.err, `"PAYLOAD_INVALID"`, wrong)
		var said struct{ Error struct{ Message string } }
		require.NoError(t, json.Unmarshal([]byte(r.err), &said))
		assert.Contains(t, said.Error.Message, wrong.says)
		err := cli.CheckBuiltinPayload(wrong.jobType, json.RawMessage(wrong.payload))
		require.ErrorIs(t, err, queue.ErrPayloadInvalid, "the HTTP API refuses it as well: %v", wrong)
	}
	r = enqueue("webhook", "--skip-validation")
	assert.Zero(t, r.exit, r.err)
	assert.NotContains(t, r.err, "own types")
	r = enqueue("own")
	assert.Zero(t, r.exit, r.err)
	assert.Contains(t, r.err, "Note: own is none of Daybook's own types")
	worker := store.NewQueue(b.Pool, store.Jobs)
	require.NoError(t, worker.NoteJobWorker(t.Context(), store.JobWorker{ID: "w", Name: "w", Types: []string{"own"}}))
	assert.NotContains(t, enqueue("own").err, "Note: own", "a worker that lives has a handler for it")
	require.NoError(t, worker.NoteJobWorkerStopped(t.Context(), "w"))
	assert.Contains(t, enqueue("own").err, "Note: own")
}

func TestBackgroundEnqueueWantsAnAttempt(t *testing.T) {
	t.Parallel()
	r := setup(t).run("jobs", "enqueue", "--create", "t", "--org", "acme", "--max-attempts", "0")
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.err, "--max-attempts 0: want 1 to 1000")
}

func TestBackgroundPayloadIsNoJSON(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.run("jobs", "enqueue", "--create", "t", "--org", "acme", "--payload", `{"url": "https://example.com"`)
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Equal(t, "daybook: --payload is no JSON: at byte 29: unexpected end of JSON input\n", r.err)
	r = b.run("jobs", "enqueue", "--create", "t", "--org", "acme", "--json", "--payload", `{'n': 1}`)
	assert.Contains(t, r.err, `"PAYLOAD_INVALID"`)
	assert.JSONEq(t, `{}`, string(b.backgroundJob(b.background("t", "--org", "acme", "--payload", "")).Payload))
}

func TestBackgroundSearch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hook := b.background("webhook", "--org", "acme", "--link", "order=17", "--key", "k", "--skip-validation")
	mail := b.background("email", "--org", "other", "--skip-validation")
	b.deadLetter(mail, "TIMEOUT")
	list := func(args ...string) []string {
		var l struct{ Jobs []struct{ ID string } }
		b.json(&l, append([]string{"jobs", "list"}, args...)...)
		ids := []string{}
		for _, j := range l.Jobs {
			ids = append(ids, j.ID)
		}
		return ids
	}
	assert.Equal(t, []string{mail, hook}, list())
	for _, args := range [][]string{
		{"--org", "acme"},
		{"--type", "webhook"},
		{"--state", "pending"},
		{"--link", "order=17"},
		{"--key", "k"},
	} {
		assert.Equal(t, []string{hook}, list(args...), args)
	}
	assert.Equal(t, []string{mail}, list("--state", "failed", "--code", "TIMEOUT", "--since", "1h"))
	assert.Empty(t, list("--state", "failed", "--until", "1h"))
	assert.Empty(t, list("--since", "2999-01-01"))

	r := b.run("jobs", "list", "--limit", "1")
	assert.Contains(t, r.out, mail)
	_, cursor, ok := strings.Cut(strings.TrimSpace(r.err), "--cursor ")
	require.True(t, ok, r.err)
	assert.Equal(t, []string{hook}, list("--limit", "1", "--cursor", cursor))

	assert.NotContains(t, b.ok("jobs", "list", "--json"), `"payload"`)
	assert.Equal(t, failure.ExitNotFound, b.run("jobs", "show", "nothing").exit)
	stats := b.ok("jobs", "stats")
	assert.Contains(t, stats, "webhook  pending")
	assert.NotContains(t, b.ok("jobs", "stats", "--org", "acme"), "email")
}

func TestBackgroundRetryAndCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for _, code := range []string{"TIMEOUT", "TIMEOUT", "NOT_FOUND"} {
		id := b.background("t", "--org", "acme", "--payload", `{"n":`+string(rune('0'+len(ids)))+`}`)
		b.deadLetter(id, code)
		ids = append(ids, id)
	}
	assert.Contains(t, b.ok("jobs", "retry", ids[0], "--mode", "later"), "requeued (job "+ids[0])
	d := b.backgroundJob(ids[0])
	assert.Equal(t, "pending", d.State)
	assert.WithinDuration(t, time.Now().Add(5*time.Minute), d.RunAt, time.Minute)
	assert.Equal(t, 3, d.Attempts)

	assert.Equal(t, "1 job matches; nothing was changed\n", b.ok("jobs", "retry", "--dry-run", "--code", "TIMEOUT"))
	assert.Equal(t, "2 jobs match; nothing was changed\n", b.ok("jobs", "cancel", "--all", "--dry-run"))
	var n answers.BulkOperation
	b.json(&n, "jobs", "retry", "--all", "--code", "TIMEOUT", "--mode", "reset", "--org", "acme", "--type", "t",
		"--since", "1h")
	assert.Equal(t, []int{1, 1, 0}, []int{n.Matched, n.Changed, n.Left})
	assert.True(t, n.Finished)
	assert.NotEmpty(t, n.OperationID)
	assert.Zero(t, b.backgroundJob(ids[1]).Attempts)
	assert.Equal(t, "1 job is cancelled\n", b.ok("jobs", "cancel", "--all"))
	assert.Equal(t, "cancelled", b.backgroundJob(ids[2]).State)
	assert.Equal(t, "pending", b.backgroundJob(ids[1]).State, "only dead letters are meant")
	assert.Contains(t, b.ok("jobs", "cancel", ids[1]), "cancelled (job ")

	for _, args := range [][]string{
		{"retry"},
		{"cancel"},
		{"retry", ids[0], "--all"},
		{"retry", ids[0], "--org", "acme"},
		{"cancel", ids[0], "--dry-run"},
		{"retry", "--org", "acme"},
		{"retry", "--all", "--mode", "soon"},
		{"retry", "--all", "--delay", "-1s"},
		{"retry", "--all", "--state", "odd"},
		{"retry", "--all", "--link", "x"},
	} {
		assert.Equal(t, failure.ExitUsage, b.run(append([]string{"jobs"}, args...)...).exit, args)
	}
	r := b.run("jobs", "retry", "--all", "--state", "completed")
	assert.Contains(t, r.err, "may be failed, cancelled, pending, not completed")
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.NotContains(t, r.err, "after 0 jobs")
}

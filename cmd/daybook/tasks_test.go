package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/work"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// task enqueues a task and returns its id.
func (b *bundle) task(args ...string) int64 {
	b.t.Helper()
	var e answers.EnqueuedTask
	b.json(&e, append([]string{"tasks", "enqueue"}, args...)...)
	return e.ID
}

func (b *bundle) shownTask(id int64) work.ShownTask {
	b.t.Helper()
	var d work.ShownTask
	b.json(&d, "tasks", "show", strconv.FormatInt(id, 10))
	return d
}

// taskIDs are the ids of a list.
func (b *bundle) taskIDs(args ...string) []int64 {
	b.t.Helper()
	var page answers.TaskList
	b.json(&page, append([]string{"tasks", "list"}, args...)...)
	ids := []int64{}
	for _, t := range page.Tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

func TestTasksEnqueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.task("email", "--payload", `{"task_type": "email"}`, "--delay", "1h")
	d := b.shownTask(id)
	assert.Equal(t, "email", d.Type)
	assert.Equal(t, "waiting", d.State)
	assert.JSONEq(t, `{"task_type": "email"}`, string(d.Payload))
	assert.WithinDuration(t, time.Now().Add(time.Hour), d.ScheduledAt, time.Minute)
	assert.Equal(t, "enqueued (task 2)\n", b.ok("tasks", "enqueue", "sms"))
	for code, args := range map[string][]string{
		"PAYLOAD_INVALID":   {"email", "--payload", "[]"},
		"PAYLOAD_TOO_LARGE": {"email", "--payload", `{"a":"` + strings.Repeat("x", 131072) + `"}`},
		"INVALID":           {"Email"},
		"USAGE":             {"email", "--scheduled-at", "tomorrow"},
		"FILE_NOT_FOUND":    {"email", "--payload", "@/nothing"},
	} {
		r := b.run(append([]string{"tasks", "enqueue", "--json"}, args...)...)
		assert.NotZero(t, r.exit, args)
		assert.Contains(t, r.err, `"`+code+`"`)
	}
	assert.Len(t, b.taskIDs(), 2, "nothing else was enqueued")
}

// A type that no worker has a processor for is noted, as it is for jobs: it may be a typing error.
func TestTasksEnqueueNotesUnknownTypes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	enqueue := func(taskType string) string { return b.run("tasks", "enqueue", taskType).err }
	assert.Contains(t, enqueue("own"), "Note: own is none of Daybook's own types. Its tasks wait for a worker of yours")
	assert.Contains(t, enqueue("emial"), "Note: emial is none of Daybook's own types; did you mean email? Its tasks wait")
	assert.NotContains(t, enqueue("db_function"), "Note:")
	require.NoError(t, store.NewTaskQueue(b.Pool).NoteTypes(t.Context(), "host/1", []store.TypeOnRecord{{Type: "own"}}))
	assert.NotContains(t, enqueue("own"), "Note:", "a worker has a processor for it")
}

func TestTasksSearch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	done, failed, leased := b.task("email"), b.task("email"), b.task("sms")
	ready, waiting := b.task("sms"), b.task("email", "--delay", "1h")
	for range 3 {
		_, err := b.Pool.Exec(t.Context(), `SELECT queues.dequeue_next_available_task()`)
		require.NoError(t, err)
	}
	_, err := b.Pool.Exec(t.Context(),
		`SELECT queues.fail_task($1, 'busy'), queues.fail_task($1, 'no'), queues.complete_task($1), queues.complete_task($2)`, failed, done)
	require.NoError(t, err)
	stuck := b.task("fax", "--scheduled-at", time.Now().Add(-time.Hour).Format(time.RFC3339))

	assert.Equal(t, []int64{stuck, waiting, ready, leased, failed, done}, b.taskIDs())
	for state, ids := range map[string][]int64{
		"waiting": {waiting}, "ready": {stuck, ready}, "leased": {leased}, "stuck": {stuck}, "failed": {failed},
		"completed": {done, failed},
	} {
		assert.Equal(t, ids, b.taskIDs("--state", state), state)
		assert.Equal(t, ids, b.taskIDs("--state", state, "--since", "1h"), state)
		assert.Empty(t, b.taskIDs("--state", state, "--until", "1h"), state)
		assert.Empty(t, b.taskIDs("--state", state, "--type", "other"), state)
		// Page by page.
		var paged []int64
		cursor := ""
		for {
			var page answers.TaskList
			b.json(&page, "tasks", "list", "--state", state, "--limit", "1", "--cursor", cursor)
			for _, k := range page.Tasks {
				paged = append(paged, k.ID)
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		assert.Equal(t, ids, paged, state)
	}
	assert.Equal(t, []int64{ready, leased}, b.taskIDs("--type", "sms"))
	r := b.run("tasks", "list", "--limit", "2")
	assert.Contains(t, r.err, "There are more: raise --limit, or add --cursor ")
	assert.NotContains(t, b.ok("tasks", "list", "--json"), `"payload"`)
	assert.Contains(t, b.ok("tasks", "list", "--state", "failed"), "no")

	d := b.shownTask(failed)
	assert.Equal(t, "completed", d.State)
	assert.Equal(t, "no", d.LastError)
	assert.EqualValues(t, 2, d.Errors)
	var facts []string
	for _, e := range d.History {
		facts = append(facts, e.Event)
	}
	assert.Equal(t, []string{"completed", "failed", "failed", "leased", "enqueued"}, facts)
	assert.NotEmpty(t, b.shownTask(stuck).Stuck)
	assert.Contains(t, b.ok("tasks", "show", strconv.FormatInt(stuck, 10)),
		"due for five minutes, and no worker has leased it")

	for code, args := range map[string][]string{
		"INVALID":        {"list", "--state", "odd"},
		"USAGE":          {"list", "--since", "soon"},
		"TASK_NOT_FOUND": {"show", "999"},
	} {
		r := b.run(append([]string{"tasks", "--json"}, args...)...)
		assert.Contains(t, r.err, `"`+code+`"`, args)
	}
	assert.Equal(t, failure.ExitUsage, b.run("tasks", "list", "--cursor", "bm8").exit)
	assert.Equal(t, failure.ExitUsage, b.run("tasks", "list", "--limit", "0").exit)
	assert.Equal(t, failure.ExitUsage, b.run("tasks", "show", "one").exit)
	assert.Equal(t, failure.ExitNotFound, b.run("tasks", "history", "999").exit)
	assert.Equal(t, failure.ExitUsage, b.run("tasks", "history", "0").exit)
}

func TestTasksHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.task("email")
	_, err := b.Pool.Exec(t.Context(), `SELECT queues.dequeue_next_available_task()`)
	require.NoError(t, err)
	_, err = b.Pool.Exec(t.Context(),
		`SELECT queues.renew_task_leases(ARRAY[o.task_id], ARRAY[o.task_lease_id]) FROM queues.open_task o`)
	require.NoError(t, err)
	_, err = b.Pool.Exec(t.Context(), `SELECT queues.fail_task($1, e'not\nnow'), queues.complete_task($1)`, id)
	require.NoError(t, err)
	var facts []answers.TaskEvent
	cursor := ""
	for {
		var h answers.TaskHistory
		b.json(&h, "tasks", "history", "1", "--limit", "2", "--cursor", cursor)
		facts = append(facts, h.History...)
		if cursor = h.NextCursor; cursor == "" {
			break
		}
	}
	require.Len(t, facts, 5)
	for i, event := range []string{"completed", "failed", "renewed", "leased", "enqueued"} {
		assert.Equal(t, event, facts[i].Event)
	}
	assert.Equal(t, "not\nnow", facts[1].Error)
	assert.Equal(t, 5*time.Minute, facts[2].ExpiresAt.Sub(facts[2].At))
	assert.EqualValues(t, 1, *facts[3].LeaseID)
	assert.Contains(t, b.ok("tasks", "history", "1"), "not now")
	r := b.run("tasks", "history", "1", "--limit", "1")
	assert.Contains(t, r.err, "daybook tasks history 1 --cursor ")
	assert.Equal(t, failure.ExitUsage, b.run("tasks", "history", "1", "--cursor", "!").exit)
}

func TestTasksArePausedAndCapped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var done struct {
		Limits []store.ChangedTasks `json:"limits"`
	}
	b.json(&done, "tasks", "pause", "--type", "sms", "--type", "email", "--type", "sms")
	require.Len(t, done.Limits, 2)
	assert.Equal(t, "email", done.Limits[0].Type)
	assert.True(t, done.Limits[0].Changed)
	assert.NotNil(t, done.Limits[0].PausedAt)
	b.task("email")
	var id *int64
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT task_id FROM queues.dequeue_next_available_task()`).Scan(&id))
	assert.Nil(t, id)
	b.ok("tasks", "cap", "--all", "--max-in-flight", "3")
	assert.Regexp(t, `(?s)all +3\n.*email +\d{4}.*sms +\d{4}`, b.ok("tasks", "limits"))
	b.ok("tasks", "resume", "--type", "email", "--type", "sms")
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT task_id FROM queues.dequeue_next_available_task()`).Scan(&id))
	assert.NotNil(t, id)
	b.json(&done, "tasks", "cap", "--all", "--none")
	assert.Nil(t, done.Limits[0].MaxInFlight)
	var left struct{ Limits []models.TaskLimit }
	b.json(&left, "tasks", "limits")
	assert.Equal(t, []models.TaskLimit{}, left.Limits)
	for _, args := range [][]string{
		{"pause"},
		{"pause", "--all", "--type", "email"},
		{"pause", "--type", "Email"},
		{"resume", "--type", "*"},
		{"cap", "--all"},
		{"cap", "--all", "--none", "--max-in-flight", "1"},
		{"cap", "--all", "--max-in-flight", "0"},
		{"cap", "--type", "email", "--max-in-flight", "-1"},
	} {
		assert.Equal(t, failure.ExitUsage, b.run(append([]string{"tasks"}, args...)...).exit, args)
	}
}

func TestTasksInStatusAndAudit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.task("email", "--scheduled-at", time.Now().Add(-time.Hour).Format(time.RFC3339))
	b.ok("tasks", "pause", "--type", "email")
	out := b.ok("status")
	assert.Regexp(t, `tasks +1 +1 +0 +0 +0 +0 +0`, out)
	assert.Contains(t, out, "tasks: due longest: task 1 (email), for 1 h")
	assert.Contains(t, out, "paused tasks: email since ")
	var s struct {
		Paused []models.TaskLimit `json:"paused_tasks"`
	}
	b.json(&s, "status")
	require.Len(t, s.Paused, 1)
	assert.Regexp(t, `(?m)^tasks +1 task open, 0 failed$`, b.ok("audit", "--all-orgs"))
	_, err := b.Pool.Exec(t.Context(), `DELETE FROM queues.open_task`)
	require.NoError(t, err)
	r := b.run("audit", "--all-orgs")
	assert.Equal(t, failure.ExitFailure, r.exit)
	assert.Contains(t, r.out, "task 1 is not completed, and no dequeue finds it: call queues.rebuild_open_tasks()")
	_, err = b.Pool.Exec(t.Context(),
		`ALTER TABLE queues.error DISABLE TRIGGER error_append_only; SELECT queues.rebuild_open_tasks()`)
	require.NoError(t, err)
	r = b.run("audit", "--all-orgs")
	assert.Contains(t, r.out, "trigger error_append_only of queues.error is disabled")
}

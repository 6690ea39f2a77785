package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// task enqueues a task and returns its id.
func (b *bundle) task(body object) int64 {
	b.t.Helper()
	var out struct{ ID int64 }
	b.post(&out, "/api/tasks/enqueue", body)
	return out.ID
}

func TestTasksOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.task(object{"type": "email", "payload": object{"n": 1.5}})
	second := b.task(object{"type": "sms", "payload": object{}, "scheduledAt": "2999-01-15T10:30:00Z"})
	_, err := b.Pool.Exec(t.Context(),
		`SELECT queues.fail_task(task_id, 'busy'), queues.complete_task(task_id) FROM queues.dequeue_next_available_task()`)
	require.NoError(t, err)

	var detail struct {
		answers.Task
		Payload object
		Errors  int
	}
	b.get(&detail, fmt.Sprintf("/api/tasks/%d", first))
	assert.Equal(t, "completed", detail.State)
	assert.Equal(t, "busy", detail.LastError)
	assert.Equal(t, 1, detail.Errors)
	assert.Equal(t, 1, detail.Leases)
	assert.Equal(t, object{"n": 1.5}, detail.Payload)

	list := func(query string) (ids []int64, next string) {
		var out struct {
			Tasks      []answers.Task
			NextCursor string
		}
		b.get(&out, "/api/tasks"+query)
		for _, k := range out.Tasks {
			ids = append(ids, k.ID)
		}
		return ids, out.NextCursor
	}
	for query, ids := range map[string][]int64{
		"": {second, first}, "?state=waiting": {second}, "?state=completed": {first}, "?state=failed": {first},
		"?state=stuck": nil, "?state=leased": nil,
		"?type=sms": {second}, "?state=failed&until=2020-01-01T00:00:00Z": nil,
		"?since=2020-01-01T00:00:00Z": {second, first},
	} {
		got, _ := list(query)
		assert.Equal(t, ids, got, query)
	}
	_, next := list("?limit=1")
	got, next := list("?limit=1&cursor=" + next)
	assert.Equal(t, []int64{first}, got)
	assert.Empty(t, next)

	var history struct {
		History    []answers.TaskEvent
		NextCursor string
	}
	b.get(&history, fmt.Sprintf("/api/tasks/%d/history?limit=3", first))
	require.Len(t, history.History, 3)
	assert.Equal(t, "completed", history.History[0].Event)
	b.get(&history, fmt.Sprintf("/api/tasks/%d/history?limit=3&cursor=%s", first, history.NextCursor))
	require.Len(t, history.History, 1)
	assert.Equal(t, "enqueued", history.History[0].Event)
}

func TestTasksThatAreWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		{http.MethodGet, "/api/tasks/999", nil, http.StatusNotFound, "TASK_NOT_FOUND"},
		{http.MethodGet, "/api/tasks/999/history", nil, http.StatusNotFound, "TASK_NOT_FOUND"},
		{http.MethodGet, "/api/tasks/0", nil, http.StatusUnprocessableEntity, "INVALID"},
		{http.MethodGet, "/api/tasks/one", nil, http.StatusUnprocessableEntity, "INVALID"},
		{http.MethodGet, "/api/tasks?state=odd", nil, http.StatusUnprocessableEntity, "INVALID"},
		{http.MethodGet, "/api/tasks?cursor=bm8", nil, http.StatusUnprocessableEntity, "INVALID"},
		{http.MethodGet, "/api/tasks?limit=0", nil, http.StatusUnprocessableEntity, "INVALID"},
		{
			http.MethodPost, "/api/tasks/enqueue",
			object{"type": "Email", "payload": object{}},
			http.StatusUnprocessableEntity, "INVALID",
		},
		{http.MethodPost, "/api/tasks/enqueue", object{"type": "email"}, http.StatusUnprocessableEntity, "INVALID"},
		{
			http.MethodPost, "/api/tasks/enqueue",
			object{"type": "email", "payload": "text"},
			http.StatusUnprocessableEntity,
			"INVALID",
		},
		{
			http.MethodPost, "/api/tasks/enqueue",
			object{"type": "email", "payload": object{"a": "\x00"}},
			http.StatusUnprocessableEntity, "PAYLOAD_INVALID",
		},
		{
			http.MethodPost, "/api/tasks/enqueue",
			object{"type": "email", "payload": object{"a": strings.Repeat("x", 131072)}},
			http.StatusRequestEntityTooLarge,
			"PAYLOAD_TOO_LARGE",
		},
	} {
		a := b.send(b.everything, c.method, c.path, c.body)
		assert.Equal(t, c.status, a.status, "%s %s: %s", c.method, c.path, a.body)
		assert.Equal(t, c.code, a.code(), "%s %s", c.method, c.path)
	}
}

// Tasks belong to no organization: a token of one reaches none of them, and one that may enqueue
// jobs may not for that reason enqueue tasks.
func TestTokensAndTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.task(object{"type": "email", "payload": object{}})
	enqueue := func(token string) answer {
		return b.send(token, http.MethodPost, "/api/tasks/enqueue", object{"type": "db_function", "payload": object{}})
	}
	ofOne := b.token("acme", tokens.Scopes()...)
	for _, path := range []string{
		"/api/tasks", fmt.Sprintf("/api/tasks/%d", id),
		fmt.Sprintf("/api/tasks/%d/history", id),
	} {
		a := b.send(ofOne, http.MethodGet, path, nil)
		assert.Equal(t, http.StatusForbidden, a.status, path)
		assert.Equal(t, "FORBIDDEN", a.code(), path)
		assert.Equal(t, http.StatusForbidden, b.send(b.token("", tokens.ScopeEnqueue), http.MethodGet, path, nil).status,
			path)
		assert.Equal(t, http.StatusUnauthorized, b.send("", http.MethodGet, path, nil).status, path)
		assert.Equal(t, http.StatusOK, b.send(b.token("", tokens.ScopeRead), http.MethodGet, path, nil).status, path)
	}
	assert.Equal(t, "FORBIDDEN", enqueue(ofOne).code())
	assert.Equal(t, "FORBIDDEN", enqueue(b.token("", tokens.ScopeRead)).code())
	assert.Equal(t, "TYPE_NOT_ALLOWED", enqueue(b.token("", tokens.ScopeEnqueue)).code())
	assert.Equal(t, "TYPE_NOT_ALLOWED",
		enqueue(b.limited("", tokens.Limits{Types: []string{"db_function", "task:email"}}, tokens.ScopeEnqueue)).code())
	assert.Equal(t, http.StatusCreated,
		enqueue(b.limited("", tokens.Limits{Types: []string{"task:db_function"}}, tokens.ScopeEnqueue)).status)
	assert.Equal(t, http.StatusCreated, enqueue(b.token("", tokens.ScopeEnqueue, tokens.ScopeOperate)).status)
}

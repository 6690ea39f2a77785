package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// TestQueuesOverHTTP makes, changes, pauses, resumes and deletes a named queue; each change is in
// the log of actions.
func TestQueuesOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call := func(method, path string, body any) answers.Queue {
		t.Helper()
		a := b.send(b.everything, method, path, body)
		require.Equal(t, http.StatusOK, a.status, "%s %s: %s", method, path, a.body)
		var u answers.Queue
		a.into(t, &u)
		return u
	}
	u := call(http.MethodPut, "/api/queues/bank",
		object{"maxParallel": 10, "rate": 100, "rateSeconds": 60, "fleet": "shop", "owner": "payments"})
	assert.Equal(t, answers.QueueSettings{Fleet: "shop", MaxParallel: 10, Rate: 100, RateSeconds: 60, Owner: "payments"},
		u.QueueSettings)
	assert.NotNil(t, call(http.MethodPost, "/api/queues/bank/pause", nil).PausedAt)
	u = call(http.MethodPut, "/api/queues/bank", object{"maxParallel": 5, "perProcess": 2})
	assert.Equal(t, answers.QueueSettings{MaxParallel: 5, PerProcess: 2}, u.QueueSettings,
		"what is left out is at its default")
	assert.NotNil(t, u.PausedAt, "a pause stays")
	assert.Nil(t, call(http.MethodPost, "/api/queues/bank/resume", nil).PausedAt)
	// as a program does when it starts
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.set_queue('bank', max_parallel => 7)`)
	require.NoError(t, err)
	u = call(http.MethodPut, "/api/queues/bank", object{"maxParallel": 5, "perProcess": 2})
	assert.Equal(t, "test", u.SetBy)
	u = call(http.MethodPost, "/api/queues/bank/release", nil)
	assert.Equal(t, answers.QueueSettings{MaxParallel: 7}, u.QueueSettings, "what the program has asked for")
	assert.Empty(t, u.SetBy)
	assert.Equal(t, u.QueueSettings, call(http.MethodPost, "/api/queues/bank/release", nil).QueueSettings)

	b.enqueue(object{"queue": "bank"})
	u = call(http.MethodGet, "/api/queues/bank", nil)
	assert.Equal(t, 1, u.Pending)
	assert.Equal(t, 1, u.Due)
	assert.NotNil(t, u.OldestDue)
	assert.Equal(t, "QUEUE_NOT_EMPTY", b.send(b.everything, http.MethodDelete, "/api/queues/bank", nil).code())
	_, err = b.Pool.Exec(t.Context(), `DELETE FROM daybook.jobs`)
	require.NoError(t, err)
	a := b.send(b.everything, http.MethodDelete, "/api/queues/bank", nil)
	assert.Equal(t, http.StatusNoContent, a.status, string(a.body))
	assert.Equal(t, "QUEUE_NOT_FOUND", b.send(b.everything, http.MethodGet, "/api/queues/bank", nil).code())

	list, err := actions.List(t.Context(), b.Pool, actions.Filter{})
	require.NoError(t, err)
	var names []string
	for _, one := range list {
		name := one.Action + " " + string(one.Outcome)
		if strings.Contains(string(one.Details), `"changed": false`) {
			name += ", unchanged"
		}
		names = append(names, name)
		assert.Equal(t, "bank", one.Subject)
	}
	assert.Equal(t, []string{
		"queues.delete done", "queues.delete refused", "queues.release done, unchanged", "queues.release done",
		"queues.set done, unchanged",
		"queues.resume done", "queues.set done", "queues.pause done", "queues.set done",
	}, names)
	assert.JSONEq(t, `{"maxParallel": 10, "rate": 100, "rateSeconds": 60, "fleet": "shop", "owner": "payments", "changed": true}`, string(list[8].Details))
}

// A list goes on by its cursor, and shows one fleet's queues.
func TestListOfQueues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(),
		`SELECT daybook.set_queue(n, f) FROM (VALUES ('a', 'shop'), ('b', NULL), ('c', 'shop')) AS v (n, f)`)
	require.NoError(t, err)
	list := func(query string) (names []string, next string) {
		var out struct {
			Queues     []answers.Queue
			NextCursor string
		}
		b.get(&out, "/api/queues"+query)
		for _, u := range out.Queues {
			names = append(names, u.Name)
		}
		return names, out.NextCursor
	}
	names, next := list("?limit=2")
	assert.Equal(t, []string{"a", "b"}, names)
	names, next = list("?limit=2&cursor=" + next)
	assert.Equal(t, []string{"c"}, names)
	assert.Empty(t, next)
	names, next = list("?fleet=shop&limit=1")
	assert.Equal(t, []string{"a"}, names)
	names, _ = list("?fleet=shop&cursor=" + next)
	assert.Equal(t, []string{"c"}, names)
}

func TestQueuesThatAreWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code         string
	}{
		{http.MethodGet, "/api/queues/none", nil, http.StatusNotFound, "QUEUE_NOT_FOUND"},
		{http.MethodPost, "/api/queues/none/pause", nil, http.StatusNotFound, "QUEUE_NOT_FOUND"},
		{http.MethodPost, "/api/queues/none/release", nil, http.StatusNotFound, "QUEUE_NOT_FOUND"},
		{http.MethodDelete, "/api/queues/none", nil, http.StatusNotFound, "QUEUE_NOT_FOUND"},
		{http.MethodPut, "/api/queues/a%20b", object{}, http.StatusUnprocessableEntity, "INVALID"},
		{http.MethodPut, "/api/queues/default", object{}, http.StatusUnprocessableEntity, "INVALID"},
		{http.MethodPut, "/api/queues/a", object{"rateBurst": 2}, http.StatusUnprocessableEntity, "INVALID"},
		{http.MethodPut, "/api/queues/a", object{"maxParallel": -1}, http.StatusUnprocessableEntity, "INVALID"},
		{http.MethodPut, "/api/queues/a", object{"fleet": "A B"}, http.StatusUnprocessableEntity, "INVALID"},
		{http.MethodPut, "/api/queues/a", object{"limit": 1}, http.StatusUnprocessableEntity, "INVALID"},
		{http.MethodPut, "/api/queues/a", nil, http.StatusBadRequest, "MALFORMED"},
		{http.MethodGet, "/api/queues?cursor=x", nil, http.StatusUnprocessableEntity, "INVALID"},
	} {
		a := b.send(b.everything, c.method, c.path, c.body)
		assert.Equal(t, c.status, a.status, "%s %s: %s", c.method, c.path, a.body)
		assert.Equal(t, c.code, a.code(), "%s %s", c.method, c.path)
	}
}

// A named queue has jobs of all organizations: a token of one neither sees nor changes any.
func TestTokensAndQueues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.set_queue('bank')`)
	require.NoError(t, err)
	one := b.token("acme", tokens.Scopes()...)
	for _, r := range []struct {
		method, path string
		body         any
	}{
		{http.MethodGet, "/api/queues", nil},
		{http.MethodGet, "/api/queues/bank", nil},
		{http.MethodPut, "/api/queues/bank", object{}},
		{http.MethodPost, "/api/queues/bank/pause", nil},
		{http.MethodPost, "/api/queues/bank/resume", nil},
		{http.MethodPost, "/api/queues/bank/release", nil},
		{http.MethodDelete, "/api/queues/bank", nil},
	} {
		a := b.send(one, r.method, r.path, r.body)
		assert.Equal(t, http.StatusForbidden, a.status, "%s %s", r.method, r.path)
		assert.Equal(t, "FORBIDDEN", a.code(), "%s %s", r.method, r.path)
	}
}

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// TestActionsOfTheAPI: what a caller of the API changes is in the log with the token, what is
// refused with its code, and what only counts is not.
func TestActionsOfTheAPI(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.enqueue(object{"idempotencyKey": "k"})
	b.fail(id, "TIMEOUT")
	for _, request := range []struct {
		path, body string
		status     int
	}{
		{"/api/jobs/" + id + "/retry", `{"mode":"reset"}`, http.StatusOK},
		{"/api/jobs/nothing/cancel", ``, http.StatusNotFound},
		{"/api/jobs/retry", `{"mode":"now","dryRun":true}`, http.StatusOK},
		{"/api/jobs/cancel", `{"all":true,"filter":{"state":"pending","code":"TIMEOUT"}}`, http.StatusOK},
	} {
		var body any
		if request.body != "" {
			body = request.body
		}
		a := b.send(b.everything, http.MethodPost, request.path, body)
		require.Equal(t, request.status, a.status, "%s: %s", request.path, a.body)
	}
	list, err := actions.List(t.Context(), b.Pool, actions.Filter{})
	require.NoError(t, err)
	require.Len(t, list, 3)
	assert.Equal(t, "jobs.cancel_many", list[0].Action)
	assert.Contains(t, string(list[0].Details), `"TIMEOUT"`)
	assert.Equal(t, "jobs.cancel", list[1].Action)
	assert.Equal(t, "JOB_NOT_FOUND", list[1].Code)
	assert.Equal(t, actions.Refused, list[1].Outcome)
	assert.Equal(t, "jobs.retry", list[2].Action)
	assert.Equal(t, id, list[2].Subject)
	assert.Equal(t, actions.API, list[2].Via)
	assert.NotNil(t, list[2].TokenID)
	require.NotNil(t, list[2].OrgID, "the job's organization sees what a token of all did to it")

	read := b.token("", tokens.ScopeRead)
	a := b.send(read, http.MethodGet, "/api/actions?limit=2&via=api", nil)
	require.Equal(t, http.StatusOK, a.status, a.body)
	assert.Equal(t, 2, strings.Count(string(a.body), `"outcome"`))
	assert.Contains(t, string(a.body), "nextCursor")
	assert.Contains(t, string(a.body), `"dbRole":"`+b.Pool.Config().ConnConfig.User+`"`)
	a = b.send(b.token("other", tokens.ScopeRead), http.MethodGet, "/api/actions", nil)
	assert.NotContains(t, string(a.body), `"outcome"`, "another organization's token sees none of it")
}

// operateBodies are what each request is sent with that wants the scope operate or decrypt; "-": it is
// not in the log of actions.
var operateBodies = map[string]string{
	"/api/jobs/{id}/retry":                        `{"mode":"now"}`,
	"/api/jobs/{id}/cancel":                       "",
	"/api/jobs/{id}/edit":                         `{"payload":{"url":"https://example.com"}}`,
	"/api/jobs/{id}/decrypt":                      "",
	"/api/jobs/edit":                              `{"all":true,"patch":[{"op":"add","path":"/a","value":1}]}`,
	"/api/jobs/retry":                             `{"all":true,"mode":"now"}`,
	"/api/jobs/cancel":                            `{"all":true}`,
	"/api/accounting/jobs/{documentId}/retry":     "",
	"/api/accounting/jobs/{documentId}/cancel":    "",
	"/api/jobs/run":                               "-", // it does what a worker does, once a minute
	"/api/queues/{name}":                          `{}`,
	"/api/limits/types/{type}":                    `{"by":"payload.a","parallel":2}`,
	"/api/limits/queues/{name}":                   `{"by":"payload.a","parallel":2}`,
	"/api/queues/{name}/pause":                    "",
	"/api/queues/{name}/resume":                   "",
	"/api/queues/{name}/release":                  "",
	"/api/accounting/jobs/{documentId}/elsewhere": `{"post":"full"}`,
	"/api/imports/{importId}/undo":                "",
	"/api/rates":                                  `{"rates":[{"currency":"USD","validOn":"2026-03-31","rate":"1"}]}`,
	"/api/exchange":                               `{"until":"2026-03-31"}`,
	"/api/journals":                               `{"date":"2026-03-31","reason":"r","entries":[{"account":"1","amountMinor":"1"},{"account":"2","amountMinor":"-1"}],"currency":"EUR"}`,
	"/api/journals/{documentId}":                  "",
	"/api/open-items/match":                       `{}`,
	"/api/open-items/reconcile":                   `{"documents":["a","b"]}`,
	"/api/open-items/unreconcile":                 `{"group":1}`,
	"/api/years/{year}/close":                     `{"undo":true}`,
}

// TestEveryOperationThatChangesIsInTheLog sends each request that wants the scope operate and may
// change something, or the scope decrypt: one that is added without an action, or without a row below,
// fails here. What is refused names what it was about as well.
func TestEveryOperationThatChangesIsInTheLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, r := range b.spec.routes {
		security, _ := json.Marshal(r.operation["security"])
		if r.method == http.MethodGet || !strings.Contains(string(security), string(tokens.ScopeOperate)) &&
			!strings.Contains(string(security), string(tokens.ScopeDecrypt)) {
			continue
		}
		text, known := operateBodies[r.path]
		require.True(t, known, "%s %s is new: say here how it is sent", r.method, r.path)
		if text == "-" {
			continue
		}
		id := b.enqueue(nil)
		b.fail(id, "TIMEOUT")
		var body any
		if text != "" && r.method != http.MethodDelete {
			body = text
		}
		token, org := b.token("acme", tokens.ScopeOperate, tokens.ScopeDecrypt), "acme"
		if strings.HasPrefix(r.path, "/api/queues/") || strings.HasPrefix(r.path, "/api/limits/") {
			token, org = b.everything, "" // they are of all organizations
		}
		before, err := actions.List(t.Context(), b.Pool, actions.Filter{})
		require.NoError(t, err)
		a := b.send(token, r.method,
			strings.NewReplacer("{id}", id, "{year}", "2026", "{documentId}", "nothing", "{name}", "nothing", "{type}", "nothing",
				"{importId}", "999").Replace(r.path), body)
		after, err := actions.List(t.Context(), b.Pool, actions.Filter{})
		require.NoError(t, err)
		require.Len(t, after, len(before)+1, "%s %s: %d %s", r.method, r.path, a.status, a.body)
		if org != "" {
			assert.Equal(t, org, *after[0].OrgID, r.path)
		}
		if !strings.Contains(r.path, "{id}") {
			continue
		}
		a = b.send(token, r.method, strings.ReplaceAll(r.path, "{id}", "missing"), body)
		require.Equal(t, http.StatusNotFound, a.status, r.path)
		last, err := actions.List(t.Context(), b.Pool, actions.Filter{Limit: 1})
		require.NoError(t, err)
		assert.Equal(t, actions.Refused, last[0].Outcome, r.path)
		assert.Equal(t, "missing", last[0].Subject, r.path)
		if assert.NotNil(t, last[0].OrgID, r.path) {
			assert.Equal(t, "acme", *last[0].OrgID, r.path)
		}
	}
}

// TestAnActionIsOfItsTransaction: the row and the change are committed together, or neither is.
func TestAnActionIsOfItsTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.enqueue(nil)
	b.fail(id, "TIMEOUT")
	_, err := b.Pool.Exec(t.Context(), `ALTER TABLE daybook.actions ADD CONSTRAINT refused CHECK (outcome <> 'done')`)
	require.NoError(t, err)
	a := b.send(b.everything, http.MethodPost, "/api/jobs/"+id+"/retry", `{"mode":"reset"}`)
	require.Equal(t, http.StatusInternalServerError, a.status)
	var state string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT state FROM daybook.jobs WHERE id = $1`, id).Scan(&state))
	assert.Equal(t, "failed", state, "what cannot be recorded is not done")
	list, err := actions.List(t.Context(), b.Pool, actions.Filter{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, actions.Failed, list[0].Outcome)
}

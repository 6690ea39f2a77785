package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
)

// Another system answers a job by the callback's token alone; each refusal has a code of its own.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ask := func(token string, within time.Duration) {
		var id string
		require.NoError(t, b.Pool.QueryRow(t.Context(),
			`SELECT job_id FROM daybook.enqueue_job('acme', 'mail', '{}')`).Scan(&id))
		require.NoError(t, store.NewCallback(t.Context(), b.Pool, id, "paid", token, within))
	}
	ask("secret-1", time.Hour)
	ask("secret-2", -time.Second)
	for _, c := range []struct {
		token, body string
		status      int
		want        string
	}{
		{"secret-1", `[1]`, http.StatusUnprocessableEntity, "PAYLOAD_INVALID"},
		{"secret-1", `{`, http.StatusBadRequest, "MALFORMED"},
		{
			"secret-1", `{"a": "` + strings.Repeat("x", 140_000) + `"}`, http.StatusRequestEntityTooLarge,
			"PAYLOAD_TOO_LARGE",
		},
		{"secret-1", `{"a": "` + strings.Repeat("x", 300_000) + `"}`, http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE"},
		{"secret-1", `{"paid": true}`, http.StatusOK, "received"},
		{"secret-1", `{"paid":true}`, http.StatusOK, "unchanged"},
		{"secret-1", `{"paid": false}`, http.StatusConflict, "CALLBACK_USED"},
		{"secret-2", `{}`, http.StatusGone, "CALLBACK_EXPIRED"},
		{"guessed", ``, http.StatusNotFound, "CALLBACK_NOT_FOUND"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/api/callbacks/"+c.token,
			strings.NewReader(c.body))
		require.NoError(t, err)
		a, err := b.client.Do(r)
		require.NoError(t, err)
		var got struct{ Code, Result string }
		require.NoError(t, json.NewDecoder(a.Body).Decode(&got))
		_ = a.Body.Close()
		assert.Equal(t, c.status, a.StatusCode, c.want)
		assert.Equal(t, c.want, got.Code+got.Result)
	}
	wrong := b.send("", http.MethodPost, "/api/callbacks/secret-1", []int{1})
	assert.Equal(t, http.StatusUnprocessableEntity, wrong.status, "its answers are in the OpenAPI document")
	var problem httpapi.Problem
	require.NoError(t, json.Unmarshal(wrong.body, &problem))
	assert.Equal(t, "answer: it must be a JSON object", problem.Detail)
	assert.Equal(t, []httpapi.ProblemPart{{Location: "body", Message: "it must be a JSON object"}}, problem.Errors,
		"the body is the answer, and has no member payload")
	large := b.send("", http.MethodPost, "/api/callbacks/secret-1", map[string]string{"a": strings.Repeat("x", 140_000)})
	assert.Contains(t, string(large.body), "keep what is large elsewhere, and its name in the answer")
	assert.NotContains(t, b.log.String(), "secret-", "the log does not name tokens")
}

// An address that sends many wrong tokens is answered 429, also with a right one, until it has been
// quiet; one that sends too many of any kind likewise.
func TestCallbacksBeyondTheRate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var id string
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT job_id FROM daybook.enqueue_job('acme', 'mail', '{}')`).Scan(&id))
	require.NoError(t, store.NewCallback(t.Context(), b.Pool, id, "paid", "right", time.Hour))
	wrong := func() answer { return b.send("", http.MethodPost, "/api/callbacks/guessed", object{}) }
	require.Equal(t, http.StatusNotFound, wrong().status)
	var last answer
	for range 1000 { // twenty come at once, and one a second: a slow machine needs more
		if last = wrong(); last.status != http.StatusNotFound {
			break
		}
	}
	tooMany(t, last)
	assert.Contains(t, string(last.body), "more callbacks with a wrong token than this address may have, 60 a minute")
	require.Eventually(t, func() bool {
		return b.send("", http.MethodPost, "/api/callbacks/right", object{}).status == http.StatusOK
	}, time.Minute, 100*time.Millisecond)
}

// A job is enqueued with a callback: its token is answered once, and completes it.
func TestEnqueueWithACallback(t *testing.T) {
	t.Parallel()
	b := setup(t)
	request := object{
		"orgId": "acme", "type": "mail", "payload": object{}, "idempotencyKey": "k",
		"callback": object{"name": "paid", "withinSeconds": 3600},
	}
	var made struct{ ID, CallbackToken string }
	a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", request)
	require.Equal(t, http.StatusCreated, a.status, string(a.body))
	a.into(t, &made)
	assert.Len(t, made.CallbackToken, 43)
	again := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", request)
	assert.Equal(t, http.StatusOK, again.status)
	assert.NotContains(t, string(again.body), "callbackToken")
	var got struct{ WaitsFor []struct{ What, ID string } }
	b.get(&got, "/api/jobs/"+made.ID)
	assert.Equal(t, []struct{ What, ID string }{{"callback", "paid"}}, got.WaitsFor)
	assert.Equal(t, http.StatusOK,
		b.send("", http.MethodPost, "/api/callbacks/"+made.CallbackToken, object{"paid": true}).status)
	request["unique"] = true
	assert.Equal(t, http.StatusUnprocessableEntity,
		b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", request).status)
}

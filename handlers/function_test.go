package handlers

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// function registers the type resize, worked by a function that answers as f does.
func (b *bundle) function(c FunctionConfig, f http.HandlerFunc) *receiver {
	b.t.Helper()
	r := receive(b.t, f)
	c.URL, c.Secret, c.AllowNetworks = r.URL+"/resize", "functions", loopback
	c.Secrets = environmentSecrets(map[string]string{"DAYBOOK_WEBHOOK_SECRET_FUNCTIONS": newSecret})
	h, err := NewFunction(c)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { assert.NoError(b.t, h.Close()) })
	policy := FunctionPolicy(c.Timeout)
	policy.Base = time.Minute
	jobs.RegisterRaw(b.registry, "resize", policy, h.Handle)
	return r
}

// image is the payload of the test's jobs.
func image() queue.Payload {
	return queue.RawPayload{Type: "resize", Data: json.RawMessage(`{"name": "a.png", "sizes": [1, 2]}`)}
}

// asked reads a request to a function, and checks its signature.
func asked(t *testing.T, r request) FunctionRequest {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(newSecret)
	require.NoError(t, err)
	require.NoError(t, verifier.Verify(r.body, r.header))
	var q FunctionRequest
	require.NoError(t, json.Unmarshal(r.body, &q))
	return q
}

// accept answers 202.
func accept(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

func TestFunctionAnswersAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.function(FunctionConfig{},
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(` {"files": 2} `)) })
	id := b.enqueueFor(org, image(), queue.JobOptions{IdempotencyKey: "image-1"})
	b.work()

	assert.Equal(t, map[string]int{"files": 2}, result[map[string]int](t, b.job(id)))
	require.Len(t, r.requests(), 1)
	got := r.requests()[0]
	assert.Equal(t, "POST /resize", got.method+" "+got.path)
	assert.Equal(t, id, got.header.Get("Webhook-Id"))
	assert.Equal(t, "image-1", got.header.Get("Idempotency-Key"))
	q := asked(t, got)
	assert.WithinDuration(t, time.Now().Add(defaultFunctionTimeout), q.Deadline, time.Minute)
	assert.JSONEq(t, `{"name": "a.png", "sizes": [1, 2]}`, string(q.Payload))
	q.Deadline, q.Payload = time.Time{}, nil
	assert.Equal(t, FunctionRequest{JobID: id, Type: "resize", OrgID: org, Attempt: 1, IdempotencyKey: "image-1"}, q,
		"without a callback, as none is configured")
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.job_callbacks`))
}

func TestFunctionAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header string
		body   string
		state  models.JobState
		code   models.ErrorCode
		says   string
		wait   time.Duration
	}{
		"nothing": {status: 204, state: models.JobCompleted},
		"no JSON": {
			status: 200, body: "done", state: models.JobFailed,
			code: models.CodeHandlerError, says: "not JSON",
		},
		"what jsonb cannot hold": {
			status: 200, body: `{"a": "\u0000"}`, state: models.JobCompleted,
			code: models.CodeResultNotStored, says: `\u0000`,
		},
		"too much": {
			status: 200, body: `"` + strings.Repeat("x", 1100) + `"`,
			state: models.JobCompleted, code: models.CodeResultNotStored, says: "more than 1024 bytes",
		},
		"too much of a page": {
			status: 200, body: "<html>" + strings.Repeat("x", 1100), state: models.JobFailed,
			code: models.CodeHandlerError, says: "not JSON",
		},
		"more than one value": {
			status: 200, body: `{} {}`, state: models.JobFailed,
			code: models.CodeHandlerError, says: "not JSON",
		},
		"later, without a callback": {
			status: 202, state: models.JobFailed, code: models.CodeHandlerError,
			says: "set callback",
		},
		"refused": {
			status: 422, body: `{"code": "NO_IMAGE", "message": "a.png is no image"}`,
			state: models.JobFailed, code: "NO_IMAGE", says: "a.png is no image",
		},
		"refused, and again": {
			status: 409, body: `{"code": "BUSY", "final": false}`, state: models.JobPending,
			code: "BUSY", wait: time.Minute,
		},
		"missing, and again": {
			status: 404, body: `{"final": false}`, state: models.JobPending,
			code: models.CodeHandlerError, wait: time.Minute,
		},
		"missing":      {status: 404, body: `{}`, state: models.JobFailed, code: models.CodeNotFound},
		"unauthorized": {status: 401, state: models.JobFailed, code: models.CodeAuthenticationFailed},
		"broken": {
			status: 500, body: "<html>", state: models.JobPending,
			code: models.CodeUpstream5xx, wait: time.Minute,
		},
		"broken for good": {
			status: 500, body: `{"code": "LOST", "final": true}`, state: models.JobFailed,
			code: "LOST",
		},
		"a code of Daybook's own": {
			status: 500, body: `{"code": "AWAITING_CALLBACK"}`, state: models.JobPending,
			code: models.CodeUpstream5xx, wait: time.Minute,
		},
		"rate limited": {
			status: 429, header: "7", state: models.JobPending, code: models.CodeRateLimited,
			wait: 7 * time.Second,
		},
		"refused, for a while": {
			status: 422, body: `{"code": "BUSY", "retryAfterSeconds": 9}`, state: models.JobPending,
			code: "BUSY", wait: 9 * time.Second,
		},
		"refused for good, all the same": {
			status: 422, body: `{"final": true, "retryAfterSeconds": 9}`, state: models.JobFailed,
			code: models.CodeHandlerError,
		},
		"rate limited, by its body": {
			status: 429, header: "7", body: `{"retryAfterSeconds": 9}`, state: models.JobPending,
			code: models.CodeRateLimited, wait: 9 * time.Second,
		},
		"a redirect is not followed": {
			status: 307, header: "1", state: models.JobFailed, code: models.CodeHandlerError,
			says: "307",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			r := b.function(FunctionConfig{MaxResult: 1024}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.header)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			j := b.run(image())
			assert.Equal(t, c.state, j.State, "%s %s", j.Code, j.Error)
			assert.Equal(t, c.code, j.Code, j.Error)
			assert.Contains(t, j.Error, c.says)
			if c.wait > 0 {
				jittered(t, c.wait, j.Wait)
			}
			assert.Len(t, r.requests(), 1)
		})
	}
}

func TestFunctionDoesNotAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.function(FunctionConfig{Timeout: 50 * time.Millisecond},
		func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
	j := b.run(image())
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, models.CodeTimeout, j.Code, j.Error)
}

// The function accepts, and calls back later; the answer may be an error, after which it is asked
// again.
func TestFunctionCallsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.function(FunctionConfig{Callback: time.Hour, CallbackURL: "https://daybook.example.com/"}, accept)
	id := b.enqueue(image())
	b.work()
	waits := b.job(id)
	assert.Equal(t, models.CodeAwaitingCallback, waits.Code, waits.Error)
	first := asked(t, r.requests()[0]).Callback
	assert.Equal(t, "https://daybook.example.com/api/callbacks/"+first.Token, first.URL)
	assert.WithinDuration(t, time.Now().Add(time.Hour), first.Deadline, time.Minute)
	b.due() // as by a person
	b.work()
	assert.Len(t, r.requests(), 1, "it waits on")

	b.callBack(first.Token, `{"error": {"code": "DISK_FULL", "message": "no room", "retryAfterSeconds": 30}}`)
	b.due()
	b.work()
	failed := b.job(id)
	assert.Equal(t, models.ErrorCode("DISK_FULL"), failed.Code, failed.Error)
	assert.Contains(t, failed.Error, "no room")
	jittered(t, 30*time.Second, failed.Wait)

	b.due()
	b.work()
	require.Len(t, r.requests(), 2, "an error ends the round: the function is asked again")
	second := asked(t, r.requests()[1])
	assert.Equal(t, 2, second.Attempt)
	b.callBack(second.Callback.Token, `{"files": 3}`)
	b.due()
	b.work()
	assert.Equal(t, map[string]int{"files": 3}, result[map[string]int](t, b.job(id)))
	assert.Len(t, r.requests(), 2)
}

func TestFunctionCallsBackWithAFinalError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.function(FunctionConfig{Callback: time.Hour}, accept)
	id := b.enqueue(image())
	b.work()
	c := asked(t, r.requests()[0]).Callback
	assert.Empty(t, c.URL)
	b.callBack(c.Token, `{"error": {"final": true}}`)
	b.due()
	b.work()
	assert.Equal(t, models.JobFailed, b.job(id).State)
	_, err := queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{Mode: queue.RetryReset})
	require.NoError(t, err)
	b.work()
	assert.Len(t, r.requests(), 2, "a person tries it again: it is asked again")
}

func TestFunctionNeverCallsBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.function(FunctionConfig{Callback: time.Hour}, accept)
	id := b.enqueue(image())
	b.work()
	b.exec(`UPDATE daybook.job_callbacks SET deadline = clock_timestamp()`)
	b.due()
	b.work()
	j := b.job(id)
	assert.Equal(t, models.CodeTimeout, j.Code, j.Error)
	assert.Contains(t, j.Error, "did not call back within 1h")
	b.due()
	b.work()
	assert.Len(t, r.requests(), 2)
	assert.Equal(t, models.CodeAwaitingCallback, b.job(id).Code)
}

// The worker ends, or the answer is lost, after the function has accepted: it is asked again, with
// the same keys, and the first token is as good as the second.
func TestFunctionIsAskedAgainWhenItsAnswerWasLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lost := true
	r := b.function(FunctionConfig{Callback: time.Hour}, func(w http.ResponseWriter, q *http.Request) {
		if lost {
			lost = false
			panic(http.ErrAbortHandler)
		}
		accept(w, q)
	})
	id := b.enqueue(image())
	b.work()
	assert.Equal(t, models.CodeNetworkError, b.job(id).Code)
	b.due()
	b.work()
	require.Len(t, r.requests(), 2)
	first, second := asked(t, r.requests()[0]), asked(t, r.requests()[1])
	assert.Equal(t, first.IdempotencyKey, second.IdempotencyKey)
	assert.Equal(t, r.requests()[0].header.Get("Webhook-Id"), r.requests()[1].header.Get("Webhook-Id"))
	assert.NotEqual(t, first.Callback.Token, second.Callback.Token)
	b.callBack(first.Callback.Token, `{"files": 1}`)
	b.due()
	b.work()
	assert.Equal(t, map[string]int{"files": 1}, result[map[string]int](t, b.job(id)))
}

// An attempt that ends for another reason while the function works, such as a database that does
// not answer, does not have the function asked again.
func TestFunctionIsAskedOnceWhileItWorks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.function(FunctionConfig{Callback: time.Hour}, accept)
	id := b.enqueue(image())
	b.work()
	b.exec(`
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, worker, turn_id, fence)
SELECT job_id, org_id, kind, type, attempt, 'retried', 'HANDLER_ERROR', 'm', clock_timestamp(), worker, turn_id, fence FROM daybook.attempt_log`)
	b.due()
	b.work()
	assert.Equal(t, models.CodeAwaitingCallback, b.job(id).Code)
	require.Len(t, r.requests(), 1)
	b.callBack(asked(t, r.requests()[0]).Callback.Token, `{"files": 1}`)
	b.due()
	b.work()
	assert.Equal(t, map[string]int{"files": 1}, result[map[string]int](t, b.job(id)))
}

// A function that answers otherwise than by 202 has taken no callback: none stays open, and the job
// does not wait for one. Requests whose answers are lost leave the last few.
func TestFunctionThatFailsLeavesFewCallbacks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	answers := true
	r := b.function(FunctionConfig{Callback: time.Hour}, func(w http.ResponseWriter, _ *http.Request) {
		if !answers {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	const open = `SELECT count(*) FROM daybook.job_callbacks`
	id := b.enqueueFor(org, image(), queue.JobOptions{MaxAttempts: 20})
	b.work()
	assert.Equal(t, models.CodeUpstream5xx, b.job(id).Code)
	assert.Zero(t, b.count(open))

	answers = false
	for range 6 {
		b.due()
		b.work()
	}
	assert.Equal(t, 3, b.count(open))
	sent := r.requests() // the client may repeat one on a new connection
	b.callBack(asked(t, sent[len(sent)-2]).Callback.Token, `{"files": 1}`)
	b.due()
	b.work()
	assert.Equal(t, map[string]int{"files": 1}, result[map[string]int](t, b.job(id)),
		"the function had accepted, and its answer was lost")
}

// callBack sends an answer.
func (b *bundle) callBack(token, data string) {
	b.t.Helper()
	_, err := queue.CompleteCallback(b.t.Context(), b.Pool, token, json.RawMessage(data))
	require.NoError(b.t, err)
}

func TestFunctionIsForItsOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.function(FunctionConfig{Organizations: []string{"org_2"}}, nil)
	j := b.run(image())
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, models.CodeAuthenticationFailed, j.Code, j.Error)
	b.enqueueFor("org_2", image(), queue.JobOptions{})
	b.work()
	assert.Len(t, r.requests(), 1)
}

func TestFunctionsFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := receive(t, nil)
	file := filepath.Join(t.TempDir(), "functions.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
- type: resize
  url: `+r.URL+`
  secret: functions
  organizations: [org_1]
  timeout: 1m
  callback: 24h
  callback_url: https://daybook.example.com
  owner: media
  attempts: 7
  base_delay: 5s
  max_delay: 10m
  parallel: 4
- {"type": "thumbnail", "url": "https://functions.example.com/thumbnail", "secret": "functions"}
`), 0o600))
	variables := map[string]string{
		"DAYBOOK_FUNCTIONS_FILE": file, "DAYBOOK_WEBHOOK_SECRET_FUNCTIONS": newSecret,
		"DAYBOOK_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
	}
	builtin := b.variables(variables)
	assert.Equal(t, []string{"cleanup", "resize", "thumbnail", "webhook"}, builtin.Types)
	for _, registration := range b.registry.Registrations() {
		if registration.Type == "resize" {
			assert.Equal(t, jobs.Policy{
				Owner: "media", MaxAttempts: 7, Timeout: 70 * time.Second, Base: 5 * time.Second, Factor: 2,
				Cap: 10 * time.Minute, Parallel: 4,
			}, registration.Policy)
		}
	}
	assert.Equal(t, models.JobCompleted, b.run(image()).State)
	assert.Equal(t, "resize", asked(t, r.requests()[0]).Type)

	for content, want := range map[string]string{
		`[{type: resize, url: "https://f.example.com"}]`:                                                           "secret must name",
		`[{type: resize, url: "https://u:p4ss@f.example.com", secret: f}]`:                                         "url must be",
		`[{type: resize, url: "https://f.example.com", secret: f, colour: red}]`:                                   "colour",
		`[{type: webhook, url: "https://f.example.com", secret: f}]`:                                               "has a handler already",
		`[{type: "a b", url: "https://f.example.com", secret: f}]`:                                                 "name of no type",
		`[{type: resize, url: "https://f.example.com", secret: f, timeout: 3h}]`:                                   "timeout must be",
		`[{type: resize, url: "https://f.example.com", secret: f, attempts: -1}]`:                                  "must not be negative",
		`[{type: resize, url: "https://f.example.com", secret: f, callback_url: "https://d.example.com"}]`:         "needs callback",
		`[{type: a, url: "https://f.example.com", secret: f}, {type: a, url: "https://f.example.com", secret: f}]`: "entry 2",
		`[{type: resize, url: "https://f.example.com", secret: f, attempts: 2.9}]`:                                 "line 1: /0/attempts is 2.9, and a whole number",
		`[{type: resize, url: "https://f.example.com", secret: f, parallel_everywhere: 0.9}]`:                      "/0/parallel_everywhere is 0.9",
		`[{type: resize, url: "https://f.example.com", secret: f, attempts: 1e3}]`:                                 "/0/attempts is 1e3",
		`[{type: resize, url: "https://f.example.com", secret: f, attempts: 99999999999999999999}]`:                "fits into 64 bits",
		`[{type: resize, url: "https://f.example.com", secret: f, attempts: 0x10}]`:                                "0x10 is not a plain number",
		`[{type: resize, url: "https://f.example.com", secret: f, attempts: 010}]`:                                 "010 is not a plain number",
		`[{type: resize, url: "https://f.example.com", secret: f, attempts: 1_000}]`:                               "1_000 is not a plain number",
		`[{type: resize, url: "https://f.example.com", secret: f, attempts: "3"}]`:                                 "/0/attempts is a text",
		`[{type: resize, url: "https://f.example.com", secret: f, parallel: }]`:                                    "the value is missing",
		`[{type: resize, url: "https://f.example.com", secret: f, parallel: yes}]`:                                 "/0/parallel is a text",
		`[{type: resize, url: "https://f.example.com", secret: f, timeout: 30}]`:                                   "a duration such as 30s or 5m is wanted, and not 30",
		`[{type: resize, url: "https://f.example.com", secret: f, timeout: 30 s}]`:                                 "a duration such as 30s",
		`[{type: resize, url: "https://f.example.com", secret: f, parallel: 1, parallel: 2}]`:                      "stands here a second time",
		"- {type: a, url: \"https://f.example.com\", secret: f}\n---\n- {type: b}":                                 "line 2: a second YAML document starts here",
		`type: resize`: "it is an object, and a list is wanted",
	} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		_, err := Register(jobs.NewRegistry(), Config{Pool: b.Pool, Environment: variables})
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "p4ss")
	}
}

// The worker ended after it had put a callback on record, before the function was asked or had
// accepted: nothing says that it was, so it is asked.
func TestFunctionIsAskedAfterItsWorkerEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.function(FunctionConfig{Callback: time.Hour}, accept)
	id := b.enqueue(image())
	b.exec(`INSERT INTO daybook.job_callbacks (token_hash, job_id, name, deadline) VALUES (sha256('lost'), $1, 'function/1', now() + interval '30 minutes')`, id)
	b.work()
	require.Len(t, r.requests(), 1)
	assert.Equal(t, models.CodeAwaitingCallback, b.job(id).Code)
	b.callBack("lost", `{"files": 1}`)
	b.due()
	b.work()
	assert.Equal(t, map[string]int{"files": 1}, result[map[string]int](t, b.job(id)),
		"what the lost token brings counts as well")
}

package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
)

// jobDetail is a job as GET /api/jobs/{id} answers it.
type jobDetail struct {
	answers.Job
	Payload json.RawMessage
	Links   []answers.Link
	History []answers.Attempt
}

func (b *bundle) job(id string) jobDetail {
	b.t.Helper()
	var d jobDetail
	b.get(&d, "/api/jobs/"+id)
	return d
}

// enqueue enqueues a job of organization acme, unless body says another.
func (b *bundle) enqueue(body object) string {
	b.t.Helper()
	all := object{"orgId": "acme", "type": "webhook", "payload": object{}}
	maps.Copy(all, body)
	var out answers.EnqueuedJob
	b.post(&out, "/api/jobs/enqueue", all)
	return out.ID
}

// fail makes a job a dead letter, as a worker would.
func (b *bundle) fail(id string, code models.ErrorCode) {
	b.t.Helper()
	tag, err := b.Pool.Exec(b.t.Context(), `
UPDATE daybook.jobs
   SET state = 'failed', run_count = 3, last_error = 'no', last_error_code = $2, finished_at = clock_timestamp(), updated_at = clock_timestamp()
 WHERE id = $1`, id, code)
	require.NoError(b.t, err)
	require.Equal(b.t, int64(1), tag.RowsAffected())
}

func (b *bundle) states(ids ...string) []string {
	b.t.Helper()
	states := make([]string, len(ids))
	for i, id := range ids {
		states[i] = b.job(id).State
	}
	return states
}

func TestEnqueueAsTheSeedPrintsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.send(b.token("acme", tokens.ScopeEnqueue), http.MethodPost, "/api/jobs/enqueue", `{
  "type": "webhook_delivery",
  "payload": { "url": "https://example.com", "data": {"n": 12345678901234567890.1} },
  "idempotencyKey": "unique-key",
  "runAt": "2999-01-15T10:30:00Z",
  "priority": "high"
}`)
	require.Equal(t, http.StatusCreated, a.status, string(a.body))
	var out answers.EnqueuedJob
	a.into(t, &out)
	assert.False(t, out.Duplicate)
	j := b.job(out.ID)
	assert.Equal(t, "acme", j.OrgID)
	assert.Equal(t, "webhook_delivery", j.Type)
	assert.Equal(t, "unique-key", j.IdempotencyKey)
	assert.Equal(t, "high", j.Priority)
	assert.Equal(t, "pending", j.State)
	assert.Equal(t, time.Date(2999, 1, 15, 10, 30, 0, 0, time.UTC), j.RunAt.UTC())
	assert.Contains(t, string(j.Payload), "12345678901234567890.1", "numbers keep their digits")
	assert.Empty(t, j.History)
}

func TestEnqueueOptions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.enqueue(object{
		"maxAttempts": 7,
		"links":       []object{{"kind": "order", "id": "17"}, {"kind": "form", "id": "f"}}, "priority": "low", "unique": true,
	})
	j := b.job(id)
	assert.Equal(t, 7, j.MaxAttempts)
	assert.Equal(t, "low", j.Priority)
	assert.ElementsMatch(t, []answers.Link{{Kind: "order", ID: "17"}, {Kind: "form", ID: "f"}}, j.Links)
	a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue",
		object{"orgId": "acme", "type": "webhook", "payload": object{}, "unique": true})
	assert.Equal(t, http.StatusOK, a.status)
	assert.JSONEq(t, `{"id":"`+id+`","duplicate":true,"result":"unchanged"}`, string(a.body))
}

func TestEnqueueChecksPayloads(t *testing.T) {
	t.Parallel()
	b := setupWith(t, func(o *httpapi.Options) {
		o.CheckPayload = func(jobType string, _ json.RawMessage) error {
			if jobType == "strict" {
				return fmt.Errorf("%w: field /url is missing", queue.ErrPayloadInvalid)
			}
			return nil
		}
	})
	body := object{"orgId": "acme", "type": "strict", "payload": object{}}
	a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", body)
	assert.Equal(t, http.StatusUnprocessableEntity, a.status)
	assert.Equal(t, "PAYLOAD_INVALID", a.code())
	body["skipValidation"] = true
	assert.Equal(t, http.StatusCreated, b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", body).status)
}

func TestIdempotentEnqueueUnderConcurrency(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const callers = 100
	got := make([]answer, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			got[i] = b.send(b.everything, http.MethodPost, "/api/jobs/enqueue",
				object{"orgId": "acme", "type": "t", "payload": object{"n": 1}, "idempotencyKey": "k"})
		})
	}
	wg.Wait()
	ids, created := map[string]bool{}, 0
	for _, a := range got {
		var out answers.EnqueuedJob
		a.into(t, &out)
		ids[out.ID] = true
		assert.Equal(t, out.Duplicate, a.status == http.StatusOK)
		if a.status == http.StatusCreated {
			created++
		}
	}
	assert.Len(t, ids, 1)
	assert.Equal(t, 1, created)
	a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue",
		object{"orgId": "acme", "type": "t", "payload": object{"n": 2}, "idempotencyKey": "k"})
	assert.Equal(t, http.StatusConflict, a.status)
	assert.Equal(t, "KEY_REUSED", a.code())
	a = b.send(b.everything, http.MethodPost, "/api/jobs/enqueue",
		object{"orgId": "other", "type": "t", "payload": object{"n": 2}, "idempotencyKey": "k"})
	assert.Equal(t, http.StatusCreated, a.status, "keys are each organization's own")
}

// nested returns n objects within each other.
func nested(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }

func manyKeys(n int) string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":1`, i)
	}
	return "{" + strings.Join(keys, ",") + "}"
}

func TestEnqueueErrors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, test := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"nothing":           {``, 400, "MALFORMED"},
		"no JSON":           {`{"orgId"`, 400, "MALFORMED"},
		"two values":        {`{} {}`, 400, "MALFORMED"},
		"a list":            {`[]`, 422, "INVALID"},
		"null":              {`null`, 422, "INVALID"},
		"no type":           {`{"orgId":"acme","payload":{}}`, 422, "INVALID"},
		"no payload":        {`{"orgId":"acme","type":"t"}`, 422, "INVALID"},
		"no organization":   {`{"type":"t","payload":{}}`, 422, "INVALID"},
		"payload is a list": {`{"orgId":"acme","type":"t","payload":[]}`, 422, "INVALID"},
		"payload is null":   {`{"orgId":"acme","type":"t","payload":null}`, 422, "INVALID"},
		"odd type":          {`{"orgId":"acme","type":"1t","payload":{}}`, 422, "INVALID"},
		"odd priority":      {`{"orgId":"acme","type":"t","payload":{},"priority":"urgent"}`, 422, "INVALID"},
		"odd time":          {`{"orgId":"acme","type":"t","payload":{},"runAt":"tomorrow"}`, 422, "INVALID"},
		"no attempts":       {`{"orgId":"acme","type":"t","payload":{},"maxAttempts":0}`, 422, "INVALID"},
		"empty link":        {`{"orgId":"acme","type":"t","payload":{},"links":[{"kind":"","id":"1"}]}`, 422, "INVALID"},
		"unknown field":     {`{"orgId":"acme","type":"t","payload":{},"extra":1}`, 422, "INVALID"},
		"NUL in the key":    {`{"orgId":"acme","type":"t","payload":{},"idempotencyKey":"a\u0000"}`, 422, "INVALID"},
		"long key in bytes": {`{"orgId":"acme","type":"t","payload":{},"idempotencyKey":"` + strings.Repeat("ü", 200) +
			`"}`, 422, "INVALID"},
		"NUL in the payload": {`{"orgId":"acme","type":"t","payload":{"a":"\u0000"}}`, 422, "PAYLOAD_INVALID"},
		"too deep":           {`{"orgId":"acme","type":"t","payload":` + nested(11) + `}`, 422, "PAYLOAD_INVALID"},
		"too many keys":      {`{"orgId":"acme","type":"t","payload":` + manyKeys(501) + `}`, 422, "PAYLOAD_INVALID"},
		"payload too large": {
			`{"orgId":"acme","type":"t","payload":{"a":"` + strings.Repeat("x", 131073) + `"}}`, 413,
			"PAYLOAD_TOO_LARGE",
		},
		"body too large": {`{"orgId":"acme","type":"t","payload":{"a":"` + strings.Repeat("x", httpapi.MaxBodyBytes) +
			`"}}`, 413, "BODY_TOO_LARGE"},
		"deep enough to hurt": {`{"orgId":"acme","type":"t","payload":` + nested(20000) + `}`, 400, "MALFORMED"},
	} {
		a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", test.body)
		assert.Equal(t, test.status, a.status, "%s: %.300s", name, a.body)
		assert.Equal(t, test.code, a.code(), "%s: %.300s", name, a.body)
	}
	for name, body := range map[string]string{
		"10 levels": `{"orgId":"acme","type":"t","payload":` + nested(10) + `}`,
		"500 keys":  `{"orgId":"acme","type":"t","payload":` + manyKeys(500) + `}`,
		"a body of the largest size": `{"orgId":"acme","type":"t","payload":{}` +
			strings.Repeat(" ", httpapi.MaxBodyBytes-40) + `}`,
	} {
		a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", body)
		assert.Equal(t, http.StatusCreated, a.status, "%s: %.300s", name, a.body)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/api/jobs/enqueue",
		strings.NewReader("type=t"))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+b.everything)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	a := b.do(r)
	assert.Equal(t, http.StatusUnsupportedMediaType, a.status)
	assert.Equal(t, "UNSUPPORTED_MEDIA_TYPE", a.code())
}

func TestRetryAndCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.enqueue(nil)
	b.fail(id, "UPSTREAM_5XX")
	var out struct{ JobID, Result string }
	change := func(what string, body any) string {
		t.Helper()
		b.post(&out, "/api/jobs/"+id+"/"+what, body)
		assert.Equal(t, id, out.JobID)
		return out.Result
	}
	assert.Equal(t, "requeued", change("retry", `{"mode":"now"}`))
	j := b.job(id)
	assert.Equal(t, "pending", j.State)
	assert.Equal(t, 3, j.Attempts)
	assert.WithinDuration(t, time.Now(), j.RunAt, time.Minute)
	assert.Equal(t, "rescheduled", change("retry", `{"mode":"later"}`))
	assert.WithinDuration(t, time.Now().Add(queue.DefaultRetryLater), b.job(id).RunAt, time.Minute)
	assert.Equal(t, "rescheduled", change("retry", `{"mode":"later","delaySeconds":3600}`))
	assert.WithinDuration(t, time.Now().Add(time.Hour), b.job(id).RunAt, time.Minute)
	change("retry", `{"mode":"reset"}`)
	assert.Zero(t, b.job(id).Attempts)
	assert.Equal(t, "cancelled", change("cancel", nil))
	assert.Equal(t, "cancelled", b.job(id).State)
	assert.Equal(t, "unchanged", change("cancel", nil))

	done := b.enqueue(nil)
	_, err := b.Pool.Exec(t.Context(),
		`UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp() WHERE id = $1`, done)
	require.NoError(t, err)
	for _, what := range []string{"retry", "cancel"} {
		a := b.send(b.everything, http.MethodPost, "/api/jobs/"+done+"/"+what, `{"mode":"now"}`)
		assert.Equal(t, http.StatusConflict, a.status, what)
		assert.Equal(t, "JOB_COMPLETED", a.code(), what)
	}
	for _, body := range []string{
		`{}`, `{"mode":"sometime"}`, `{"mode":"later","delaySeconds":-1}`, `{"mode":"later","delaySeconds":1e300}`,
		`{"mode":"now","delaySeconds":60}`, `{"mode":"reset","delaySeconds":60}`,
	} {
		a := b.send(b.everything, http.MethodPost, "/api/jobs/"+id+"/retry", body)
		assert.Equal(t, "INVALID", a.code(), body)
	}
}

func TestJobsOfOthersDoNotExist(t *testing.T) {
	t.Parallel()
	b := setup(t)
	mine, theirs := b.enqueue(nil), b.enqueue(object{"orgId": "other"})
	b.fail(mine, "TIMEOUT")
	b.fail(theirs, "TIMEOUT")
	acme := b.token("acme", tokens.Scopes()...)
	for _, id := range []string{theirs, "nothing"} {
		for _, request := range [][2]string{
			{http.MethodGet, ""},
			{http.MethodPost, "/retry"},
			{http.MethodPost, "/cancel"},
		} {
			var body any
			if request[1] == "/retry" {
				body = `{"mode":"now"}`
			}
			a := b.send(acme, request[0], "/api/jobs/"+id+request[1], body)
			assert.Equal(t, http.StatusNotFound, a.status, request)
			assert.Equal(t, "JOB_NOT_FOUND", a.code(), request)
		}
	}
	assert.Equal(t, []string{"failed"}, b.states(theirs))
	var list struct{ Jobs []answers.ListedJob }
	b.send(acme, http.MethodGet, "/api/jobs", nil).into(t, &list)
	require.Len(t, list.Jobs, 1)
	assert.Equal(t, mine, list.Jobs[0].ID)

	a := b.send(acme, http.MethodPost, "/api/jobs/enqueue", object{"orgId": "other", "type": "t", "payload": object{}})
	assert.Equal(t, "ORGANIZATION_NOT_FOUND", a.code())
	a = b.send(acme, http.MethodPost, "/api/jobs/retry",
		object{"all": true, "mode": "now", "filter": object{"orgId": "other"}})
	assert.Equal(t, "ORGANIZATION_NOT_FOUND", a.code())
	a = b.send(acme, http.MethodPost, "/api/jobs/retry", object{"all": true, "mode": "now"})
	assert.Equal(t, bulkCounts{Matched: 1, Changed: 1}, a.counts(t))
	assert.Equal(t, []string{"pending", "failed"}, b.states(mine, theirs))
	a = b.send(acme, http.MethodPost, "/api/jobs/cancel", object{"all": true, "filter": object{"state": "pending"}})
	assert.Equal(t, bulkCounts{Matched: 1, Changed: 1}, a.counts(t))
	var stats struct {
		Jobs   []answers.TypeStats
		Queues []answers.QueueStats
	}
	b.send(acme, http.MethodGet, "/api/stats", nil).into(t, &stats)
	require.Len(t, stats.Jobs, 1)
	assert.Equal(t, int64(1), stats.Jobs[0].Count)
	var kinds []string
	for _, q := range stats.Queues {
		kinds = append(kinds, q.Kind)
	}
	var all []string
	for _, q := range store.Queues() {
		all = append(all, q.Name)
	}
	assert.Equal(t, all, kinds, "every kind of the list")
}

func TestSearch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hook := b.enqueue(object{"idempotencyKey": "k", "links": []object{{"kind": "order", "id": "17"}}})
	mail := b.enqueue(object{"type": "email", "orgId": "other"})
	failed := b.enqueue(object{"type": "email"})
	b.fail(failed, "TIMEOUT")
	for query, want := range map[string][]string{
		"":              {failed, mail, hook},
		"?orgId=other":  {mail},
		"?type=email":   {failed, mail},
		"?state=failed": {failed},
		"?state=failed&since=2999-01-01T00:00:00Z": {},
		"?state=failed&until=2999-01-01T00:00:00Z": {failed},
		"?code=TIMEOUT":               {failed},
		"?linkKind=order&linkId=17":   {hook},
		"?linkKind=order":             {hook},
		"?linkId=18":                  {},
		"?idempotencyKey=k":           {hook},
		"?since=2999-01-01T00:00:00Z": {},
		"?until=2000-01-01T00:00:00Z": {},
		"?limit=1":                    {failed},
	} {
		var list struct{ Jobs []answers.ListedJob }
		b.get(&list, "/api/jobs"+query)
		got := []string{}
		for _, j := range list.Jobs {
			got = append(got, j.ID)
		}
		assert.Equal(t, want, got, query)
	}
	for _, query := range []string{
		"?state=odd", "?since=x", "?limit=0", "?limit=x", "?cursor=!", "?cursor=eA",
		"?unknown=1",
	} {
		a := b.send(b.everything, http.MethodGet, "/api/jobs"+query, nil)
		assert.Equal(t, "INVALID", a.code(), query)
	}
	a := b.send(b.everything, http.MethodGet, "/api/jobs?since=24h", nil)
	assert.Contains(t, string(a.body), "query.since: expected a time as RFC 3339, such as 2026-01-31T09:00:00Z")
}

func TestManyDeadLetters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for i := range 5 {
		ids = append(ids, b.enqueue(object{"payload": object{"i": i}}))
		b.fail(ids[i], models.ErrorCode([]string{"TIMEOUT", "NOT_FOUND"}[i%2]))
	}
	waiting := b.enqueue(nil)
	many := func(what string, body object) string {
		t.Helper()
		var op answers.BulkOperation
		a := b.send(b.everything, http.MethodPost, "/api/jobs/"+what, body)
		a.into(t, &op)
		assert.True(t, op.Finished)
		assert.Equal(t, what, op.Action)
		assert.Equal(t, op.DryRun, op.OperationID == "")
		return fmt.Sprintf(`{"matched":%d,"changed":%d,"left":%d,"dryRun":%t}`, op.Matched, op.Changed, op.Left, op.DryRun)
	}
	for what, body := range map[string]object{"retry": {"mode": "now"}, "cancel": {}} {
		a := b.send(b.everything, http.MethodPost, "/api/jobs/"+what, body)
		assert.Equal(t, http.StatusUnprocessableEntity, a.status)
		assert.Equal(t, "CONFIRMATION_REQUIRED", a.code())
	}
	assert.JSONEq(t, `{"matched":3,"changed":0,"left":0,"dryRun":true}`,
		many("retry", object{"mode": "now", "dryRun": true, "filter": object{"code": "TIMEOUT"}}))
	assert.JSONEq(t, `{"matched":5,"changed":0,"left":0,"dryRun":true}`, many("cancel", object{"dryRun": true}))
	assert.JSONEq(t, `{"matched":0,"changed":0,"left":0,"dryRun":false}`,
		many("cancel", object{"all": true, "filter": object{"type": "none"}}))
	assert.JSONEq(t, `{"matched":3,"changed":3,"left":0,"dryRun":false}`,
		many("retry", object{
			"all": true, "mode": "reset",
			"filter": object{"code": "TIMEOUT", "since": "2026-01-01T00:00:00Z"},
		}))
	assert.JSONEq(t, `{"matched":2,"changed":2,"left":0,"dryRun":false}`, many("cancel", object{"all": true}))
	assert.Equal(t, []string{"pending", "cancelled", "pending", "cancelled", "pending", "pending"},
		b.states(append(ids, waiting)...))
	assert.Zero(t, b.job(ids[0]).Attempts)
}

func TestOnlyLaterTakesADelay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/api/jobs/" + b.enqueue(nil) + "/retry", "/api/jobs/retry"} {
		body := object{"mode": "now", "delaySeconds": 60}
		if path == "/api/jobs/retry" {
			body["all"] = true
		}
		a := b.send(b.everything, http.MethodPost, path, body)
		assert.Equal(t, http.StatusUnprocessableEntity, a.status, path)
		assert.Equal(t, "INVALID", a.code(), path)
		assert.Contains(t, string(a.body), `body.delaySeconds`, path)
		body["mode"] = "later"
		assert.Equal(t, http.StatusOK, b.send(b.everything, http.MethodPost, path, body).status, path)
	}
}

func TestWhatToSendIsSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := "/api/jobs/" + b.enqueue(nil) + "/retry"
	for _, test := range []struct {
		path, body, code string
		says             []string
	}{
		{one, ``, "MALFORMED", []string{
			`request body is required: send for instance {"mode": "now"}`,
			`"later" or "reset"`,
		}},
		{one, `{}`, "INVALID", []string{`property mode`, `send for instance {"mode": "now"}`}},
		{"/api/jobs/retry", ``, "MALFORMED", []string{`send for instance {"all": true, "mode": "now"}`}},
		{
			"/api/jobs/retry", `{}`, "CONFIRMATION_REQUIRED",
			[]string{`send "all": true`, `"dryRun": true`, `a "mode": "now", "later" or "reset"`},
		},
		{"/api/jobs/retry", `{"mode":"now"}`, "CONFIRMATION_REQUIRED", []string{`send "all": true`}},
		{
			"/api/jobs/retry", `{"all":true}`, "INVALID",
			[]string{`property mode`, `send for instance {"all": true, "mode": "now"}`},
		},
		{"/api/jobs/retry", `{"all":`, "MALFORMED", nil},
		{"/api/jobs/cancel", ``, "MALFORMED", []string{`send for instance {"all": true}`}},
		{"/api/jobs/cancel", `{}`, "CONFIRMATION_REQUIRED", []string{`send "all": true`}},
		{"/api/jobs/enqueue", ``, "MALFORMED", []string{`{"type": "webhook", "payload": {`}},
		{"/api/accounting/jobs/enqueue", ``, "MALFORMED", []string{`{"documentId": `}},
	} {
		a := b.send(b.everything, http.MethodPost, test.path, test.body)
		assert.Equal(t, test.code, a.code(), "%s %s: %s", test.path, test.body, a.body)
		var p struct{ Detail string }
		a.into(t, &p)
		for _, says := range test.says {
			assert.Contains(t, p.Detail, says, "%s %s", test.path, test.body)
		}
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.enqueue(nil)
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, ended_at, worker, turn_id, fence, workflow_run_id)
VALUES ($1, 'acme', 'jobs', 'webhook', 1, 'retried', 'TIMEOUT', 'too slow', '2026-01-01T00:00:00Z', '2026-01-01T00:00:01.5Z', 'w1', 't', 1, 'r')`, id)
	require.NoError(t, err)
	history := b.job(id).History
	require.Len(t, history, 1)
	at := history[0]
	assert.Equal(t, 1, at.Number)
	assert.Equal(t, "retried", at.Outcome)
	assert.Equal(t, "TIMEOUT", at.ErrorCode)
	assert.Equal(t, "too slow", at.Error)
	assert.Equal(t, "w1", at.Worker)
	assert.InDelta(t, 1500, at.Milliseconds, 0.001)
}

// bulkCounts is what a change of many jobs says of how many they were.
type bulkCounts struct{ Matched, Changed, Left int }

func (a answer) counts(tb testing.TB) (c bulkCounts) {
	tb.Helper()
	a.into(tb, &c)
	return c
}

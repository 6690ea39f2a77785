package console_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
)

// hostile is what a field may hold that must appear as text.
const hostile = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`

// exec runs a statement.
func (s *site) exec(stmt string, args ...any) {
	s.t.Helper()
	_, err := s.Pool.Exec(s.t.Context(), stmt, args...)
	require.NoError(s.t, err)
}

func (s *site) enqueue(j store.NewJob) string {
	s.t.Helper()
	if j.Payload == nil {
		j.Payload = []byte(`{}`)
	}
	r, err := store.EnqueueJob(s.t.Context(), s.Pool, j)
	require.NoError(s.t, err)
	return r.JobID
}

// fail makes jobs dead letters with one attempt each.
func (s *site) fail(code, text string, ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.exec(`
WITH failed AS (
    UPDATE daybook.jobs SET state = 'failed', run_count = 3, last_error = $3, last_error_code = $2, finished_at = clock_timestamp(), last_attempted_at = clock_timestamp()
     WHERE id = $1 RETURNING *
)
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, ended_at, worker, turn_id, fence, workflow_run_id)
SELECT id, org_id, 'jobs', type, n, CASE n WHEN 3 THEN 'failed'::daybook.attempt_outcome ELSE 'retried' END, $2, $3, clock_timestamp() - make_interval(mins => 10 * (4 - n)),
       clock_timestamp() - make_interval(mins => 10 * (4 - n), secs => -2), 'worker-1', 'turn', 1, 'run-1'
  FROM failed, generate_series(1, 3) n`, id, code, text)
	}
}

// state is that of a job.
func (s *site) state(id string) models.JobState {
	s.t.Helper()
	var state string
	require.NoError(s.t, s.Pool.QueryRow(s.t.Context(), `SELECT state::text FROM daybook.jobs WHERE id = $1`,
		id).Scan(&state))
	return models.JobState(state)
}

// see gets a page that is there.
func (s *site) see(path string) string {
	s.t.Helper()
	status, body := s.get(path)
	require.Equal(s.t, http.StatusOK, status, "%s: %s", path, body)
	return body
}

// unescape is the text of an attribute.
func unescape(s string) string { return html.UnescapeString(s) }

// links are the addresses of a page's links whose text holds something.
func links(body, text string) []string {
	var found []string
	for _, m := range regexp.MustCompile(`(?s)<a [^>]*href="([^"]*)"[^>]*>(.*?)</a>`).FindAllStringSubmatch(body, -1) {
		if strings.Contains(m[2], text) {
			found = append(found, html.UnescapeString(m[1]))
		}
	}
	return found
}

func TestJobsAreListedByTheFiltersOfTheAPI(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	assert.Contains(t, s.see("/console/jobs"), "Enqueue one", "an empty list says what to do")

	mail := s.enqueue(store.NewJob{
		OrgID: "acme", Type: "mail", IdempotencyKey: "key-1",
		Links: []byte(`[{"kind": "order", "id": "7"}]`),
	})
	report := s.enqueue(store.NewJob{OrgID: "beta", Type: "report"})
	s.fail("TIMEOUT", "it took too long", report)
	for filter, want := range map[string]string{
		"state=pending": mail, "state=failed": report, "type=mail": mail, "org=beta": report, "code=TIMEOUT": report,
		"linkKind=order&linkId=7": mail, "linkId=7": mail,
		"linkKind=order": mail, "idempotencyKey=key-1": mail, "state=failed&since=1h": report,
		"type=report&until=" + url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339)): report,
	} {
		body := s.see("/console/jobs?" + filter)
		other := map[string]string{mail: report, report: mail}[want]
		assert.Contains(t, body, "/console/jobs/"+want, filter)
		assert.NotContains(t, body, "/console/jobs/"+other, filter)
	}
	body := s.see("/console/jobs?type=nothing")
	assert.Contains(t, body, "No job matches")
	assert.NotContains(t, body, "Enqueue one")
	for _, wrong := range []string{"state=broken", "since=yesterday", "cursor=x"} {
		status, body := s.get("/console/jobs?" + wrong)
		assert.Equal(t, http.StatusUnprocessableEntity, status, wrong)
		assert.Contains(t, body, "INVALID", wrong)
	}
}

func TestJobsArePagedAndTheFiltersStay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	for i := range 120 {
		s.enqueue(store.NewJob{OrgID: "acme", Type: "mail", Payload: fmt.Appendf(nil, `{"n": %d}`, i)})
	}
	s.enqueue(store.NewJob{OrgID: "acme", Type: "report"})
	seen := map[string]bool{}
	path := "/console/jobs?type=mail"
	pages := 0
	for path != "" {
		body := s.see(path)
		for _, m := range regexp.MustCompile(`/console/jobs/([0-9a-f-]{36})`).FindAllStringSubmatch(body, -1) {
			assert.False(t, seen[m[1]], "a job is on two pages")
			seen[m[1]] = true
		}
		pages++
		path = ""
		if next := links(body, "Next"); len(next) > 0 {
			path = next[0]
			assert.Contains(t, path, "type=mail")
		}
	}
	assert.Len(t, seen, 120)
	assert.Equal(t, 3, pages)
}

// owner puts the owner of a type of background jobs on record.
func (s *site) owner(kind, owner string) {
	s.t.Helper()
	s.exec(`SELECT daybook.note_job_types('jobs', 'worker-1', ARRAY[$1], ARRAY[''], ARRAY[$2], ARRAY[3], ARRAY[30], ARRAY[1], ARRAY[false])`, kind, owner)
}

func TestJobPageSaysWhy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	id := s.enqueue(store.NewJob{
		OrgID: "acme", Type: "webhook",
		Payload: []byte(`{"url": "https://ann:hunter2@example.com", "api_key": "k-1", "order": 7}`),
		Links:   []byte(`[{"kind": "order", "id": "7"}]`),
	})
	body := s.see("/console/jobs/" + id)
	assert.Contains(t, body, "No worker of background jobs runs", "a due job says what it waits for")
	assert.NotContains(t, body, "hunter2")
	assert.NotContains(t, body, "k-1")
	assert.Contains(t, body, "&#34;order&#34;: 7")
	assert.NotContains(t, body, "Retry now", "a token that only reads sees no buttons")

	s.owner("webhook", "growth")
	assert.Contains(t, s.see("/console/jobs"), "<td>growth</td>", "the owner of the type is in the list")

	s.fail("UPSTREAM_5XX", "the answer to Bearer abcdefgh12345 is 503", id)
	body = s.see("/console/jobs/" + id)
	assert.Contains(t, body, "dead letter after 3 attempts")
	assert.Contains(t, body, "The called server answered that it cannot answer.")
	assert.NotContains(t, body, "abcdefgh12345")
	assert.Contains(t, body, `aria-label="Attempts: 2 retried, 1 failed in`)
	assert.NotContains(t, body, "style=")
	assert.NotEmpty(t, links(body, "order 7"))
	s.exec(`UPDATE daybook.jobs SET traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' WHERE id = $1`, id)
	assert.Contains(t, s.see("/console/jobs/"+id), ">0af7651916cd43dd8448eb211c80319c<",
		"the trace of what enqueued it is named")
	assert.Contains(t, body, "<dd>growth</dd>")

	s.exec(`UPDATE daybook.jobs SET state = 'pending', finished_at = NULL, ready_at = clock_timestamp() + interval '1 hour' WHERE id = $1`, id)
	assert.Contains(t, s.see("/console/jobs/"+id), "It is tried again in")
	s.exec(`UPDATE daybook.jobs SET state = 'leased', working = true, worker = 'w', turn_id = 't', fence = 1, leased_generation = generation, attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp() WHERE id = $1`, id)
	assert.Contains(t, s.see("/console/jobs/"+id), "A worker works on it: attempt 3.")
	s.exec(`UPDATE daybook.jobs SET last_attempted_at = clock_timestamp() - interval '1 minute' WHERE id = $1`, id)
	assert.Contains(t, s.see("/console/jobs/"+id), "Its lease is stale")
}

func TestWhatATypeKeepsSecretIsMasked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Owner: "growth", Secrets: []string{"birthday", "diagnosis"}},
		func(context.Context, *jobs.Job[patient]) error { return nil })
	id := s.enqueue(store.NewJob{
		OrgID: "acme", Type: "patient",
		Payload: []byte(`{"name": "Ann", "file": [{"birthday": "1970-02-03", "diagnosis": {"code": "J45"}}]}`),
	})
	assert.Contains(t, s.see("/console/jobs/"+id), "1970-02-03", "the type is not on record yet")

	due, err := workers.NewDueJobs(workers.DueJobsOptions{Pool: s.Pool, Registry: registry})
	require.NoError(t, err)
	t.Cleanup(due.Close)
	_, err = due.Run(t.Context(), 10)
	require.NoError(t, err)
	body := s.see("/console/jobs/" + id)
	assert.NotContains(t, body, "1970-02-03")
	assert.NotContains(t, body, "J45")
	assert.Contains(t, body, "Ann")
	assert.Contains(t, body, "<dd>growth</dd>")
}

// patient is a payload of an application.
type patient struct {
	Name string `json:"name"`
	File []any  `json:"file"`
}

func (patient) JobType() string { return "patient" }

func TestRepeatsThatWereFoldedAreSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	id := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail"})
	s.fail("TIMEOUT", "slow", id)
	s.exec(`UPDATE daybook.attempt_log SET outcome = 'rescheduled', times = 12, first_started_at = started_at - interval '1 hour' WHERE job_id = $1 AND attempt = 1`, id)
	body := s.see("/console/jobs/" + id)
	assert.Contains(t, body, "× 12")
	assert.Contains(t, body, "1 retried, 12 rescheduled, 1 failed")
}

func TestJobsAreRetriedAndCancelled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	id := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail"})
	s.fail("TIMEOUT", "slow", id)
	page := "/console/jobs/" + id
	body := s.see(page)
	for _, says := range []string{
		"Retry now", "The 3 attempts stay counted, and at least one more is made.",
		"Retry from the first attempt", "It stays listed as cancelled",
	} {
		assert.Contains(t, body, says)
	}

	status, body := s.post(page+"/retry", url.Values{"mode": {"later"}, "minutes": {"90"}})
	require.Equal(t, http.StatusOK, status, body)
	assert.Contains(t, body, "The job is pending again.")
	assert.Contains(t, body, "It is tried again in 1 h")
	status, _ = s.post(page+"/retry", url.Values{"mode": {"later"}, "minutes": {"-1"}})
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	_, body = s.post(page+"/retry", url.Values{"mode": {"reset"}})
	assert.Contains(t, body, "The job&#39;s time was changed.")
	assert.Contains(t, body, "It has been due for")
	_, body = s.post(page+"/cancel", nil)
	assert.Contains(t, body, "The job is cancelled.")
	assert.Equal(t, models.JobCancelled, s.state(id))
}

func TestForeignJobsDoNotExist(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail", IdempotencyKey: "theirs"})
	s.fail("TIMEOUT", "slow", id)
	s.signIn("beta", tokens.ScopeRead, tokens.ScopeOperate)
	for _, path := range []string{"/console/jobs/" + id, "/console/jobs?org=acme"} {
		status, body := s.get(path)
		assert.Equal(t, http.StatusNotFound, status, path)
		assert.NotContains(t, body, "slow", path)
	}
	for _, path := range []string{"/retry", "/cancel"} {
		status, _ := s.post("/console/jobs/"+id+path, url.Values{"mode": {"now"}})
		assert.Equal(t, http.StatusNotFound, status, path)
	}
	assert.Equal(t, models.JobFailed, s.state(id))
	assert.NotContains(t, s.see("/console/jobs?idempotencyKey=theirs"), id)
}

func TestHostileFieldsOfJobsAreText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	id := s.enqueue(store.NewJob{
		OrgID: hostile, Type: "mail", IdempotencyKey: hostile, Payload: fmt.Appendf(nil, `{"a": %q}`, hostile),
		Links: fmt.Appendf(nil, `[{"kind": "k<b>", "id": %q}]`, hostile),
	})
	s.fail("HANDLER_ERROR", hostile, id)
	s.exec(`UPDATE daybook.jobs SET result = jsonb_build_object('r', $2::text), progress = jsonb_build_object('p', $2::text) WHERE id = $1`, id, hostile)
	s.owner("mail", hostile)
	s.exec(`UPDATE daybook.attempt_log SET worker = $2, workflow_run_id = $2 WHERE job_id = $1`, id, hostile)
	bad := url.QueryEscape(hostile)
	for _, path := range []string{
		"/console/jobs", "/console/jobs/" + id,
		"/console/jobs?type=" + bad + "&code=" + bad + "&linkId=" + bad + "&idempotencyKey=" + bad + "&org=" + bad,
	} {
		body := s.see(path)
		assert.NotContains(t, body, "<script>alert", path)
		assert.NotContains(t, body, "<img src=x", path)
		assert.NotContains(t, body, "<b>", path)
		assert.Contains(t, body, "&lt;script&gt;", path)
	}
}

// TestSecretsInErrorsAreMaskedEverywhere: the pages that show an error of a job beside the job's
// own.
func TestSecretsInErrorsAreMaskedEverywhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fixture.Organization(t, s.Pool, "acme")
	const failed = "GET https://shop.example/v1?token=hunter2hunter2: refused"
	id := s.document("acme", "inv-1")
	s.failAccounting("PROCESSOR_ERROR", failed, id)
	s.exec(`
INSERT INTO daybook.attempt_log (job_id, org_id, kind, document_id, version, attempt, outcome, error_code, error, started_at, ended_at, worker, turn_id, fence, workflow_run_id)
SELECT id, org_id, 'accounting', document_id, 1, 1, 'failed', last_error_code, last_error, clock_timestamp(), clock_timestamp(), 'w', 't', 1, 'r' FROM daybook.accounting_work_queue`)
	job := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail"})
	s.fail("HANDLER_ERROR", failed, job)
	s.signIn("", tokens.ScopeRead) // not sooner: the overview shows an answer of some seconds ago
	for _, path := range []string{
		"/console/", "/console/jobs?state=failed", "/console/jobs/" + job, "/console/accounting?state=failed",
		"/console/accounting/" + id, "/console/dead-letters",
		"/console/documents?org=acme&document=inv-1", "/console/search?q=mail",
	} {
		body := s.see(path)
		assert.NotContains(t, body, "hunter2", path)
		if !strings.Contains(path, "search") {
			assert.Contains(t, body, "shop.example", path)
		}
	}
}

package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/server/internal/console"
)

// TestEditDeadLetters corrects many payloads by a patch, which is tried first and shows what would
// change in some of them, without secrets.
func TestEditDeadLetters(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, checksSMS)
	for i := range 7 {
		s.deadLetter(fmt.Sprintf("dead-%d", i), "bill", `{"currency": "EU", "token": "hunter22"}`)
	}
	s.deadLetter("other", "bill", `{"currency": "USD"}`)
	s.deadLetter("text", "sms", `{"to": "a", "text": "b"}`)
	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	page := "/console/dead-letters/edit?kind=jobs&type=bill&code=INVALID"
	assert.Contains(t, s.see("/console/dead-letters"), "Edit…")
	assert.Contains(t, s.see("/console/jobs?state=failed&type=bill"), "Edit all that match…")
	form := hiddenFields(t, s.see(page), "/console/dead-letters/edit/try")
	form.Set("patch", `[{"op": "test", "path": "/currency", "value": "EU"}, {"op": "replace", "path": "/currency", "value": "EUR"},
{"op": "replace", "path": "/token", "value": "hunter33"}]`)
	status, body := s.post("/console/dead-letters/edit/try", form)
	require.Equal(t, http.StatusOK, status, body)
	for _, says := range []string{
		"8 dead letters match", "7 would be edited", "1 left alone", "dead-", "<code>/currency</code>", "The others are not shown.",
		"Something changes that is not shown.", "Edit and retry",
	} {
		assert.Contains(t, body, says)
	}
	assert.NotContains(t, body, "hunter22")
	assert.Zero(t, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.jobs WHERE edits IS NOT NULL`))

	form.Set("retry", "now")
	status, body = s.post("/console/dead-letters/edit", form)
	require.Equal(t, http.StatusOK, status, body)
	assert.Contains(t, body, "Edit of many jobs")
	assert.Contains(t, body, "Edited, and pending again</dt><dd>7</dd>")
	assert.Equal(t, 7, s.states(models.JobPending))
	assert.Equal(t, 1, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.actions WHERE action = 'jobs.edit_many' AND outcome = 'done' AND details::text NOT LIKE '%EUR%'`))
	assert.Equal(t, 7, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.jobs WHERE edits -> 0 ->> 'by' = (SELECT actor FROM daybook.actions WHERE action = 'jobs.edit_many')`))
}

// TestEditOfATypeThatTheTokenMayNotEnqueue is refused, singly and in bulk: who may not enqueue a type
// may not say what its jobs do either.
func TestEditOfATypeThatTheTokenMayNotEnqueue(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, func(o *console.Options) {
		o.TypeName = func(name string) string {
			return map[string]string{"webhook_delivery": "webhook", "call": "db_function"}[name]
		}
	})
	const payload = `{"function": "app.good"}`
	for id, jobType := range map[string]string{"named": "db_function", "alias": "call", "allowed": "webhook_delivery"} {
		s.deadLetter(id, jobType, payload)
	}
	_, secret := s.limited("acme", tokens.Limits{Types: []string{"webhook"}}, tokens.ScopeRead, tokens.ScopeOperate)
	s.signInWith(secret)
	forbidden := func(status int, body string) {
		t.Helper()
		assert.Equal(t, http.StatusForbidden, status, body)
		assert.Contains(t, body, "TYPE_NOT_ALLOWED")
		assert.Contains(t, body, "--types", "what to do")
	}
	edit := func(id string) url.Values {
		return url.Values{
			"generation": {"0"}, "name": {"function"}, "value": {`"app.evil"`}, "retry": {"now"}, "next": {"/console/jobs/" + id},
		}
	}
	for _, id := range []string{"named", "alias"} {
		assert.NotContains(t, s.see("/console/jobs/"+id), "Edit the payload")
		forbidden(s.get("/console/jobs/" + id + "/edit"))
		forbidden(s.post("/console/jobs/"+id+"/edit/compare", edit(id)))
		form := edit(id)
		form.Del("next")
		forbidden(s.post("/console/jobs/"+id+"/edit", form))
	}
	for _, jobType := range []string{"db_function", "call", ""} {
		form := url.Values{
			"kind": {"jobs"}, "type": {jobType}, "code": {"INVALID"}, "retry": {"now"},
			"patch": {`[{"op": "replace", "path": "/function", "value": "app.evil"}]`},
		}
		_, body := s.post("/console/dead-letters/edit/try", form)
		assert.Contains(t, body, "--types")
		assert.NotContains(t, body, "Edit and retry")
		forbidden(s.post("/console/dead-letters/edit", form))
	}
	assert.Equal(t, 3, fixture.Count(t, s.Pool,
		`SELECT count(*) FROM daybook.jobs WHERE payload = $1::text::jsonb AND state = 'failed' AND edits IS NULL`, payload))
	status, body := s.post("/console/jobs/allowed/edit", edit("allowed"))
	assert.Equal(t, http.StatusOK, status, body)
	assert.Equal(t, 1, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.jobs WHERE id = 'allowed' AND state = 'pending'`))
}

// TestPatchThatIsRefused changes nothing, and what is wrong stands beside it.
func TestPatchThatIsRefused(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, checksSMS)
	s.deadLetter("text", "sms", `{"to": "a", "text": "b"}`)
	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	for patch, says := range map[string]string{
		`[{"op": "remove", "path": "/text"}]`: "job text, as it would be", `nonsense`: "not valid JSON",
		`[{"op": "spam", "path": "/a"}]`: "an operation of a JSON patch is",
	} {
		form := url.Values{"kind": {"jobs"}, "type": {"sms"}, "patch": {patch}}
		status, body := s.post("/console/dead-letters/edit/try", form)
		assert.Equal(t, http.StatusOK, status)
		assert.Contains(t, body, says)
		assert.NotContains(t, body, "Edit and retry")
		status, _ = s.post("/console/dead-letters/edit", form)
		assert.Equal(t, http.StatusUnprocessableEntity, status)
	}
	status, _ := s.post("/console/dead-letters/edit/try", url.Values{"kind": {"accounting"}, "patch": {"[]"}})
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	assert.Zero(t, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.jobs WHERE edits IS NOT NULL`))
	s.signIn("acme", tokens.ScopeRead)
	status, _ = s.get("/console/dead-letters/edit?kind=jobs")
	assert.Equal(t, http.StatusForbidden, status)
}

package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// TestEditPayload corrects the payload of a dead letter by the form: what is wrong stands beside its
// field, secrets stay as they are, and the second of two who edit the job is told.
func TestEditPayload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.exec(`
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('dead', 'acme', 'bill', '{"currency": "EU", "lines": [1, 2], "api_key": "hunter22"}', 'failed', 'e', 'INVALID', now(), 3)`)
	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	status, body := s.get("/console/jobs/dead")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "/console/jobs/dead/edit")
	status, body = s.get("/console/jobs/dead/edit")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, "[redacted]")
	require.NotContains(t, body, "hunter22")

	form := url.Values{
		"generation": {"0"}, "name": {"api_key", "currency", "lines", "note"},
		"value": {`"[redacted]"`, `EUR`, `[1, 3]`, `"[redacted]"`},
	}
	_, body = s.post("/console/jobs/dead/edit/compare", form)
	assert.Contains(t, body, "It is no JSON: a text stands in quotes.")
	assert.Contains(t, body, "It has [redacted] where it had not")
	assert.NotContains(t, body, "Save and retry")
	status, _ = s.post("/console/jobs/dead/edit", form)
	assert.Equal(t, http.StatusUnprocessableEntity, status)

	form["value"] = []string{`"[redacted]"`, `"EUR"`, `[1, 3]`, ``}
	_, body = s.post("/console/jobs/dead/edit/compare", form)
	assert.Contains(t, body, "<code>/currency</code>")
	assert.Contains(t, body, "<code>/lines/1</code>")
	assert.Contains(t, body, "Save and retry")
	form.Set("retry", "now")
	status, body = s.post("/console/jobs/dead/edit", form)
	require.Equal(t, http.StatusOK, status, body) // the client follows to the job's page
	assert.Contains(t, body, "The payload was changed. The job is pending again.")
	assert.Contains(t, body, "Edits of the payload")
	assert.Equal(t, 1, fixture.Count(t, s.Pool, `
SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND payload = '{"currency": "EUR", "lines": [1, 3], "api_key": "hunter22"}'
   AND edits -> 0 ->> 'by' <> '' AND (edits -> 0 ->> 'attempts')::int = 3`))
	assert.Equal(t, 1, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.actions WHERE action = 'jobs.edit' AND outcome = 'done' AND details::text NOT LIKE '%EUR%'`))
	status, _ = s.post("/console/jobs/dead/edit", form)
	assert.Equal(t, http.StatusConflict, status, "the form is of an earlier generation")
}

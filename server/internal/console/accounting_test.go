package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// document writes an invoice that is ready and returns its accounting job's id.
func (s *site) document(org, id string) string {
	s.t.Helper()
	fixture.Ready(s.t, s.Pool, fixture.Invoice(org, id, 10_000))
	return fixture.Job(s.t, s.Pool, org, id).ID
}

// failAccounting makes accounting jobs failed ones.
func (s *site) failAccounting(code, text string, ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.exec(`
UPDATE daybook.accounting_work_queue SET state = 'failed', run_count = 1, last_error_code = $2, last_error = $3, finished_at = clock_timestamp(), updated_at = clock_timestamp() WHERE id = $1`, id, code, text)
	}
}

func TestAccountingJobsAreListed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	assert.Contains(t, s.see("/console/accounting"), "Mark one ready")
	fixture.Organization(t, s.Pool, "acme")
	fixture.Organization(t, s.Pool, "beta")
	one, other := s.document("acme", "inv-1"), s.document("beta", "inv/2")
	s.failAccounting("NO_MATCHING_RULE", "no rule matches", other)
	for filter, want := range map[string]string{
		"state=pending": one, "org=acme": one, "documentId=inv-1": one, "documentId=inv-1&org=acme": one,
		"state=failed": other, "code=NO_MATCHING_RULE": other,
		"documentId=inv%2F2": other, "state=failed&since=1h": other,
	} {
		body := s.see("/console/accounting?" + filter)
		assert.Contains(t, body, "/console/accounting/"+want, filter)
		assert.NotContains(t, body, "/console/accounting/"+map[string]string{one: other, other: one}[want], filter)
	}
	assert.Contains(t, s.see("/console/accounting?documentId=none"), "No accounting job matches")
}

func TestAccountingJobPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	fixture.Organization(t, s.Pool, "acme")
	id := s.document("acme", "inv-1")
	page := "/console/accounting/" + id
	s.failAccounting("NO_MATCHING_RULE", "no rule matches kind=x", id)
	body := s.see(page)
	assert.Contains(t, body, "no rule matches kind=x")
	assert.Contains(t, body, "No rule, or no row of an account map, matches the document.")
	assert.Contains(t, body, "Nothing of the document was ever posted.")
	require.NotEmpty(t, links(body, "Mend the rules"), "it leads to where the cause is mended")

	_, body = s.post(page+"/retry", url.Values{"mode": {"now"}})
	assert.Contains(t, body, "The job is pending again.")
	assert.Equal(t, models.JobPending, fixture.Job(t, s.Pool, "acme", "inv-1").State)
	status, _ := s.post(page+"/retry", url.Values{"mode": {"reset"}})
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	_, body = s.post(page+"/cancel", nil)
	assert.Contains(t, body, "The job is cancelled.")
	assert.Equal(t, models.JobCancelled, fixture.Job(t, s.Pool, "acme", "inv-1").State)
}

func TestForeignAccountingJobsDoNotExist(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fixture.Organization(t, s.Pool, "acme")
	id := s.document("acme", "inv-1")
	s.signIn("beta", tokens.ScopeRead, tokens.ScopeOperate)
	status, body := s.get("/console/accounting/" + id)
	assert.Equal(t, http.StatusNotFound, status)
	assert.NotContains(t, body, "inv-1")
	for _, action := range []string{"/retry", "/cancel"} {
		status, _ := s.post("/console/accounting/"+id+action, url.Values{"mode": {"now"}})
		assert.Equal(t, http.StatusNotFound, status, action)
	}
	assert.NotContains(t, s.see("/console/accounting?documentId=inv-1"), id)
	assert.Equal(t, models.JobPending, fixture.Job(t, s.Pool, "acme", "inv-1").State)
}

func TestHostileFieldsOfAccountingJobsAreText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	fixture.Organization(t, s.Pool, hostile)
	id := s.document(hostile, hostile)
	s.failAccounting("UNBALANCED", hostile, id)
	bad := url.QueryEscape(hostile)
	for _, path := range []string{
		"/console/accounting", "/console/accounting/" + id,
		"/console/accounting?documentId=" + bad + "&code=" + bad + "&org=" + bad,
	} {
		body := s.see(path)
		assert.False(t, strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x"), path)
		assert.Contains(t, body, "&lt;script&gt;", path)
	}
}

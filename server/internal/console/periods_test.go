package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// done sends a form that must be accepted, and returns the page that follows.
func (s *site) done(path string, form url.Values) string {
	s.t.Helper()
	form.Set("org", "acme")
	if !form.Has("next") {
		form.Set("next", "/console/periods?org=acme")
	}
	status, body := s.post(path, form)
	require.Equal(s.t, http.StatusOK, status, body)
	return body
}

func TestAPeriodIsClosedAndOpened(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	sees(t, s.see("/console/periods"), "There are no periods")
	sees(t, s.done("/console/periods/add", url.Values{"span": {"2026"}}), "12 open periods added", "2026-12-31")
	sees(t, s.done("/console/periods/add", url.Values{"span": {"2027-02"}}), "1 open period added", "2027-02-28")
	sees(t, s.done("/console/periods/close", url.Values{"from": {"2026-03-01"}}),
		"The period that begins on 2026-03-01 is closed", "closed")

	s.write(fixture.Invoice("acme", "late", 1000))
	s.work()
	body := s.see("/console/periods?org=acme")
	sees(t, content(body), "1 document failed because a period is closed", "late",
		"lies in the closed period from 2026-03-01")
	sees(t, body, "<code>daybook periods open</code>")
	sees(t, s.see("/console/documents?org=acme&document=late"), "PERIOD_CLOSED", "Open the period")

	sees(t, s.done("/console/periods/open", url.Values{"from": {"2026-03-01"}}), "is open. 1 failed job is pending again")
	assert.Equal(t, models.JobPending, fixture.Job(t, s.Pool, "acme", "late").State)
	status, body := s.post("/console/periods/close", url.Values{"org": {"acme"}, "from": {"2026-03-01"}})
	assert.Equal(t, http.StatusConflict, status)
	sees(t, body, "UNPOSTED_DOCUMENTS", "1 document that is not posted (0 failed, 1 wait): late of 2026-03-14")
	sees(t, s.done("/console/periods/close", url.Values{"from": {"2026-03-01"}, "force": {"true"}}),
		"The closing shut out 1 document that is not posted")
	s.work()
	sees(t, s.done("/console/periods/policy", url.Values{"policy": {"first_open_day"}}),
		"The policy is set. 1 failed job is pending again")
	s.work()
	sees(t, s.see("/console/documents?org=acme&document=late"), "posting 2026-04-01")
}

func TestPeriodsRefuseWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	for _, test := range []struct {
		path   string
		form   url.Values
		status int
		says   string
	}{
		{"close", url.Values{"from": {"2026-03-01"}}, http.StatusNotFound, "PERIOD_NOT_FOUND"},
		{"open", url.Values{"from": {"x"}}, http.StatusUnprocessableEntity, "want YYYY-MM-DD"},
		{"open", url.Values{}, http.StatusUnprocessableEntity, "is missing"},
		{"add", url.Values{"span": {markup}}, http.StatusUnprocessableEntity, "want a month"},
		{"policy", url.Values{"policy": {markup}}, http.StatusUnprocessableEntity, "first_open_day"},
	} {
		test.form.Set("org", "acme")
		status, body := s.post("/console/periods/"+test.path, test.form)
		assert.Equal(t, test.status, status, test.path)
		sees(t, body, test.says)
		assert.NotContains(t, body, markup)
	}
	status, body := s.post("/console/periods/add", url.Values{"span": {"2026"}})
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	sees(t, body, "the organization is missing")
}

func TestPeriodsNeedTheirScopesAndOrganization(t *testing.T) {
	t.Parallel()
	s := books(t)
	s.exec(`INSERT INTO daybook.periods (org_id, starts_on, ends_on) VALUES ('acme', '2026-03-01', '2026-03-31')`)
	body := s.see("/console/periods?org=acme")
	sees(t, body, "2026-03-31", "need the scope <code>operate</code>")
	assert.NotContains(t, body, "/console/periods/close", "who may only look sees no button")
	form := url.Values{"org": {"acme"}, "from": {"2026-03-01"}, "span": {"2027"}, "policy": {"first_open_day"}}
	paths := []string{"add", "close", "open", "policy"}
	for _, path := range paths {
		status, _ := s.post("/console/periods/"+path, form)
		assert.Equal(t, http.StatusForbidden, status, path)
	}
	fixture.Organization(t, s.Pool, "other")
	s.signIn("other", tokens.ScopeRead, tokens.ScopeOperate)
	for _, path := range paths {
		status, _ := s.post("/console/periods/"+path, form)
		assert.Equal(t, http.StatusNotFound, status, path)
	}
	assert.Equal(t, 1, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.periods WHERE state = 'open'`))
}

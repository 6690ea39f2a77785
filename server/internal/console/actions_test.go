package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// noteAction writes a row of the log.
func (s *site) noteAction(org, action, subject string, details map[string]any) {
	s.t.Helper()
	ctx, taken := actions.Begin(s.t.Context(),
		actions.Action{Via: actions.CLI, Action: action, Actor: "<script>alert(1)</script>"})
	taken.About(org, subject, details)
	require.NoError(s.t, taken.End(ctx, s.Pool, nil))
}

// TestActionsPage shows what was done, as text, filtered, in parts, and to each token what it may
// see.
func TestActionsPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 101 {
		s.noteAction("acme", "jobs.retry", "job-1", map[string]any{"mode": "reset"})
	}
	s.noteAction("beta", "rules.apply", `"><img src=x onerror=alert(1)>`, nil)
	s.noteAction("", "tokens.create", "", map[string]any{"name": "<b>"})

	s.signIn("", tokens.ScopeRead)
	status, body := s.get("/console/actions")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "&lt;script&gt;")
	require.NotContains(t, body, "<script>alert")
	require.NotContains(t, body, "<img src=x")
	require.Contains(t, body, "rel=\"next\"")
	_, body = s.get("/console/actions?action=rules.apply")
	require.Contains(t, body, "beta")
	require.NotContains(t, body, "job-1")
	_, body = s.get("/console/actions?outcome=failed")
	require.Contains(t, body, "Nothing was done that matches")
	status, body = s.get("/console/actions?since=yesterday")
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, body, "yesterday")

	s.signIn("beta", tokens.ScopeRead)
	_, body = s.get("/console/actions")
	require.Contains(t, body, "rules.apply")
	require.NotContains(t, body, "job-1")
	require.NotContains(t, body, "&lt;b&gt;")
}

// TestAnActionOnAJobIsOfTheJobsOrganization: whose token asked for it makes no difference to who
// sees it.
func TestAnActionOnAJobIsOfTheJobsOrganization(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.enqueue(store.NewJob{OrgID: "acme", Type: "mail"})
	s.fail("TIMEOUT", "slow", id)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	_, _ = s.post("/console/jobs/"+id+"/retry", url.Values{"mode": {"now"}})
	_, _ = s.post("/console/jobs/"+id+"/cancel", nil)
	_, _ = s.post("/console/jobs/unknown/cancel", nil)
	s.signIn("acme", tokens.ScopeRead)
	body := s.see("/console/actions")
	assert.Contains(t, body, "<code>jobs.retry</code>")
	assert.Contains(t, body, "<code>jobs.cancel</code>")
	assert.NotContains(t, body, "JOB_NOT_FOUND")
	list, err := actions.List(t.Context(), s.Pool, actions.Filter{Subject: "unknown"})
	require.NoError(t, err)
	assert.Len(t, list, 1, "what was not found is named")
}

package console_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

// TestOverview shows what is wrong with where to look, how the queues stand at the same moment, and
// what failed.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// What a process sampled a moment ago is not shown beside a check that says otherwise.
	require.NoError(t, figures.WriteGauges(t.Context(), s.Pool,
		figures.Gauges{Holder: "w", Kinds: []figures.Kind{{Kind: "jobs", Counts: figures.Counts{Due: 77}}}}))
	s.exec(`
SELECT daybook.note_job_types('jobs', 'w', '{webhook}', '{""}', '{shop team}', '{3}', '{60}', '{1}', '{f}');
INSERT INTO daybook.jobs (org_id, type, payload) SELECT 'other', 'webhook', '{}' FROM generate_series(1, 1234);
INSERT INTO daybook.jobs (org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
SELECT 'other', 'webhook', '{}', 'failed', 'e', 'UPSTREAM_5XX', now(), 5 FROM generate_series(1, 3);
SELECT queues.enqueue('fax', '{}') FROM generate_series(1, 7);
INSERT INTO queues.error (task_id, error_message) SELECT task_id, 'refused' FROM queues.task;
INSERT INTO queues.task_completed (task_id) SELECT task_id FROM queues.task`)
	a := figures.Attempts{Outcome: figures.Outcome{Kind: "jobs", Type: "webhook", Outcome: "completed"}, Count: 42}
	a.Waited.Observe(2 * time.Second)
	require.NoError(t, figures.AddHistory(t.Context(), s.Pool, []figures.Attempts{
		a, {Outcome: figures.Outcome{Kind: "jobs", Type: "webhook", Outcome: "failed", Code: "UPSTREAM_5XX"}, Count: 3},
	}))
	s.signIn("", tokens.ScopeRead)
	for _, span := range []string{"", "?range=hour", "?range=day", "?range=week", "?range=nonsense"} {
		status, body := s.get("/console/" + span)
		require.Equal(t, http.StatusOK, status, body)
		require.Contains(t, body, "1\u202f234<")
		require.Contains(t, body, "nothing waits longer than ", "and not that nothing waits")
		require.Contains(t, body, "3 jobs failed and 7 tasks failed in the last day")
		require.Contains(t, body, "shop team")
		require.Contains(t, body, `<dt>Dead letters</dt><dd class="bad"><a href="/console/jobs?state=failed">3<`)
		require.Contains(t, body, `<dt>Failed</dt><dd class="bad"><a href="/console/tasks?state=failed">7<`,
			"a task that failed is completed: the page Dead letters does not list it")
		require.Contains(t, body, `href="/console/jobs?code=UPSTREAM_5XX&amp;state=failed&amp;type=webhook"`)
		require.Contains(t, body, `class="bar-bad"`)
		require.Contains(t, body, "<desc")
		require.Contains(t, body, "in numbers", "the charts' table")
		require.Less(t, len(body), 60_000)
	}

	s.signIn("acme", tokens.ScopeRead)
	_, body := s.get("/console/")
	require.NotContains(t, body, "UPSTREAM_5XX", "figures of all organizations are not for a token of one")
	require.NotContains(t, body, "1\u202f234<")
	require.Contains(t, body, "DAYBOOK_METRICS_ORGANIZATIONS")
}

// TestOrganizationsAreHeldBack presses each button of an organization's page; all are in the log of
// actions.
func TestOrganizationsAreHeldBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fixture.Organization(t, s.Pool, "a/b c")
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	_, body := s.get("/console/organizations")
	require.Contains(t, body, `href="/console/organizations/a%2Fb%20c"`)
	page := "/console/organizations/a%2Fb%20c"
	for _, c := range []struct {
		button string
		form   url.Values
		shows  string
	}{
		{"/pause", nil, ">paused<"},
		{"/cap", url.Values{"most": {"20"}}, "20 jobs at a time"},
		{"/cap", url.Values{"most": {""}}, "any number"},
		{"/source", url.Values{"source": {"shop"}}, "<code>shop</code>"},
		{"/hooks", url.Values{"hooks": {"one two"}}, "<code>two</code>"},
		{"/hooks", url.Values{"hooks": {"-"}}, "<dt>Hooks</dt><dd>none</dd>"},
		{"/source", url.Values{"source": {""}}, "by default"},
		{"/resume", nil, "<dt>Held back</dt><dd>no</dd>"},
		{"/rate", url.Values{"rate": {"5"}, "rateSeconds": {"60"}}, "<dt>Rate</dt><dd>5 in 1 min</dd>"},
		{"/rate", url.Values{"rate": {""}, "rateSeconds": {"60"}}, "<dt>Rate</dt><dd>any number</dd>"},
	} {
		form := url.Values{"next": {page}}
		maps.Copy(form, c.form)
		status, body := s.post(page+c.button, form)
		require.Equal(t, http.StatusOK, status, "%s: %s", c.button, body)
		require.Contains(t, body, c.shows, c.button)
	}
	status, _ := s.post(page+"/cap", url.Values{"most": {"-1"}})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	status, _ = s.post(page+"/rate", url.Values{"rate": {"5"}, "rateSeconds": {"soon"}})
	require.Equal(t, http.StatusUnprocessableEntity, status)
	list, err := actions.List(t.Context(), s.Pool, actions.Filter{OrgID: "a/b c"})
	require.NoError(t, err)
	require.Len(t, list, 12)
	require.JSONEq(t, `{"changed": true, "max_in_flight": 20}`, string(list[10].Details))

	status, body = s.post("/console/task-limits",
		url.Values{"type": {"email"}, "paused": {"yes"}, "cap": {"3"}, "next": {"/console/organizations"}})
	require.Equal(t, http.StatusOK, status, body)
	limits, err := store.TaskLimits(t.Context(), s.Pool)
	require.NoError(t, err)
	require.Len(t, limits, 1)
	require.Contains(t, body, "<code>email</code>")

	s.signIn("other", tokens.ScopeRead, tokens.ScopeOperate)
	status, _ = s.get(page)
	require.Equal(t, http.StatusNotFound, status)
	status, _ = s.post(page+"/pause", nil)
	require.Equal(t, http.StatusForbidden, status)
	_, body = s.get("/console/organizations")
	require.NotContains(t, body, "a/b c")
}

// TestTokensPage lists tokens without their secrets, and revokes one.
func TestTokensPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	other, secret, err := tokens.Create(t.Context(), s.Pool,
		tokens.NewToken{OrgID: "beta", Name: "shop <1>", Scopes: []tokens.Scope{tokens.ScopeEnqueue}})
	require.NoError(t, err)
	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	_, body := s.get("/console/tokens")
	require.NotContains(t, body, other.ID)
	status, _ := s.post("/console/tokens/"+other.ID+"/revoke", nil)
	require.Equal(t, http.StatusForbidden, status)

	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	_, body = s.get("/console/tokens")
	require.Contains(t, body, "shop &lt;1&gt;")
	require.NotContains(t, body, strings.TrimPrefix(secret, tokens.Prefix))
	status, body = s.post("/console/tokens/"+other.ID+"/revoke", url.Values{"next": {"/console/tokens"}})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "is revoked")
	_, err = tokens.Find(t.Context(), s.Pool, secret)
	require.ErrorIs(t, err, tokens.ErrRefused)
}

// TestPauseOfEveryRun: the button pauses each workflow of the kind that runs, also when only
// another id than the documented one does.
func TestPauseOfEveryRun(t *testing.T) {
	t.Parallel()
	server := temporaltest.Shared(t)
	c := server.Client(t, server.Namespace(t))
	s := newSiteOn(t, c)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	signals := func(id string) (n int) {
		for events := c.GetWorkflowHistory(t.Context(), id, "", false,
			enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
			e, err := events.Next()
			require.NoError(t, err)
			if e.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == models.SignalPause {
				n++
			}
		}
		return n
	}
	for _, id := range []string{"by-hand", "by-hand-2"} {
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: workflows.JobsTaskQueue},
			workflows.JobsWorkflow, workflows.Input{})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		status, body := s.post("/console/workers/jobs/pause", url.Values{"next": {"/console/workers"}})
		return status == http.StatusOK && strings.Contains(body, "Paused") && signals("by-hand") > 0 &&
			signals("by-hand-2") > 0
	}, time.Minute, 10*time.Millisecond, "Temporal lists them a moment late")
}

// TestPagesWithoutTemporal say that they do not know, and their buttons refuse.
func TestPagesWithoutTemporal(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	for _, page := range []string{"/console/workers", "/console/schedules"} {
		status, body := s.get(page)
		require.Equal(t, http.StatusOK, status, body)
		require.Contains(t, body, "not known here", page)
	}
	for _, button := range []string{"/console/workers/jobs/pause", "/console/schedules/x/trigger"} {
		status, body := s.post(button, nil)
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, body, "TEMPORAL_UNAVAILABLE")
	}
	status, _ := s.post("/console/workers/nothing/pause", nil)
	require.Equal(t, http.StatusNotFound, status)
	status, body := s.post("/console/leases/release", url.Values{"next": {"/console/workers"}})
	require.Equal(t, http.StatusOK, status, body)

	s.signIn("acme", tokens.ScopeRead)
	status, _ = s.get("/console/workers")
	require.Equal(t, http.StatusForbidden, status)
}

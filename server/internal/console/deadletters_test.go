package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// failed enqueues dead letters of an organization.
func (s *site) failed(org, kind, code, text string, n int) []string {
	s.t.Helper()
	ids := make([]string, n)
	for i := range n {
		ids[i] = s.enqueue(store.NewJob{OrgID: org, Type: kind, Payload: fmt.Appendf(nil, `{"n": %d}`, i)})
	}
	s.fail(code, text, ids...)
	return ids
}

// states counts the jobs in a state.
func (s *site) states(state models.JobState) int {
	s.t.Helper()
	return fixture.Count(s.t, s.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = $1::daybook.job_state`,
		string(state))
}

// hiddenFields are the fields of the form on a page whose action ends in a path.
func hiddenFields(t *testing.T, body, action string) url.Values {
	t.Helper()
	_, form, found := strings.Cut(body, `action="`+action+`"`)
	require.True(t, found, "there is no form for %s", action)
	form, _, _ = strings.Cut(form, "</form>")
	v := url.Values{}
	for _, input := range strings.Split(form, "<input ")[1:] {
		_, name, _ := strings.Cut(input, `name="`)
		name, rest, _ := strings.Cut(name, `"`)
		_, value, _ := strings.Cut(rest, `value="`)
		value, _, _ = strings.Cut(value, `"`)
		v.Set(name, unescape(value))
	}
	return v
}

func TestDeadLettersInGroups(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	assert.Contains(t, s.see("/console/dead-letters"), "Nothing is a dead letter.")

	fixture.Organization(t, s.Pool, "acme")
	mails := s.failed("acme", "mail", "UPSTREAM_5XX", "the server is unavailable", 3)
	s.failed("beta", "report", "TIMEOUT", "too slow", 1)
	s.failAccounting("NO_MATCHING_RULE", "no rule matches", s.document("acme", "inv-1"))
	s.exec(`SELECT queues.enqueue('email', '{}', now() - interval '1 hour')`)
	s.owner("mail", "growth")
	body := s.see("/console/dead-letters")
	assert.Contains(t, body, "<td>growth</td>", "the owner of the type is named")
	for _, says := range []string{
		"the server is unavailable", "too slow", "no rule matches", "inv-1",
		"no worker has leased it", "Ask those who run that server.",
	} {
		assert.Contains(t, body, says)
	}
	list := links(body, "mail")
	require.NotEmpty(t, list)
	listed := s.see(list[0])
	for _, id := range mails {
		assert.Contains(t, listed, id, "a group leads to its list")
	}
	body = s.see("/console/dead-letters?org=beta")
	assert.Contains(t, body, "too slow")
	assert.NotContains(t, body, "the server is unavailable")
}

func TestDeadLettersAreRetriedTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	s.failed("acme", "mail", "UPSTREAM_5XX", "away", 7)
	s.failed("beta", "mail", "UPSTREAM_5XX", "away", 2)
	s.failed("acme", "mail", "TIMEOUT", "slow", 1)

	confirm := links(s.see("/console/dead-letters?org=acme"), "Retry…")
	require.Len(t, confirm, 2)
	body := s.see(confirm[0])
	assert.Contains(t, body, "7 dead letters match.")
	assert.Contains(t, body, "Mend the cause first")
	assert.Equal(t, 10, s.states(models.JobFailed), "nothing is changed before it is confirmed")
	form := hiddenFields(t, body, "/console/dead-letters/retry")
	s.failed("acme", "mail", "UPSTREAM_5XX", "away", 1)
	status, body := s.post("/console/dead-letters/retry", form)
	require.Equal(t, http.StatusOK, status, body)
	assert.Contains(t, body, "It is finished.")
	assert.Contains(t, body, `value="7"`)
	assert.Equal(t, 7, s.states(models.JobPending),
		"what failed after the count is left alone, and so are other organizations and codes")
	assert.Equal(t, 7, fixture.Count(t, s.Pool,
		`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND run_count = 3`))
	assert.Equal(t, 1, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.actions WHERE action = 'jobs.retry_many'`))

	body = s.see(links(s.see("/console/dead-letters?org=beta"), "Cancel…")[0])
	assert.Contains(t, body, "2 dead letters match.")
	_, body = s.post("/console/dead-letters/cancel", hiddenFields(t, body, "/console/dead-letters/cancel"))
	assert.Contains(t, body, "It is finished.")
	assert.Equal(t, 2, s.states(models.JobCancelled))
	for _, wrong := range []url.Values{
		{"kind": {"tasks"}},
		{"kind": {"jobs"}, "state": {"pending"}},
		{"kind": {"jobs"}, "mode": {"never"}},
		{"kind": {"jobs"}, "mode": {"later"}, "minutes": {"x"}},
	} {
		status, _ := s.post("/console/dead-letters/retry", wrong)
		assert.Equal(t, http.StatusUnprocessableEntity, status, "%v", wrong)
	}
}

func TestFailedDocumentsAreRetriedTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	for _, org := range []string{"acme", "beta"} {
		fixture.Organization(t, s.Pool, org)
		s.failAccounting("UNBALANCED", "off by one", s.document(org, "inv-1"), s.document(org, "inv-2"))
	}
	body := s.see(links(s.see("/console/dead-letters?org=acme"), "Retry…")[0])
	assert.Contains(t, body, "2 dead letters match.")
	_, body = s.post("/console/dead-letters/retry", hiddenFields(t, body, "/console/dead-letters/retry"))
	assert.Contains(t, body, "It is finished.")
	assert.Equal(t, models.JobPending, fixture.Job(t, s.Pool, "acme", "inv-1").State)
	assert.Equal(t, models.JobFailed, fixture.Job(t, s.Pool, "beta", "inv-1").State)
	status, _ := s.get("/console/dead-letters/cancel?kind=accounting")
	assert.Equal(t, http.StatusUnprocessableEntity, status)
}

func TestDeadLettersOfOthersAreNotReached(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.failed("acme", "mail", "TIMEOUT", "slow", 2)
	s.exec(`SELECT queues.enqueue('email', '{}', now() - interval '1 hour')`)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	_, body := s.post("/console/dead-letters/retry",
		url.Values{"kind": {"jobs"}, "mode": {"later"}, "minutes": {"60"}, "org": {"acme"}})
	assert.Contains(t, body, "It is finished.")
	var operation string
	require.NoError(t, s.Pool.QueryRow(t.Context(), `SELECT id FROM daybook.bulk_operations`).Scan(&operation))
	s.failed("acme", "mail", "TIMEOUT", "slow again", 2)

	s.signIn("beta", tokens.ScopeRead, tokens.ScopeOperate)
	body = s.see("/console/dead-letters")
	assert.Contains(t, body, "Nothing is a dead letter.")
	for _, path := range []string{
		"/console/bulk/" + operation, "/console/dead-letters?org=acme",
		"/console/dead-letters/retry?kind=jobs&org=acme",
	} {
		status, body := s.get(path)
		assert.Equal(t, http.StatusNotFound, status, path)
		assert.NotContains(t, body, "slow again", path)
	}
	status, _ := s.post("/console/dead-letters/retry", url.Values{"kind": {"jobs"}, "mode": {"now"}, "org": {"acme"}})
	assert.Equal(t, http.StatusNotFound, status)
	_, _ = s.post("/console/dead-letters/cancel", url.Values{"kind": {"jobs"}})
	assert.Equal(t, 2, s.states(models.JobFailed), "a request of one organization means its own jobs alone")

	s.signIn("acme", tokens.ScopeRead)
	body = s.see("/console/dead-letters")
	assert.Contains(t, body, "slow again")
	assert.NotContains(t, body, "Retry…")
	for _, path := range []string{
		"/console/dead-letters/retry?kind=jobs", "/console/dead-letters/cancel?kind=jobs",
		"/console/bulk/" + operation,
	} {
		status, _ := s.get(path)
		assert.Equal(t, http.StatusForbidden, status, path)
	}
	for _, path := range []string{"/console/dead-letters/retry", "/console/dead-letters/cancel"} {
		status, _ := s.post(path, url.Values{"kind": {"jobs"}, "mode": {"now"}})
		assert.Equal(t, http.StatusForbidden, status, path)
	}
}

func TestHostileFieldsOfDeadLettersAreText(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead, tokens.ScopeOperate)
	s.failed(hostile, "mail", "HANDLER_ERROR", hostile, 1)
	s.exec(`UPDATE daybook.jobs SET last_error_code = $1`, hostile)
	bad := url.QueryEscape(hostile)
	filter := "?kind=jobs&type=" + bad + "&code=" + bad + "&linkKind=" + bad + "&linkId=" + bad + "&idempotencyKey=" +
		bad + "&org=" + bad
	for _, path := range []string{
		"/console/dead-letters", "/console/dead-letters?org=" + bad,
		"/console/dead-letters/retry" + filter, "/console/dead-letters/cancel" + filter,
	} {
		body := s.see(path)
		assert.False(t, strings.Contains(body, "<script>alert") || strings.Contains(body, "<img src=x"), path)
		assert.Contains(t, body, "&lt;script&gt;", path)
	}
}

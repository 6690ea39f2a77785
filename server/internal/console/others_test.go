package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	adminbooks "github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/console"
)

// addressOf is an address of a pattern whose parameters name what one organization has.
func addressOf(t *testing.T, pattern, id string) (method, path string) {
	t.Helper()
	method, path, _ = strings.Cut(pattern, " ")
	path = strings.NewReplacer("{$}", "", "{id}", id, "{version}", id, "{name}", "bank", "{kind}", "jobs", "{scope...}",
		"queue/bank").Replace(path)
	require.NotContains(t, path, "{", "name a value of the parameter")
	return method, path
}

// fieldsOfAll are fields that make what all forms ask for, about what one organization has.
func fieldsOfAll(group int64) url.Values {
	return url.Values{
		"document": {"1", "2"}, "id": {"1"}, "account": {"1200"}, "kind": {"jobs"}, "mode": {"now"}, "type": {"mail"}, "all": {"1"},
		"post": {"full"}, "version": {"1"}, "year": {"2031"}, "month": {"2031-01"}, "span": {"2031-01"}, "from": {"2031-01-01"},
		"starts_on": {"2031-01-01"}, "policy": {"first_open_day"}, "source": {"daybook"}, "name": {"bank"}, "q": {"1"}, "parallel": {"3"},
		"group": {strconv.FormatInt(group, 10)}, "counterparty": {markOfAcme}, "reason": {"r"}, "currency": {"USD"}, "rate": {"2"},
		"valid_on": {"2026-03-31"}, "until": {"2026-03-31"}, "code": {"1200"}, "patch": {`[{"op": "add", "path": "/a", "value": 1}]`},
		"generation": {"0"}, "value": {`"x"`},
	}
}

// markOfAcme is in all that the organization acme has.
const markOfAcme = "of acme alone"

// ofAcme gives acme something of everything, and returns what its tables say, the id of an import and
// of a group.
func (s *site) ofAcme() (state func() string, importID, group int64) {
	s.t.Helper()
	for _, org := range []string{"acme", "other"} {
		fixture.Organization(s.t, s.Pool, org)
	}
	for _, id := range []string{"1", "2"} {
		posted := fixture.Invoice("acme", id, 1000)
		posted.Content.Counterparty = markOfAcme
		s.write(posted)
	}
	s.work()
	importID, group = fixture.OfEverything(s.t, s.Pool, "acme", markOfAcme)
	_, err := adminbooks.ClosePeriod(s.t.Context(), s.Pool, "acme", adminbooks.Month(2026, 3), adminbooks.CloseOptions{Force: true})
	require.NoError(s.t, err)
	for _, stmt := range []string{
		`INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('1', 'acme', 'mail', jsonb_build_object('to', $1::text), 'failed', $1, 'TIMEOUT', now(), 1)`,
		`INSERT INTO daybook.bulk_operations (id, org_id, action, mode, states) SELECT '1', 'acme', 'retry', 'now', '{failed}' WHERE $1 <> ''`,
		`INSERT INTO daybook.queues (name, owner) VALUES ('bank', $1)`,
		`INSERT INTO daybook.job_limits (scope, by, parallel) VALUES ('queue/bank', 'payload.' || $1, 1)`,
		`INSERT INTO daybook.api_tokens (id, org_id, name, scopes, hash) VALUES ('1', 'acme', $1, '{read}', sha256('1'))`,
		`INSERT INTO daybook.actions (via, action, actor, org_id, outcome) VALUES ('cli', 'jobs.retry', $1, 'acme', 'done')`,
		`SELECT queues.enqueue('mail', jsonb_build_object('to', $1::text))`,
	} {
		_, err := s.Pool.Exec(s.t.Context(), stmt, markOfAcme)
		require.NoError(s.t, err, stmt)
	}
	return fixture.Kept(s.t, s.Pool, "acme"), importID, group
}

// TestOthersReachNothing asks for every page and every action about what one organization has, by a
// token that may do everything for another one, and by one of its own that may enqueue alone: the
// answers hold nothing of it, and nothing of it is changed.
func TestOthersReachNothing(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]struct {
		org    string
		scopes []tokens.Scope
	}{
		"another organization": {"other", tokens.Scopes()},
		"enqueue alone":        {"acme", []tokens.Scope{tokens.ScopeEnqueue}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			state, importID, group := s.ofAcme()
			fields := fieldsOfAll(group)
			fields.Del("counterparty") // a form shows it again
			secret := s.token(token.org, token.scopes...)
			before := state()
			require.Contains(t, before, markOfAcme)
			_, _ = s.post("/console/sign-in", url.Values{"token": {secret}})
			for _, pattern := range console.Patterns() {
				for _, id := range []string{"1", "acme", strconv.FormatInt(importID, 10)} {
					method, at := addressOf(t, pattern, id)
					for _, org := range []string{"", "acme"} {
						fields.Set("org", org)
						ask := s.post
						if method == http.MethodGet {
							ask = func(path string, form url.Values) (int, string) { return s.get(path + "?" + form.Encode()) }
						}
						status, body := ask(at, fields)
						assert.NotContains(t, body, markOfAcme, "%s %s of %q", method, at, org)
						assert.NotEqual(t, http.StatusInternalServerError, status, "%s %s of %q: %s", method, at, org, body)
					}
				}
				require.Equal(t, before, state(), pattern)
			}
		})
	}
}

// triedAlone are the addresses of forms that are tried and change nothing; readers may have rules
// previewed.
var triedAlone = []string{
	"POST /console/dead-letters/edit/try", "POST /console/jobs/{id}/edit/compare", "POST /console/rules/preview",
	"POST /console/accounts/check", "POST /console/journal/check",
}

// TestReadersChangeNothing sends every form by a token that may read all organizations.
func TestReadersChangeNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	state, importID, group := s.ofAcme()
	fields := fieldsOfAll(group)
	fields.Set("org", "acme")
	s.signIn("", tokens.ScopeRead)
	before := state()
	for _, pattern := range console.Patterns() {
		for _, id := range []string{"1", strconv.FormatInt(importID, 10)} {
			method, at := addressOf(t, pattern, id)
			if method == http.MethodGet {
				continue
			}
			status, body := s.post(at, fields)
			if !slices.Contains(triedAlone, pattern) || strings.Contains(at, "edit") {
				assert.Equal(t, http.StatusForbidden, status, pattern)
				assert.Contains(t, body, "FORBIDDEN", pattern)
			}
		}
		require.Equal(t, before, state(), pattern)
	}
}

// TestActionsOfTheConsoleAreRecorded presses each button: one row of the log is added, whatever became
// of it.
func TestActionsOfTheConsoleAreRecorded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, importID, group := s.ofAcme()
	fields := fieldsOfAll(group)
	fields.Set("org", "acme")
	s.signIn("", tokens.Scopes()...)
	list := func() []actions.Action {
		all, err := actions.List(t.Context(), s.Pool, actions.Filter{Via: actions.Console, Limit: 1000})
		require.NoError(t, err)
		return all
	}
	names := map[string]bool{}
	for _, pattern := range console.Patterns() {
		for _, id := range []string{"missing", "1", strconv.FormatInt(importID, 10)} {
			method, at := addressOf(t, pattern, id)
			if method == http.MethodGet || slices.Contains(triedAlone, pattern) {
				continue
			}
			before := len(list())
			status, body := s.post(at, fields)
			after := list()
			require.Len(t, after, before+1, "%s: %d %s", at, status, body)
			assert.Equal(t, "test", after[0].Actor, at)
			assert.NotEqual(t, http.StatusInternalServerError, status, "%s: %s", at, body)
			if status >= http.StatusBadRequest {
				assert.NotEqual(t, actions.Done, after[0].Outcome, at)
			}
			names[after[0].Action] = true
		}
	}
	assert.Greater(t, len(names), 40, "each button has a name of its own")
}

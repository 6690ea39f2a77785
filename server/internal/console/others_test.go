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
	"github.com/daybook-dev/daybook/server/internal/console"
)

// TestOthersReachNothing asks for every page and every action about what one organization has, by a
// token that may do everything for another one, and by one of its own that may enqueue alone: the
// answers hold nothing of it, and nothing of it is changed.
func TestOthersReachNothing(t *testing.T) {
	t.Parallel()
	const mark = "of acme alone"
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
			fixture.Organization(t, s.Pool, "acme")
			fixture.Organization(t, s.Pool, "other")
			posted := fixture.Invoice("acme", "1", 1000)
			posted.Content.Counterparty = mark
			s.write(posted)
			s.work()
			for _, stmt := range []string{
				`INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('1', 'acme', 'mail', jsonb_build_object('to', $1::text), 'failed', $1, 'TIMEOUT', now(), 1)`,
				`INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, posted_on, system, next) VALUES ('acme', '1', 1, '2027-01-31', $1, 'wait')`,
				`INSERT INTO daybook.bulk_operations (id, org_id, action, mode, states) SELECT '1', 'acme', 'retry', 'now', '{failed}' WHERE $1 <> ''`,
				`INSERT INTO daybook.queues (name, owner) VALUES ('bank', $1)`,
				`INSERT INTO daybook.job_limits (scope, by, parallel) VALUES ('queue/bank', 'payload.' || $1, 1)`,
				`INSERT INTO daybook.periods (org_id, starts_on, ends_on) SELECT 'acme', '2031-01-01', '2031-01-31' WHERE $1 <> ''`,
				`INSERT INTO daybook.api_tokens (id, org_id, name, scopes, hash) VALUES ('1', 'acme', $1, '{read}', sha256('1'))`,
				`INSERT INTO daybook.actions (via, action, actor, org_id, outcome) VALUES ('cli', 'jobs.retry', $1, 'acme', 'done')`,
				`UPDATE daybook.accounts SET name = $1 WHERE org_id = 'acme'`,
				`SELECT queues.enqueue('mail', jsonb_build_object('to', $1::text))`,
			} {
				_, err := s.Pool.Exec(t.Context(), stmt, mark)
				require.NoError(t, err, stmt)
			}
			state := func() (all string) {
				require.NoError(t, s.Pool.QueryRow(t.Context(), `
SELECT concat((SELECT array_agg(x) FROM daybook.jobs x WHERE org_id = 'acme'), (SELECT array_agg(x) FROM daybook.accounting_work_queue x WHERE org_id = 'acme'),
              (SELECT array_agg(x) FROM daybook.organizations x WHERE id = 'acme'), (SELECT array_agg(x) FROM daybook.periods x WHERE org_id = 'acme'),
              (SELECT array_agg(x) FROM daybook.rule_sets x WHERE org_id = 'acme'), (SELECT array_agg(x) FROM daybook.bulk_operations x WHERE org_id = 'acme'),
              (SELECT array_agg(x) FROM daybook.api_tokens x WHERE id = '1'), (SELECT array_agg(x) FROM daybook.posted_elsewhere x),
              (SELECT array_agg(x) FROM daybook.queues x), (SELECT array_agg(x) FROM daybook.job_limits x), (SELECT array_agg(x) FROM queues.open_task x), (SELECT array_agg(x) FROM queues.task_limit x))`).Scan(&all))
				return all
			}
			before := state()
			_, _ = s.post("/console/sign-in", url.Values{"token": {s.token(token.org, token.scopes...)}})
			fields := url.Values{
				"document": {"1"}, "id": {"1"}, "account": {"1200"}, "kind": {"jobs"}, "mode": {"now"}, "type": {"mail"},
				"all": {"1"}, "post": {"full"}, "version": {"1"},
				"year": {"2031"}, "month": {"2031-01"}, "starts_on": {"2031-01-01"}, "policy": {"first_open_day"},
				"source": {"daybook"}, "name": {"bank"}, "q": {"1"},
				"parallel": {"3"},
			}
			for _, pattern := range console.Patterns() {
				method, path, _ := strings.Cut(pattern, " ")
				for _, id := range []string{"1", "acme"} {
					at := strings.NewReplacer("{$}", "", "{id}", id, "{version}", id, "{name}", "bank", "{kind}",
						"jobs", "{scope...}", "queue/bank").Replace(path)
					require.NotContains(t, at, "{", "name a value of the parameter")
					for _, org := range []string{"", "acme"} {
						fields.Set("org", org)
						ask := s.post
						if method == http.MethodGet {
							ask = func(path string, form url.Values) (int, string) { return s.get(path + "?" + form.Encode()) }
						}
						status, body := ask(at, fields)
						assert.NotContains(t, body, mark, "%s %s of %q", method, at, org)
						assert.NotEqual(t, http.StatusInternalServerError, status, "%s %s of %q: %s", method, at, org, body)
					}
				}
				require.Equal(t, before, state(), pattern)
			}
		})
	}
}

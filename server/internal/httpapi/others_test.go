package httpapi_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// TestAnotherOrganizationsToken sends every request of the document, about what one organization
// has, by a token that may do everything for another one: the answers hold nothing of it, and
// nothing of it is changed.
func TestAnotherOrganizationsToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, "acme")
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "1", 1000))
	const mark = "of acme alone"
	for _, stmt := range []string{
		`INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('1', 'acme', 'mail', jsonb_build_object('to', $1::text), 'failed', $1, 'TIMEOUT', now(), 1)`,
		`INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, posted_on, system, next) VALUES ('acme', '1', 1, '2027-01-31', $1, 'wait')`,
		`INSERT INTO daybook.bulk_operations (id, org_id, action, mode, states) SELECT '1', 'acme', 'retry', 'now', '{failed}' WHERE $1 <> ''`,
		`INSERT INTO daybook.queues (name, owner) VALUES ('bank', $1)`,
		`SELECT queues.enqueue('mail', jsonb_build_object('to', $1::text))`,
	} {
		_, err := b.Pool.Exec(t.Context(), stmt, mark)
		require.NoError(t, err, stmt)
	}
	state := func() (all string) {
		require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT concat((SELECT array_agg(x ORDER BY id) FROM daybook.jobs x WHERE org_id = 'acme'), (SELECT array_agg(x) FROM daybook.accounting_work_queue x WHERE org_id = 'acme'),
              (SELECT array_agg(x) FROM daybook.posted_elsewhere x), (SELECT array_agg(x) FROM daybook.queues x), (SELECT array_agg(x) FROM queues.open_task x))`).Scan(&all))
		return all
	}
	before := state()
	other := b.token("other", tokens.Scopes()...)
	for _, r := range b.spec.secured() {
		address := strings.NewReplacer("{id}", "1", "{documentId}", "1", "{name}", "bank").Replace(r.path)
		bodies := []any{nil}
		if r.method != http.MethodGet && r.method != http.MethodDelete {
			for _, org := range []object{{}, {"orgId": "acme"}} {
				for _, body := range []object{
					{"type": "mail", "payload": object{}},
					{"documentId": "1", "version": 2},
					{"mode": "now"},
					{"all": true, "mode": "now"},
					{"all": true},
					{"post": "full"},
					{"all": true, "mode": "now", "filter": org},
					{"all": true, "filter": org},
					{},
				} {
					maps.Copy(body, org)
					bodies = append(bodies, body)
				}
			}
		}
		for _, query := range []string{"", "?orgId=acme"} {
			for _, body := range bodies {
				a := b.send(other, r.method, address+query, body)
				assert.NotContains(t, string(a.body), mark, "%s %s%s %v", r.method, address, query, body)
				assert.Less(t, a.status, http.StatusInternalServerError, "%s %s%s %v: %s", r.method, address, query, body,
					a.body)
			}
		}
		require.Equal(t, before, state(), "%s %s", r.method, r.path)
	}
}

package httpapi_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// A token with the scope operate decides about a document that another system has posted; the
// decision is in the log of actions, and the job is tried again.
func TestPostedElsewhereIsDecided(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, "acme")
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "doc", 1000), fixture.Invoice("acme", "plain", 1000))
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, posted_on, system, next, open_item, entries)
VALUES ('acme', 'doc', 0, '2027-01-31', 'legacy', 'wait', 'opening:1200/17/', '[{"account": "1200", "side": "debit", "amount": 500, "currency": "EUR"}]');
UPDATE daybook.accounting_work_queue SET state = 'failed', last_error_code = 'POSTED_ELSEWHERE', last_error = 'decide', finished_at = clock_timestamp() WHERE document_id = 'doc'`)
	require.NoError(t, err)
	read, operate := b.token("acme", tokens.ScopeRead), b.token("acme", tokens.ScopeRead, tokens.ScopeOperate)
	const path = "/api/accounting/jobs/doc/elsewhere"

	var known answers.PostedElsewhere
	a := b.send(read, http.MethodGet, path, nil)
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.NoError(t, json.Unmarshal(a.body, &known))
	assert.Equal(t, "legacy", known.System)
	assert.Equal(t, "wait", known.Next)
	assert.Equal(t, "opening:1200/17/", known.OpenItem)
	assert.Equal(t, []answers.EntryElsewhere{{
		Account: "1200", Side: "debit", AmountMinor: "500", Amount: "5.00",
		Currency: "EUR",
	}}, known.Entries)

	for _, c := range []struct {
		token, path, body string
		status            int
	}{
		{read, path, `{"post": "difference"}`, http.StatusForbidden},
		{b.token("other", tokens.ScopeOperate), path + "?orgId=acme", `{"post": "difference"}`, http.StatusNotFound},
		{operate, path, `{"post": "half"}`, http.StatusUnprocessableEntity},
		{operate, path, `{}`, http.StatusUnprocessableEntity},
		{operate, "/api/accounting/jobs/unknown/elsewhere", `{"post": "full"}`, http.StatusNotFound},
		{operate, "/api/accounting/jobs/plain/elsewhere", `{"post": "full"}`, http.StatusNotFound},
	} {
		a = b.send(c.token, http.MethodPost, c.path, c.body)
		assert.Equal(t, c.status, a.status, "%s %s: %s", c.path, c.body, a.body)
	}
	assert.Equal(t, http.StatusNotFound, b.send(read, http.MethodGet, "/api/accounting/jobs/plain/elsewhere", nil).status)

	a = b.send(operate, http.MethodPost, path, `{"post": "difference"}`)
	require.Equal(t, http.StatusOK, a.status, a.body)
	assert.Contains(t, string(a.body), `"requeued"`)
	assert.Equal(t, 1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.posted_elsewhere WHERE next = 'difference'`))
	assert.Equal(t, 1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE document_id = 'doc' AND state = 'pending'`))
	logged, err := actions.List(t.Context(), b.Pool, actions.Filter{Action: "accounting.elsewhere", Outcome: "done"})
	require.NoError(t, err)
	require.Len(t, logged, 1)
	assert.Equal(t, "doc", logged[0].Subject)
}

package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// Statements are read by a token that may read its organization, and a year is closed by one that
// may operate it.
func TestStatementsOverHTTP(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, org := range []string{"acme", "other"} {
		fixture.Organization(t, b.Pool, org)
	}
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.accounts (org_id, code, type) VALUES ('acme', '2900', 'equity');
WITH i AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
    VALUES (1, 'acme', 'd', 1, 1, 'post', '2026-03-14', '2026-03-14', 2, 'j', 1))
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency)
VALUES (1, 1, 'acme', '1000', 'debit', 1190, 'EUR'), (1, 2, 'acme', '4400', 'credit', 1190, 'EUR')`)
	require.NoError(t, err)
	acme, other := b.token("acme", tokens.ScopeRead), b.token("other", tokens.ScopeRead)

	var s answers.Statement
	b.send(acme, http.MethodGet, "/api/statements/balance?on=2026-03-31&compare=year", nil).into(t, &s)
	require.Len(t, s.Columns, 2)
	assert.Equal(t, "2025-03-31", s.Columns[1].To)
	assert.Equal(t, []answers.Decimal{"11.90", "0.00"}, s.Lines[0].Amounts)
	s = answers.Statement{}
	b.send(acme, http.MethodGet, "/api/statements/income?from=2026-03-01&to=2026-03-31", nil).into(t, &s)
	assert.Equal(t, "result", s.Lines[len(s.Lines)-1].Kind)
	assert.Equal(t, []answers.Minor{"1190"}, s.Lines[len(s.Lines)-1].AmountsMinor)
	s = answers.Statement{}
	b.send(other, http.MethodGet, "/api/statements/balance", nil).into(t, &s)
	assert.Empty(t, s.Lines)
	var cash answers.CashStatement
	b.send(acme, http.MethodGet, "/api/statements/cash", nil).into(t, &cash)
	assert.Equal(t, answers.CashLine{
		Currency: "EUR", Account: "1000", Name: cash.Lines[0].Name, OpeningMinor: "0", Opening: "0.00", InMinor: "1190", In: "11.90",
		OutMinor: "0", Out: "0.00", ClosingMinor: "1190", Closing: "11.90",
	}, cash.Lines[0])
	var vat answers.VATSummary
	b.send(acme, http.MethodGet, "/api/statements/vat?from=2026-03-01", nil).into(t, &vat)
	assert.Empty(t, vat.Lines)

	for kind, begins := range map[string]string{
		"balance/file": "currency,line,account", "cash/file?format=csv": "currency,line,account", "income/file?format=pdf": "%PDF-",
		"vat/file": "",
	} {
		r := b.send(acme, http.MethodGet, "/api/statements/"+kind, nil)
		require.Equal(t, http.StatusOK, r.status, "%s: %s", kind, r.body)
		assert.Contains(t, string(r.body[:min(len(r.body), 40)]), begins, kind)
	}
	assert.Equal(t, http.StatusUnprocessableEntity,
		b.send(acme, http.MethodGet, "/api/statements/income?compare=year", nil).status)
	assert.Equal(t, http.StatusUnprocessableEntity,
		b.send(acme, http.MethodGet, "/api/statements/income?from=2026-03-02&to=2026-03-01", nil).status)

	path := "/api/years/2026/close"
	assert.Equal(t, http.StatusForbidden, b.send(acme, http.MethodPost, path, object{"to": "2900"}).status)
	operator := b.token("acme", tokens.ScopeOperate)
	var year answers.YearEnd
	b.send(operator, http.MethodPost, path, object{"to": "2900"}).into(t, &year)
	assert.Equal(t, "written", year.Result)
	assert.Equal(t, []answers.YearResult{{Currency: "EUR", AmountMinor: "1190", Amount: "11.90"}}, year.Moved)
	year = answers.YearEnd{}
	b.send(operator, http.MethodPost, path, object{"undo": true}).into(t, &year)
	assert.Equal(t, "deleted", year.Result)
	assert.Equal(t, http.StatusUnprocessableEntity, b.send(operator, http.MethodPost, path, object{"to": "1000"}).status)
	assert.Equal(t, http.StatusUnprocessableEntity, b.send(b.everything, http.MethodPost, path, object{"undo": true}).status)
	assert.Equal(t, http.StatusOK, b.send(b.everything, http.MethodPost, path, object{"orgId": "acme", "undo": true}).status)
	assert.Equal(t, "DIMENSION_NOT_FOUND", b.send(acme, http.MethodGet, "/api/statements/balance?by=Cost", nil).code())
}

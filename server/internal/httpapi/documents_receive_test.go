package httpapi_test

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
)

// An electronic invoice becomes a document that is posted; the same one is the same document, and
// one that cannot be posted is refused with the code that an import has for it.
func TestElectronicInvoicesAreReceived(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, "acme")
	file := func(name string) string {
		t.Helper()
		text, err := os.ReadFile("../../../internal/moving/importer/testdata/" + name)
		require.NoError(t, err)
		return string(text)
	}
	ubl, token := file("invoice.ubl.xml"), b.token("acme", tokens.ScopeEnqueue)
	send := func(query, body string) answer {
		t.Helper()
		return b.send(token, http.MethodPost, "/api/documents?"+query, body)
	}
	var out struct {
		DocumentID, Type, Result, JobID string
		Version                         int64
	}
	a := send("format=ubl", ubl)
	require.Equal(t, http.StatusCreated, a.status, string(a.body))
	a.into(t, &out)
	assert.Equal(t, "380/A-17/DE123", out.DocumentID)
	assert.Equal(t, "inserted", out.Result)
	assert.NotEmpty(t, out.JobID)
	b.work()
	assert.EqualValues(t, 20700, fixture.Balance(t, b.Pool, "acme", "1200", "EUR"))

	a = send("format=ubl", ubl)
	require.Equal(t, http.StatusOK, a.status)
	a.into(t, &out)
	assert.Equal(t, "unchanged", out.Result)
	a = send("format=ubl", strings.ReplaceAll(ubl, "2025-03-31", "2025-04-01"))
	require.Equal(t, http.StatusOK, a.status)
	a.into(t, &out)
	assert.Equal(t, "changed", out.Result)
	assert.EqualValues(t, 2, out.Version)
	a = send("format=cii&direction=in", strings.ReplaceAll(file("invoice.cii.xml"), "A-17", "A-18"))
	require.Equal(t, http.StatusCreated, a.status, string(a.body))
	var direction string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT direction FROM daybook.documents WHERE id LIKE '%A-18%'`).Scan(&direction))
	assert.Equal(t, "in", direction)

	a = send("format=ubl", strings.ReplaceAll(ubl, ">207.00<", ">207.01<"))
	require.Equal(t, http.StatusUnprocessableEntity, a.status)
	assert.Equal(t, "INVALID_DOCUMENT", a.code())
	var problem httpapi.Problem
	a.into(t, &problem)
	require.Len(t, problem.Errors, 1)
	assert.Equal(t, "TOTALS_DIFFER", problem.Errors[0].Code)
	for query, body := range map[string]string{"format=ubl": "<x/>", "format=cii": ubl, "format=facturx": "no PDF"} {
		assert.Equal(t, "INVALID_DOCUMENT", send(query, body).code(), query)
	}
	assert.Equal(t, "INVALID", send("format=csv", ubl).code())
	assert.Equal(t, "BODY_TOO_LARGE", send("format=ubl", strings.Repeat(" ", 8<<20+1)).code())
	a = b.send(b.everything, http.MethodPost, "/api/documents?format=ubl&orgId=unknown", ubl)
	assert.Equal(t, "ORGANIZATION_NOT_FOUND", a.code())
	assert.Equal(t, http.StatusForbidden, b.send(b.token("acme", tokens.ScopeRead), http.MethodPost, "/api/documents?format=ubl", ubl).status)
}

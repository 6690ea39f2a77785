package httpapi_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
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
	assert.Equal(t, "DOCUMENT_REFUSED", a.code())
	var problem httpapi.Problem
	a.into(t, &problem)
	require.Len(t, problem.Errors, 1)
	assert.Equal(t, "TOTALS_DIFFER", problem.Errors[0].Code)
	for query, body := range map[string]string{"format=ubl": "<x/>", "format=cii": ubl, "format=facturx": "no PDF"} {
		assert.Equal(t, "DOCUMENT_REFUSED", send(query, body).code(), query)
	}
	assert.Equal(t, "INVALID", send("format=csv", ubl).code())
	assert.Equal(t, "BODY_TOO_LARGE", send("format=ubl", strings.Repeat(" ", 8<<20+1)).code())
	a = b.send(b.everything, http.MethodPost, "/api/documents?format=ubl&orgId=unknown", ubl)
	assert.Equal(t, "ORGANIZATION_NOT_FOUND", a.code())
	assert.Equal(t, http.StatusForbidden, b.send(b.token("acme", tokens.ScopeRead), http.MethodPost, "/api/documents?format=ubl", ubl).status)
}

// What is received is on record as an import, one of its own or the one that the request names, and
// is taken back with it. The same request again writes nothing, and is no import.
func TestReceivedDocumentsAreTakenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, org := range []string{"acme", "other"} {
		fixture.Organization(t, b.Pool, org)
	}
	text, err := os.ReadFile("../../../internal/moving/importer/testdata/invoice.ubl.xml")
	require.NoError(t, err)
	token := b.token("acme", tokens.ScopeEnqueue, tokens.ScopeRead, tokens.ScopeOperate)
	type received struct {
		Result   string
		ImportID int64
	}
	send := func(token, query, body string) (out received, code string) {
		t.Helper()
		a := b.send(token, http.MethodPost, "/api/documents?format=ubl"+query, body)
		if a.status >= 400 {
			return out, a.code()
		}
		a.into(t, &out)
		return out, ""
	}
	invoice := func(number, day string) string {
		return strings.NewReplacer("A-17", number, "2025-03-31", day).Replace(string(text))
	}
	first, code := send(token, "", invoice("A-17", "2025-03-31"))
	require.Empty(t, code)
	assert.NotZero(t, first.ImportID)
	again, _ := send(token, "", invoice("A-17", "2025-03-31"))
	assert.Equal(t, received{"unchanged", first.ImportID}, again)
	into := fmt.Sprintf("&importId=%d", first.ImportID)
	second, _ := send(token, into, invoice("A-18", "2025-03-31"))
	assert.Equal(t, received{"inserted", first.ImportID}, second)
	changed, code := send(token, into, invoice("A-17", "2025-04-01"))
	require.Empty(t, code)
	assert.Equal(t, received{"changed", first.ImportID}, changed)
	other, _ := send(token, "", invoice("A-18", "2025-04-02"))
	assert.Equal(t, "changed", other.Result)
	assert.Greater(t, other.ImportID, first.ImportID)

	var list answers.ImportList
	b.send(token, http.MethodGet, "/api/imports", nil).into(t, &list)
	require.Len(t, list.Imports, 2)
	assert.EqualValues(t, 1, list.Imports[0].Changed)
	assert.Equal(t, "ubl", list.Imports[1].Format)
	assert.EqualValues(t, 2, list.Imports[1].Inserted)
	assert.EqualValues(t, 1, list.Imports[1].Changed)
	assert.NotNil(t, list.Imports[1].EndedAt)
	assert.NotEmpty(t, list.Imports[1].Actor)

	undo := func(id int64) (undone answers.Undone) {
		t.Helper()
		b.send(token, http.MethodPost, fmt.Sprintf("/api/imports/%d/undo", id), nil).into(t, &undone)
		return undone
	}
	assert.EqualValues(t, 1, undo(other.ImportID).Restored)
	assert.EqualValues(t, 2, undo(first.ImportID).Removed, "what is restored is the first import's again")
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.documents`))
	_, code = send(token, into, invoice("A-19", "2025-03-31"))
	assert.Equal(t, "IMPORT_UNDONE", code)
	_, code = send(b.token("other", tokens.ScopeEnqueue), into, invoice("A-19", "2025-03-31"))
	assert.Equal(t, "IMPORT_NOT_FOUND", code)
	anew, _ := send(token, "", invoice("A-17", "2025-03-31"))
	assert.Equal(t, "inserted", anew.Result)
}

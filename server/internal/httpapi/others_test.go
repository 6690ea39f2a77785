package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
)

// enqueueBodies are what requests are sent with that want the scope enqueue.
var enqueueBodies = map[string]string{
	"/api/jobs/enqueue":            `{"type": "mail", "payload": {}}`,
	"/api/accounting/jobs/enqueue": `{"documentId": "1", "version": 2}`,
	"/api/tasks/enqueue":           `{"type": "mail", "payload": {}}`,
}

// handled reports whether a request got so far that its handler looked for something: one that was
// refused before says nothing about what another organization reaches.
func handled(a answer) bool {
	if a.status < http.StatusMultipleChoices || a.code() != "INVALID" {
		return a.status < http.StatusMultipleChoices || !notHandled[a.code()]
	}
	var p httpapi.Problem
	return json.Unmarshal(a.body, &p) == nil && len(p.Errors) == 0 // else a part of the request is to blame
}

var notHandled = map[string]bool{
	"MALFORMED": true, "NOT_FOUND": true, "METHOD_NOT_ALLOWED": true, "UNSUPPORTED_MEDIA_TYPE": true,
	"CONFIRMATION_REQUIRED": true, "ORGANIZATION_NOT_FOUND": true,
}

// TestAnotherOrganizationsToken sends every request of the document, about what one organization
// has, by a token that may do everything for another one: the answers hold nothing of it, and
// nothing of it is changed. Each request gets to its handler at least once.
func TestAnotherOrganizationsToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const mark = "of acme alone"
	for _, org := range []string{"acme", "other"} {
		fixture.Organization(t, b.Pool, org)
	}
	for _, id := range []string{"1", "2"} {
		d := fixture.Invoice("acme", id, 1000)
		d.Content.Counterparty = mark
		fixture.Ready(t, b.Pool, d)
	}
	b.work()
	importID, group := fixture.OfEverything(t, b.Pool, "acme", mark)
	_, err := books.ClosePeriod(t.Context(), b.Pool, "acme", books.Month(2026, 3), books.CloseOptions{Force: true})
	require.NoError(t, err)
	for _, stmt := range []string{
		`INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('1', 'acme', 'mail', jsonb_build_object('to', $1::text), 'failed', $1, 'TIMEOUT', now(), 1)`,
		`INSERT INTO daybook.bulk_operations (id, org_id, action, mode, states) SELECT '1', 'acme', 'retry', 'now', '{failed}' WHERE $1 <> ''`,
		`UPDATE daybook.organizations SET currency = 'EUR' WHERE id IN ('acme', 'other') AND $1 <> ''`,
		`INSERT INTO daybook.queues (name, owner) VALUES ('bank', $1)`,
		`SELECT queues.enqueue('mail', jsonb_build_object('to', $1::text))`,
	} {
		_, err := b.Pool.Exec(t.Context(), stmt, mark)
		require.NoError(t, err, stmt)
	}
	invoice, err := os.ReadFile("../../../internal/moving/importer/testdata/invoice.ubl.xml")
	require.NoError(t, err)
	of := strings.NewReplacer("{id}", "1", "{documentId}", "1", "{name}", "bank", "{importId}", strconv.FormatInt(importID, 10),
		"{group}", strconv.FormatInt(group, 10), "{startsOn}", "2026-03-01", "{type}", "mail", "{year}", "2026", "{kind}", "balance")
	state := fixture.Kept(t, b.Pool, "acme")
	before := state()
	require.Contains(t, before, mark)
	other := b.limited("other", tokens.Limits{RunByGet: true}, tokens.Scopes()...)
	for _, r := range b.spec.secured() {
		name, address := r.method+" "+r.path, of.Replace(r.path)
		require.NotContains(t, address, "{", "name a value of the parameter")
		got := false
		var codes []string
		for _, query := range []url.Values{{}, {"orgId": {"acme"}}} {
			switch name {
			case "POST /api/documents":
				query.Set("format", "ubl")
			case "GET /api/open-items/statement":
				query.Set("counterparty", mark)
			}
			for _, body := range othersBodies(t, r, string(invoice), group) {
				at := address + "?" + query.Encode()
				a := b.send(other, r.method, strings.TrimSuffix(at, "?"), body)
				// What was asked for is repeated.
				text := strings.Replace(string(a.body), `"counterparty":"`+query.Get("counterparty")+`"`, "", 1)
				assert.NotContains(t, text, mark, "%s %s %v", r.method, at, body)
				assert.Less(t, a.status, http.StatusInternalServerError, "%s %s %v: %s", r.method, at, body, a.body)
				got = got || handled(a)
				codes = append(codes, a.code())
			}
		}
		assert.True(t, got, "%s: no request gets to its handler: %q", name, codes)
		require.Equal(t, before, state(), name)
	}
}

// othersBodies are what a request is tried with: what it is sent with elsewhere, the same of another
// organization, and what other requests take.
func othersBodies(t *testing.T, r route, invoice string, group int64) []any {
	t.Helper()
	if r.method == http.MethodGet || r.method == http.MethodDelete {
		return []any{nil}
	}
	if r.path == "/api/documents" {
		return []any{invoice}
	}
	bodies := []any{nil}
	texts := []string{`{}`, `{"all": true, "mode": "now"}`, `{"mode": "now"}`, `{"all": true}`}
	for _, table := range []map[string]string{operateBodies, enqueueBodies} {
		if text := table[r.path]; text != "" && text != "-" {
			texts = append(texts, text)
		}
	}
	switch r.path {
	case "/api/open-items/reconcile":
		texts = append(texts, `{"documents": ["1", "2"]}`)
	case "/api/open-items/unreconcile":
		texts = append(texts, `{"group": `+strconv.FormatInt(group, 10)+`}`)
	}
	for _, text := range texts {
		for _, of := range []string{"", "orgId", "filter"} {
			body := object{}
			require.NoError(t, json.Unmarshal([]byte(text), &body))
			switch of {
			case "orgId":
				body["orgId"] = "acme"
			case "filter":
				body["filter"] = object{"orgId": "acme"}
			}
			bodies = append(bodies, body)
		}
	}
	return bodies
}

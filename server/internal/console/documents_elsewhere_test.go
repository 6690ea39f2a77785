package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// The page of a document that another system has posted asks what Daybook is to post, behind a
// question, and does what is decided.
func TestDecisionsAboutDocumentsPostedElsewhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fixture.Organization(t, s.Pool, "acme")
	fixture.Ready(t, s.Pool, fixture.Invoice("acme", "doc", 1000), fixture.Invoice("acme", "plain", 1000))
	s.exec(`INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, posted_on, system, next) VALUES ('acme', 'doc', 0, '2027-01-31', 'legacy', 'wait')`)
	s.exec(`UPDATE daybook.accounting_work_queue SET state = 'failed', last_error_code = 'POSTED_ELSEWHERE', last_error = 'decide', finished_at = clock_timestamp() WHERE document_id = 'doc'`)
	const page, action = "/console/documents?org=acme&document=doc", "/console/documents/elsewhere"
	decide := func(document, post string) url.Values {
		return url.Values{"org": {"acme"}, "document": {document}, "post": {post}}
	}

	s.signIn("acme", tokens.ScopeRead)
	assert.NotContains(t, s.see(page), action, "who may only read is shown no button")
	status, _ := s.post(action, decide("doc", "full"))
	assert.Equal(t, http.StatusForbidden, status)

	s.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	body := s.see(page)
	assert.Contains(t, body, `<details class="confirm"><summary class="quiet">Post in full…`)
	assert.Contains(t, body, "Post nothing")
	assert.NotContains(t, body, "Post the difference", "the entries there are not known")
	assert.NotContains(t, s.see("/console/documents?org=acme&document=plain"), action)
	status, body = s.post(action, decide("doc", "difference"))
	assert.GreaterOrEqual(t, status, 400, body)
	status, _ = s.post(action, decide("plain", "full"))
	assert.Equal(t, http.StatusNotFound, status)
	require.Zero(t, fixture.Count(t, s.Pool, `SELECT count(*) FROM daybook.posted_elsewhere WHERE next <> 'wait'`))

	status, body = s.post(action, decide("doc", "full"))
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "Decided: the document is posted in full.")
	assert.Equal(t, 1, fixture.Count(t, s.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE document_id = 'doc' AND state = 'pending'`))
	assert.Equal(t, 1, fixture.Count(t, s.Pool,
		`SELECT count(*) FROM daybook.actions WHERE action = 'accounting.elsewhere' AND outcome = 'done' AND subject = 'doc'`))
}

// The page of a document for which an open item stands leads to the item, and has what is open of it.
func TestADocumentShowsTheOpenItemThatStandsForIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	fixture.Organization(t, s.Pool, "acme")
	s.exec(`UPDATE daybook.accounts SET role = 'receivable' WHERE code = '1200'`)
	fixture.Ready(t, s.Pool, fixture.Invoice("acme", "opening:1200/17/", 1000), fixture.Invoice("acme", "old-17", 1000))
	s.exec(`INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, posted_on, system, next, open_item) VALUES ('acme', 'old-17', 0, '2025-12-31', 'opening', 'wait', 'opening:1200/17/')`)
	s.work()
	s.signIn("acme", tokens.ScopeRead)
	sees(t, s.see("/console/documents?org=acme&document=old-17"), "document=opening%3A1200%2F17%2F", "is open here as", `id="open"`,
		`data-label="Open">11.90</td>`)
}

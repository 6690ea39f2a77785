package console_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// TestAPostedDocumentOfTheApplicationsOwnTables: its page shows where it is, its job, its impacts
// and their entries; the list and the search find it, also when its job was cleaned up.
func TestAPostedDocumentOfTheApplicationsOwnTables(t *testing.T) {
	t.Parallel()
	s := books(t)
	s.write(fixture.Invoice("acme", "invoice:42", 123456))
	s.work()
	// As a source of the application's leaves it: the ledger has the impact, and daybook.documents no
	// row.
	s.exec(`DELETE FROM daybook.documents`)
	s.exec(`UPDATE daybook.organizations SET source = 'shop' WHERE id = 'acme'`)

	const page = "/console/documents?document=invoice%3A42&org=acme"
	body := s.see(page)
	for _, want := range []string{
		"<code>shop</code>", "completed", "posted", "Posts version 1", "1\u202f469.12", "4400",
		"rule set version 1",
	} {
		assert.Contains(t, body, want)
	}
	assert.Contains(t, s.see("/console/search?q=invoice:42"), "<h1>Document invoice:42", "the job's page")

	s.exec(`DELETE FROM daybook.accounting_work_queue`)
	body = s.see(page)
	assert.Contains(t, body, "none: it was never enqueued, or its job was removed")
	assert.Contains(t, body, "1\u202f469.12")
	assert.Contains(t, s.see("/console/documents?org=acme&id=invoice:"), "invoice:42")
	assert.Contains(t, s.see("/console/search?q=invoice:42"), "<code>shop</code>", "one that is found is shown at once")
}

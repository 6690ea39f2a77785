package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// The page of a period lists what is open, each row with where it is mended, closes the period, and
// shows what was posted of it afterwards.
func TestAMonthIsClosedOnItsPage(t *testing.T) {
	t.Parallel()
	s := books(t, tokens.ScopeOperate)
	s.exec(`UPDATE daybook.accounts SET role = 'suspense' WHERE code = '1200'`)
	sees(t, s.done("/console/periods/add", url.Values{"span": {"2026"}}), `/console/period?from=2026-03-01&amp;org=acme`)
	s.write(fixture.Invoice("acme", "posted", 1000), fixture.Unbalanced("acme", "broken"))
	s.work()
	s.write(fixture.Invoice("acme", "waits", 1000))

	const page = "/console/period?org=acme&from=2026-03-01"
	sees(t, s.see(page), "not ready to be closed",
		"Documents that failed", "state=failed", "document=broken", "Mend what each failed for",
		"Documents that wait to be posted", "document=waits",
		"Open periods before it", "from=2026-01-01", "from=2026-02-01",
		"Suspense account with a balance", "account=1200", "11.90 EUR", "required")
	s.exec(`DELETE FROM daybook.accounting_work_queue WHERE document_id = 'broken'`)
	s.work()
	for _, from := range []string{"2026-01-01", "2026-02-01"} {
		s.done("/console/periods/close", url.Values{"from": {from}})
	}
	sees(t, s.see(page), "ready to be closed", "Close…")
	s.done("/console/periods/close", url.Values{"from": {"2026-03-01"}})
	s.done("/console/periods/policy", url.Values{"policy": {"first_open_day"}})
	s.write(fixture.Invoice("acme", "late", 5000))
	s.work()
	sees(t, s.see(page), "What is open now", "Posted after it was closed", "document=late", "on a later day", "2026-04-01",
		"59.50 EUR", "Closings", `data-label="Impacts">2</td>`, "no</td>")

	// More than a page has are on the next ones.
	late := make([]*models.Document, 60)
	for i := range late {
		late[i] = fixture.Invoice("acme", fmt.Sprintf("late-%02d", i), 100)
	}
	s.write(late...)
	s.work()
	shown := map[string]bool{}
	for address := page; address != ""; {
		body := s.see(address)
		for _, m := range regexp.MustCompile(`document=(late[-0-9]*)`).FindAllStringSubmatch(body, -1) {
			shown[m[1]] = true
		}
		address = ""
		if m := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(body); m != nil {
			address = html.UnescapeString(m[1])
		}
	}
	assert.Len(t, shown, 61)

	s.signIn("acme", tokens.ScopeRead)
	sees(t, s.see(page), "need the scope <code>operate</code>")
	for address, status := range map[string]int{
		"/console/period?org=acme": http.StatusUnprocessableEntity, "/console/period?org=acme&from=2027-03-01": http.StatusNotFound,
		"/console/period?org=acme&from=x": http.StatusUnprocessableEntity,
		page + "&after=x":                 http.StatusUnprocessableEntity,
	} {
		got, _ := s.get(address)
		assert.Equal(t, status, got, address)
	}
}

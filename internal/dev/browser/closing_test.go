//go:build browser

package browser_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// TestCloseAMonth is what an accountant does at the end of a month: from the closing list to the
// document that failed, its rules mended and the document posted, back to the list, and the month
// closed.
func TestCloseAMonth(t *testing.T) {
	t.Parallel()
	b := openWorking(t)
	tip := fixture.Invoice("acme", "tip-1", 1000)
	tip.Type = "tip"
	fixture.Ready(t, b.Pool, tip, fixture.Invoice("acme", "INV-1", 1000))
	require.Eventually(t, func() bool { return b.state("tip-1") == models.JobFailed && b.state("INV-1") == models.JobCompleted },
		patience, 50*time.Millisecond)
	b.exec(`INSERT INTO daybook.periods (org_id, starts_on, ends_on) VALUES ('acme', '2026-03-01', '2026-03-31'), ('acme', '2026-04-01', '2026-04-30')`)

	b.signIn("acme", tokens.ScopeRead, tokens.ScopeOperate)
	b.visit("periods?org=acme")
	b.click("2026-03-01")
	b.see("not ready to be closed")
	b.see("Mend what each failed for")
	b.click("tip-1")
	b.see("no rule matches the document")
	b.click("Mend the rules")
	rules := string(sample.Rules())
	b.fill("textarea[name=source]",
		strings.Replace(rules, saleRule, `(doc.type == "invoice" || doc.type == "tip") && doc.direction == "out"`, 1))
	b.click("Preview")
	b.click("Store and activate…")
	b.click("Activate")
	b.see("is active")
	require.Eventually(t, func() bool { return b.state("tip-1") == models.JobCompleted }, patience, 50*time.Millisecond)

	const page = "period?org=acme&from=2026-03-01"
	b.visit(page)
	b.see("ready to be closed")
	b.click("Close…")
	b.click("Close")
	b.see("The period that begins on 2026-03-01 is closed")
	b.see("Closings")
	b.as(390, 844, "light")
	b.fits(page)
	b.wholeWords(page)
	b.accessible(page)
}

package queuetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/migrations"
)

// RequireSound audits the ledger and the queues as workers.Audit does, and fails the test with what
// is wrong: a document of these sources that is not posted as it stands now, an impact that does
// not balance, and so on.
func RequireSound(tb testing.TB, pool *pgxpool.Pool, sources accounting.Sources) {
	tb.Helper()
	requirePool(tb, pool)
	newest, err := migrations.Newest()
	if err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	report, err := ledger.Audit(tb.Context(), pool, sources,
		audit.Options{Guards: audit.GuardsOf(migrations.Schema()), Newest: newest})
	if err != nil {
		tb.Fatalf("queuetest: audit: %v", err)
	}
	if report.Wrong() == 0 {
		return
	}
	var wrong strings.Builder
	for _, check := range report.Checks {
		for _, f := range check.Findings {
			fmt.Fprintf(&wrong, "\n  %s  org %s  document %s  %s", check.Kind, f.OrgID, f.DocumentID, f.Detail)
		}
	}
	tb.Fatalf("queuetest: the audit found %d things that are wrong:%s", report.Wrong(), wrong.String())
}

package daybooktest_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// migrated counts how often the application's schema was made.
var migrated atomic.Int32

func migrate(ctx context.Context, databaseURL string) error {
	migrated.Add(1)
	return daybooktest.SQL(`CREATE TABLE customers (name text)`, `INSERT INTO customers VALUES ('Ada')`)(ctx, databaseURL)
}

func TestMain(m *testing.M) {
	code := daybooktest.Run(m, daybooktest.Options{Migrate: migrate})
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "leaked goroutines:", err)
		code = 1
	}
	os.Exit(code)
}

func TestEachTestHasTheApplicationsSchemaToItself(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := daybooktest.New(t)
			require.NoError(t, migrations.Verify(t.Context(), db.Pool))
			var customers int
			require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM public.customers`).Scan(&customers))
			assert.Equal(t, 1, customers)
			_, err := db.Pool.Exec(t.Context(), `INSERT INTO customers VALUES ('Grace')`)
			require.NoError(t, err)
			assert.Equal(t, int32(1), migrated.Load(), "the application's migrations run once a test program")
		})
	}
}

// write writes an invoice of 100.00 and 19 % of tax into daybook.documents.
func write(tb testing.TB, pool *pgxpool.Pool, org, id string, payable int64) {
	tb.Helper()
	err := pgx.BeginFunc(tb.Context(), pool, func(tx pgx.Tx) error {
		content := models.Content{
			Lines: []models.Line{{Kind: "item", Net: 10000, Rate: models.MustRate("19"), Category: "VAT"}},
			Taxes: []models.Tax{{Category: "VAT", Rate: models.MustRate("19"), Base: 10000, Amount: 1900}}, Total: 11900,
			Payable: payable,
		}
		if _, err := tx.Exec(tb.Context(), `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content) VALUES ($1, $2, 'invoice', 'out', 'EUR', '2026-01-31', $3)`,
			org, id, content); err != nil {
			return err
		}
		_, err := queue.MarkDocumentReady(tb.Context(), tx, queue.Document{OrgID: org, ID: id})
		return err
	})
	if err != nil {
		tb.Fatalf("write an invoice: %v", err)
	}
}

func TestDocumentsArePostedInProcess(t *testing.T) {
	t.Parallel()
	db := daybooktest.New(t)
	daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "acme"})
	write(t, db.Pool, "acme", "inv-1", 11900)
	queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{}).RequireCompleted(t)
	assert.Equal(t, map[string]int64{"1200": 11900, "3800": -1900, "4400": -10000},
		daybooktest.Balances(t, db.Pool, "acme", "EUR"))
	assert.Empty(t, daybooktest.Balances(t, db.Pool, "acme", "USD"))
	queuetest.RequireSound(t, db.Pool, nil)
}

func TestAnOrganizationHasItsOwnAccountsRulesSourceAndHooks(t *testing.T) {
	t.Parallel()
	db := daybooktest.New(t)
	daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{
		ID: "acme", Source: "billing", Hooks: []string{"billing-posted"},
		Accounts: []models.Account{
			{Code: "1", Name: "Receivables", Type: models.AccountAsset},
			{Code: "2", Name: "Sales", Type: models.AccountIncome},
		},
		Rules: []byte(`ruleset: own
rules:
  - id: sale
    when: doc.type == "invoice"
    lines:
      - {id: customer, account: "1", side: debit, amount: doc.total}
      - {id: sales, account: "2", side: credit, amount: doc.total}
`),
	})
	var source string
	var hooks []string
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT source, hooks FROM daybook.organizations WHERE id = 'acme'`).Scan(&source, &hooks))
	assert.Equal(t, "billing", source)
	assert.Equal(t, []string{"billing-posted"}, hooks)
}

// failing stands for a test that fails.
type failing struct {
	testing.TB
	message string
}

// Fatalf ends the goroutine, as a test's does.
func (f *failing) Fatalf(format string, args ...any) {
	f.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure is what f fails a test with; empty when it does not.
func failure(t *testing.T, f func(tb *failing)) string {
	t.Helper()
	tb := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(tb)
	}()
	<-done
	return tb.message
}

func TestWrongRulesFailTheTest(t *testing.T) {
	t.Parallel()
	db := daybooktest.New(t)
	message := failure(t, func(tb *failing) {
		daybooktest.AddOrganization(tb, db.Pool, daybooktest.Organization{ID: "acme", Rules: []byte("rules: 7")})
	})
	assert.Contains(t, message, "daybooktest: organization acme: rules: ")
}

func TestWhatIsWrongInTheLedgerFailsTheTest(t *testing.T) {
	t.Parallel()
	db := daybooktest.New(t)
	daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "acme"})
	write(t, db.Pool, "acme", "inv-1", 11900)
	_, err := db.Pool.Exec(t.Context(), `DELETE FROM daybook.accounting_work_queue`)
	require.NoError(t, err)
	message := failure(t, func(tb *failing) { queuetest.RequireSound(tb, db.Pool, nil) })
	assert.Contains(t, message, "document inv-1")
}

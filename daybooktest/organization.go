package daybooktest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/dev/testdb"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// Organization is what AddOrganization makes.
type Organization struct {
	// ID is the organization's id, and its name.
	ID string
	// Accounts are its chart of accounts; nil: SampleAccounts.
	Accounts []models.Account
	// Rules are the source of its rule set, as `daybook rules apply` reads it; nil: SampleRules.
	Rules []byte
	// Source is where its documents are read, as queue.SetSource puts on record; empty: the default,
	// daybook.documents.
	Source string
	// Hooks are told of its postings, as queue.SetHooks puts on record; nil: none.
	Hooks []string
}

// SampleAccounts is the chart of accounts that Daybook's samples have.
func SampleAccounts() []models.Account { return sample.Chart() }

// SampleRules is the source of a rule set for SampleAccounts. It posts invoices, credit notes,
// bills, payments, refunds, payouts and deliveries.
func SampleRules() []byte { return sample.Rules() }

// AddOrganization makes an organization whose documents can be posted. It fails the test if the
// accounts or the rules are wrong.
func AddOrganization(tb testing.TB, pool *pgxpool.Pool, o Organization) {
	tb.Helper()
	requirePool(tb, pool)
	testdb.AddOrganization(tb, pool, testdb.Organization(o))
}

// Balances are an organization's accounts with what was debited to each, less what was credited, in
// minor units of the currency. Accounts that come to zero are left out.
func Balances(tb testing.TB, pool *pgxpool.Pool, org, currency string) map[string]int64 {
	tb.Helper()
	requirePool(tb, pool)
	trial, err := ledgerdb.ReadTrial(tb.Context(), pool, ledgerdb.BalanceFilter{OrgID: org, Currency: currency})
	if err != nil {
		tb.Fatalf("daybooktest: %v", err)
	}
	balances := map[string]int64{}
	for _, b := range trial.Accounts {
		if !b.Closing.IsInt64() {
			tb.Fatalf("daybooktest: account %s of organization %s: %s %s is more than 64 bits hold", b.Account, org,
				b.Closing, b.Currency)
		}
		if b.Closing.Sign() != 0 {
			balances[b.Account] = b.Closing.Int64()
		}
	}
	return balances
}

// requirePool fails the test when it has no pool.
func requirePool(tb testing.TB, pool *pgxpool.Pool) {
	tb.Helper()
	if pool == nil {
		tb.Fatalf("daybooktest: the pool is nil: pass DB.Pool of New")
	}
}

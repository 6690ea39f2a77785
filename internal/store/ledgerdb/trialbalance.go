package ledgerdb

import (
	"context"
	"math/big"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// CountImpacts counts the organizations' documents whose last impact posts.
func CountImpacts(ctx context.Context, q store.Querier) (map[string]int64, error) {
	const stmt = `
SELECT i.org_id, count(*)
  FROM daybook.impacts i
 WHERE i.kind = 'post'
   AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.seq = i.seq + 1)
 GROUP BY i.org_id`
	counts, err := store.Pairs[string, int64](ctx, q, stmt)
	return counts, store.Wrap("count impacts", err)
}

// sums is balances of all entries, whatever became of their impacts.
func sums(ctx context.Context, tx pgx.Tx, f BalanceFilter) ([]SpanBalance, error) {
	const stmt = `
WITH sums AS (
    SELECT org_id, account_code, currency,
           coalesce(sum(amount_minor) FILTER (WHERE side = 'debit'), 0) AS debit,
           coalesce(sum(amount_minor) FILTER (WHERE side = 'credit'), 0) AS credit
      FROM daybook.entries
     WHERE (@org = '' OR org_id = @org) AND (@account = '' OR account_code = @account) AND (@currency = '' OR currency = @currency)
     GROUP BY org_id, account_code, currency
)
SELECT s.account_code, coalesce(min(a.name), ''), coalesce(min(a.type)::text, ''), s.currency, '0', sum(s.debit)::text, sum(s.credit)::text
  FROM sums s
  LEFT JOIN daybook.accounts a ON a.org_id = s.org_id AND a.code = s.account_code
 GROUP BY s.currency, s.account_code
 ORDER BY s.currency, s.account_code`
	return store.Collect(ctx, tx, scanBalance, stmt, f.args(store.Args{}))
}

// Trial is a trial balance: what was posted, by currency and account, and the totals of each
// currency.
type Trial struct {
	Accounts []SpanBalance
	Totals   []SpanBalance
	// Balanced says that debits equal credits in each currency, before, in and after the span.
	Balanced bool
}

// ReadTrial is the trial balance of what Balances sums.
func ReadTrial(ctx context.Context, db store.Beginner, f BalanceFilter) (Trial, error) {
	balances, err := Balances(ctx, db, f)
	return AddUp(balances), err
}

// AddUp sums balances, which come in the order of their currencies.
func AddUp(balances []SpanBalance) Trial {
	t := Trial{Accounts: balances, Balanced: true}
	for _, b := range balances {
		if len(t.Totals) == 0 || t.Totals[len(t.Totals)-1].Currency != b.Currency {
			t.Totals = append(t.Totals,
				SpanBalance{
					Currency: b.Currency, Opening: new(big.Int), Debit: new(big.Int), Credit: new(big.Int),
					Closing: new(big.Int),
				})
		}
		total := t.Totals[len(t.Totals)-1]
		total.Opening.Add(total.Opening, b.Opening)
		total.Debit.Add(total.Debit, b.Debit)
		total.Credit.Add(total.Credit, b.Credit)
		total.Closing.Add(total.Closing, b.Closing)
	}
	for _, total := range t.Totals {
		t.Balanced = t.Balanced && total.Opening.Sign() == 0 && total.Closing.Sign() == 0
	}
	return t
}

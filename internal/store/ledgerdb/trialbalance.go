package ledgerdb

import (
	"context"
	"errors"
	"math/big"

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
	counts := map[string]int64{}
	var org string
	var n int64
	err := store.Each(ctx, q, []any{&org, &n}, func() error {
		counts[org] = n
		return nil
	}, stmt)
	return counts, store.Wrap("count impacts", err)
}

// sums adds up all entries by currency and account, in that order: of one organization or, with the empty id, of all together; in one currency or, with the
// empty code, in each. Where organizations give an account different names or types, the first in order is returned. Opening balances are 0.
func sums(ctx context.Context, q store.Querier, org, currency string) ([]SpanBalance, error) {
	const stmt = `
WITH sums AS (
    SELECT org_id, account_code, currency,
           coalesce(sum(amount_minor) FILTER (WHERE side = 'debit'), 0) AS debit,
           coalesce(sum(amount_minor) FILTER (WHERE side = 'credit'), 0) AS credit
      FROM daybook.entries
     WHERE ($1 = '' OR org_id = $1) AND ($2 = '' OR currency = $2)
     GROUP BY org_id, account_code, currency
)
SELECT s.account_code, coalesce(min(a.name), ''), coalesce(min(a.type)::text, ''), s.currency, sum(s.debit)::text, sum(s.credit)::text
  FROM sums s
  LEFT JOIN daybook.accounts a ON a.org_id = s.org_id AND a.code = s.account_code
 GROUP BY s.currency, s.account_code
 ORDER BY s.currency, s.account_code`
	var balances []SpanBalance
	var b SpanBalance
	var debit, credit string
	err := store.Each(ctx, q, []any{&b.Account, &b.Name, &b.Type, &b.Currency, &debit, &credit}, func() error {
		var badDebit, badCredit error
		b.Debit, badDebit = WholeNumber(debit)
		b.Credit, badCredit = WholeNumber(credit)
		if err := errors.Join(badDebit, badCredit); err != nil {
			return err
		}
		b.Opening, b.Closing = new(big.Int), new(big.Int).Sub(b.Debit, b.Credit)
		balances = append(balances, b)
		return nil
	}, stmt, org, currency)
	return balances, store.Wrap("read the trial balance", err)
}

// Trial is a trial balance: what was posted, by currency and account, and the totals of each currency.
type Trial struct {
	Accounts []SpanBalance
	Totals   []SpanBalance
	// Balanced says that debits equal credits in each currency, before, in and after the span.
	Balanced bool
}

// ReadTrial sums the entries of f. Without a first or last day it takes the entries alone, whatever became of their impacts.
func ReadTrial(ctx context.Context, q store.Querier, f BalanceFilter) (Trial, error) {
	if !f.From.IsZero() || !f.To.IsZero() {
		balances, err := Balances(ctx, q, f)
		return AddUp(balances), err
	}
	balances, err := sums(ctx, q, f.OrgID, f.Currency)
	return AddUp(balances), err
}

// AddUp sums balances, which come in the order of their currencies.
func AddUp(balances []SpanBalance) Trial {
	t := Trial{Accounts: balances, Balanced: true}
	for _, b := range balances {
		if len(t.Totals) == 0 || t.Totals[len(t.Totals)-1].Currency != b.Currency {
			t.Totals = append(t.Totals, SpanBalance{Currency: b.Currency, Opening: new(big.Int), Debit: new(big.Int), Credit: new(big.Int), Closing: new(big.Int)})
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

package ledgerdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// BalanceFilter says what to sum. The zero value of each field means any; the days are posting
// dates.
type BalanceFilter struct {
	OrgID    string
	Account  string
	Currency string
	// From is the first day of the span: what was posted before makes up the opening balance. None:
	// from the beginning.
	From models.Date
	// To is the last day of the span. None: to the end.
	To models.Date
}

// args adds what to sum to the arguments of a statement.
func (f BalanceFilter) args(a store.Args) store.Args {
	a["org"], a["account"], a["currency"], a["from"], a["to"] = f.OrgID, f.Account, f.Currency, timeOf(f.From),
		timeOf(f.To)
	return a
}

// SpanBalance is how an account stood before and after a span of days, and what was posted in it,
// in minor units of the currency. Balances are debits less credits. The sums may be greater than 64
// bits hold.
type SpanBalance struct {
	Account  string
	Name     string
	Type     models.AccountType
	Currency string
	// Opening is the balance before the first day, Closing the one after the last.
	Opening *big.Int
	// Debit and Credit were posted in the span.
	Debit   *big.Int
	Credit  *big.Int
	Closing *big.Int
}

// Balances sums entries by currency and account, in that order, in a span of posting dates.
// Accounts of the same code of several organizations are added up; where these give it different
// names or types, the first in order is returned. An account that was never posted to by the end of
// the span is left out. Of all accounts of one organization the sums that are kept of closed days are
// read in place of their entries. Otherwise, without a first or last day, the entries alone are read,
// whatever became of their impacts.
func Balances(ctx context.Context, db store.Beginner, f BalanceFilter) (list []SpanBalance, err error) {
	err = store.ReadSnapshot(ctx, db, func(tx pgx.Tx) error {
		list, err = balances(ctx, tx, f)
		return err
	})
	return list, store.Wrap("read balances", err)
}

func balances(ctx context.Context, tx pgx.Tx, f BalanceFilter) ([]SpanBalance, error) {
	if f.OrgID != "" && f.Account == "" {
		return keptBalances(ctx, tx, f)
	}
	if f.From.IsZero() && f.To.IsZero() {
		return sums(ctx, tx, f)
	}
	const stmt = `
WITH sums AS (
    SELECT e.org_id, e.account_code, e.currency,
           coalesce(sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) FILTER (WHERE i.posting_date < @from), 0) AS opening,
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'debit' AND (i.posting_date < @from) IS NOT TRUE), 0) AS debit,
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'credit' AND (i.posting_date < @from) IS NOT TRUE), 0) AS credit
      FROM daybook.entries e
      JOIN daybook.impacts i ON i.id = e.impact_id
     WHERE (@org = '' OR e.org_id = @org) AND (@account = '' OR e.account_code = @account) AND (@currency = '' OR e.currency = @currency)
       AND (i.posting_date > @to) IS NOT TRUE
     GROUP BY e.org_id, e.account_code, e.currency
)
SELECT s.account_code, coalesce(min(a.name), ''), coalesce(min(a.type)::text, ''), s.currency,
       sum(s.opening)::text, sum(s.debit)::text, sum(s.credit)::text
  FROM sums s
  LEFT JOIN daybook.accounts a ON a.org_id = s.org_id AND a.code = s.account_code
 GROUP BY s.currency, s.account_code
 ORDER BY s.currency, s.account_code`
	return store.Collect(ctx, tx, scanBalance, stmt, f.args(store.Args{}))
}

// keptBalances is balances of all accounts of an organization, with the sums that are kept.
func keptBalances(ctx context.Context, tx pgx.Tx, f BalanceFilter) ([]SpanBalance, error) {
	const stmt = `
WITH sums AS (
    SELECT s.account_code, s.currency, s.debit - s.credit AS opening, 0 AS debit, 0 AS credit
      FROM daybook.account_sums(@org, NULL, @from::date - 1) s WHERE @from::date IS NOT NULL
     UNION ALL
    SELECT s.account_code, s.currency, 0, s.debit, s.credit FROM daybook.account_sums(@org, @from, @to) s
)
SELECT s.account_code, coalesce(min(a.name), ''), coalesce(min(a.type)::text, ''), s.currency,
       sum(s.opening)::text, sum(s.debit)::text, sum(s.credit)::text
  FROM sums s
  LEFT JOIN daybook.accounts a ON a.org_id = @org AND a.code = s.account_code
 WHERE @currency = '' OR s.currency = @currency
 GROUP BY s.currency, s.account_code
 ORDER BY s.currency, s.account_code`
	args := f.args(store.Args{})
	delete(args, "account")
	return store.Collect(ctx, tx, scanBalance, stmt, args)
}

func scanBalance(row pgx.CollectableRow) (SpanBalance, error) {
	var b SpanBalance
	var opening, debit, credit string
	if err := row.Scan(&b.Account, &b.Name, &b.Type, &b.Currency, &opening, &debit, &credit); err != nil {
		return b, err
	}
	var badOpening, badDebit, badCredit error
	b.Opening, badOpening = WholeNumber(opening)
	b.Debit, badDebit = WholeNumber(debit)
	b.Credit, badCredit = WholeNumber(credit)
	if err := errors.Join(badOpening, badDebit, badCredit); err != nil {
		return b, err
	}
	b.Closing = new(big.Int).Add(b.Opening, b.Debit)
	b.Closing.Sub(b.Closing, b.Credit)
	return b, nil
}

// LedgerLine is an entry to an account, and the account's balance after it.
type LedgerLine struct {
	EntryLine
	// Balance is the account's in the entry's currency, debits less credits, in minor units.
	Balance *big.Int
}

// AccountLedger is what was posted to an account in a span of days.
type AccountLedger struct {
	// Balances has a row a currency, of the whole span, also of lines past the limit.
	Balances []SpanBalance
	// Lines are in the order of their posting dates, and of their posting on a day.
	Lines []LedgerLine
	// More says that there are lines past the limit.
	More bool
}

// LedgerPlace is the place of a line in an account's ledger: a page begins behind it. The zero
// value is before the first line.
type LedgerPlace struct {
	PostingDate models.Date `json:"d"`
	ImpactID    int64       `json:"i"`
	LineNo      int         `json:"l"`
}

// args adds the place to the arguments of a statement.
func (p LedgerPlace) args(a store.Args) store.Args {
	a["day"], a["impact"], a["line"] = timeOf(p.PostingDate), p.ImpactID, p.LineNo
	return a
}

// Place is the line's.
func (l *LedgerLine) Place() LedgerPlace {
	return LedgerPlace{PostingDate: l.PostingDate, ImpactID: l.ImpactID, LineNo: l.LineNo}
}

// ReadAccountLedger is ReadAccountLedgerAfter from the first line on.
func ReadAccountLedger(ctx context.Context, pool *pgxpool.Pool, f BalanceFilter, limit int) (AccountLedger, error) {
	return ReadAccountLedgerAfter(ctx, pool, f, LedgerPlace{}, limit)
}

// ReadAccountLedgerAfter reads what was posted to one account of one organization behind a place,
// at most limit lines (0: DefaultLimit), with the running balance. All of it is of one moment: the
// balance counts what was posted before the place by then.
func ReadAccountLedgerAfter(ctx context.Context, pool *pgxpool.Pool, f BalanceFilter, after LedgerPlace,
	limit int,
) (AccountLedger, error) {
	limit = cmp.Or(max(limit, 0), store.DefaultLimit)
	var l AccountLedger
	running := map[string]*big.Int{}
	err := store.ReadSnapshot(ctx, pool, func(tx pgx.Tx) error {
		var err error
		if l.Balances, err = balances(ctx, tx, f); err != nil {
			return err
		}
		for _, b := range l.Balances {
			running[b.Currency] = b.Opening
		}
		if !after.PostingDate.IsZero() {
			if err = addBefore(ctx, tx, f, after, running); err != nil {
				return err
			}
		}
		l.Lines, err = ledgerLines(ctx, tx, f, after, limit+1)
		return err
	})
	if err != nil {
		return l, store.Wrap("read the account's ledger", err)
	}
	if len(l.Lines) > limit {
		l.Lines, l.More = l.Lines[:limit], true
	}
	for i := range l.Lines {
		line := &l.Lines[i]
		amount := big.NewInt(line.Amount)
		if line.Side == models.Credit {
			amount.Neg(amount)
		}
		running[line.Currency] = amount.Add(amount, running[line.Currency])
		line.Balance = amount
	}
	return l, nil
}

// addBefore adds what was posted in the span up to a place to the running balances.
func addBefore(ctx context.Context, tx pgx.Tx, f BalanceFilter, after LedgerPlace, running map[string]*big.Int) error {
	const stmt = `
SELECT e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)::text
  FROM daybook.entries e
  JOIN daybook.impacts i ON i.id = e.impact_id
 WHERE e.org_id = @org AND e.account_code = @account AND (@currency = '' OR e.currency = @currency)
   AND (i.posting_date < @from) IS NOT TRUE AND (i.posting_date > @to) IS NOT TRUE
   AND (i.posting_date, e.impact_id, e.line_no) <= (@day::date, @impact, @line)
 GROUP BY e.currency`
	var currency, text string
	return store.Each(ctx, tx, []any{&currency, &text}, func() error {
		sum, err := WholeNumber(text)
		if err == nil {
			running[currency] = sum.Add(sum, running[currency])
		}
		return err
	}, stmt, after.args(f.args(store.Args{})))
}

func ledgerLines(ctx context.Context, tx pgx.Tx, f BalanceFilter, after LedgerPlace, limit int) ([]LedgerLine, error) {
	const stmt = `
SELECT e.impact_id, e.line_no, e.side, e.amount_minor, e.currency, e.rule_line_id, e.document_line,
       i.document_id, i.document_version, i.kind, i.document_date, i.posting_date, i.rule_set_version, i.rule_id, i.epoch,
       i.job_id, i.attempt, i.workflow_run_id
  FROM daybook.entries e
  JOIN daybook.impacts i ON i.id = e.impact_id
 WHERE e.org_id = @org AND i.org_id = @org AND e.account_code = @account AND (@currency = '' OR e.currency = @currency)
   AND (@from::date IS NULL OR i.posting_date >= @from) AND (@to::date IS NULL OR i.posting_date <= @to)
   AND (@day::date IS NULL OR i.posting_date >= @day AND (i.posting_date, i.id, e.line_no) > (@day::date, @impact, @line))
 ORDER BY i.posting_date, i.id, e.line_no
 LIMIT @most`
	return store.Collect(ctx, tx, func(row pgx.CollectableRow) (LedgerLine, error) {
		var l LedgerLine
		l.OrgID, l.Account = f.OrgID, f.Account
		err := row.Scan(&l.ImpactID, &l.LineNo, &l.Side, &l.Amount, &l.Currency, &l.RuleLineID, &l.DocumentLine,
			&l.DocumentID, &l.DocumentVersion, &l.Kind, &l.DocumentDate, &l.PostingDate, &l.RuleSetVersion, &l.RuleID,
			&l.Epoch,
			&l.JobID, &l.Attempt, &l.WorkflowRunID)
		return l, err
	}, stmt, after.args(f.args(store.Args{"most": limit})))
}

// timeOf returns nil for no date.
func timeOf(d models.Date) *time.Time {
	if d.IsZero() {
		return nil
	}
	return new(d.Time())
}

// WholeNumber reads a sum that PostgreSQL wrote as text.
func WholeNumber(text string) (*big.Int, error) {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, fmt.Errorf("%q is not a whole number of minor units", text)
	}
	return n, nil
}

package ledgerdb

import (
	"cmp"
	"context"
	"errors"
	"math/big"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// StatementFilter says what a statement counts. The days are posting dates.
type StatementFilter struct {
	OrgID string
	// Columns are the spans of days; at least one.
	Columns []models.StatementColumn
	// By is the dimension whose values become the columns; then there is one span.
	By string
	// WhereKey is the dimension of which only entries with WhereValue count; empty: all do.
	WhereKey, WhereValue string
}

// placedLine is a line of one column and its place in the statement.
type placedLine struct {
	models.StatementLine
	place, value string
	amount       *big.Int
}

// ReadStatement reads a balance sheet or an income statement of one moment. A line that is zero in
// every column is left out, unless it is a total or the result.
func ReadStatement(ctx context.Context, db store.Beginner, kind models.StatementKind, f StatementFilter,
) (models.Statement, error) {
	s := models.Statement{
		Kind: kind, OrgID: f.OrgID, By: f.By, WhereKey: f.WhereKey, WhereValue: f.WhereValue, Columns: f.Columns,
	}
	lines := make([][]placedLine, len(f.Columns))
	err := store.ReadSnapshot(ctx, db, func(tx pgx.Tx) (err error) {
		for i, column := range f.Columns {
			if lines[i], err = statementLines(ctx, tx, kind, f, column); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s, store.Wrap("read the statement", err)
	}
	if f.By != "" {
		s.Columns, lines = splitColumns(f.Columns[0], lines[0])
		if n := len(s.Columns); n > maxStatementColumns {
			return s, store.Invalid("the dimension %s has %d values, and a statement at most %d columns", f.By, n-1, maxStatementColumns)
		}
	}
	s.Lines = joinColumns(lines)
	return s, nil
}

// maxStatementColumns bounds the columns of a statement that is split.
const maxStatementColumns = 1000

// statementLines reads the lines of a column.
func statementLines(ctx context.Context, tx pgx.Tx, kind models.StatementKind, f StatementFilter,
	column models.StatementColumn,
) ([]placedLine, error) {
	const balance = `
SELECT place, kind, currency, type, section, account_code, name, value, amount::text
  FROM daybook.balance_sheet(@org, @to, nullif(@by, ''), nullif(@where_key, ''), @where_value)`
	const income = `
SELECT place, kind, currency, type, section, account_code, name, value, amount::text
  FROM daybook.income_statement(@org, @from, @to, nullif(@by, ''), nullif(@where_key, ''), @where_value)`
	stmt := income
	args := store.Args{
		"org": f.OrgID, "from": timeOf(column.From), "to": timeOf(column.To), "by": f.By, "where_key": f.WhereKey,
		"where_value": f.WhereValue,
	}
	if kind == models.StatementBalance {
		stmt = balance
		delete(args, "from")
	}
	return store.Collect(ctx, tx, func(row pgx.CollectableRow) (placedLine, error) {
		var l placedLine
		var amount string
		err := row.Scan(&l.place, &l.Kind, &l.Currency, &l.Type, &l.Section, &l.Account, &l.Name, &l.value, &amount)
		if err == nil {
			l.amount, err = WholeNumber(amount)
		}
		return l, err
	}, stmt, args)
}

// splitColumns makes a column of each value of the dimension, in their order, and one of all.
func splitColumns(span models.StatementColumn, lines []placedLine) ([]models.StatementColumn, [][]placedLine) {
	byValue := map[string][]placedLine{}
	for _, l := range lines {
		byValue[l.value] = append(byValue[l.value], l)
	}
	values := make([]string, 0, len(byValue))
	for v := range byValue {
		values = append(values, v)
	}
	// What has no value comes last.
	slices.SortFunc(values, func(a, b string) int {
		if (a == "") != (b == "") {
			return -cmp.Compare(a, b)
		}
		return cmp.Compare(a, b)
	})
	columns := make([]models.StatementColumn, 0, len(values)+1)
	split := make([][]placedLine, 0, len(values)+1)
	for _, v := range values {
		columns = append(columns, models.StatementColumn{From: span.From, To: span.To, Value: v})
		split = append(split, byValue[v])
	}
	return append(columns, models.StatementColumn{From: span.From, To: span.To, Total: true}), append(split, lines)
}

// joinColumns puts the lines of the columns beside each other.
func joinColumns(columns [][]placedLine) []models.StatementLine {
	type key struct{ currency, place string }
	at := map[key]int{}
	var joined []placedLine
	for i, lines := range columns {
		for _, l := range lines {
			k := key{l.Currency, l.place}
			n, known := at[k]
			if !known {
				n = len(joined)
				at[k] = n
				l.Amounts = make([]*big.Int, len(columns))
				for c := range l.Amounts {
					l.Amounts[c] = new(big.Int)
				}
				joined = append(joined, l)
			}
			joined[n].Amounts[i].Add(joined[n].Amounts[i], l.amount)
		}
	}
	slices.SortFunc(joined, func(a, b placedLine) int {
		return cmp.Or(cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.place, b.place))
	})
	list := make([]models.StatementLine, len(joined))
	for i, l := range joined {
		list[i] = l.StatementLine
	}
	return list
}

// ReadCashStatement reads what the accounts with the role cash had, and what came in and went out.
func ReadCashStatement(ctx context.Context, q store.Querier, org string, from, to models.Date,
) (models.CashStatement, error) {
	const stmt = `
SELECT currency, account_code, name, opening::text, paid_in::text, paid_out::text, closing::text FROM daybook.cash_statement($1, $2, $3)`
	s := models.CashStatement{OrgID: org, From: from, To: to}
	var err error
	s.Lines, err = store.Collect(ctx, q, func(row pgx.CollectableRow) (models.CashLine, error) {
		var l models.CashLine
		var texts [4]string
		if err := row.Scan(&l.Currency, &l.Account, &l.Name, &texts[0], &texts[1], &texts[2], &texts[3]); err != nil {
			return l, err
		}
		var bad [4]error
		for i, field := range []**big.Int{&l.Opening, &l.In, &l.Out, &l.Closing} {
			*field, bad[i] = WholeNumber(texts[i])
		}
		return l, errors.Join(bad[:]...)
	}, stmt, org, timeOf(from), timeOf(to))
	return s, store.Wrap("read the statement of cash", err)
}

// CloseYear writes the journal of a year-end close, or deletes it.
func CloseYear(ctx context.Context, tx pgx.Tx, org string, year int, to, actor string, undo bool,
) (models.YearEnd, error) {
	const stmt = `
SELECT y.document_id, coalesce(y.version, 0), y.result, m.currency, m.amount
  FROM daybook.close_year(@org, @year, @to, @actor, @undo) y LEFT JOIN LATERAL jsonb_to_recordset(y.moved) AS m (currency text, amount text) ON true`
	var done models.YearEnd
	var currency, amount *string
	err := store.Each(ctx, tx, []any{&done.DocumentID, &done.Version, &done.Result, &currency, &amount}, func() error {
		if currency == nil {
			return nil
		}
		n, err := WholeNumber(store.Value(amount))
		done.Moved = append(done.Moved, models.YearResult{Currency: *currency, Amount: n})
		return err
	}, stmt, store.Args{"org": org, "year": year, "to": to, "actor": actor, "undo": undo})
	return done, store.Wrap("close the year", err)
}

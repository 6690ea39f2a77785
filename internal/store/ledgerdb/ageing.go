package ledgerdb

import (
	"context"
	"errors"
	"math/big"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Ageing lists what is open on a day, by counterparty, account and currency, in that order.
func Ageing(ctx context.Context, q store.Querier, org string, on models.Date) ([]models.Aged, error) {
	const stmt = `
SELECT counterparty, account_code, role, currency, items, open_amount::text, not_due::text, due_30::text, due_60::text, due_90::text, due_longer::text
  FROM daybook.ageing($1, $2)
 ORDER BY counterparty COLLATE "C", account_code COLLATE "C", currency COLLATE "C"`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (a models.Aged, err error) {
		var texts [6]string
		err = row.Scan(&a.Counterparty, &a.Account, &a.Role, &a.Currency, &a.Items, &texts[0], &texts[1], &texts[2], &texts[3],
			&texts[4], &texts[5])
		if err != nil {
			return a, err
		}
		return a, wholeNumbers(texts[:], &a.Open, &a.NotDue, &a.Due30, &a.Due60, &a.Due90, &a.Longer)
	}, stmt, org, timeOf(on))
	return list, store.Wrap("read the ageing of the open items", err)
}

// CounterpartyStatement lists what a counterparty's documents have posted on accounts with open
// items in a span of days, by account and currency, with the balance before it.
func CounterpartyStatement(ctx context.Context, q store.Querier, org, counterparty string, from, to models.Date,
) ([]models.StatementLine, error) {
	const stmt = `
SELECT posting_date, coalesce(impact_id, 0), coalesce(document_id, ''), coalesce(type, ''), coalesce(number, ''), issue_date, due_date, account_code,
       currency, amount::text, balance::text, open_amount::text
  FROM daybook.counterparty_statement($1, $2, $3, $4)`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (l models.StatementLine, err error) {
		var texts [3]string
		err = row.Scan(&l.PostingDate, &l.ImpactID, &l.DocumentID, &l.Type, &l.Number, &l.IssueDate, &l.DueDate, &l.Account,
			&l.Currency, &texts[0], &texts[1], &texts[2])
		if err != nil {
			return l, err
		}
		return l, wholeNumbers(texts[:], &l.Amount, &l.Balance, &l.Open)
	}, stmt, org, counterparty, timeOf(from), timeOf(to))
	return list, store.Wrap("read the counterparty's statement", err)
}

// wholeNumbers reads sums.
func wholeNumbers(texts []string, to ...**big.Int) error {
	var all error
	for i, text := range texts {
		n, err := WholeNumber(text)
		*to[i], all = n, errors.Join(all, err)
	}
	return all
}

package ledgerdb

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ClosingList is what is to be done before the period that begins on a day is closed; of no period,
// nothing. Amounts have no decimals.
func ClosingList(ctx context.Context, q store.Querier, org string, startsOn models.Date, rules ComputedDates) (
	[]models.ClosingItem, error,
) {
	const stmt = `
SELECT code, required, count, coalesce(account, ''), coalesce(currency, ''), amount::text, examples, coalesce(what_to_do, '')
  FROM daybook.closing_list(@org, @starts_on, coalesce(@ids::text[], '{}'), coalesce(@days::date[], '{}'))`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (i models.ClosingItem, err error) {
		var amount *string
		if err = row.Scan(&i.Code, &i.Required, &i.Count, &i.Account, &i.Currency, &amount, &i.Examples, &i.WhatToDo); err == nil && amount != nil {
			i.Amount, err = WholeNumber(*amount)
		}
		return i, err
	}, stmt, store.Args{"org": org, "starts_on": startsOn.Time(), "ids": rules.IDs, "days": dates(rules.Days)})
	if list == nil {
		list = []models.ClosingItem{}
	}
	return list, store.Wrap("read the closing list", err)
}

// Closed has the closings and openings that f causes note who made them, and compute what was open
// with the dates that rules compute. An empty actor is the role of the database.
func Closed(ctx context.Context, tx pgx.Tx, actor string, rules ComputedDates, f func() error) error {
	const stmt = `SELECT set_config('daybook.actor', $1, true), set_config('daybook.computed_dates', $2, true)`
	computed := make(map[string]models.Date, len(rules.IDs))
	for i, id := range rules.IDs {
		computed[id] = rules.Days[i]
	}
	text, err := json.Marshal(computed)
	if err != nil {
		return store.Wrap("write the dates that the rules compute", err)
	}
	if _, err := tx.Exec(ctx, stmt, actor, string(text)); err != nil {
		return store.Wrap("say who closes", err)
	}
	if err := f(); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, stmt, "", "")
	return store.Wrap("say who closes", err)
}

// Closings reads an organization's closings and openings, the oldest first: those behind a
// number, at most so many, 0: all. Their days are texts in one form whatever the session's DateStyle.
func Closings(ctx context.Context, q store.Querier, org string, after, most int) ([]models.Closing, error) {
	const stmt = `
SELECT number, action, starts_on, ends_on,
       (SELECT '{' || coalesce(string_agg(format('[%s,%s)', to_char(lower(d), 'YYYY-MM-DD'), to_char(upper(d), 'YYYY-MM-DD')), ',' ORDER BY d), '') || '}'
          FROM unnest(days) AS d),
       (SELECT '{' || coalesce(string_agg(format('[%s,%s)', to_char(lower(d), 'YYYY-MM-DD'), to_char(upper(d), 'YYYY-MM-DD')), ',' ORDER BY d), '') || '}'
          FROM unnest(closed_days) AS d),
       closed_by, db_role, created_at, impacts, entries, last_impact_id,
       encode(impacts_hash, 'hex'), coalesce(encode(previous_hash, 'hex'), ''), encode(hash, 'hex'), list, signature, coalesce(key_id, '')
  FROM daybook.closings WHERE org_id = $1 AND number > $2 ORDER BY number LIMIT nullif($3, 0)`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (models.Closing, error) {
		c := models.Closing{OrgID: org}
		err := row.Scan(&c.Number, &c.Action, &c.StartsOn, &c.EndsOn, &c.Days, &c.ClosedDays, &c.ClosedBy, &c.DBRole, &c.CreatedAt,
			&c.Impacts, &c.Entries, &c.LastImpactID, &c.ImpactsHash, &c.PreviousHash, &c.Hash, &c.List, &c.Signature, &c.KeyID)
		return c, err
	}, stmt, org, after, most)
	if list == nil {
		list = []models.Closing{}
	}
	return list, store.Wrap("read closings", err)
}

// SignClosing gives a closing that has none its signature.
func SignClosing(ctx context.Context, tx pgx.Tx, c *models.Closing) error {
	const stmt = `UPDATE daybook.closings SET signature = $3, key_id = $4 WHERE org_id = $1 AND number = $2`
	_, err := tx.Exec(ctx, stmt, c.OrgID, c.Number, c.Signature, c.KeyID)
	return store.Wrap("sign the closing", err)
}

// LastClosing is the number of the last closing or opening; 0: there was none. The configuration is
// locked, so there is no other until the transaction ends.
func LastClosing(ctx context.Context, tx pgx.Tx, org string) (number int, err error) {
	const stmt = `SELECT coalesce(max(number), 0) FROM daybook.closings WHERE org_id = $1`
	if err := lockConfiguration(ctx, tx, org); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, stmt, org).Scan(&number)
	return number, store.Wrap("read the last closing", err)
}

// Adjustments reads what was posted of the period that begins on a day after it was first closed:
// of the next impacts behind one, at most so many.
func Adjustments(ctx context.Context, q store.Querier, org string, startsOn models.Date, after int64, most int) (
	[]models.Adjustment, error,
) {
	const stmt = `
SELECT impact_id, document_id, kind, reason, document_date, posting_date, created_at, coalesce(currency, ''), amount::text
  FROM daybook.closing_adjustments($1, $2, $3, $4)`
	list, err := store.Collect(ctx, q, func(row pgx.CollectableRow) (a models.Adjustment, err error) {
		var amount *string
		err = row.Scan(&a.ImpactID, &a.DocumentID, &a.Kind, &a.Reason, &a.DocumentDate, &a.PostingDate, &a.CreatedAt, &a.Currency, &amount)
		if err == nil && amount != nil {
			a.Debits, err = WholeNumber(*amount)
		}
		return a, err
	}, stmt, org, startsOn.Time(), after, most)
	if list == nil {
		list = []models.Adjustment{}
	}
	return list, store.Wrap("read adjustments", err)
}

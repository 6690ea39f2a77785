package ledgerdb

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// ComputedDates are posting dates that rules compute, by document: IDs[i] has Days[i].
type ComputedDates struct {
	IDs  []string
	Days []models.Date
}

// ShutOut makes a change of an organization's periods and returns what is not posted of the days
// that were open before the change and are closed after it. It waits until no transaction posts for
// the organization, and keeps posting out until the transaction ends. computed is called meanwhile,
// and change with what it returns.
func ShutOut(ctx context.Context, tx pgx.Tx, org string, computed func() (ComputedDates, error),
	change func(ComputedDates) error,
) (models.Unposted, error) {
	const closedDays = `SELECT daybook.closed_days($1)::text`
	var u models.Unposted
	if err := lockConfiguration(ctx, tx, org); err != nil {
		return u, err
	}
	var before string
	if err := tx.QueryRow(ctx, closedDays, org).Scan(&before); err != nil {
		return u, store.Wrap("read closed periods", err)
	}
	rules, err := computed()
	if err != nil {
		return u, err
	}
	if err := change(rules); err != nil {
		return u, err
	}
	const stmt = `
WITH jobs AS MATERIALIZED (
    SELECT u.* FROM daybook.unposted_documents(@org, daybook.closed_days(@org) - @before::text::datemultirange,
                                               coalesce(@ids::text[], '{}'), coalesce(@days::date[], '{}')) u
), named AS (
    SELECT document_id, date, state, code FROM jobs WHERE inside
     ORDER BY state = 'failed' DESC, date, document_id LIMIT @most
)
SELECT count(*) FILTER (WHERE inside AND state = 'failed'), count(*) FILTER (WHERE inside AND state <> 'failed'),
       count(*) FILTER (WHERE inside IS NULL), (SELECT coalesce(json_agg(n), '[]') FROM named n)::text
  FROM jobs`
	var documents string
	err = tx.QueryRow(ctx, stmt, store.Args{
		"org": org, "before": before, "most": models.MaxUnpostedDocuments, "ids": rules.IDs, "days": dates(rules.Days),
	}).Scan(&u.Failed, &u.Waiting, &u.UnknownDates, &documents)
	if err == nil {
		err = json.Unmarshal([]byte(documents), &u.Documents)
	}
	return u, store.Wrap("look for documents that are not posted", err)
}

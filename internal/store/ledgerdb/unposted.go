package ledgerdb

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

const closedDays = `
SELECT coalesce(range_agg(daterange(s.starts_on, s.ends_on, '[]')), '{}')::text FROM daybook.closed_spans($1) s`

// ComputedDates are posting dates that rules compute, by document: IDs[i] has Days[i].
type ComputedDates struct {
	IDs  []string
	Days []models.Date
}

// ShutOut makes a change of an organization's periods and returns what is not posted of the days
// that were open before the change and are closed after it. It waits until no transaction posts for
// the organization, and keeps posting out until the transaction ends. computed is called meanwhile.
func ShutOut(ctx context.Context, tx pgx.Tx, org string, computed func() (ComputedDates, error),
	change func() error,
) (models.Unposted, error) {
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
	if err := change(); err != nil {
		return u, err
	}
	const stmt = `
WITH shut AS MATERIALIZED (
    SELECT coalesce(range_agg(daterange(s.starts_on, s.ends_on, '[]')), '{}') - @before::text::datemultirange AS days FROM daybook.closed_spans(@org) s
), jobs AS MATERIALIZED (
    SELECT q.document_id, q.state, q.last_error_code AS code,
           CASE WHEN r.day <@ shut.days THEN r.day ELSE coalesce(d.issue_date, i.document_date) END AS date,
           -- null: no date is known.
           CASE WHEN d.issue_date IS NOT NULL OR i.posting_date IS NOT NULL
                THEN coalesce(d.issue_date <@ shut.days, false) OR coalesce(d.value_date <@ shut.days, false)
                     OR coalesce(i.document_date <@ shut.days, false) OR coalesce(i.posting_date <@ shut.days, false)
                     OR coalesce(r.day <@ shut.days, false) END AS inside
      FROM shut
      JOIN daybook.accounting_work_queue q ON q.org_id = @org AND q.state IN ('pending', 'leased', 'failed')
      LEFT JOIN daybook.documents d ON d.org_id = q.org_id AND d.id = q.document_id
      LEFT JOIN unnest(@ids::text[], @days::date[]) AS r (id, day) ON r.id = q.document_id
      LEFT JOIN LATERAL (SELECT x.document_date, x.posting_date FROM daybook.impacts x
                          WHERE x.org_id = q.org_id AND x.document_id = q.document_id ORDER BY x.seq DESC LIMIT 1) i ON true
     WHERE NOT isempty(shut.days)
), named AS (
    SELECT document_id, date, state, coalesce(code, '') AS code FROM jobs WHERE inside
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

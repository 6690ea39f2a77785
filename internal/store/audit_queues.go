package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	public "github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/models"
)

// QueueFigures counts what there is of each queue: of one organization or, with the empty id, of
// all.
func QueueFigures(ctx context.Context, tx pgx.Tx, org string) ([]public.QueueFigures, error) {
	var all []public.QueueFigures
	for _, q := range Queues() {
		open, err := q.open(ctx, tx, organizationSpan{})
		if err != nil {
			return nil, err
		}
		f := public.QueueFigures{Kind: models.Kind(q.Name)}
		for id, jobs := range open {
			if org == "" || id == org {
				f.Open += jobs.Pending + jobs.Leased
				f.Failed += jobs.Failed
			}
		}
		all = append(all, f)
	}
	return all, nil
}

// Check is one statement of an audit. It takes the organization (empty: all) and how many rows to
// return, and returns for each thing that is wrong: how many there are in all, organization,
// document, impact, and what is wrong in words.
type Check struct {
	Kind, Rule, Stmt string
}

// QueueChecks are the checks of every queue.
func QueueChecks() []Check {
	var all []Check
	for _, q := range Queues() {
		all = append(all, q.checks()...)
	}
	return all
}

// checks implements operations.
func (k *Kind) checks() []Check {
	return append([]Check{
		{
			"contradictory_row_in_" + k.Name,
			"a job of the queue " + k.Name + " is leased by a turn or by none, finished at a time or not at all, and " +
				"failed for a reason, as its state says",
			k.sql(auditRows),
		},
		{
			"completed_twice_in_" + k.Name,
			"a job of the queue " + k.Name + " has completed no more often than it was asked for",
			k.sql(auditCompletedTwice),
		},
	}, k.ownChecks...)
}

// The constraints of the table say the same, as long as they are there.
const auditRows = `
SELECT count(*) OVER (), w.org_id, w.document_id, NULL::bigint, format('job %s is %s%s', w.id, w.state, w.what)
  FROM (SELECT q.id, q.org_id, /* jobs */NULL::text/* accounting: q.document_id */ AS document_id, q.state,
               CASE WHEN q.state = 'leased' AND (q.turn_id IS NULL OR q.fence IS NULL OR q.last_attempted_at IS NULL) THEN ', and no turn holds it'
                    WHEN q.state <> 'leased' AND (q.turn_id IS NOT NULL OR q.fence IS NOT NULL) THEN ', and a turn holds it'
                    WHEN q.state <> 'leased' AND q.cancel_requested THEN ', and waits to be cancelled'
                    WHEN q.state IN ('completed', 'failed', 'cancelled') AND q.finished_at IS NULL THEN ', and has no time of its end'
                    WHEN q.state IN ('pending', 'leased') AND q.finished_at IS NOT NULL THEN ', and has a time of its end'
                    WHEN q.state = 'failed' AND (q.last_error_code IS NULL OR q.last_error IS NULL) THEN ', and nothing says why' END AS what
          FROM daybook.jobs q
         WHERE $1 = '' OR q.org_id = $1) w
 WHERE w.what IS NOT NULL
 ORDER BY w.org_id, w.id
 LIMIT $2`

// Each request that opens a job again raises its generation.
const auditCompletedTwice = `
SELECT count(*) OVER (), q.org_id, /* jobs */NULL::text/* accounting: q.document_id */, NULL::bigint,
       format('job %s: completed attempts %s, requests %s', q.id, a.times, q.generation + 1)
  FROM (SELECT job_id, count(*) AS times
          FROM daybook.attempts
         WHERE outcome = 'completed' AND kind = /* jobs */'jobs'/* accounting: 'accounting' */ AND ($1 = '' OR org_id = $1)
         GROUP BY job_id
        HAVING count(*) > 1) a
  JOIN daybook.jobs q ON q.id = a.job_id
 WHERE a.times > q.generation + 1
 ORDER BY q.org_id, q.id
 LIMIT $2`

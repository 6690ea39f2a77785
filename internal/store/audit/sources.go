package audit

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// auditSources counts organizations, documents, jobs and impacts by source.
func auditSources(ctx context.Context, tx pgx.Tx, org string) ([]SourceFigures, error) {
	const stmt = `
WITH counted AS (
    SELECT id AS org_id, 0 AS documents, 0 AS open, 0 AS failed, 0 AS impacts, 0 AS live FROM daybook.organizations WHERE $1 = '' OR id = $1
     UNION ALL
    SELECT org_id, count(*), 0, 0, 0, 0 FROM daybook.documents WHERE $1 = '' OR org_id = $1 GROUP BY org_id
     UNION ALL
    SELECT org_id, 0, count(*) FILTER (WHERE state IN ('pending', 'leased')), count(*) FILTER (WHERE state = 'failed'), 0, 0
      FROM daybook.accounting_work_queue WHERE $1 = '' OR org_id = $1 GROUP BY org_id
     UNION ALL
    SELECT org_id, 0, 0, 0, count(*), count(*) FILTER (WHERE kind = 'post') - count(*) FILTER (WHERE kind = 'reverse')
      FROM daybook.impacts WHERE $1 = '' OR org_id = $1 GROUP BY org_id
)
SELECT coalesce(o.source, (SELECT d.source FROM daybook.defaults d WHERE d.one)), count(DISTINCT c.org_id),
       sum(c.documents)::bigint, sum(c.open)::bigint, sum(c.failed)::bigint, sum(c.impacts)::bigint, sum(c.live)::bigint
  FROM counted c
  LEFT JOIN daybook.organizations o ON o.id = c.org_id
 GROUP BY 1
 ORDER BY 1`
	return store.Collect(ctx, tx, func(row pgx.CollectableRow) (f SourceFigures, err error) {
		err = row.Scan(&f.Name, &f.Organizations, &f.Documents, &f.OpenJobs, &f.FailedJobs, &f.Impacts, &f.Live)
		// What is in daybook.documents of an organization that has another source belongs to no source.
		if f.Checked = f.Name == store.SourceDaybook; !f.Checked {
			f.Documents = 0
		}
		return f, err
	}, stmt, org)
}

// AddFinding counts a finding of a check in a report, and lists it if there is room.
func AddFinding(r *Report, kind string, limit int, f Finding) {
	for i := range r.Checks {
		if r.Checks[i].Kind != kind {
			continue
		}
		r.Checks[i].Count++
		if len(r.Checks[i].Findings) < limit {
			r.Checks[i].Findings = append(r.Checks[i].Findings, f)
		}
	}
}

// An impact that posts, of a document that no longer exists and was not marked deleted.
const auditUnknown = `
SELECT count(*) OVER (), i.org_id, i.document_id, i.id,
       format('version %s is posted, and daybook.documents has no such document; %s', i.document_version,
              CASE WHEN j.id IS NULL THEN 'there is no job' ELSE format('its job for version %s is %s', j.version_hint, j.state) END)
  FROM daybook.impacts i
  LEFT JOIN daybook.organizations o ON o.id = i.org_id
  LEFT JOIN daybook.accounting_work_queue j ON j.org_id = i.org_id AND j.document_id = i.document_id
 WHERE i.kind = 'post' AND ($1 = '' OR i.org_id = $1)
   AND coalesce(o.source, (SELECT s.source FROM daybook.defaults s)) = 'daybook'
   AND NOT EXISTS (SELECT 1 FROM daybook.documents d WHERE d.org_id = i.org_id AND d.id = i.document_id)
   AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
   AND (j.state IN ('pending', 'leased')) IS NOT TRUE
   AND NOT (i.rule_set_version IS NULL AND EXISTS (SELECT 1 FROM daybook.posted_elsewhere p WHERE p.org_id = i.org_id AND p.document_id = i.document_id))
 ORDER BY i.org_id, i.document_id
 LIMIT $2`

package listing

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// Hindrance is what may keep a pending job from being worked.
type Hindrance struct {
	// PausedAt is since when the job's organization is paused; nil: it is not.
	PausedAt *time.Time
	// MaxInFlight is the organization's cap; nil: it has none. InFlight counts the jobs of the kind that are leased under it.
	MaxInFlight *int
	InFlight    int
	// Workers counts the workers of background jobs that were heard of in the last 5 minutes, Handlers those of them that work the type.
	Workers, Handlers int
}

// Hindrance reads what may keep the pending jobs of an organization and type from being worked. kind is "jobs" or "accounting"; the workers of
// accounting jobs are not on record.
func (l *Listing) Hindrance(ctx context.Context, kind, org, jobType string) (Hindrance, error) {
	const stmt = `
SELECT (SELECT o.paused_at FROM daybook.organizations o WHERE o.id = $2), (SELECT o.max_in_flight FROM daybook.organizations o WHERE o.id = $2),
       CASE $1 WHEN 'jobs' THEN (SELECT count(*) FROM daybook.jobs j WHERE j.state = 'leased' AND j.capped AND j.org_id = $2)
               ELSE (SELECT count(*) FROM daybook.accounting_work_queue q WHERE q.state = 'leased' AND q.capped AND q.org_id = $2) END,
       (SELECT count(*) FROM daybook.job_workers w WHERE w.last_seen > clock_timestamp() - interval '5 minutes'),
       (SELECT count(*) FROM daybook.job_workers w WHERE w.last_seen > clock_timestamp() - interval '5 minutes' AND $3 = ANY (w.types))`
	var h Hindrance
	err := l.pool.QueryRow(ctx, stmt, kind, org, jobType).Scan(&h.PausedAt, &h.MaxInFlight, &h.InFlight, &h.Workers, &h.Handlers)
	return h, store.Wrap("look what keeps the job from being worked", err)
}

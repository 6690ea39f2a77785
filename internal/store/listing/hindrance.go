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
	// MaxInFlight is the organization's cap; nil: it has none. InFlight counts the jobs of the kind
	// that are leased under it.
	MaxInFlight *int
	InFlight    int
	// RateSpent says that as many attempts of the organization's jobs have begun as its rate allows.
	RateSpent bool
	// Workers counts the workers of background jobs of the fleet that works the job that were heard
	// of in the last 5 minutes and have not stopped, Handlers those of them that work the type.
	Workers, Handlers int
	// Fleet is the name of that fleet; empty: the one without a name.
	Fleet string
	// QueuePausedAt is since when the job's named queue is paused; nil: it is not.
	QueuePausedAt *time.Time
}

// Hindrance reads what may keep the pending jobs of an organization, a type and a named queue from
// being worked; queue is empty for those in none, minVersion 0 for those that any handler may work. kind is "jobs" or "accounting"; the workers of
// accounting jobs are not on record.
func (l *Listing) Hindrance(ctx context.Context, kind, org, jobType, queue string,
	minVersion int,
) (Hindrance, error) {
	const stmt = `
WITH of AS (SELECT coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = @queue), 0) AS fleet),
workers AS (SELECT w.types, w.versions FROM daybook.live_job_workers w, of WHERE w.fleet = of.fleet)
SELECT (SELECT o.paused_at FROM daybook.organizations o WHERE o.id = @org), (SELECT o.max_in_flight FROM daybook.organizations o WHERE o.id = @org),
       CASE @kind WHEN 'jobs' THEN (SELECT count(*) FROM daybook.jobs j WHERE j.capped AND j.turn_id IS NOT NULL AND j.org_id = @org)
                  ELSE (SELECT count(*) FROM daybook.accounting_work_queue q WHERE q.capped AND q.turn_id IS NOT NULL AND q.org_id = @org) END,
       @kind = 'jobs' AND coalesce((SELECT daybook.organization_starts(o) < 1 FROM daybook.organizations o WHERE o.id = @org AND o.rate IS NOT NULL), false),
       (SELECT count(*) FROM workers), (SELECT count(*) FROM workers w WHERE @type = ANY (w.types) AND coalesce(w.versions[array_position(w.types, @type)], 0) >= @version),
       (SELECT f.name FROM daybook.fleets f, of WHERE f.id = of.fleet), (SELECT u.paused_at FROM daybook.queues u WHERE u.name = @queue)`
	var h Hindrance
	err := l.pool.QueryRow(ctx, stmt, store.Args{"kind": kind, "org": org, "type": jobType, "queue": queue, "version": minVersion}).
		Scan(&h.PausedAt, &h.MaxInFlight, &h.InFlight, &h.RateSpent, &h.Workers, &h.Handlers, &h.Fleet, &h.QueuePausedAt)
	return h, store.Wrap("look what keeps the job from being worked", err)
}

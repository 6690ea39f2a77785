package listing

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
)

// WaitsFor is one thing that a job waits for.
type WaitsFor struct {
	// What is "job", "turn" (in its sequence), "callback" or "limit" (of its key).
	What string `gorm:"column:what"`
	// ID is that of the other job, for a turn that of the job which has it, the name of the callback,
	// or the key of the limit.
	ID string `gorm:"column:id"`
	// State is that of the other job; empty: it was removed, or there is none.
	State models.JobState `gorm:"column:state"`
	// Until is the deadline of a callback.
	Until *time.Time `gorm:"column:until"`
	// Of a limit: Queue is the named queue whose limit it is; empty: that of the job's type. AtWork jobs
	// of the key run or are about to, of Parallel that may, and Ahead stand before this one in line, each
	// counted up to MostCounted. Rate attempts begin in RateSeconds at most. Parallel or Rate 0: any number.
	Queue       string  `gorm:"column:queue"`
	AtWork      int     `gorm:"column:at_work"`
	Parallel    int     `gorm:"column:parallel"`
	Ahead       int     `gorm:"column:ahead"`
	Rate        int     `gorm:"column:rate"`
	RateSeconds float64 `gorm:"column:rate_seconds"`
}

// MostCounted is up to how many jobs of a limit's key are counted.
const MostCounted = 1000

// Standing says in a few words how a limit that the job waits for stands.
func (w WaitsFor) Standing() string {
	text := phrase.Count(int64(w.AtWork))
	if w.Parallel > 0 {
		text += " of " + phrase.Count(int64(w.Parallel))
	}
	text += " at work, "
	if w.Rate > 0 {
		text += phrase.Count(int64(w.Rate)) + " in " + phrase.Duration(time.Duration(w.RateSeconds*float64(time.Second))) +
			" at most, "
	}
	switch w.Ahead {
	case 0:
		return text + "none ahead of it"
	case MostCounted:
		return text + phrase.Count(MostCounted) + " or more ahead of it"
	}
	return text + phrase.Count(int64(w.Ahead)) + " ahead of it"
}

// What the jobs of a JobFilter wait for.
const (
	// WaitsForTurn: another job of its sequence has the turn.
	WaitsForTurn = "turn"
	// WaitsForJobs: jobs that it was enqueued after have not ended.
	WaitsForJobs = "jobs"
	// WaitsForCallback: its attempt, or the request that enqueued it, has asked for an answer from
	// outside.
	WaitsForCallback = "callback"
	// WaitsForLimit: the jobs of its limit's key that may run at a time do, or their rate is used up.
	WaitsForLimit = "limit"
)

// whereQueue leaves the jobs of a named queue; empty: of any.
func whereQueue(q *gorm.DB, name string) *gorm.DB {
	if name == "default" {
		return q.Where("queue IS NULL")
	}
	return where(q, "queue = ?", name)
}

// whereWaits leaves the jobs that wait for something of that kind; empty: all.
func whereWaits(q *gorm.DB, what string) *gorm.DB {
	// Waiting jobs have one time, by which the index of due jobs finds them.
	const held = "state = 'pending' AND ready_at = '9999-12-31 00:00:00+00'"
	switch what {
	case "":
		return q
	case WaitsForTurn:
		return q.Where(held + ` AND sequence IS NOT NULL AND NOT EXISTS (SELECT FROM daybook.job_sequences s
                                WHERE s.org_id = jobs.org_id AND s.key = jobs.sequence AND s.holder = jobs.id)`)
	case WaitsForJobs:
		return q.Where(held + " AND EXISTS (SELECT FROM daybook.job_waits w WHERE w.job_id = jobs.id AND " +
			"num_nulls(w.ended_as) = 1)")
	case WaitsForLimit:
		return q.Where("state = 'pending' AND fleet = -2")
	case WaitsForCallback:
		return q.Where("state = 'pending' AND last_error_code = ?", models.CodeAwaitingCallback)
	}
	_ = q.AddError(store.Invalid("a job waits for a turn, jobs, a callback or a limit, not %q", what))
	return q
}

// waitsFor reads what a job waits for, 100 jobs at most.
func (l *Listing) waitsFor(ctx context.Context, j *models.Job) ([]WaitsFor, error) {
	const stmt = `
SELECT 'turn' AS what, s.holder AS id, coalesce(h.state::text, '') AS state, NULL::timestamptz AS until,
       '' AS queue, 0 AS at_work, 0 AS parallel, 0 AS ahead, 0 AS rate, 0 AS rate_seconds
  FROM daybook.job_sequences s
  LEFT JOIN daybook.jobs h ON h.id = s.holder
 WHERE s.org_id = @org AND s.key = @sequence AND s.holder <> @id
UNION ALL
SELECT 'job', w.awaits, coalesce(a.state::text, ''), NULL, '', 0, 0, 0, 0, 0
  FROM (SELECT awaits FROM daybook.job_waits WHERE job_id = @id AND num_nulls(ended_as) = 1 ORDER BY awaits LIMIT 100) w
  LEFT JOIN daybook.jobs a ON a.id = w.awaits
UNION ALL
SELECT 'limit', j.limit_key, '', NULL, CASE WHEN j.limit_scope = 'queue/' || j.queue THEN j.queue ELSE '' END,
       (SELECT count(*) FROM (SELECT FROM daybook.jobs o
                               WHERE o.limit_scope = j.limit_scope AND o.org_id = j.org_id AND o.limit_key = j.limit_key AND o.finished_at IS NULL AND o.fleet >= 0
                               LIMIT @most) x),
       coalesce(l.parallel, 0),
       (SELECT count(*) FROM (SELECT FROM daybook.jobs o
                               WHERE o.limit_scope = j.limit_scope AND o.org_id = j.org_id AND o.limit_key = j.limit_key AND o.finished_at IS NULL AND o.fleet = -2
                                 AND (o.priority, o.ready_at, o.id) < (j.priority, j.ready_at, j.id)
                               LIMIT @most) x),
       coalesce(l.rate, 0), coalesce(l.rate_seconds, 0)
  FROM daybook.jobs j
  LEFT JOIN daybook.job_limits l ON l.scope = j.limit_scope
 WHERE j.id = @id AND j.finished_at IS NULL AND j.fleet = -2
UNION ALL
SELECT 'callback', c.name, '', max(c.deadline), '', 0, 0, 0, 0, 0
  FROM daybook.job_callbacks c
 WHERE c.job_id = @id AND c.called_at IS NULL AND c.deadline > clock_timestamp()
 GROUP BY c.name
 ORDER BY 1, 2`
	if j.State != models.JobPending {
		return nil, nil
	}
	return find[WaitsFor]("read what the job waits for",
		l.db.WithContext(ctx).Raw(stmt, map[string]any{"id": j.ID, "org": j.OrgID, "sequence": store.Value(j.Sequence), "most": MostCounted}))
}

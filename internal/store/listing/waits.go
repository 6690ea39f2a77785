package listing

import (
	"context"
	"time"

	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/internal/store"
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
SELECT 'turn' AS what, s.holder AS id, coalesce(h.state::text, '') AS state, NULL::timestamptz AS until
  FROM daybook.job_sequences s
  LEFT JOIN daybook.jobs h ON h.id = s.holder
 WHERE s.org_id = @org AND s.key = @sequence AND s.holder <> @id
UNION ALL
SELECT 'job', w.awaits, coalesce(a.state::text, ''), NULL
  FROM (SELECT awaits FROM daybook.job_waits WHERE job_id = @id AND num_nulls(ended_as) = 1 ORDER BY awaits LIMIT 100) w
  LEFT JOIN daybook.jobs a ON a.id = w.awaits
UNION ALL
SELECT 'limit', j.limit_key, '', NULL FROM daybook.jobs j WHERE j.id = @id AND j.finished_at IS NULL AND j.fleet = -2
UNION ALL
SELECT 'callback', c.name, '', max(c.deadline)
  FROM daybook.job_callbacks c
 WHERE c.job_id = @id AND c.called_at IS NULL AND c.deadline > clock_timestamp()
 GROUP BY c.name
 ORDER BY 1, 2`
	if j.State != models.JobPending {
		return nil, nil
	}
	return find[WaitsFor]("read what the job waits for",
		l.db.WithContext(ctx).Raw(stmt, map[string]any{"id": j.ID, "org": j.OrgID, "sequence": store.Value(j.Sequence)}))
}

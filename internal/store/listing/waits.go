package listing

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// WaitsFor is one thing that a job waits for.
type WaitsFor struct {
	// What is "job", "turn" (in its sequence) or "callback".
	What string `gorm:"column:what" json:"what"`
	// ID is that of the other job, for a turn that of the job which has it, or the name of the callback.
	ID string `gorm:"column:id" json:"id"`
	// State is that of the other job; empty: it was removed, or there is none.
	State models.JobState `gorm:"column:state" json:"state,omitempty"`
	// Until is the deadline of a callback.
	Until *time.Time `gorm:"column:until" json:"until,omitempty"`
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
  FROM (SELECT awaits FROM daybook.job_waits WHERE job_id = @id AND ended_as IS NULL ORDER BY awaits LIMIT 100) w
  LEFT JOIN daybook.jobs a ON a.id = w.awaits
UNION ALL
SELECT 'callback', c.name, '', max(c.deadline)
  FROM daybook.job_callbacks c
 WHERE c.job_id = @id AND c.called_at IS NULL AND c.deadline > clock_timestamp()
 GROUP BY c.name
 ORDER BY 1, 2`
	if j.State != models.JobPending {
		return nil, nil
	}
	sequence := ""
	if j.Sequence != nil {
		sequence = *j.Sequence
	}
	return find[WaitsFor]("read what the job waits for", l.db.WithContext(ctx).Raw(stmt, map[string]any{"id": j.ID, "org": j.OrgID, "sequence": sequence}))
}

package queue_test

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// welcome is a payload.
type welcome struct {
	UserID string `json:"user_id"`
	Note   string `json:"note,omitempty"`
}

func (welcome) JobType() string { return "welcome" }

// newJob enqueues a job.
func (b *bundle) newJob(p queue.Payload, o queue.JobOptions) queue.EnqueuedJob {
	b.t.Helper()
	r, err := queue.EnqueueJob(b.t.Context(), b.Pool, org, p, o)
	require.NoError(b.t, err)
	return r
}

// queued reads a job as domain code may: through GORM.
func (b *bundle) queued(id string) models.Job {
	b.t.Helper()
	sqlDB := stdlib.OpenDBFromPool(b.Pool)
	defer func() { _ = sqlDB.Close() }()
	g, err := gorm.Open(postgres.New(postgres.Config{Conn: sqlDB}), &gorm.Config{})
	require.NoError(b.t, err)
	var j models.Job
	require.NoError(b.t, g.WithContext(b.t.Context()).Take(&j, "id = ?", id).Error)
	return j
}

// links reads a job's links.
func (b *bundle) links(id string) []queue.Link {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), `SELECT kind, id FROM daybook.job_links WHERE job_id = $1 ORDER BY kind, id`,
		id)
	require.NoError(b.t, err)
	links, err := pgx.CollectRows(rows, pgx.RowToStructByPos[queue.Link])
	require.NoError(b.t, err)
	return links
}

// end puts a job into a state as a worker would, after two attempts.
func (b *bundle) end(id string, state models.JobState) {
	b.t.Helper()
	switch state {
	case models.JobPending:
		b.exec(`UPDATE daybook.jobs SET run_count = 2, last_error = 'e', last_error_code = 'TIMEOUT', ready_at = clock_timestamp() + interval '1 hour' WHERE id = $1`, id)
	case models.JobLeased:
		b.exec(`
UPDATE daybook.jobs SET state = 'leased', working = true, run_count = 3, turn_id = 't', fence = 1, leased_generation = generation, worker = 'w',
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), last_error = 'e', last_error_code = 'TIMEOUT' WHERE id = $1`, id)
	case models.JobFailed:
		b.exec(`
UPDATE daybook.jobs SET state = 'failed', run_count = 2, last_error = 'e', last_error_code = 'TIMEOUT', progress = '1', finished_at = clock_timestamp() WHERE id = $1`, id)
	case models.JobCompleted, models.JobCancelled:
		b.exec(`UPDATE daybook.jobs SET state = $2::text::daybook.job_state, run_count = 2, finished_at = clock_timestamp() WHERE id = $1`, id, string(state))
	}
	require.Equal(b.t, state, b.queued(id).State)
}

const hour = time.Hour

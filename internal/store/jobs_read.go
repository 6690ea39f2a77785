package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// JobLinks returns what a background job is about, in the order of kinds and ids.
func JobLinks(ctx context.Context, q Querier, id string) ([]models.JobLink, error) {
	const stmt = `SELECT job_id, kind, id FROM daybook.job_links WHERE job_id = $1 ORDER BY kind, id`
	links, err := Collect(ctx, q, pgx.RowToStructByPos[models.JobLink], stmt, id)
	return links, Wrap("read a job's links", err)
}

// LoggedAttempt is an attempt as daybook.attempts shows it.
type LoggedAttempt struct {
	Attempt            int
	Outcome            models.Outcome
	Code               models.ErrorCode
	Error              string
	StartedAt, EndedAt time.Time
	Times              int
}

// LoggedAttempts returns up to limit attempts at a job, the latest first.
func LoggedAttempts(ctx context.Context, q Querier, id string, limit int) ([]LoggedAttempt, error) {
	const stmt = `
SELECT attempt, outcome::text, coalesce(error_code, ''), coalesce(error, ''), started_at, ended_at, times
  FROM daybook.attempts WHERE job_id = $1 ORDER BY id DESC LIMIT $2`
	logged, err := Collect(ctx, q, pgx.RowToStructByPos[LoggedAttempt], stmt, id, limit)
	return logged, Wrap("read a job's attempts", err)
}

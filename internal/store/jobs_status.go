package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// JobStatus is how a job stands.
type JobStatus struct {
	JobID     string
	OrgID     string
	Type      string
	State     models.JobState
	RunCount  int
	ReadyAt   time.Time
	ErrorCode models.ErrorCode
	Error     string
	// FinishedAt is nil while the job is pending or leased.
	FinishedAt *time.Time
	// Result and Progress are nil when the handler left none.
	Result, Progress json.RawMessage
	// Wrote says that the statement ran in a transaction that has written something.
	Wrote bool
}

// ReadJobStatus reads how a job stands, in one statement; ErrJobNotFound when there is none with
// the id.
func ReadJobStatus(ctx context.Context, q Querier, id string) (JobStatus, error) {
	// database/sql cannot scan JSON that is null into a json.RawMessage: it is read as text.
	const stmt = `
SELECT id, org_id, type, state::text, run_count, CASE WHEN ready_at < '9999-12-31 00:00:00+00' THEN ready_at ELSE first_ready_at END, coalesce(last_error_code, ''), coalesce(last_error, ''), finished_at,
       result::text, progress::text,
       pg_current_xact_id_if_assigned() IS NOT NULL
  FROM daybook.jobs
 WHERE id = $1`
	var s JobStatus
	var result, progress *string
	err := q.QueryRow(ctx, stmt, id).Scan(&s.JobID, &s.OrgID, &s.Type, &s.State, &s.RunCount, &s.ReadyAt, &s.ErrorCode,
		&s.Error, &s.FinishedAt,
		&result, &progress, &s.Wrote)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, NoJob(id)
	}
	s.Result, s.Progress = rawOrNil(result), rawOrNil(progress)
	return s, Wrap("read the job's status", err)
}

func rawOrNil(s *string) json.RawMessage {
	if s == nil {
		return nil
	}
	return json.RawMessage(*s)
}

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

// LoggedAttempts returns the latest attempts at a job, 100 at most, the last one first.
func LoggedAttempts(ctx context.Context, q Querier, id string) ([]LoggedAttempt, error) {
	const stmt = `
SELECT attempt, outcome::text, coalesce(error_code, ''), coalesce(error, ''), started_at, ended_at, times
  FROM daybook.attempts WHERE job_id = $1 ORDER BY id DESC LIMIT 100`
	logged, err := Collect(ctx, q, pgx.RowToStructByPos[LoggedAttempt], stmt, id)
	return logged, Wrap("read a job's attempts", err)
}

// NoJob is ErrJobNotFound for the id of a background job, in the words of the database's functions.
func NoJob(id string) error {
	return Refuse(ErrJobNotFound, "there is no job "+id, "check the id, the job may have been purged")
}

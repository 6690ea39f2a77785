package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// NewCallback puts on record that a job waits for a callback with the token, for so long at most. Errors: ErrJobNotFound.
func NewCallback(ctx context.Context, q Querier, jobID, name, token string, within time.Duration) error {
	const stmt = `
INSERT INTO daybook.job_callbacks (token_hash, job_id, name, deadline)
SELECT @hash, j.id, @name, clock_timestamp() + make_interval(secs => @within)
  FROM daybook.jobs j
 WHERE j.id = @job
   FOR KEY SHARE
RETURNING job_id`
	hash := sha256.Sum256([]byte(token))
	err := queryRow(ctx, q, stmt, Args{"hash": hash[:], "job": jobID, "name": name, "within": within.Seconds()}).Scan(&jobID)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrJobNotFound
	}
	return Wrap("ask for a callback", err)
}

// Callback is what is known of a callback that a job has asked for.
type Callback struct {
	// Data is what came; nil: nothing yet.
	Data       json.RawMessage
	ReceivedAt *time.Time
	// Left is the time until the deadline; it is not positive after it.
	Left time.Duration
}

// SeeCallback reads the callback of that name that a job has asked for, the one that came if several were asked for, and notes that it was read. ok
// is false when none was asked for.
func SeeCallback(ctx context.Context, q Querier, jobID, name string) (c Callback, ok bool, err error) {
	const stmt = `
WITH seen AS (
    UPDATE daybook.job_callbacks SET seen = true WHERE job_id = $1 AND name = $2 AND called_at IS NOT NULL AND NOT seen
)
SELECT data::text, called_at, extract(epoch FROM deadline - clock_timestamp())::float8
  FROM daybook.job_callbacks
 WHERE job_id = $1 AND name = $2
 ORDER BY called_at, deadline DESC
 LIMIT 1`
	var left float64
	var data *string
	err = q.QueryRow(ctx, stmt, jobID, name).Scan(&data, &c.ReceivedAt, &left)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, false, nil
	}
	if data != nil {
		c.Data = json.RawMessage(*data)
	}
	c.Left = time.Duration(left * float64(time.Second))
	return c, err == nil, Wrap("read the callback", err)
}

// CompleteCallback tells a job what it waits for.
func CompleteCallback(ctx context.Context, q Querier, token string, data json.RawMessage) (Requested, error) {
	const stmt = `SELECT job_id, result FROM daybook.complete_callback($1, $2::text::jsonb)`
	var r Requested
	err := q.QueryRow(ctx, stmt, token, string(data)).Scan(&r.JobID, &r.Result)
	return r, Wrap("take the callback", err)
}

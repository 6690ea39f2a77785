package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// openCallbacks is how many callbacks of one name a job may have open: attempts whose requests may
// have been taken, the last ones.
const openCallbacks = 3

// NewCallback puts on record that a job waits for a callback with the token, for so long at most.
// Of the open ones of that name it leaves openCallbacks, the new one included, so that a job that
// is tried again and again keeps a few rows. Errors: ErrJobNotFound.
func NewCallback(ctx context.Context, q Querier, jobID, name, token string, within time.Duration) error {
	const stmt = `
WITH closed AS (
    DELETE FROM daybook.job_callbacks
     WHERE called_at IS NULL
       AND token_hash IN (SELECT token_hash FROM daybook.job_callbacks WHERE job_id = @job AND name = @name AND called_at IS NULL
                           ORDER BY deadline > clock_timestamp() DESC, created_at DESC OFFSET @left FOR NO KEY UPDATE SKIP LOCKED)
)
INSERT INTO daybook.job_callbacks (token_hash, job_id, name, deadline)
SELECT @hash, j.id, @name, clock_timestamp() + make_interval(secs => @within)
  FROM daybook.jobs j
 WHERE j.id = @job
   FOR KEY SHARE
RETURNING job_id`
	hash := sha256.Sum256([]byte(token))
	err := queryRow(ctx, q, stmt,
		Args{
			"hash": hash[:], "job": jobID, "name": name, "within": within.Seconds(),
			"left": openCallbacks - 1,
		}).Scan(&jobID)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrJobNotFound
	}
	return Wrap("ask for a callback", err)
}

// WithdrawCallback takes a callback back that has not come.
func WithdrawCallback(ctx context.Context, q Querier, jobID, token string) error {
	const stmt = `
WITH gone AS (DELETE FROM daybook.job_callbacks WHERE token_hash = $1 AND job_id = $2 AND called_at IS NULL RETURNING 1)
SELECT count(*) FROM gone`
	hash := sha256.Sum256([]byte(token))
	_, err := value[int](ctx, q, "withdraw the callback", stmt, hash[:], jobID)
	return err
}

// Callback is what is known of a callback that a job has asked for.
type Callback struct {
	// Data is what came; nil: nothing yet.
	Data       json.RawMessage
	ReceivedAt *time.Time
	// Left is the time until the deadline; it is not positive after it.
	Left time.Duration
}

// SeeCallback reads the callback of that name that a job has asked for, the one that came if
// several were asked for, and notes that it was read. ok is false when none has come and the job
// has waited for none.
func SeeCallback(ctx context.Context, q Querier, jobID, name string) (c Callback, ok bool, err error) {
	const stmt = `
WITH seen AS (
    UPDATE daybook.job_callbacks SET seen = true WHERE job_id = $1 AND name = $2 AND called_at IS NOT NULL AND NOT seen
)
SELECT data::text, called_at, extract(epoch FROM deadline - clock_timestamp())::float8
  FROM daybook.job_callbacks
 WHERE job_id = $1 AND name = $2 AND (awaited OR called_at IS NOT NULL)
 ORDER BY called_at, deadline DESC
 LIMIT 1`
	var left float64
	var data *string
	err = q.QueryRow(ctx, stmt, jobID, name).Scan(&data, &c.ReceivedAt, &left)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, false, nil
	}
	c.Data, c.Left = rawOrNil(data), seconds(left)
	return c, err == nil, Wrap("read the callback", err)
}

// EnqueueJobWithCallback asks for a job that waits for a callback of that name, for so long at
// most. The token is empty when the job existed before.
func EnqueueJobWithCallback(ctx context.Context, q Querier, j NewJob, name string, within time.Duration) (r EnqueuedJob,
	token string, err error,
) {
	const stmt = `
SELECT job_id, duplicate, result, coalesce(token, '')
  FROM daybook.enqueue_job_with_callback(@org, @type, @payload::text::jsonb, @name, make_interval(secs => @within), NULLIF(@key::text, ''),
                                         NULLIF(@priority::integer, 0), NULLIF(@max_attempts::integer, 0), @links::text::jsonb, NULLIF(@queue::text, ''),
                                         NULLIF(@min_version::integer, 0), NULLIF(@limit_key::text, ''))`
	a := j.args()
	a["name"], a["within"] = name, within.Seconds()
	err = requestRow(ctx, q, stmt, a).Scan(&r.JobID, &r.Duplicate, &r.Result, &token)
	return r, token, Wrap("enqueue the job", err)
}

// CompleteCallback tells a job what it waits for.
func CompleteCallback(ctx context.Context, q Querier, token string, data json.RawMessage) (Requested, error) {
	const stmt = `SELECT job_id, result FROM daybook.complete_callback($1, $2::text::jsonb)`
	var r Requested
	err := q.QueryRow(ctx, stmt, token, string(data)).Scan(&r.JobID, &r.Result)
	return r, Wrap("take the callback", err)
}

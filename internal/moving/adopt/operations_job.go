package adopt

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// adoptedJob is a row of a legacy table as a background job.
type adoptedJob struct {
	ID              string           `json:"id"`
	Org             string           `json:"org"`
	Type            string           `json:"type"`
	Payload         json.RawMessage  `json:"payload"`
	Key             string           `json:"key"`
	State           models.JobState  `json:"state"`
	Attempts        int64            `json:"attempts"`
	Max             *int64           `json:"max"`
	ReadyAt         *time.Time       `json:"ready_at"`
	LastAttemptedAt *time.Time       `json:"last_attempted_at"`
	LastError       *string          `json:"last_error"`
	Code            *string          `json:"code"`
	Result          json.RawMessage  `json:"result"`
	FinishedAt      *time.Time       `json:"finished_at"`
	CreatedAt       *time.Time       `json:"created_at"`
	Links           [][2]string      `json:"links"`
	History         []adoptedAttempt `json:"history"`
}

// adoptedAttempt is an attempt of the legacy worker that failed.
type adoptedAttempt struct {
	N     int       `json:"n"`
	Error string    `json:"error"`
	At    time.Time `json:"at"`
	Final bool      `json:"final"`
}

// insertAdopted writes jobs, their links and their earlier attempts. A job is due at its time or
// now, whichever is later: workers do not look for what became due before they last looked. It
// returns the ids of the jobs that it inserted.
const insertAdopted = `
WITH r AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset($1::jsonb)
           AS r (id text, org text, type text, payload jsonb, key text, state text, attempts integer, max integer, ready_at timestamptz, last_attempted_at timestamptz,
                 last_error text, code text, result jsonb, finished_at timestamptz, created_at timestamptz, links jsonb, history jsonb)
), inserted AS (
    INSERT INTO daybook.jobs (id, org_id, type, payload, input_hash, idempotency_key, state, ready_at, first_ready_at, run_count, max_attempts,
                              last_attempted_at, last_error, last_error_code, result, finished_at, created_at)
    SELECT r.id, r.org, r.type, r.payload, daybook.job_input_hash(r.type, r.payload::text), r.key, r.state::daybook.job_state,
           greatest(r.ready_at, clock_timestamp()), greatest(r.ready_at, clock_timestamp()), r.attempts, r.max,
           r.last_attempted_at, r.last_error, r.code, r.result, r.finished_at, coalesce(r.created_at, clock_timestamp())
      FROM r
     ORDER BY r.org COLLATE "C", r.key COLLATE "C"
    ON CONFLICT DO NOTHING
    RETURNING id
), linked AS (
    INSERT INTO daybook.job_links (job_id, kind, id)
    SELECT DISTINCT r.id, l ->> 0, l ->> 1 FROM r CROSS JOIN LATERAL jsonb_array_elements(r.links) l WHERE r.id IN (SELECT id FROM inserted)
), logged AS (
    INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, error, started_at, ended_at, turn_id, fence)
    SELECT r.id, r.org, 'jobs', r.type, (h ->> 'n')::integer, CASE WHEN (h ->> 'final')::boolean THEN 'failed' ELSE 'retried' END::daybook.attempt_outcome,
           'HANDLER_ERROR', h ->> 'error', (h ->> 'at')::timestamptz, (h ->> 'at')::timestamptz, 'adopted', 0
      FROM r CROSS JOIN LATERAL jsonb_array_elements(coalesce(nullif(r.history, 'null'), '[]')) WITH ORDINALITY AS x (h, o)
     WHERE r.id IN (SELECT id FROM inserted)
     ORDER BY r.id, x.o
)
SELECT id FROM inserted`

// job is the row as a job of that id.
func (o *legacyOperation) job(id, table string) adoptedJob {
	j := adoptedJob{
		ID: id, Org: o.Org, Type: o.Type, Payload: o.Payload, Key: table + "/" + o.ID, State: models.JobPending,
		ReadyAt:         o.NextRetry,
		LastAttemptedAt: o.LastAttempt, CreatedAt: o.Created, Links: [][2]string{{"operation", o.ID}},
	}
	if o.Attempts != nil {
		j.Attempts = *o.Attempts
	}
	if o.Max != nil {
		j.Max = new(min(max(*o.Max, 1), 1000))
	}
	if o.Result != nil {
		j.Result = json.RawMessage(*o.Result)
	}
	for kind, linked := range map[string]*string{"submission": o.Submission, "form": o.Form, "workspace": o.Workspace} {
		if linked != nil && *linked != "" {
			j.Links = append(j.Links, [2]string{kind, *linked})
		}
	}
	ended := cmp.Or(o.Completed, o.LastAttempt, o.Updated, o.Created)
	if ended == nil {
		ended = new(time.Now())
	}
	switch o.Status {
	case statusFailed, statusDead:
		// A job of the state failed has an error.
		text := "the legacy queue has no error on record"
		if o.LastError != nil && *o.LastError != "" {
			text = *o.LastError
		}
		j.LastError, j.Code = new(text), new(string(models.CodeHandlerError))
	}
	switch o.Status {
	case statusDead:
		j.State, j.FinishedAt = models.JobFailed, ended
	case statusCompleted:
		j.State, j.FinishedAt = models.JobCompleted, ended
	case statusCancelled:
		j.State, j.FinishedAt = models.JobCancelled, ended
	}
	j.History = o.history(*ended)
	return j
}

// history are the errors of the row, each of an attempt. What is not written as the legacy queue
// writes it has the time otherwise.
func (o *legacyOperation) history(otherwise time.Time) []adoptedAttempt {
	var entries []struct {
		Error     json.RawMessage `json:"error"`
		Timestamp string          `json:"timestamp"`
		Attempt   int             `json:"attempt"`
	}
	if o.History == nil || json.Unmarshal([]byte(*o.History), &entries) != nil {
		return nil
	}
	list := make([]adoptedAttempt, len(entries))
	for i, e := range entries {
		var text string
		if json.Unmarshal(e.Error, &text) != nil {
			text = string(e.Error)
		}
		at, err := time.Parse(time.RFC3339, e.Timestamp)
		if err != nil || at.Year() < 1 || at.Year() > 9998 {
			at = otherwise
		}
		n := e.Attempt
		if n < 1 || n > 1_000_000 {
			n = i + 1
		}
		list[i] = adoptedAttempt{N: n, Error: text, At: at, Final: o.Status == statusDead && i == len(entries)-1}
	}
	return list
}

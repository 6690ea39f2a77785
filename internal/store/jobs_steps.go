package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Step is a part of an attempt at a background job whose result is kept for the attempts after it.
type Step struct {
	Name string
	// Position is the how many-th step of its attempt it was, from 1.
	Position int
	// Attempt is the attempt that kept it last.
	Attempt int
	// Result is JSON. Without Done it is where a loop goes on.
	Result json.RawMessage
	Done   bool
	// Times is how often it was kept: once, or once for each round of a loop.
	Times int
	// StartedAt is when the step, or the loop, was begun, KeptAt when it was kept last.
	StartedAt, KeptAt time.Time
	// Took is how long it took, of a step that is to be kept.
	Took time.Duration
}

// JobSteps reads the steps that are kept of a job, in the order in which they were begun.
func JobSteps(ctx context.Context, q Querier, jobID string) ([]Step, error) {
	const stmt = `
SELECT name, position, attempt, result, done, times, started_at, kept_at
  FROM daybook.job_steps WHERE job_id = $1 ORDER BY started_at, position`
	var s Step
	var steps []Step
	err := Each(ctx, q, []any{&s.Name, &s.Position, &s.Attempt, &s.Result, &s.Done, &s.Times, &s.StartedAt, &s.KeptAt},
		func() error {
			steps = append(steps, s)
			s.Result = nil
			return nil
		}, stmt, jobID)
	return steps, Wrap("read a job's steps", err)
}

// keepStepStmt keeps a step under the fence of its job's lease: the lock on the job keeps others
// from reclaiming it before the step is committed. A step that is there already is replaced by the
// next round of its loop alone; with @again also by itself, when an answer was lost.
const keepStepStmt = `
WITH held AS MATERIALIZED (
    SELECT id, awaited FROM daybook.jobs
     WHERE id = @id AND turn_id = @turn AND fence = @fence AND run_count = @attempt AND leased_generation = @generation
       FOR NO KEY UPDATE
), marked AS (
    UPDATE daybook.jobs j SET awaited = true FROM held h WHERE j.id = h.id AND NOT h.awaited
), kept AS (
    INSERT INTO daybook.job_steps AS s (job_id, name, position, attempt, result, done, times, started_at)
    SELECT h.id, @name, @position, @attempt, @result::text::jsonb, @done, @times, clock_timestamp() - make_interval(secs => @took) FROM held h
        ON CONFLICT (job_id, name) DO UPDATE
       SET position = excluded.position, attempt = excluded.attempt, result = excluded.result, done = excluded.done, times = excluded.times,
           kept_at = clock_timestamp()
     WHERE s.times = excluded.times - 1 OR @again AND s.times = excluded.times AND s.attempt = excluded.attempt
    RETURNING 1
)
SELECT CASE WHEN count(*) = 1 THEN count(*) ELSE daybook.lease_lost(1, count(*)) END FROM kept`

func (s *Step) args(turn Turn, j Job, again bool) Args {
	return turn.args(Args{
		"id": j.ID, "attempt": int32(j.Attempt), "generation": j.Generation, "name": s.Name,
		"position": int32(s.Position), "result": string(s.Result), "done": s.Done, "times": int32(s.Times),
		"took": s.Took.Seconds(), "again": again,
	})
}

// KeepStep implements engine.Completer.
func (s *Store) KeepStep(ctx context.Context, turn Turn, j Job, step Step) error {
	_, err := byKey(ctx, s.pool, pgx.RowTo[int], keepStepStmt, step.args(turn, j, true))
	return stepError(j, err)
}

// CommitStep implements engine.Completer.
func (s *Store) CommitStep(ctx context.Context, tx pgx.Tx, turn Turn, j Job, step Step, wait time.Duration) error {
	own, ok := tx.(*transaction)
	if !ok {
		return fmt.Errorf("job %s: the transaction was not begun by InTx", j.ID)
	}
	batch := &pgx.Batch{}
	batch.Queue(planWaiting, strconv.FormatInt(wait.Milliseconds(), 10))
	batch.Queue(keepStepStmt, step.args(turn, j, false))
	err := own.sendAndCommit(ctx, batch)
	if IsLockTimeout(err) {
		return fmt.Errorf("%w: %w", ErrRowHeld, err)
	}
	return stepError(j, err)
}

func stepError(j Job, err error) error {
	if SQLState(err) == stateLeaseLost {
		return fmt.Errorf("job %s: %w", j.ID, ErrLeaseLost)
	}
	return Wrap("keep a step", err)
}

// StepKept implements engine.Completer.
func (s *Store) StepKept(ctx context.Context, j Job, step Step) (json.RawMessage, error) {
	const stmt = `
SELECT result::text FROM daybook.job_steps WHERE job_id = @id AND name = @name AND times = @times AND attempt = @attempt`
	kept, err := byKey(ctx, s.pool, pgx.RowTo[string], stmt,
		Args{"id": j.ID, "name": step.Name, "times": int32(step.Times), "attempt": int32(j.Attempt)})
	if err != nil || len(kept) == 0 {
		return nil, Wrap("look for a step", err)
	}
	return json.RawMessage(kept[0]), nil
}

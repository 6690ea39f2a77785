package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models"
)

// LockChunk implements engine.Completer.
func (*TaskQueue) LockChunk(ctx context.Context, tx pgx.Tx, turn Turn, ids []string) ([]Job, error) {
	const stmt = `SELECT task_id::text, attempt FROM queues.lock_tasks($1, $2, $3)`
	jobs, err := Collect(ctx, tx, func(row pgx.CollectableRow) (j Job, err error) {
		err = row.Scan(&j.ID, &j.Attempt)
		return j, err
	}, stmt, turn.ID, turn.Fence, taskNumbers(ids))
	return jobs, Wrap("lock the chunk", err)
}

// Complete implements engine.Completer. A task that failed is completed as well: what went wrong is
// noted.
func (q *TaskQueue) Complete(ctx context.Context, tx pgx.Tx, turn Turn, completions []Completion,
	a Access,
) (Completed, error) {
	const (
		wait  = `SELECT set_config('lock_timeout', $1, true)`
		ended = `SELECT queues.end_tasks(@turn, @fence, @tasks, @attempts, @outcomes, @errors, @delays, @database)`
	)
	ordered := slices.Clone(completions)
	slices.SortFunc(ordered, func(a, b Completion) int { return cmp.Compare(taskNumber(a.Job.ID), taskNumber(b.Job.ID)) })
	var ids []int64
	var attempts []int32
	var outcomes []string
	var errs []*string
	var delays []float64
	var database []bool
	counts := Completed{}
	for _, c := range ordered {
		if c.Outcome == models.OutcomeCancelled {
			c.Outcome = models.OutcomeRescheduled // nothing cancels a task: it is left to be worked
		}
		var message *string
		if (c.Outcome == models.OutcomeFailed || c.Outcome == models.OutcomeRetried) && !c.Unlogged {
			message = new(clip(c.Message))
		}
		ids, attempts, outcomes = append(ids, taskNumber(c.Job.ID)), append(attempts, int32(c.Job.Attempt)),
			append(outcomes, string(c.Outcome))
		errs, delays = append(errs, message), append(delays, c.Delay.Seconds())
		database = append(database, c.Outcome == models.OutcomeRescheduled && c.Code == models.CodeDatabaseError)
		counts[c.Outcome]++
	}
	if counts[models.OutcomeCompleted] == len(ordered) {
		outcomes, errs, delays, database = nil, nil, nil, nil
	}
	batch := &pgx.Batch{}
	if a.Wait > 0 {
		batch.Queue(wait, strconv.FormatInt(max(a.Wait.Milliseconds(), 1), 10))
	}
	batch.Queue(ended, turn.args(Args{
		"tasks": ids, "attempts": attempts, "outcomes": outcomes, "errors": errs, "delays": delays, "database": database,
	}))
	if err := sendCompletion(ctx, tx, turn, batch, a); err != nil {
		return nil, err
	}
	return counts, nil
}

// PutOff says how often this attempt at a task was put off because of the database.
func (q *TaskQueue) PutOff(ctx context.Context, id string, attempt int) (int, error) {
	n, err := askTasks(ctx, q, pgx.RowTo[int], `SELECT queues.task_put_off($1, $2)`, taskNumber(id), attempt)
	if err != nil {
		return 0, Wrap("count what was put off", err)
	}
	return n[0], nil
}

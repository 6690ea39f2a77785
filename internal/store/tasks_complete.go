package store

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/failure"
	"github.com/daybook-dev/daybook/models"
)

// LockChunk locks those of the tasks that the turn still holds under its fence and that no other transaction holds locked, until the transaction ends.
func (*TaskQueue) LockChunk(ctx context.Context, tx pgx.Tx, turn Turn, ids []string) ([]Job, error) {
	const stmt = `SELECT task_id, attempt FROM queues.lock_tasks($1, $2, $3)`
	batch := &pgx.Batch{}
	batch.Queue(idleLimit)
	batch.Queue(stmt, turn.ID, turn.Fence, taskNumbers(ids))
	jobs, err := lastRows(ctx, tx, batch, func(row pgx.CollectableRow) (Job, error) {
		var j Job
		var id int64
		err := row.Scan(&id, &j.Attempt)
		j.ID = strconv.FormatInt(id, 10)
		return j, err
	})
	return jobs, Wrap("lock the chunk", err)
}

// taskEnds are completions as the arguments of queues.end_tasks, in the order of the tasks' numbers.
type taskEnds struct {
	ids      []int64
	attempts []int32
	outcomes []string
	errors   []*string
	delays   []float64
	database []bool
}

func (e *taskEnds) add(c Completion) {
	e.ids, e.attempts = append(e.ids, taskNumber(c.Job.ID)), append(e.attempts, int32(c.Job.Attempt))
	e.outcomes, e.delays = append(e.outcomes, string(c.Outcome)), append(e.delays, c.Delay.Seconds())
	var message *string
	if (c.Outcome == models.OutcomeFailed || c.Outcome == models.OutcomeRetried) && !c.Unlogged {
		message = new(clip(c.Message))
	}
	e.errors = append(e.errors, message)
	e.database = append(e.database, c.Outcome == models.OutcomeRescheduled && c.Code == models.CodeDatabaseError)
}

// Complete implements engine.Completer. A task that failed is completed as well: what went wrong is noted.
func (q *TaskQueue) Complete(ctx context.Context, tx pgx.Tx, turn Turn, completions []Completion, a Access) (Completed, error) {
	const (
		wait  = `SELECT set_config('lock_timeout', $1, true)`
		ended = `SELECT queues.end_tasks(@turn, @fence, @tasks, @attempts, @outcomes, @errors, @delays, @database)`
	)
	ordered := slices.Clone(completions)
	slices.SortFunc(ordered, func(a, b Completion) int { return cmp.Compare(taskNumber(a.Job.ID), taskNumber(b.Job.ID)) })
	var e taskEnds
	counts := Completed{}
	for _, c := range ordered {
		if c.Outcome == models.OutcomeCancelled {
			c.Outcome = models.OutcomeRescheduled // nothing cancels a task: it is left to be worked
		}
		e.add(c)
		counts[c.Outcome]++
	}
	if counts[models.OutcomeCompleted] == len(ordered) {
		e.outcomes, e.errors, e.delays, e.database = nil, nil, nil, nil
	}
	batch := &pgx.Batch{}
	if a.Wait > 0 {
		batch.Queue(wait, strconv.FormatInt(max(a.Wait.Milliseconds(), 1), 10))
	}
	batch.Queue(ended, turn.args(Args{
		"tasks": e.ids, "attempts": e.attempts, "outcomes": e.outcomes, "errors": e.errors, "delays": e.delays, "database": e.database,
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

// ErrNoTaskNotion is the error of the port's methods that make no sense for tasks.
var ErrNoTaskNotion = failure.New(failure.Internal, "tasks are always leased, and have no progress")

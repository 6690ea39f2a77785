package queuetest

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/tasks"
)

// TasksOptions say how DrainTasks works, and how far it goes. The zero value of each field is its
// default.
type TasksOptions struct {
	// Advance is how much time passes; default none. Tasks that fall due within it are worked as
	// well, in the order of their times. Tasks that wait longer are due that much earlier afterwards.
	// Only the times of waiting tasks change; clocks do not, nor do facts: a supervisor that compares
	// the time of an attempt with now() finds that no time has passed.
	Advance time.Duration
	// Timeout is how long draining may take, in real time, until the test fails; default 1 minute.
	Timeout time.Duration
	// WorkerPool is what tasks are worked on; default the pool of DrainTasks. With a pool of the role
	// worker_service_user the test finds functions that are not granted to it.
	WorkerPool *pgxpool.Pool
}

// DrainedTasks is what became of tasks.
type DrainedTasks struct {
	// Counts says how attempts ended. A task that Failed is completed, with what happened among its
	// Errors.
	Counts
	// Tasks are those that were handed out, as they are now, in the order in which they were
	// enqueued.
	Tasks []Task[queue.RawTask]
}

// DrainTasks works every task that is due and of a type of the registry, until nothing is due: what
// functions of the database enqueue is worked as well. Tasks of paused types are not worked. The
// pool is connected as the owner of schema queues.
//
// Tasks that fail do not fail the test; see RequireSucceeded.
func DrainTasks(tb testing.TB, pool *pgxpool.Pool, registry *tasks.Registry, o TasksOptions) DrainedTasks {
	tb.Helper()
	requirePool(tb, pool)
	requireRegistry(tb, registry)
	before, err := store.LastTaskLease(tb.Context(), pool)
	if err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	registry.Started()
	worker := cmp.Or(o.WorkerPool, pool)
	e := engine.NewTasks(store.NewTaskQueue(worker, registry.Names()...), registry, engine.Options{Log: logTo(tb)})
	defer e.Close()
	d := newDrainer(tb, store.NewTaskQueue(pool, registry.Names()...), e, o.Advance, o.Timeout)
	d.run()
	rows, err := store.LeasedTasksSince(tb.Context(), pool, before)
	if err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	drained := DrainedTasks{Counts: d.counts}
	for _, r := range rows {
		drained.Tasks = append(drained.Tasks, decodeTask[queue.RawTask](tb, r))
	}
	return drained
}

// RequireSucceeded fails the test, and lists the others with their errors, unless every task that
// was handed out is completed and has no error.
func (d DrainedTasks) RequireSucceeded(tb testing.TB) {
	tb.Helper()
	var others []string
	for _, t := range d.Tasks {
		if t.State != models.TaskCompleted || len(t.Errors) > 0 {
			message := "no error"
			if len(t.Errors) > 0 {
				message = shorten(t.Errors[len(t.Errors)-1])
			}
			others = append(others, "\n  "+t.Type+"  "+string(t.State)+"  "+message+"  "+shorten(string(t.Payload.Data)))
		}
	}
	if len(others) > 0 {
		tb.Fatalf("queuetest: %d of %d tasks did not succeed:%s", len(others), len(d.Tasks), strings.Join(others, ""))
	}
}

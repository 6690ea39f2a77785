package queuetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Task is a task as a test sees it.
type Task[P queue.TaskPayload] struct {
	ID int64
	// Type is the name under which it was enqueued.
	Type    string
	Payload P

	EnqueuedAt time.Time
	// ScheduledAt is from when on it is due.
	ScheduledAt time.Time

	State models.TaskState
	// Leases is how often it was handed out.
	Leases int
	// Errors are those that were noted, in their order.
	Errors []string
}

// EnqueuedTasks returns the tasks of P's type for which every match is true, in the order in which
// they were enqueued, in any state. Those that functions of the database enqueued are among them. A
// transaction also sees what it has enqueued itself, a pool only what is committed. If P is
// queue.RawTask, it finds tasks of every type.
func EnqueuedTasks[P queue.TaskPayload](tb testing.TB, q queue.Querier, match ...func(Task[P]) bool) []Task[P] {
	tb.Helper()
	requireQuerier(tb, q)
	var zero P
	rows, err := store.EnqueuedTasks(tb.Context(), q, zero.TaskType())
	if err != nil {
		tb.Fatalf("queuetest: %v", err)
	}
	var found []Task[P]
	for _, r := range rows {
		task := decodeTask[P](tb, r)
		if matches(task, match) {
			found = append(found, task)
		}
	}
	return found
}

// decodeTask reads a row as a task with a payload of P. It fails the test when the payload is none.
func decodeTask[P queue.TaskPayload](tb testing.TB, r store.EnqueuedTask) Task[P] {
	tb.Helper()
	task := Task[P]{
		ID: r.ID, Type: r.Type, EnqueuedAt: r.EnqueuedAt, ScheduledAt: r.ScheduledAt, State: r.State, Leases: r.Leases,
		Errors: r.Errors,
	}
	if raw, ok := any(&task.Payload).(*queue.RawTask); ok {
		*raw = queue.RawTask{Type: r.Type, Data: json.RawMessage(r.Payload)}
	} else if err := json.Unmarshal([]byte(r.Payload), &task.Payload); err != nil {
		tb.Fatalf("queuetest: task %d of type %s: its payload is no %T: %v", r.ID, r.Type, task.Payload, err)
	}
	return task
}

// RequireTaskEnqueued returns the one task that EnqueuedTasks finds. Unless there is exactly one,
// it fails the test and lists all tasks.
func RequireTaskEnqueued[P queue.TaskPayload](tb testing.TB, q queue.Querier, match ...func(Task[P]) bool) Task[P] {
	tb.Helper()
	found := EnqueuedTasks(tb, q, match...)
	if len(found) != 1 {
		var zero P
		tb.Fatalf("queuetest: want one task%s, found %d; %s", wanted(zero.TaskType(), match), len(found),
			taskInventory(tb, q))
	}
	return found[0]
}

// RequireTaskNotEnqueued fails the test and lists all tasks, when EnqueuedTasks finds one.
func RequireTaskNotEnqueued[P queue.TaskPayload](tb testing.TB, q queue.Querier, match ...func(Task[P]) bool) {
	tb.Helper()
	if found := EnqueuedTasks(tb, q, match...); len(found) > 0 {
		var zero P
		tb.Fatalf("queuetest: want no task%s, found %d; %s", wanted(zero.TaskType(), match), len(found),
			taskInventory(tb, q))
	}
}

// taskInventory lists the tasks that are there.
func taskInventory(tb testing.TB, q queue.Querier) string {
	tb.Helper()
	rows, err := store.EnqueuedTasks(tb.Context(), q, "")
	switch {
	case err != nil:
		return err.Error()
	case len(rows) == 0:
		return "there are no tasks at all"
	}
	var b strings.Builder
	b.WriteString("the tasks that are there:")
	for i, r := range rows {
		if i == listed {
			fmt.Fprintf(&b, "\n  and %d more", len(rows)-listed)
			break
		}
		fmt.Fprintf(&b, "\n  %d  %s  %s", r.ID, r.Type, r.State)
		if len(r.Errors) > 0 {
			fmt.Fprintf(&b, "  %s", shorten(r.Errors[len(r.Errors)-1]))
		}
		fmt.Fprintf(&b, "  %s", shorten(r.Payload))
	}
	return b.String()
}

package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Tasks is the Kind of tasks, which a store.TaskQueue works. Tasks have no organizations, priorities, requests that ask for them anew or cancel them,
// progress, and log of attempts: their facts are the log. Their lease is on record before they are worked, so none is picked.
func Tasks(q *store.TaskQueue) Kind { return tasks{q} }

type tasks struct{ *store.TaskQueue }

// PickTypes implements Picker: every task is to be leased.
func (tasks) PickTypes(context.Context, int, func(string) bool, store.Room) (Pick, error) {
	return noTasks{}, nil
}

// ReadOn implements Picker: each lease reads all.
func (tasks) ReadOn() {}

// HoldBack implements Picker: nothing holds tasks back.
func (tasks) HoldBack(string) (pause time.Duration, begun bool) { return 0, false }

// LeasePicked implements Leases.
func (tasks) LeasePicked(context.Context, pgx.Tx, store.Turn, []store.Job, bool) ([]string, error) {
	return nil, store.ErrNoTaskNotion
}

// CompletePicked implements Completer.
func (tasks) CompletePicked(context.Context, pgx.Tx, store.Turn, []store.Completion) (store.Completed, error) {
	return nil, store.ErrNoTaskNotion
}

// CompletePickedAndCommit implements Completer.
func (tasks) CompletePickedAndCommit(context.Context, pgx.Tx, store.Turn, []store.Completion) (store.Completed, error) {
	return nil, store.ErrNoTaskNotion
}

// SetProgress implements Completer.
func (tasks) SetProgress(context.Context, store.Turn, store.Job, []byte) error {
	return store.ErrNoTaskNotion
}

// CheckWaits implements Kind: no task waits for another one.
func (tasks) CheckWaits(context.Context) (store.CheckedWaits, error) {
	return store.CheckedWaits{}, nil
}

// NewReclaimer implements Kind.
func (t tasks) NewReclaimer() Reclaimer { return t.TaskQueue.NewReclaimer() }

// NewWaker implements Kind.
func (t tasks) NewWaker(interval time.Duration, log *slog.Logger) Waker {
	return tablesWaker{t.TaskQueue.NewWaker(interval, log)}
}

// noTasks is a pick without tasks: they are to be leased.
type noTasks struct{}

// Empty implements Pick.
func (noTasks) Empty() bool { return true }

// Wait implements Pick.
func (noTasks) Wait() time.Duration { return 0 }

// Counted implements Pick.
func (noTasks) Counted() bool { return false }

// Unread implements Pick.
func (noTasks) Unread() bool { return false }

// Others implements Pick.
func (noTasks) Others() bool { return true }

// Lock implements Pick.
func (noTasks) Lock(context.Context, pgx.Tx) ([]store.Job, error) { return nil, nil }

// Undo implements Pick.
func (noTasks) Undo() {}

// LeaveAlone implements Pick.
func (noTasks) LeaveAlone(bool) {}

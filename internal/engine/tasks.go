package engine

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Tasks is the Kind of tasks, which a store.TaskQueue works. Tasks have no organizations,
// priorities, requests that ask for them anew or cancel them, progress, and log of attempts: their
// facts are the log. Their lease is on record before they are worked, so none is picked.
func Tasks(q *store.TaskQueue) Kind { return tasks{q} }

type tasks struct{ *store.TaskQueue }

// PickTypes implements Picker: every task is to be leased.
func (tasks) PickTypes(context.Context, int, func(string) bool, store.Room) (*store.Pick, error) {
	return &store.Pick{Others: true}, nil
}

// Poll implements Transactions: a lease is all that is asked.
func (t tasks) Poll(ctx context.Context, _ store.Room) (store.Polled, error) {
	fence, err := t.NextFence(ctx)
	return store.Polled{Fence: fence}, err
}

// ReadOn implements Picker: each lease reads all.
func (tasks) ReadOn() {}

// HoldBack implements Picker: nothing holds tasks back.
func (tasks) HoldBack(string) (pause time.Duration, begun bool) { return 0, false }

// LeasePicked implements Leases.
func (tasks) LeasePicked(context.Context, pgx.Tx, store.Turn, []store.Job, bool) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// SetProgress implements Completer.
func (tasks) SetProgress(context.Context, store.Turn, store.Job, []byte) error {
	return errors.ErrUnsupported
}

// CheckWaits implements Kind: no task waits for another one.
func (tasks) CheckWaits(context.Context) (store.CheckedWaits, error) {
	return store.CheckedWaits{}, errors.ErrUnsupported
}

// NewReclaimer implements Kind. The queue is its own Reclaimer: what it has seen before does not
// count.
func (t tasks) NewReclaimer() Reclaimer { return t }

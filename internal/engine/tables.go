package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Tables is the Kind whose rows are updated in place, which a store works: accounting and jobs.
func Tables(s *store.Store) Kind { return tables{s} }

type tables struct{ *store.Store }

// Name implements Kind.
func (t tables) Name() string { return t.Kind().Name }

// PickTypes implements Picker.
func (t tables) PickTypes(ctx context.Context, limit int, may func(jobType string) bool, room store.Room) (Pick, error) {
	p, err := t.Store.PickTypes(ctx, limit, may, room)
	return tablesPick{p}, err
}

// LockChunk implements Completer.
func (t tables) LockChunk(ctx context.Context, tx pgx.Tx, turn store.Turn, ids []string) ([]store.Job, error) {
	return t.Kind().LockChunk(ctx, tx, turn, ids)
}

// Complete implements Completer.
func (t tables) Complete(ctx context.Context, tx pgx.Tx, turn store.Turn, completions []store.Completion) (store.Completed, error) {
	return t.Kind().Complete(ctx, tx, turn, completions)
}

// CompletePicked implements Completer.
func (t tables) CompletePicked(ctx context.Context, tx pgx.Tx, turn store.Turn, completions []store.Completion) (store.Completed, error) {
	return t.Kind().CompletePicked(ctx, tx, turn, completions)
}

// CompleteUnlocked implements Completer.
func (t tables) CompleteUnlocked(ctx context.Context, tx pgx.Tx, turn store.Turn, completions []store.Completion, patience time.Duration) (store.Completed, error) {
	return t.Kind().CompleteUnlocked(ctx, tx, turn, completions, patience)
}

// NewReclaimer implements Kind.
func (t tables) NewReclaimer() Reclaimer { return t.Store.NewReclaimer() }

// NewWaker implements Kind.
func (t tables) NewWaker(log *slog.Logger) Waker {
	return tablesWaker{store.NewWaker(t.Pool(), t.Kind(), log)}
}

type tablesPick struct{ *store.Pick }

// Counted implements Pick.
func (p tablesPick) Counted() bool { return p.Capped }

// Others implements Pick.
func (p tablesPick) Others() bool { return p.Pick.Others }

type tablesWaker struct{ *store.Waker }

// Subscribe implements Waker.
func (w tablesWaker) Subscribe(urgent bool) Waiter { return w.Waker.Subscribe(urgent) }

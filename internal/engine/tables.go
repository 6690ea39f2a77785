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

// Settle implements Completer.
func (t tables) Settle(ctx context.Context, tx pgx.Tx, turn store.Turn, settlements []store.Settlement) (store.Settled, error) {
	return t.Kind().Settle(ctx, tx, turn, settlements)
}

// SettlePicked implements Completer.
func (t tables) SettlePicked(ctx context.Context, tx pgx.Tx, turn store.Turn, settlements []store.Settlement) (store.Settled, error) {
	return t.Kind().SettlePicked(ctx, tx, turn, settlements)
}

// SettleUnlocked implements Completer.
func (t tables) SettleUnlocked(ctx context.Context, tx pgx.Tx, turn store.Turn, settlements []store.Settlement, patience time.Duration) (store.Settled, error) {
	return t.Kind().SettleUnlocked(ctx, tx, turn, settlements, patience)
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

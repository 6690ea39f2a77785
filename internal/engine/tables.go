package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// Tables returns a store's queue as a Kind. The kinds accounting and jobs, whose rows are updated in place, share it.
func Tables(s *store.Store) Kind { return tables{s, s.Kind()} }

type tables struct {
	*store.Store
	*store.Kind
}

// Name implements Kind.
func (t tables) Name() string { return t.Kind.Name }

// PickTypes implements Picker.
func (t tables) PickTypes(ctx context.Context, limit int, may func(jobType string) bool, room store.Room) (Pick, error) {
	p, err := t.Store.PickTypes(ctx, limit, may, room)
	return tablesPick{p}, err
}

// NewReclaimer implements Kind.
func (t tables) NewReclaimer() Reclaimer { return t.Store.NewReclaimer() }

// NewWaker implements Kind.
func (t tables) NewWaker(interval time.Duration, log *slog.Logger) Waker {
	return tablesWaker{store.NewWaker(t.Pool(), t.Kind, interval, log)}
}

type tablesPick struct{ *store.Pick }

// Counted implements Pick.
func (p tablesPick) Counted() bool { return p.Capped }

// Unread implements Pick.
func (p tablesPick) Unread() bool { return p.Outlook.Unread }

// Others implements Pick.
func (p tablesPick) Others() bool { return p.Pick.Others }

type tablesWaker struct{ *store.Waker }

// Subscribe implements Waker.
func (w tablesWaker) Subscribe(urgent bool) Waiter { return w.Waker.Subscribe(urgent) }

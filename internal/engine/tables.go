package engine

import "github.com/daybook-dev/daybook/internal/store"

// Tables returns a store's queue as a Kind. The kinds accounting and jobs, whose rows are updated in place, share it.
func Tables(s *store.Store) Kind { return tables{s, s.Kind()} }

type tables struct {
	*store.Store
	*store.Kind
}

// Name implements Kind.
func (t tables) Name() string { return t.Kind.Name }

// NewReclaimer implements Kind.
func (t tables) NewReclaimer() Reclaimer { return t.Store.NewReclaimer() }

package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// able returns the bundle with a store of a worker that has these abilities.
func (b *bundle) able(can store.Abilities) *bundle {
	b.t.Helper()
	kind, err := store.AccountingFor(can)
	require.NoError(b.t, err)
	other := *b
	other.store = store.NewQueue(b.Pool, kind)
	return &other
}

// needy has one job each of an organization that follows the defaults, of one with a source, and of
// one with hooks.
func (b *bundle) needy() {
	b.t.Helper()
	for _, org := range []string{"plain", "shop", "told"} {
		b.pending(org, 2, 1)
	}
	b.exec(`SELECT daybook.set_source('shop', 'shop'), daybook.set_hooks('told', '{mail,audit}')`)
}

// workers are some workers and what each may work of needy.
var workers = []struct {
	name string
	can  store.Abilities
	want map[string]int
}{
	{"a stock worker", store.Abilities{Sources: []string{"daybook"}}, map[string]int{"plain_2": 1}},
	{"its own source alone", store.Abilities{Sources: []string{"shop"}}, map[string]int{"shop_2": 1}},
	{"both sources", store.Abilities{Sources: []string{"daybook", "shop"}}, map[string]int{"plain_2": 1, "shop_2": 1}},
	{
		"one hook of two",
		store.Abilities{Sources: []string{"daybook"}, Hooks: []string{"mail"}},
		map[string]int{"plain_2": 1},
	},
	{
		"more hooks than are asked for",
		store.Abilities{Sources: []string{"daybook"}, Hooks: []string{"mail", "audit", "more"}},
		map[string]int{"plain_2": 1, "told_2": 1},
	},
	{"nothing", store.Abilities{}, map[string]int{}},
}

// TestWorkersLeaseWhatTheyCover leases, picks and counts only what the worker may work.
func TestWorkersLeaseWhatTheyCover(t *testing.T) {
	t.Parallel()
	for _, w := range workers {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.needy()
			b = b.able(w.can)
			due, _, err := b.store.Due(t.Context())
			require.NoError(t, err)
			assert.Equal(t, len(w.want), due)

			tx, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			pick, err := b.store.Pick(t.Context(), 10, pgtest.Unbounded())
			require.NoError(t, err)
			picked := []store.Job{}
			if !pick.Empty() {
				picked, err = pick.Lock(t.Context(), tx)
				require.NoError(t, err)
			}
			assert.Equal(t, w.want, byOrg(picked))
			require.NoError(t, tx.Rollback(t.Context()))

			b = b.able(w.can)
			assert.Equal(t, w.want, byOrg(b.lease(b.turn("run/0/1"), 10)))
			assert.Empty(t, b.lease(b.turn("run/0/1"), 10))
		})
	}
}

// TestDefaultsAreForAll changes the source of every organization that names none.
func TestDefaultsAreForAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.needy()
	b.exec(`SELECT daybook.set_source('told', 'daybook')`)
	b.exec(`SELECT daybook.set_default_source('ledgers'), daybook.set_default_hooks('{audit}')`)
	all := b.able(store.Abilities{Sources: []string{"ledgers", "daybook", "shop"}, Hooks: []string{"audit"}})
	assert.Equal(t, map[string]int{"plain_2": 1, "shop_2": 1}, byOrg(all.lease(all.turn("run/0/1"), 10)))
	assert.Empty(t, b.lease(b.turn("run/0/2"), 10))
}

// TestReclaimGivesBackWhatIsNotCovered has a stock worker reclaim what a worker with more sources
// leased.
func TestReclaimGivesBackWhatIsNotCovered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.needy()
	able := b.able(store.Abilities{Sources: []string{"daybook", "shop"}, Hooks: []string{"mail", "audit"}})
	turn := able.turn("run/0/1")
	require.Len(t, able.lease(turn, 10), 3)
	b.exec(`UPDATE daybook.accounting_work_queue SET working = true`)

	taken, err := b.store.ReclaimTurns(t.Context(), b.turn("run/0/1"), []string{"run/0/1"}, true)
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"plain_2": 1}, byOrg(taken.Jobs))
	assert.Equal(t, 3, taken.Lost, "the attempts that were being made are in the log")

	again := able.lease(able.turn("run/0/2"), 10)
	require.Len(t, again, 2)
	for _, j := range again {
		assert.Equal(t, 2, j.Attempt, "the attempt that ended with its worker counts, being handed on does not")
		assert.Equal(t, 1, j.Reclaims)
	}
}

// TestAbilitiesAreNames refuses what would have to be quoted.
func TestAbilitiesAreNames(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "the shop", "Shop", "a'b", "a}", `a"`, "a,b", "-a", "é", "null\x00"} {
		_, err := store.AccountingFor(store.Abilities{Sources: []string{bad}})
		require.ErrorIs(t, err, store.ErrInvalid, "%q", bad)
		_, err = store.AccountingFor(store.Abilities{Hooks: []string{bad}})
		require.ErrorIs(t, err, store.ErrInvalid, "%q", bad)
	}
}

// TestHasLeftBesideManyOrganizations: the question whether other workers have something to do reads
// no organization that names neither a source nor hooks, also while the planner takes the table for
// a small one.
func TestHasLeftBesideManyOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`ALTER TABLE daybook.organizations SET (autovacuum_enabled = false)`)
	b.exec(`INSERT INTO daybook.organizations (id, name) SELECT 'org_' || i, 'many' FROM generate_series(1, 20000) i`)
	pool, err := pgxpool.NewWithConfig(t.Context(), b.Pool.Config())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	kind, err := store.AccountingFor(store.Abilities{Sources: []string{"daybook"}})
	require.NoError(t, err)
	s := store.NewQueue(pool, kind)
	hasLeft := func() (left bool) {
		pages := b.pagesOf("daybook.organizations", pool, func() {
			left, err = s.HasLeft(t.Context())
			require.NoError(t, err)
		})
		assert.Less(t, pages, int64(20))
		return left
	}
	assert.False(t, hasLeft())
	b.needy()
	assert.True(t, hasLeft())
}

package store_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// picked picks n jobs in a transaction that is rolled back, and returns their organizations.
func (b *bundle) picked(n int, undo bool) (orgs []string) {
	b.t.Helper()
	pick, err := b.store.Pick(b.t.Context(), n, pgtest.Unbounded())
	require.NoError(b.t, err)
	require.ErrorIs(b.t, b.store.InTx(b.t.Context(), func(tx pgx.Tx) error {
		jobs, err := pick.Lock(b.t.Context(), tx)
		require.NoError(b.t, err)
		for _, j := range jobs {
			orgs = append(orgs, j.OrgID)
		}
		return context.Canceled
	}), context.Canceled)
	if undo {
		pick.Undo()
	}
	return orgs
}

// The organizations of a pick that came to nothing keep their places in the round, whether they
// have more to do or not.
func TestUndoGivesBackThePlaceInTheRound(t *testing.T) {
	t.Parallel()
	for name, jobs := range map[string]int{"with more to do": 5, "with nothing else": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint)
SELECT o, 'd' || i, 1 FROM unnest('{a,b,c,d,e}'::text[]) AS o, generate_series(1, $1::integer) AS i`, jobs)
			first := b.picked(2, true)
			require.Len(t, first, 2)
			assert.Equal(t, first, b.picked(2, true), "it is still their turn")
			assert.Equal(t, first, b.picked(2, false))
			assert.NotSubset(t, first, b.picked(2, false), "the others follow")
		})
	}
}

package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TestCompletionCommits: a completion that commits its transaction commits what was written in it
// before. One whose lease is lost commits nothing, although COMMIT was sent with it.
func TestCompletionCommits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE effects (name text)`)
	b.pending("a", 2, 2)
	turn := b.turn("run/0/1")
	jobs := b.lease(turn, 2)
	require.Len(t, jobs, 2)
	s, connections := b.oneConnection()
	complete := func(turn store.Turn, name string, jobs ...store.Job) (kept []pgx.Tx, err error) {
		err = s.InTx(t.Context(), func(tx pgx.Tx) error {
			savepoint, err := tx.Begin(t.Context())
			require.NoError(t, err)
			kept = append(kept, tx, savepoint)
			_, err = tx.Exec(t.Context(), `INSERT INTO effects VALUES ($1)`, name)
			require.NoError(t, err)
			completions := make([]store.Completion, len(jobs))
			for i, j := range jobs {
				completions[i] = store.Completion{Job: j, Outcome: models.OutcomeCompleted}
			}
			_, err = store.Accounting.Complete(t.Context(), tx, turn, completions,
				store.Access{Wait: time.Second, Commit: true})
			return err
		})
		return kept, err
	}
	later := turn
	later.Fence++
	_, err := complete(later, "lost", jobs[0])
	require.ErrorIs(t, err, store.ErrLeaseLost)
	assert.True(t, store.IsTransient(err))
	_, err = complete(turn, "first", jobs[0])
	require.NoError(t, err)
	_, err = complete(turn, "half lost", jobs...)
	require.ErrorIs(t, err, store.ErrLeaseLost)
	kept, err := complete(turn, "second", jobs[1])
	require.NoError(t, err)

	rows, err := b.Pool.Query(t.Context(), `SELECT name FROM effects ORDER BY name`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	assert.Equal(t, []string{"first", "second"}, names)
	for _, tx := range kept {
		_, err := tx.Exec(t.Context(), `INSERT INTO effects VALUES ('late')`)
		require.ErrorIs(t, err, pgx.ErrTxClosed, "the connection is in the pool again")
	}
	assert.EqualValues(t, 1, connections(), "the same connection served all of them")
}

// oneConnection returns a store with a pool of one connection, and how many the pool has made so
// far.
func (b *bundle) oneConnection() (s *store.Store, made func() int64) {
	b.t.Helper()
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(b.t, err)
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(b.t.Context(), config)
	require.NoError(b.t, err)
	b.t.Cleanup(pool.Close)
	return store.New(pool), func() int64 { return pool.Stat().NewConnsCount() }
}

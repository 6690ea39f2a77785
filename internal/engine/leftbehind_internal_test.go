package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// givenBackLate is a Kind with which a job is given back as soon as a lease has looked.
type givenBackLate struct {
	Kind
	giveBack func()
}

func (k *givenBackLate) LeaseFor(ctx context.Context, turn store.Turn, limit int, room store.Room) (store.Leased, error) {
	leased, err := k.Kind.LeaseFor(ctx, turn, limit, room)
	if k.giveBack != nil {
		k.giveBack()
		k.giveBack = nil
	}
	return leased, err
}

// TestFetchSeesWhatIsGivenBackMeanwhile: a job that was left behind, and is given back after the lease of
// a fetch has looked, is leased by that fetch. Otherwise it would report that nothing is held and
// nothing is due, and a run that exits when the queue is empty would leave the job.
func TestFetchSeesWhatIsGivenBackMeanwhile(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, done)
	kind := e.kind
	enqueueNamed(t, db, 1)
	before := store.Turn{ID: "run/0/1"}
	var err error
	before.Fence, err = kind.NextFence(t.Context())
	require.NoError(t, err)
	leased, err := kind.LeaseFor(t.Context(), before, 10, pgtest.Unbounded())
	require.NoError(t, err)
	require.Len(t, leased.Jobs, 1)
	lock, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = lock.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = lock.Exec(t.Context(), `SELECT FROM daybook.jobs FOR UPDATE`)
	require.NoError(t, err)

	e.kind = &givenBackLate{Kind: kind, giveBack: func() {
		require.NoError(t, lock.Commit(t.Context()))
		n, err := kind.GiveBack(t.Context(), before, nil, 0)
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}}
	got, err := e.Fetch(t.Context(), FetchRequest{
		Turn: store.Turn{ID: "run/0/2"}, Batch: 10, LeftBehind: []string{before.ID},
	})
	require.NoError(t, err)
	assert.Equal(t, 1, got.Leased)
	assert.Empty(t, got.LeftBehind)
}

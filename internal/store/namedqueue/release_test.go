package namedqueue_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/namedqueue"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A program asks for its settings each time that it starts. What a person has set counts until that
// is taken back.
func TestWhatAPersonSetsCountsAfterAProgramsStart(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	starts := func(most int, changes bool) {
		changed, err := queue.SetQueue(t.Context(), db.Pool,
			queue.NamedQueue{Name: "bank", MaxParallel: most, Rate: 7, Fleet: "shop"})
		require.NoError(t, err)
		assert.Equal(t, changes, changed, "with %d", most)
	}
	now := func() store.NamedQueue {
		u, err := store.QueueOf(t.Context(), db.Pool, "bank")
		require.NoError(t, err)
		return u
	}
	starts(10, true)
	starts(10, false)
	assert.Equal(t, 10, now().MaxParallel)
	assert.Empty(t, now().SetBy, "it is the program's")
	starts(11, true)
	assert.Equal(t, 11, now().MaxParallel)

	ada, _ := actions.Begin(t.Context(), actions.Action{Via: actions.CLI, Action: "queues.set", Actor: "ada"})
	set := func(most int) {
		_, _, err := namedqueue.Set(ada, db.Pool, "bank",
			func(u store.NamedQueue) store.NamedQueue { u.MaxParallel = most; return u })
		require.NoError(t, err)
	}
	set(2)
	starts(11, false)
	assert.Equal(t, 2, now().MaxParallel)
	assert.Equal(t, "ada", now().SetBy)
	assert.NotNil(t, now().SetAt)
	starts(12, false)
	set(3)
	starts(12, false)
	assert.Equal(t, 3, now().MaxParallel)

	u, _, err := namedqueue.Release(ada, db.Pool, "bank")
	require.NoError(t, err)
	assert.Equal(t, 12, u.MaxParallel, "what the program asked for last")
	assert.Equal(t, "shop", u.Fleet)
	assert.Equal(t, 7, u.Rate)
	assert.Empty(t, u.SetBy)
	starts(13, true)
	assert.Equal(t, 13, now().MaxParallel)

	// Without a program since, the settings from before the person's count again.
	set(1)
	u, _, err = namedqueue.Release(ada, db.Pool, "bank")
	require.NoError(t, err)
	assert.Equal(t, 13, u.MaxParallel)
	_, _, err = namedqueue.Release(ada, db.Pool, "none")
	require.ErrorIs(t, err, store.ErrQueueNotFound)
}

// Also of a queue that a person has made: the program that is started afterwards does not undo its
// limit.
func TestWhatAPersonHasMade(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := namedqueue.Create(t.Context(), db.Pool, store.NamedQueue{Name: "bank", MaxParallel: 2})
	require.NoError(t, err)
	_, err = queue.SetQueue(t.Context(), db.Pool, queue.NamedQueue{Name: "bank", MaxParallel: 10})
	require.NoError(t, err)
	u, err := store.QueueOf(t.Context(), db.Pool, "bank")
	require.NoError(t, err)
	assert.Equal(t, 2, u.MaxParallel)
	assert.Equal(t, "an operator", u.SetBy)
	u, _, err = namedqueue.Release(t.Context(), db.Pool, "bank")
	require.NoError(t, err)
	assert.Equal(t, 10, u.MaxParallel)
}

package kindtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// cursorContracts are that cursors hide nothing that is due.
var cursorContracts = []contract{
	{"new work is found while others work", newWork, []notion{priorities, organizations}},
	{"a late commit is found", lateCommit, nil},
	{"a raised priority is found", raisedPriority, []notion{priorities, requests}},
	{"steady work hides no old row", steadyWork, nil},
	{"what another process gave back is found", givenBackElsewhere, nil},
}

// An organization, and a job of high priority, are added while a long queue is drained.
func newWork(b *bundle) {
	b.filled("a", 2, 20000)
	turn := b.turn("run/0/1")
	require.Len(b.t, b.lease(turn, 10), 10)
	b.filled("b", 2, 1)
	b.filled("a", 1, 1)
	want := map[string]bool{"b_2": true, "a_1": true}
	b.eventually(func() bool {
		for key := range byPriority(b.lease(turn, 10)) {
			delete(want, key)
		}
		return len(want) == 0
	}, "both are found")
}

// A job became due before others that have been leased since, and is committed after that.
func lateCommit(b *bundle) {
	ctx := b.t.Context()
	tx, err := b.Pool.Begin(ctx)
	require.NoError(b.t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	late, err := b.enqueue(ctx, tx, "a", "late", 2, 0)
	require.NoError(b.t, err)
	turn := b.turn("run/0/1")
	for i := range 20 {
		b.one("a", fmt.Sprint("key-", i), 2, 0)
		require.Len(b.t, b.lease(turn, 10), 1)
	}
	require.NoError(b.t, tx.Commit(ctx))
	var found []string
	b.eventually(func() bool {
		found = ids(b.lease(turn, 10))
		return len(found) > 0
	}, "the late job is found")
	assert.Equal(b.t, []string{late}, found)
}

// A waiting job is asked for again with a higher priority, at which later ones were worked already.
func raisedPriority(b *bundle) {
	b.filled("a", 2, 5000)
	click := b.one("a", "click", 2, 0)
	b.filled("a", 1, 1)
	turn := b.turn("run/0/1")
	require.Contains(b.t, ids(b.lease(turn, 2)), b.filledID("a", 1, 1), "the cursor of the high priority has moved on")
	require.Equal(b.t, click, b.one("a", "click", 1, 0))
	round := 0
	b.eventually(func() bool {
		round++
		require.Less(b.t, round, 1000, "what was raised is not leased")
		return slices.Contains(ids(b.lease(turn, 2)), click)
	}, "what was raised is leased")
}

// A worker that keeps up with a steady stream of new jobs also finds a row that no look at what has
// just become due sees, of an organization that was paused for instance.
func steadyWork(b *bundle) {
	turn := b.turn("run/0/1")
	require.Empty(b.t, b.lease(turn, 10))
	old := b.one("zzz", "old", 2, time.Hour)
	require.NoError(b.t, b.due(b.t.Context(), old, -time.Hour))
	i := 0
	b.eventually(func() bool {
		i++
		b.one("a", fmt.Sprint("new-", i), 2, 0)
		return slices.Contains(ids(b.lease(turn, 10)), old)
	}, "the old row is found")
}

// Its place in the order lies behind the cursor of a process that has gone on.
func givenBackElsewhere(b *bundle) {
	b.filled("a", 2, 300)
	other, theirs := b.open(), b.turn("run/1/1")
	leased, err := other.LeaseFor(b.t.Context(), theirs, 5, pgtest.Unbounded())
	require.NoError(b.t, err)
	require.Len(b.t, leased.Jobs, 5)
	turn := b.turn("run/0/1")
	require.Len(b.t, b.lease(turn, 10), 10)
	n, err := other.GiveBack(b.t.Context(), theirs, nil, 0)
	require.NoError(b.t, err)
	require.Equal(b.t, 5, n)
	var found []store.Job
	b.eventually(func() bool {
		for _, j := range b.lease(turn, 10) {
			if slices.Contains(ids(leased.Jobs), j.ID) {
				found = append(found, j)
			}
		}
		return len(found) == 5
	}, "what was given back is leased")
	for _, j := range found {
		assert.Equal(b.t, 1, j.Attempt, "uncounted")
	}
}

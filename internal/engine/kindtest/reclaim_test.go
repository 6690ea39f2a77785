package kindtest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// reclaimContracts are about leases that their holders do not renew.
var reclaimContracts = []contract{
	{"expired leases are reclaimed after a while", reclaimedAfterAWhile, []notion{watching}},
	{"only what was worked is charged", reclaimCharges, nil},
	{"a lease whose time is ahead of the database's clock counts from now on", leaseAhead, nil},
	{"an outage gives holders time", outageGivesTime, []notion{watching}},
	{"processes that look at the same moments do not hinder each other", reclaimersBesideEachOther, nil},
}

// checkUntil checks again and again, as the engine does, until done says so.
func (b *bundle) checkUntil(r engine.Reclaimer, done func(store.Reclaimed) bool) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		got, _, err := r.Check(b.t.Context())
		return assert.NoError(b.t, err) && done(got)
	}, time.Minute, 200*time.Millisecond)
}

// Not at once, because the holder may be about to renew them; one that is renewed meanwhile, and
// one whose row a transaction holds locked, stay.
func reclaimedAfterAWhile(b *bundle) {
	ctx := b.t.Context()
	b.filled("a", 2, 3)
	gone, renews, locked := b.resting("run/0/1"), b.resting("run/0/2"), b.resting("run/0/3")
	var leased []store.Job
	for _, turn := range []store.Turn{gone, renews, locked} {
		leased = append(leased, b.lease(turn, 1)...)
		require.NoError(b.t, b.expire(ctx, turn.ID))
	}
	require.Len(b.t, leased, 3)
	r := b.kind.NewReclaimer()
	b.locking(func() {
		got, _, err := r.Check(ctx)
		require.NoError(b.t, err)
		assert.Zero(b.t, got.Jobs, "its holder has time to renew it")
		held, err := b.kind.Renew(ctx, renews, []string{}, 0)
		require.NoError(b.t, err)
		require.Len(b.t, held.Held, 1)

		b.checkUntil(r, func(got store.Reclaimed) bool {
			// Not begun, so not charged.
			assert.Zero(b.t, got.Lost)
			if got.Jobs == 0 {
				_, err := b.kind.Renew(ctx, renews, []string{}, 0)
				require.NoError(b.t, err)
			}
			return got.Jobs == 1
		})
		left, err := b.kind.TurnsWithLeases(ctx, []string{gone.ID, renews.ID, locked.ID})
		require.NoError(b.t, err)
		assert.Equal(b.t, []string{renews.ID, locked.ID}, left)
	}, leased[2].ID)
	// Its holder has not had the time to renew since the row was unlocked.
	got, _, err := r.Check(ctx)
	require.NoError(b.t, err)
	assert.Zero(b.t, got.Jobs)
}

// Its job keeps its place in the order: it comes before what was enqueued after it.
func reclaimCharges(b *bundle) {
	ctx := b.t.Context()
	b.filled("a", 2, 5)
	id := func(n int) string { return b.filledID("a", 2, n) }
	require.NoError(b.t, b.last(ctx, id(4)))
	gone := b.resting("run/0/1")
	require.Len(b.t, b.lease(gone, 4), 4)
	begun, err := b.kind.BeginWaiting(ctx, gone, []string{id(1), id(4)})
	require.NoError(b.t, err)
	require.Len(b.t, begun.Working, 2)
	want := []string{id(1), id(2), id(3), id(5)}
	if b.has(requests) {
		require.NoError(b.t, b.cancel(ctx, b.Pool, id(3)))
		want = []string{id(1), id(2), id(5)}
	}
	require.NoError(b.t, b.expire(ctx, gone.ID))
	var got store.Reclaimed
	b.checkUntil(b.kind.NewReclaimer(), func(r store.Reclaimed) bool { got = r; return r.Jobs > 0 })
	assert.Equal(b.t, 2, got.Lost)
	assert.Equal(b.t, 1, got.Failed)
	b.pending(id(1), 1, "charged")
	if b.has(attemptLog) {
		assert.Equal(b.t, models.OutcomeLost, b.log(id(1))[0].Outcome)
	}
	b.pending(id(2), 0, "it waited")
	assert.Empty(b.t, b.log(id(2)))
	if b.has(requests) {
		assert.Equal(b.t, models.JobCancelled, b.read(id(3)).State)
	}
	assert.Equal(b.t, models.JobFailed, b.read(id(4)).State)
	_, err = b.complete(gone, done, store.Job{ID: id(1), Attempt: 1, StartedAt: time.Now()})
	assert.ErrorIs(b.t, err, store.ErrLeaseLost)
	var order []string
	next := b.turn("run/0/2")
	b.eventually(func() bool {
		for _, j := range b.lease(next, 1) {
			order = append(order, j.ID)
			if j.ID == id(1) {
				assert.Equal(b.t, 2, j.Attempt)
				assert.Equal(b.t, 1, j.Reclaims)
			}
		}
		return len(order) == len(want)
	}, "what was reclaimed is leased")
	assert.Equal(b.t, want, order)
}

// The database's clock was set back by a day. A holder that lives keeps its job; that of another
// one is due when its lease has expired, and not a day later.
func leaseAhead(b *bundle) {
	ctx := b.t.Context()
	b.filled("a", 2, 3)
	lives, gone, ends := b.turn("run/0/1"), b.turn("run/0/2"), b.turn("run/0/3")
	kept, lost, back := b.lease(lives, 1), b.lease(gone, 1), b.lease(ends, 1)
	require.Len(b.t, slices.Concat(kept, lost, back), 3)
	require.NoError(b.t, b.ahead(ctx))
	for i := range kept {
		kept[i].StartedAt = kept[i].StartedAt.Add(24 * time.Hour)
	}
	n, err := b.kind.GiveBack(ctx, ends, nil, 0)
	require.NoError(b.t, err)
	assert.Equal(b.t, 1, n)
	assert.LessOrEqual(b.t, b.read(back[0].ID).Due, 0.0)
	got, _, err := b.kind.NewReclaimer().Check(ctx)
	require.NoError(b.t, err)
	assert.Zero(b.t, got.Jobs, "its holder has time to renew it")
	for _, j := range append(kept, lost...) {
		assert.InDelta(b.t, 0, b.read(j.ID).Age, 60, "the lease counts from now on")
	}
	_, err = b.complete(lives, done, kept...)
	require.NoError(b.t, err)
	require.NoError(b.t, b.expire(ctx, gone.ID))
	b.checkUntil(b.kind.NewReclaimer(), func(got store.Reclaimed) bool { return got.Jobs == 1 })
	assert.LessOrEqual(b.t, b.read(lost[0].ID).Due, 0.0)
	leased, next := 0, b.turn("run/0/4")
	b.eventually(func() bool {
		leased += len(b.lease(next, 2))
		return leased == 2
	}, "what was given back and what was reclaimed are leased")
}

// A Reclaimer that was cut off like the holders begins anew to watch what has expired meanwhile.
func outageGivesTime(b *bundle) {
	turn := b.turn("run/0/1")
	b.leased(turn, 1)
	require.NoError(b.t, b.expire(b.t.Context(), turn.ID))
	r := b.kind.NewReclaimer()
	began := time.Now()
	b.checkUntil(r, func(got store.Reclaimed) bool {
		require.Zero(b.t, got.Jobs)
		return time.Since(began) > 3*time.Second
	})
	cut, cancel := context.WithCancel(b.t.Context())
	cancel()
	_, _, err := r.Check(cut)
	require.Error(b.t, err)
	restored := time.Now()
	b.checkUntil(r, func(got store.Reclaimed) bool { return got.Jobs == 1 })
	assert.GreaterOrEqual(b.t, time.Since(restored), 4*time.Second)
}

// None takes another one's look at a row for its holder's lock.
func reclaimersBesideEachOther(b *bundle) {
	turn := b.turn("run/0/1")
	b.leased(turn, 1)
	require.NoError(b.t, b.expire(b.t.Context(), turn.ID))
	all := []engine.Reclaimer{b.kind.NewReclaimer(), b.open().NewReclaimer(), b.open().NewReclaimer()}
	require.Eventually(b.t, func() bool {
		var reclaimed atomic.Int64
		var looking sync.WaitGroup
		for _, r := range all {
			looking.Go(func() {
				got, _, err := r.Check(b.t.Context())
				assert.NoError(b.t, err)
				reclaimed.Add(int64(got.Jobs))
			})
		}
		looking.Wait()
		return reclaimed.Load() == 1
	}, pgtest.Patience, 200*time.Millisecond)
}

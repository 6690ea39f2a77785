package kindtest

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// leaseContracts are about the leases that a turn holds.
var leaseContracts = []contract{
	{"a lease is counted and named", leaseIsNamed, nil},
	{"fences grow, over all processes", fencesGrow, nil},
	{"a poll draws a fence and sees what is due", polls, nil},
	{"held are the turn's under its fence", held, nil},
	{"another fence changes nothing", otherFence, nil},
	{"renewals", renewals, nil},
	{"a renewal misses what is locked", renewalMisses, nil},
	{"a renewal says what is to be cancelled", renewalTells, []notion{requests}},
	{"what keeps leases needs no free connection of the pool", keptWhenCrowded, nil},
	{"giving back is uncounted", givenBack, nil},
	{"giving back some, after a delay", givenBackLater, nil},
	{"giving back what an earlier activity held", givenBackOfEarlier, nil},
	{"giving back skips what is locked", givenBackLocked, nil},
	{"what is marked as worked", markWorking, nil},
	{"what waits, and begins", waitsAndBegins, nil},
	{"handing over is all or nothing", handOver, nil},
	{"handing over again changes nothing", handOverAgain, nil},
}

func leaseIsNamed(b *bundle) {
	turn := b.turn("run/0/1")
	j := b.leased(turn, 1)[0]
	got := b.read(j.ID)
	assert.Equal(b.t, models.JobLeased, got.State)
	assert.Equal(b.t, 1, got.Attempts)
	assert.Equal(b.t, turn.ID, got.Turn)
	assert.Equal(b.t, turn.Fence, got.Fence)
	assert.True(b.t, got.Working, "the turn begins at once")
	assert.Equal(b.t, 1, j.Attempt)
	if b.has(organizations) {
		assert.Equal(b.t, org, j.OrgID)
	}
	assert.False(b.t, j.StartedAt.IsZero())
	b.filled("b", 2, 1)
	waits := b.lease(b.resting("run/0/2"), 1)
	require.Len(b.t, waits, 1)
	assert.False(b.t, b.read(waits[0].ID).Working, "the turn begins later")
}

func fencesGrow(b *bundle) {
	last, other := int64(0), b.open()
	for range 5 {
		for _, kind := range []engine.Kind{b.kind, other} {
			fence, err := kind.NextFence(b.t.Context())
			require.NoError(b.t, err)
			assert.Greater(b.t, fence, last)
			last = fence
		}
	}
}

func polls(b *bundle) {
	last := b.turn("run/0/1")
	for range 3 { // the first lease reads all, and a later poll may know that
		polled, err := b.kind.Poll(b.t.Context(), pgtest.Unbounded())
		require.NoError(b.t, err)
		next := last
		next.Fence = polled.Fence
		assert.Greater(b.t, next.Fence, last.Fence)
		assert.Empty(b.t, b.lease(next, 1))
		last = next
	}
	b.filled("a", 2, 1)
	polled, err := b.kind.Poll(b.t.Context(), pgtest.Unbounded())
	require.NoError(b.t, err)
	b.filled("b", 2, 1)
	last.Fence = polled.Fence
	require.Eventually(b.t, func() bool { return len(b.lease(last, 10)) > 0 }, time.Minute, 10*time.Millisecond)
	require.Eventually(b.t, func() bool {
		b.lease(last, 10)
		held, err := b.kind.Held(b.t.Context(), last)
		return assert.NoError(b.t, err) && len(held) == 2
	}, time.Minute, 10*time.Millisecond, "what came after the poll is found as well")
}

func held(b *bundle) {
	ctx := b.t.Context()
	turn, other := b.turn("run/0/1"), b.turn("run/0/2")
	mine := b.leased(turn, 3)
	b.filled("b", 2, 1)
	require.Len(b.t, b.lease(other, 1), 1)
	read := func(turn store.Turn) []string {
		held, err := b.kind.Held(ctx, turn)
		require.NoError(b.t, err)
		return held
	}
	b.locking(func() { assert.ElementsMatch(b.t, ids(mine), read(turn), "locked or not") }, mine[0].ID)
	for name, no := range others(turn) {
		assert.Empty(b.t, read(no), name)
	}
	with, err := b.kind.TurnsWithLeases(ctx, []string{turn.ID, "run/0/9", other.ID})
	require.NoError(b.t, err)
	assert.ElementsMatch(b.t, []string{turn.ID, other.ID}, with)
	_, err = b.complete(turn, done, mine...)
	require.NoError(b.t, err)
	assert.Empty(b.t, read(turn))
	with, err = b.kind.TurnsWithLeases(ctx, []string{turn.ID})
	require.NoError(b.t, err)
	assert.Empty(b.t, with)
}

// others are turns that do not hold what turn holds.
func others(turn store.Turn) map[string]store.Turn {
	lower, higher, other := turn, turn, turn
	lower.Fence--
	higher.Fence += 1000
	other.ID = "run/9/9"
	return map[string]store.Turn{"a lower fence": lower, "a higher fence": higher, "another turn": other}
}

func otherFence(b *bundle) {
	ctx := b.t.Context()
	turn := b.turn("run/0/1")
	j := b.leased(turn, 1)[0]
	require.NoError(b.t, b.expire(ctx, turn.ID))
	before := b.read(j.ID)
	for name, no := range others(turn) {
		renewed, err := b.kind.Renew(ctx, no, []string{}, 0)
		require.NoError(b.t, err, name)
		assert.Empty(b.t, renewed.Held, name)
		require.NoError(b.t, b.kind.MarkWaiting(ctx, no, []string{j.ID}), name)
		begun, err := b.kind.BeginWaiting(ctx, no, []string{j.ID})
		require.NoError(b.t, err, name)
		assert.Zero(b.t, len(begun.Working)+len(begun.Held)+begun.Cancelled, name)
		to := no
		to.ID = "run/detached"
		handed, err := b.kind.HandOver(ctx, no, to, []string{j.ID})
		require.NoError(b.t, err, name)
		assert.False(b.t, handed, name)
		_, err = b.complete(no, done, j)
		assert.ErrorIs(b.t, err, store.ErrLeaseLost, name)
		if no.Fence <= turn.Fence {
			// A higher fence is a later activity of the same turn, which gives back what the earlier one
			// held.
			n, err := b.kind.GiveBack(ctx, no, nil, 0)
			require.NoError(b.t, err, name)
			assert.Zero(b.t, n, name)
		}
	}
	after := b.read(j.ID)
	assert.Greater(b.t, after.Age, 3000.0, "it is not renewed")
	before.Age, after.Age, before.Due, after.Due = 0, 0, 0, 0
	assert.Equal(b.t, before, after)
	assert.Empty(b.t, b.log(j.ID))
}

func renewals(b *bundle) {
	ctx := b.t.Context()
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 3)
	require.NoError(b.t, b.expire(ctx, turn.ID))
	renewed, err := b.kind.Renew(ctx, turn, []string{jobs[2].ID}, time.Minute)
	require.NoError(b.t, err)
	assert.ElementsMatch(b.t, ids(jobs), renewed.Held, "overdue jobs are held as well")
	assert.False(b.t, renewed.Missed)
	assert.Less(b.t, b.read(jobs[0].ID).Age, 60.0)
	assert.Less(b.t, b.read(jobs[1].ID).Age, 60.0)
	assert.Greater(b.t, b.read(jobs[2].ID).Age, 3000.0, "an overdue one is left to expire")
	assert.Empty(b.t, renewed.Asked)
	// What is young is not written again.
	age := b.read(jobs[0].ID).Age
	_, err = b.kind.Renew(ctx, turn, []string{}, time.Minute)
	require.NoError(b.t, err)
	assert.Greater(b.t, b.read(jobs[0].ID).Age, age)
}

// renewalTells: a renewal says which jobs are to be cancelled, the young and the overdue as well,
// and those that another transaction holds.
func renewalTells(b *bundle) {
	ctx := b.t.Context()
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 3)
	for _, j := range jobs[:2] {
		require.NoError(b.t, b.cancel(ctx, b.Pool, j.ID))
	}
	b.locking(func() {
		renewed, err := b.kind.Renew(ctx, turn, []string{jobs[1].ID}, time.Minute)
		require.NoError(b.t, err)
		assert.ElementsMatch(b.t, ids(jobs), renewed.Held)
		assert.ElementsMatch(b.t, ids(jobs[:2]), renewed.Asked)
	}, jobs[0].ID)
}

func keptWhenCrowded(b *bundle) {
	const conns = 2
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 2)
	kind, pool := b.openOn(b.t, conns)
	for range conns {
		conn, err := pool.Acquire(b.t.Context())
		require.NoError(b.t, err)
		defer conn.Release()
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), pgtest.Patience)
	defer cancel()
	renewed, err := kind.Renew(ctx, turn, []string{}, 0)
	require.NoError(b.t, err)
	assert.ElementsMatch(b.t, ids(jobs), renewed.Held)
	assert.True(b.t, renewed.Crowded)
	// Nothing is renewed while a hand-over waits.
	held, err := kind.Held(ctx, turn)
	require.NoError(b.t, err)
	assert.ElementsMatch(b.t, ids(jobs), held)
	to := turn
	to.ID = "detached"
	handed, err := kind.HandOver(ctx, turn, to, ids(jobs))
	require.NoError(b.t, err)
	assert.True(b.t, handed)
}

func renewalMisses(b *bundle) {
	ctx := b.t.Context()
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 2)
	require.NoError(b.t, b.expire(ctx, turn.ID))
	b.locking(func() {
		renewed, err := b.kind.Renew(ctx, turn, []string{}, time.Second)
		require.NoError(b.t, err)
		assert.True(b.t, renewed.Missed)
		assert.ElementsMatch(b.t, ids(jobs), renewed.Held)
	}, jobs[0].ID)
	assert.Less(b.t, b.read(jobs[1].ID).Age, 60.0)
}

func givenBack(b *bundle) {
	ctx := b.t.Context()
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 3)
	if b.has(requests) {
		require.NoError(b.t, b.cancel(ctx, b.Pool, jobs[2].ID))
	}
	n, err := b.kind.GiveBack(ctx, turn, nil, 0)
	require.NoError(b.t, err)
	assert.Equal(b.t, 3, n)
	b.pending(jobs[0].ID, 0, "given back")
	if b.has(requests) {
		assert.Equal(b.t, models.JobCancelled, b.read(jobs[2].ID).State, "that was asked for")
	}
	assert.Empty(b.t, b.log(jobs[0].ID), "no attempt is logged")
	n, err = b.kind.GiveBack(ctx, turn, nil, 0)
	require.NoError(b.t, err)
	assert.Zero(b.t, n)
	again := b.turn("run/0/2")
	b.eventually(func() bool { return len(b.lease(again, 10)) > 0 }, "they are leased again")
	assert.Equal(b.t, 1, b.read(jobs[0].ID).Attempts)
}

func givenBackLater(b *bundle) {
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 2)
	n, err := b.kind.GiveBack(b.t.Context(), turn, []string{jobs[1].ID}, time.Minute)
	require.NoError(b.t, err)
	assert.Equal(b.t, 1, n)
	assert.Equal(b.t, models.JobLeased, b.read(jobs[0].ID).State)
	got := b.read(jobs[1].ID)
	assert.Equal(b.t, models.JobPending, got.State)
	assert.InDelta(b.t, 60, got.Due, 30)
	assert.Zero(b.t, got.Attempts)
}

func givenBackOfEarlier(b *bundle) {
	earlier := b.turn("run/0/1")
	j := b.leased(earlier, 1)[0]
	n, err := b.kind.GiveBack(b.t.Context(), b.turn("run/0/1"), nil, 0)
	require.NoError(b.t, err)
	assert.Equal(b.t, 1, n)
	b.pending(j.ID, 0, "given back")
}

func givenBackLocked(b *bundle) {
	ctx := b.t.Context()
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 2)
	b.locking(func() {
		n, err := b.kind.GiveBack(ctx, turn, nil, 0)
		require.NoError(b.t, err)
		assert.Equal(b.t, 1, n)
		left, err := b.kind.TurnsWithLeases(ctx, []string{turn.ID})
		require.NoError(b.t, err)
		assert.Equal(b.t, []string{turn.ID}, left)
	}, jobs[0].ID)
	assert.Equal(b.t, models.JobLeased, b.read(jobs[0].ID).State)
	b.pending(jobs[1].ID, 0, "given back")
}

func markWorking(b *bundle) {
	ctx := b.t.Context()
	turn := b.resting("run/0/1")
	jobs := b.leased(turn, 3)
	b.locking(func() {
		begun, err := b.kind.BeginWaiting(ctx, turn, []string{jobs[0].ID, jobs[1].ID, "no such job"})
		require.NoError(b.t, err)
		assert.Equal(b.t, []string{jobs[1].ID}, begun.Working, "what is locked is skipped")
	}, jobs[0].ID)
	assert.False(b.t, b.read(jobs[0].ID).Working)
	assert.True(b.t, b.read(jobs[1].ID).Working)
	assert.False(b.t, b.read(jobs[2].ID).Working)
}

func waitsAndBegins(b *bundle) {
	ctx := b.t.Context()
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 4)
	require.NoError(b.t, b.kind.MarkWaiting(ctx, turn, ids(jobs)))
	assert.False(b.t, b.read(jobs[0].ID).Working)
	if b.has(requests) {
		require.NoError(b.t, b.cancel(ctx, b.Pool, jobs[1].ID))
	} else {
		_, err := b.complete(turn, done, jobs[1])
		require.NoError(b.t, err)
	}
	_, err := b.complete(turn, done, jobs[2])
	require.NoError(b.t, err)
	require.NoError(b.t, b.expire(ctx, turn.ID))
	var begun store.Begun
	b.locking(func() {
		begun, err = b.kind.BeginWaiting(ctx, turn, ids(jobs))
		require.NoError(b.t, err)
	}, jobs[3].ID)
	assert.Equal(b.t, []string{jobs[0].ID}, begun.Working)
	assert.Equal(b.t, []string{jobs[3].ID}, begun.Held, "it waits on")
	if b.has(requests) {
		assert.Equal(b.t, models.JobCancelled, b.read(jobs[1].ID).State)
	}
	assert.True(b.t, b.read(jobs[0].ID).Working)
	assert.False(b.t, b.read(jobs[3].ID).Working)
}

func handOver(b *bundle) {
	ctx := b.t.Context()
	from := b.turn("run/0/1")
	to := from
	to.ID = "detached"
	jobs := b.leased(from, 3)
	refused := func(why string, list ...string) {
		handed, err := b.kind.HandOver(ctx, from, to, list)
		require.NoError(b.t, err, why)
		assert.False(b.t, handed, why)
		for _, j := range jobs {
			assert.NotEqual(b.t, to.ID, b.read(j.ID).Turn, why)
		}
	}
	b.locking(func() { refused("one is locked", ids(jobs)...) }, jobs[1].ID)
	refused("one is not the turn's", jobs[0].ID, "no such job")
	require.NoError(b.t, b.expire(ctx, from.ID))
	handed, err := b.kind.HandOver(ctx, from, to, ids(jobs[:2]))
	require.NoError(b.t, err)
	assert.True(b.t, handed)
	for _, j := range jobs[:2] {
		got := b.read(j.ID)
		assert.Equal(b.t, to.ID, got.Turn)
		assert.Equal(b.t, from.Fence, got.Fence, "the fence stays")
		assert.Equal(b.t, 1, got.Attempts)
		assert.Less(b.t, got.Age, 60.0, "the lease is young")
	}
	assert.Equal(b.t, from.ID, b.read(jobs[2].ID).Turn, "the others stay")
	_, err = b.complete(from, done, jobs[0])
	require.ErrorIs(b.t, err, store.ErrLeaseLost)
	_, err = b.complete(to, done, jobs[0])
	require.NoError(b.t, err)
}

// The result of the first call may be unknown.
func handOverAgain(b *bundle) {
	ctx := b.t.Context()
	from := b.turn("run/0/1")
	to := from
	to.ID = "detached"
	jobs := b.leased(from, 2)
	for _, list := range [][]string{ids(jobs[:1]), ids(jobs), ids(jobs)} {
		handed, err := b.kind.HandOver(ctx, from, to, list)
		require.NoError(b.t, err)
		assert.True(b.t, handed)
	}
	held, err := b.kind.Held(ctx, to)
	require.NoError(b.t, err)
	assert.ElementsMatch(b.t, ids(jobs), held)
}

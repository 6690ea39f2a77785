package kindtest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// orderContracts are which due jobs are leased, and in which order.
var orderContracts = []contract{
	{"many callers lease disjoint jobs", manyCallers, nil},
	{"locked rows are skipped", leaseSkipsLocked, nil},
	{"priority, then age", priorityThenAge, []notion{priorities}},
	{"the limit is kept", limitIsKept, nil},
	{"organizations take turns", organizationsTakeTurns, []notion{organizations}},
	{"priorities share", prioritiesShare, []notion{priorities, organizations}},
	{"leases of one leave a fifth to low priority", leasesOfOne, []notion{priorities, organizations}},
	{"the oldest of an organization first", oldestFirst, nil},
	{"a paused organization", pausedOrganization, []notion{organizations}},
	{"a cap holds over all workers", capHolds, []notion{organizations}},
	{"the outlook says when to look again", outlook, nil},
}

func manyCallers(b *bundle) {
	const n, callers = 600, 12
	for p := 1; p <= 3; p++ {
		b.filled(org, p, n/3)
	}
	var mu sync.Mutex
	holders := map[string]int{}
	var g errgroup.Group
	for caller := range callers {
		kind := b.kind
		if caller%3 == 0 {
			kind = b.open() // another process
		}
		g.Go(func() error {
			fence, err := kind.NextFence(b.t.Context())
			if err != nil {
				return err
			}
			turn := store.Turn{ID: fmt.Sprint("run/", caller, "/1"), Fence: fence}
			// What another caller holds locked for a moment is passed over, and may be what is left.
			for empty := 0; empty < 10; {
				leased, err := kind.LeaseFor(b.t.Context(), turn, 7, pgtest.Unbounded())
				if err != nil {
					return err
				}
				if empty++; len(leased.Jobs) > 0 {
					empty = 0
				} else {
					<-time.After(5 * time.Millisecond)
				}
				mu.Lock()
				for _, j := range leased.Jobs {
					holders[j.ID]++
				}
				mu.Unlock()
			}
			return nil
		})
	}
	require.NoError(b.t, g.Wait())
	assert.Len(b.t, holders, n, "every job is leased")
	for id, times := range holders {
		assert.Equal(b.t, 1, times, "times that %s was leased", id)
	}
	b.counts(n, models.JobLeased)
	assert.Equal(b.t, 1, b.read(b.filledID(org, 2, 1)).Attempts)
}

// Two workers lease at once: the second passes over what the first has locked and not yet
// committed.
func leaseSkipsLocked(b *bundle) {
	b.filled(org, 2, 4)
	first, third := b.filledID(org, 2, 1), b.filledID(org, 2, 3)
	b.locking(func() {
		assert.ElementsMatch(b.t, []string{b.filledID(org, 2, 2), b.filledID(org, 2, 4)},
			ids(b.lease(b.turn("run/0/1"), 10)))
	}, first, third)
	// A caller that finds nothing but locked rows is told to look again, and finds them when they are
	// unlocked.
	var rest []string
	b.eventually(func() bool {
		rest = append(rest, ids(b.lease(b.turn("run/0/2"), 10))...)
		return len(rest) == 2
	}, "what was locked is leased")
	assert.ElementsMatch(b.t, []string{first, third}, rest)
}

func priorityThenAge(b *bundle) {
	at := func(key string, priority models.Priority, in time.Duration) string {
		id := b.one(org, key, priority, 0)
		require.NoError(b.t, b.due(b.t.Context(), id, in))
		return id
	}
	lowOld, normalYoung, normalOld := at("low old", 3, -15*time.Minute), at("normal young", 2, -time.Second),
		at("normal old", 2, -8*time.Minute)
	highYoung, highOld := at("high young", 1, -time.Second), at("high old", 1, -2*time.Second)
	at("high future", 1, time.Minute)
	at("normal future", 2, time.Hour)
	at("low future", 3, 30*time.Second)
	turn := b.turn("run/0/1")
	for _, want := range []string{highOld, highYoung, normalOld, normalYoung, lowOld} {
		assert.Equal(b.t, []string{want}, ids(b.lease(turn, 1)))
	}
	assert.Empty(b.t, b.lease(turn, 10), "jobs that are due later")
}

func limitIsKept(b *bundle) {
	for p := 1; p <= 3; p++ {
		b.filled(org, p, 10)
	}
	leased := b.lease(b.turn("run/0/1"), 12)
	assert.Len(b.t, leased, 12)
	b.counts(12, models.JobLeased)
	for n := 1; n <= 10; n++ {
		assert.Contains(b.t, ids(leased), b.filledID(org, 1, n), "the high ones first")
	}
}

// One organization has a hundred times the work of the others.
func organizationsTakeTurns(b *bundle) {
	b.filled("big", 2, 5000)
	for i := range 9 {
		b.filled(fmt.Sprintf("small%d", i), 2, 50)
	}
	turn := b.turn("run/0/1")
	first := byOrg(b.lease(turn, 100))
	require.Len(b.t, first, 10, "every organization got something: %v", first)
	for org, n := range first {
		assert.Equal(b.t, 10, n, org)
	}
	// Fewer than there are organizations: over the rounds all get the same.
	total := map[string]int{}
	for range 10 {
		for org, n := range byOrg(b.lease(turn, 4)) {
			total[org] += n
		}
	}
	for org, n := range total {
		assert.Equal(b.t, 4, n, org)
	}
	// What the small ones leave over is the big one's.
	rest := byOrg(b.lease(turn, 2000))
	assert.Equal(b.t, 36, rest["small0"])
	assert.Equal(b.t, 2000-9*36, rest["big"])
}

// byPriority counts jobs that fill made by organization and priority.
func byPriority(jobs []store.Job) map[string]int {
	counts := map[string]int{}
	for _, j := range jobs {
		counts[j.ID[:len(j.ID)-len("_00000001")]]++
	}
	return counts
}

// High work comes first, and never all of it at the cost of the rest.
func prioritiesShare(b *bundle) {
	for _, org := range []string{"a", "b"} {
		for p := 1; p <= 3; p++ {
			b.filled(org, p, 1000)
		}
	}
	got := byPriority(b.lease(b.turn("run/0/1"), 100))
	assert.Equal(b.t, map[string]int{"a_1": 40, "b_1": 40, "a_2": 8, "b_2": 8, "a_3": 2, "b_3": 2}, got)
	assert.Len(b.t, b.lease(b.turn("run/0/2"), 1), 1)
}

// Also when there is never more room than for one.
func leasesOfOne(b *bundle) {
	for _, limit := range []int{1, 2, 4, 7} {
		org := fmt.Sprint("leases-of-", limit)
		b.kind = b.open()
		b.filled(org, 1, 500)
		b.filled(org, 3, 500)
		turn := b.turn("run/0/1")
		total := map[string]int{}
		for leased := 0; leased < 280; leased += limit {
			for key, n := range byPriority(b.lease(turn, limit)) {
				total[key] += n
			}
		}
		assert.InDelta(b.t, 224, total[org+"_1"], 3, org)
		assert.InDelta(b.t, 56, total[org+"_3"], 3, org)
		b.change(func(tx pgx.Tx) error { _, err := store.PauseOrganization(b.t.Context(), tx, org); return err })
	}
}

// Across many leases.
func oldestFirst(b *bundle) {
	b.filled("a", 2, 100)
	turn := b.turn("run/0/1")
	var got []string
	for range 10 {
		batch := ids(b.lease(turn, 10))
		require.Len(b.t, batch, 10)
		for _, id := range batch {
			for _, before := range got {
				require.Less(b.t, before, id)
			}
		}
		got = append(got, batch...)
	}
	assert.Empty(b.t, b.lease(turn, 10))
}

// It is paused and resumed in the middle of the work.
func pausedOrganization(b *bundle) {
	ctx := b.t.Context()
	b.filled("a", 2, 100)
	b.filled("b", 2, 100)
	turn := b.turn("run/0/1")
	require.Equal(b.t, map[string]int{"a": 5, "b": 5}, byOrg(b.lease(turn, 10)))
	b.change(func(tx pgx.Tx) error { _, err := store.PauseOrganization(ctx, tx, "a"); return err })
	for range 5 {
		require.NotContains(b.t, byOrg(b.lease(turn, 10)), "a")
	}
	for len(b.lease(turn, 10)) > 0 {
	}
	b.counts(95, models.JobPending)
	b.change(func(tx pgx.Tx) error { _, err := store.ResumeOrganization(ctx, tx, "a"); return err })
	// The rows are old: a scan finds them, which is not made again at once.
	b.eventually(func() bool { return byOrg(b.lease(turn, 10))["a"] == 10 }, "the organization is worked again")
}

// Several workers lease at once, each with cursors of its own, and complete in between.
func capHolds(b *bundle) {
	limit := 7
	b.change(func(tx pgx.Tx) error { _, err := store.CapOrganization(b.t.Context(), tx, "a", &limit); return err })
	b.filled("a", 2, 300)
	b.filled("a", 1, 100)
	b.filled("b", 2, 300)
	var mu sync.Mutex
	leased, most := 0, 0
	note := func(jobs []store.Job, by int) {
		mu.Lock()
		defer mu.Unlock()
		leased += by * byOrg(jobs)["a"]
		most = max(most, leased)
	}
	var group errgroup.Group
	for w := range 4 {
		kind, turn := b.open(), b.turn(fmt.Sprintf("run/%d/1", w))
		group.Go(func() error {
			for empty := 0; empty < 20; {
				got, err := kind.LeaseFor(b.t.Context(), turn, 10, pgtest.Unbounded())
				if err != nil {
					return err
				}
				if len(got.Jobs) == 0 {
					empty++
					<-time.After(5 * time.Millisecond)
					continue
				}
				empty = 0
				note(got.Jobs, 1)
				<-time.After(time.Millisecond)
				note(got.Jobs, -1)
				// The lease of another worker may hold a row for a moment, until it sees that it came too
				// late.
				for left := got.Jobs; len(left) > 0; {
					err := kind.InTx(b.t.Context(), func(tx pgx.Tx) error {
						locked, err := kind.LockChunk(b.t.Context(), tx, turn, ids(left))
						if err != nil || len(locked) == 0 {
							return err
						}
						gone := ids(locked)
						left = slices.DeleteFunc(slices.Clone(left), func(j store.Job) bool { return slices.Contains(gone, j.ID) })
						_, err = kind.Complete(b.t.Context(), tx, turn, all(done, locked), store.Access{})
						return err
					})
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	require.NoError(b.t, group.Wait())
	assert.LessOrEqual(b.t, most, limit)
	assert.Greater(b.t, most, limit/2, "the cap was used")
	b.counts(700, models.JobCompleted)
}

// A caller that finds nothing due is told when there will be something.
func outlook(b *bundle) {
	turn := b.turn("run/0/1")
	leased, err := b.kind.LeaseFor(b.t.Context(), turn, 10, pgtest.Unbounded())
	require.NoError(b.t, err)
	assert.Zero(b.t, leased.Wait(), "nothing is known of")
	b.one("a", "in an hour", 2, time.Hour)
	b.one("b", "in five minutes", 3, 5*time.Minute)
	// A scan is not made again at once; the outlook says when.
	b.eventually(func() bool {
		leased, err = b.kind.LeaseFor(b.t.Context(), turn, 10, pgtest.Unbounded())
		require.NoError(b.t, err)
		return leased.Due > 0 && leased.Again == 0
	}, "everything is seen")
	assert.Empty(b.t, leased.Jobs)
	assert.Less(b.t, leased.Due, 5*time.Minute+time.Second)
	assert.Greater(b.t, leased.Due, 4*time.Minute)
	assert.Equal(b.t, leased.Due, leased.Wait())
}

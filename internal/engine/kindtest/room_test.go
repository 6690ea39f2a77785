package kindtest

import (
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// roomContracts are about leases for which there is room.
var roomContracts = []contract{
	{"room is reserved for what is leased", roomIsReserved, nil},
	{"jobs without a handler are left alone", withoutHandler, nil},
	{"a type is leased up to its limit over all workers", everywhere, nil},
}

// room is room for the jobs of one type.
type room struct {
	mu sync.Mutex
	// handles: there is a handler. left is for how many there is room, limit how many may be leased
	// over all workers.
	handles     bool
	left, limit int
	full        bool
}

func (r *room) Handles(string, int) bool { return r.handles }

func (r *room) Free(string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handles && r.left > 0 && !r.full
}

func (r *room) Reserve(_ string, most int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.handles || r.full {
		return 0
	}
	n := min(most, r.left)
	r.left -= n
	return n
}

func (r *room) Return(_ string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += n
}

func (r *room) Everywhere(string) int { return r.limit }

func (r *room) Full(string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = true
}

func (r *room) Open(string) bool { return true }

func (r *room) QueueFull(string, time.Duration) {}

func (b *bundle) leaseFor(turn store.Turn, limit int, r store.Room) store.Leased {
	b.t.Helper()
	leased, err := b.kind.LeaseFor(b.t.Context(), turn, limit, r)
	require.NoError(b.t, err)
	return leased
}

func roomIsReserved(b *bundle) {
	b.filled(org, 2, 10)
	r := &room{handles: true, left: 4}
	turn := b.turn("run/0/1")
	first := b.leaseFor(turn, 10, r)
	assert.Len(b.t, first.Jobs, 4, "for as many as there is room")
	assert.Zero(b.t, r.left)
	assert.True(b.t, first.Passed, "others are due for which there was no room")
	assert.Empty(b.t, b.leaseFor(turn, 10, r).Jobs)
	// Room that is reserved and not used is returned: six jobs are left.
	r.Return("", 20)
	var second []store.Job
	b.eventually(func() bool {
		second = append(second, b.leaseFor(turn, 20, r).Jobs...)
		return len(second) == 6
	}, "the others are leased when there is room")
	assert.Equal(b.t, 14, r.left)
}

func withoutHandler(b *bundle) {
	b.filled(org, 2, 3)
	for range 5 {
		assert.Empty(b.t, b.leaseFor(b.turn("run/0/1"), 10, &room{left: 10}).Jobs)
	}
	b.pending(b.filledID(org, 2, 1), 0, "it is left as it was")
}

// What other workers lease counts, and what is leased without a limit does not.
func everywhere(b *bundle) {
	if b.jobType() == "" {
		b.t.Skip("the kind's jobs have no types")
	}
	b.filled(org, 2, 20)
	limited := func() *room { return &room{handles: true, left: 10, limit: 3} }
	turn := b.turn("run/0/1")
	require.Len(b.t, b.lease(turn, 5), 5)
	var mine []store.Job
	b.eventually(func() bool {
		mine = append(mine, b.leaseFor(turn, 10, limited()).Jobs...)
		return len(mine) == 3
	}, "as many as the limit are leased")
	other := b.open()
	for range 10 {
		r := limited()
		leased, err := other.LeaseFor(b.t.Context(), b.turn("run/1/1"), 10, r)
		require.NoError(b.t, err)
		require.Empty(b.t, leased.Jobs, "the limit holds over all workers")
		assert.Equal(b.t, 10, r.left, "the room is returned")
	}
	_, err := b.complete(turn, done, mine[0])
	require.NoError(b.t, err)
	b.eventually(func() bool {
		leased, err := other.LeaseFor(b.t.Context(), b.turn("run/1/1"), 10, limited())
		require.NoError(b.t, err)
		return len(leased.Jobs) == 1
	}, "one has ended, and one is leased")
}

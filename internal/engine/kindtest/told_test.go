package kindtest

import (
	"sync"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
)

// toldContracts are about what Observe tells of.
var toldContracts = []contract{
	{"what is given back", toldGivenBack, nil},
	{"what a crashed activity has lost", toldReclaimedTurns, nil},
	{"what has expired", toldReclaimed, nil},
	{"what is cancelled before it begins", toldCancelled, []notion{requests}},
}

// told is what Observe told of.
type told struct {
	mu  sync.Mutex
	all []store.Change
}

// observe has the bundle's kind tell.
func (b *bundle) observe() *told {
	t := &told{}
	b.kind.Observe(func(changes []store.Change) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.all = append(t.all, changes...)
	})
	return t
}

// line is what a change says, for comparison.
type line struct {
	What    events.Name
	ID      string
	Attempt int
	Turn    string
	Counted bool
}

func (t *told) lines() (lines []line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.all {
		lines = append(lines, line{c.What, c.Job.ID, c.Job.Attempt, c.Turn, c.Counted})
	}
	return lines
}

func toldGivenBack(b *bundle) {
	t := b.observe()
	turn := b.turn("run/0/1")
	jobs := b.leased(turn, 2)
	assert.Empty(b.t, t.lines(), "a lease is told by its result")
	_, err := b.kind.GiveBack(b.t.Context(), turn, []string{jobs[0].ID}, time.Minute)
	require.NoError(b.t, err)
	_, err = b.kind.GiveBack(b.t.Context(), turn, nil, 0)
	require.NoError(b.t, err)
	_, err = b.kind.GiveBack(b.t.Context(), turn, nil, 0)
	require.NoError(b.t, err)
	assert.Equal(b.t, []line{
		{events.GivenBack, jobs[0].ID, 1, turn.ID, false}, {events.GivenBack, jobs[1].ID, 1, turn.ID, false},
	}, t.lines())
	assert.Equal(b.t, jobs[0].Type, t.all[0].Job.Type)
	assert.Equal(b.t, jobs[0].OrgID, t.all[0].Job.OrgID)
	assert.Equal(b.t, jobs[0].DocumentID, t.all[0].Job.DocumentID)
}

func toldReclaimedTurns(b *bundle) {
	t := b.observe()
	earlier := b.turn("run/0/1")
	jobs := b.leased(earlier, 3)
	require.NoError(b.t, b.kind.MarkWaiting(b.t.Context(), earlier, []string{jobs[0].ID}))
	begun, err := b.kind.BeginWaiting(b.t.Context(), earlier, ids(jobs[1:]))
	require.NoError(b.t, err)
	require.Len(b.t, begun.Working, 2)
	turn := b.turn("run/0/1")
	taken := b.reclaimTurns(turn, true, turn.ID)
	require.Len(b.t, taken.Jobs, 3)
	for _, j := range taken.Jobs {
		assert.Equal(b.t, j.ID != jobs[0].ID, j.Charged)
	}
	assert.ElementsMatch(b.t, []line{
		{events.Reclaimed, jobs[1].ID, 1, turn.ID, true}, {events.Reclaimed, jobs[2].ID, 1, turn.ID, true},
	}, t.lines(), "what waited goes on under the same attempt")
}

func toldReclaimed(b *bundle) {
	t := b.observe()
	ctx := b.t.Context()
	b.filled("a", 2, 3)
	id := func(n int) string { return b.filledID("a", 2, n) }
	require.NoError(b.t, b.last(ctx, id(3)))
	gone := b.resting("run/0/1")
	require.Len(b.t, b.lease(gone, 3), 3)
	begun, err := b.kind.BeginWaiting(ctx, gone, []string{id(1), id(3)})
	require.NoError(b.t, err)
	require.Len(b.t, begun.Working, 2)
	last := b.read(id(3)).Attempts
	require.NoError(b.t, b.expire(ctx, gone.ID))
	b.checkUntil(b.kind.NewReclaimer(), func(r store.Reclaimed) bool { return r.Jobs > 0 })
	assert.ElementsMatch(b.t, []line{
		{events.Reclaimed, id(1), 1, gone.ID, true},
		{events.Reclaimed, id(2), 1, gone.ID, false},
		{events.Reclaimed, id(3), last, gone.ID, true},
		{events.Failed, id(3), last, gone.ID, false},
	}, t.lines())
}

func toldCancelled(b *bundle) {
	t := b.observe()
	turn := b.turn("run/0/1")
	j := b.leased(turn, 1)[0]
	require.NoError(b.t, b.cancel(b.t.Context(), b.Pool, j.ID))
	_, err := b.kind.GiveBack(b.t.Context(), turn, nil, 0)
	require.NoError(b.t, err)
	assert.Equal(b.t, []line{{events.Cancelled, j.ID, 1, turn.ID, false}}, t.lines())
}

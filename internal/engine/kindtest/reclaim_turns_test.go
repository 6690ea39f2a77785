package kindtest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// reclaimTurnsContracts are about what an activity reclaims of the turn's earlier ones.
var reclaimTurnsContracts = []contract{
	{"an activity reclaims what earlier ones of its turn leased", reclaimTurnsOwn, nil},
	{"of two activities the lower fence completes nothing", lowerFence, nil},
	{"locked rows are left for a later sweep", reclaimTurnsLocked, nil},
	{"only what a crashed activity worked is charged", reclaimTurnsCrashed, nil},
	{"what was taken under an earlier fence is not charged again", reclaimTurnsTwice, nil},
	{"a crash at the last attempt fails the job", reclaimTurnsLast, nil},
	{"leases of other turns that are named", reclaimTurnsNamed, nil},
}

func (b *bundle) reclaimTurns(turn store.Turn, crashed bool, from ...string) store.ReclaimedTurns {
	b.t.Helper()
	taken, err := b.kind.ReclaimTurns(b.t.Context(), turn, from, crashed)
	require.NoError(b.t, err)
	return taken
}

func reclaimTurnsOwn(b *bundle) {
	earlier := b.turn("run/0/1")
	jobs := b.leased(earlier, 3)
	turn := b.turn("run/0/1")
	taken := b.reclaimTurns(turn, false, turn.ID)
	assert.ElementsMatch(b.t, ids(jobs), ids(taken.Jobs))
	assert.Zero(b.t, taken.Lost+taken.Failed)
	for _, j := range taken.Jobs {
		assert.Equal(b.t, 1, j.Attempt, "the attempt goes on")
		assert.Zero(b.t, j.Reclaims, "no crash is suspected")
		got := b.read(j.ID)
		assert.Equal(b.t, turn.Fence, got.Fence)
		assert.Equal(b.t, models.JobLeased, got.State)
		assert.Empty(b.t, b.log(j.ID))
	}
	assert.Empty(b.t, b.reclaimTurns(turn, false, turn.ID).Jobs, "they are its own already")
	lower := turn
	lower.Fence--
	assert.Empty(b.t, b.reclaimTurns(lower, true, turn.ID).Jobs, "an activity that comes late takes nothing")
}

func lowerFence(b *bundle) {
	earlier := b.turn("run/0/1")
	j := b.leased(earlier, 1)[0]
	turn := b.turn("run/0/1")
	reclaimed := b.reclaimTurns(turn, false, turn.ID).Jobs
	require.Len(b.t, reclaimed, 1)
	for name, completion := range map[string]store.Completion{
		"completed": done, "retried": retry, "rescheduled": later,
		"failed": failed,
	} {
		_, err := b.complete(earlier, completion, j)
		assert.ErrorIs(b.t, err, store.ErrLeaseLost, name)
		assert.True(b.t, store.IsTransient(err), "no attempt is charged")
	}
	n, err := b.kind.GiveBack(b.t.Context(), earlier, nil, 0)
	require.NoError(b.t, err)
	assert.Zero(b.t, n)
	assert.Empty(b.t, b.log(j.ID))
	_, err = b.complete(turn, done, reclaimed[0])
	require.NoError(b.t, err)
}

func reclaimTurnsLocked(b *bundle) {
	jobs := b.leased(b.turn("run/0/1"), 2)
	turn := b.turn("run/0/1")
	b.locking(func() {
		assert.Equal(b.t, []string{jobs[1].ID}, ids(b.reclaimTurns(turn, false, turn.ID).Jobs))
	}, jobs[0].ID)
	assert.Equal(b.t, []string{jobs[0].ID}, ids(b.reclaimTurns(turn, false, turn.ID).Jobs))
}

func reclaimTurnsCrashed(b *bundle) {
	earlier := b.resting("run/0/1")
	jobs := b.leased(earlier, 2)
	begun, err := b.kind.BeginWaiting(b.t.Context(), earlier, []string{jobs[0].ID})
	require.NoError(b.t, err)
	require.Len(b.t, begun.Working, 1)
	turn := b.turn("run/0/1")
	taken := b.reclaimTurns(turn, true, turn.ID)
	assert.Equal(b.t, 1, taken.Lost)
	assert.Zero(b.t, taken.Failed)
	require.Len(b.t, taken.Jobs, 2)
	for _, j := range taken.Jobs {
		want, log := 1, b.log(j.ID)
		if j.ID == jobs[0].ID {
			want = 2
		}
		switch {
		case !b.has(attemptLog):
		case j.ID == jobs[0].ID:
			require.Len(b.t, log, 1)
			assert.Equal(b.t, models.OutcomeLost, log[0].Outcome)
			assert.Equal(b.t, 1, log[0].Attempt)
			assert.Equal(b.t, earlier.Fence, log[0].Fence, "the attempt was the earlier activity's")
		default:
			assert.Empty(b.t, log)
		}
		assert.Equal(b.t, want, j.Attempt, j.ID)
		assert.Equal(b.t, 1, j.Reclaims, "it may have been the one to blame")
	}
}

// A try that ended without saying what it took may have been committed. The next one draws a fence
// anew.
func reclaimTurnsTwice(b *bundle) {
	j := b.leased(b.turn("run/0/1"), 1)[0]
	turn := b.turn("run/0/1")
	require.Equal(b.t, 1, b.reclaimTurns(turn, true, turn.ID).Lost)
	again := b.turn("run/0/1")
	again.FirstFence = turn.Fence
	taken := b.reclaimTurns(again, true, turn.ID)
	assert.Equal(b.t, []string{j.ID}, ids(taken.Jobs))
	assert.Zero(b.t, taken.Lost)
	assert.Equal(b.t, 2, b.read(j.ID).Attempts)
	if b.has(attemptLog) {
		assert.Len(b.t, b.log(j.ID), 1)
	}
}

func reclaimTurnsLast(b *bundle) {
	b.filled(org, 2, 1)
	id := b.filledID(org, 2, 1)
	require.NoError(b.t, b.last(b.t.Context(), id))
	require.Len(b.t, b.lease(b.turn("run/0/1"), 1), 1)
	turn := b.turn("run/0/1")
	taken := b.reclaimTurns(turn, true, turn.ID)
	assert.Empty(b.t, taken.Jobs)
	assert.Equal(b.t, 1, taken.Lost)
	assert.Equal(b.t, 1, taken.Failed)
	got := b.read(id)
	assert.Equal(b.t, models.JobFailed, got.State)
	assert.NotEmpty(b.t, got.Error)
	if b.has(attemptLog) {
		assert.NotEmpty(b.t, got.Code)
		require.Len(b.t, b.log(id), 1)
		assert.Equal(b.t, models.OutcomeLost, b.log(id)[0].Outcome)
	}
}

// A fetch reclaims what earlier turns of its lane left behind.
func reclaimTurnsNamed(b *bundle) {
	jobs := b.leased(b.turn("run/0/1"), 1)
	b.filled("b", 2, 1)
	require.Len(b.t, b.lease(b.turn("run/0/2"), 1), 1)
	turn := b.turn("run/0/3")
	taken := b.reclaimTurns(turn, false, turn.ID, "run/0/1")
	assert.Equal(b.t, ids(jobs), ids(taken.Jobs))
	assert.Equal(b.t, turn.ID, b.read(jobs[0].ID).Turn)
	assert.Equal(b.t, "run/0/2", b.read(b.filledID("b", 2, 1)).Turn, "a turn that is not named keeps its own")
}

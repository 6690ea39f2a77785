package kindtest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// meanwhileContracts are that nothing is swallowed which is asked for while a job is leased,
// however its lease ends.
var meanwhileContracts = []contract{
	{"a job that is asked for anew is due again", meanwhile{[]ask{anew}, models.JobPending}.check, []notion{requests}},
	{
		"a job that is to be cancelled is cancelled", meanwhile{[]ask{cancelled}, models.JobCancelled}.check,
		[]notion{requests},
	},
	{
		"a request after a cancellation takes it back", meanwhile{[]ask{cancelled, anew}, models.JobPending}.check,
		[]notion{requests},
	},
	{
		"a cancellation after a request cancels", meanwhile{[]ask{anew, cancelled}, models.JobCancelled}.check,
		[]notion{requests},
	},
	{"requeued jobs are counted", requeued, []notion{requests}},
}

// ask is a request about the job with the key.
type ask func(b *bundle, key, id string)

// meanwhile says what is asked for while a job is being worked.
type meanwhile struct {
	asks []ask
	// ends is the state that the job is in at last.
	ends models.JobState
}

func anew(b *bundle, key, id string) {
	b.t.Helper()
	require.Equal(b.t, id, b.one(org, key, 2, 0), "it is the same job")
}

func cancelled(b *bundle, _, id string) {
	b.t.Helper()
	require.NoError(b.t, b.cancel(b.t.Context(), b.Pool, id))
}

// endings are the ways in which a lease ends.
func endings(b *bundle) map[string]func(turn store.Turn, j store.Job) {
	ctx := b.t.Context()
	complete := func(s store.Completion) func(turn store.Turn, j store.Job) {
		return func(turn store.Turn, j store.Job) {
			_, err := b.complete(turn, s, j)
			require.NoError(b.t, err)
		}
	}
	reclaimTurn := func(crashed bool) func(turn store.Turn, j store.Job) {
		return func(turn store.Turn, _ store.Job) {
			taken := b.reclaimTurns(b.turn(turn.ID), crashed, turn.ID)
			for _, j := range taken.Jobs {
				// What is to be cancelled is still the turn's, which then cancels it.
				require.True(b.t, j.CancelRequested)
				later := b.turn(turn.ID)
				_, err := b.kind.GiveBack(ctx, later, nil, 0)
				require.NoError(b.t, err)
			}
		}
	}
	return map[string]func(turn store.Turn, j store.Job){
		"completed": complete(done), "retried": complete(retry), "rescheduled": complete(later), "failed": complete(failed),
		"given back": func(turn store.Turn, _ store.Job) {
			n, err := b.kind.GiveBack(ctx, turn, nil, time.Hour)
			require.NoError(b.t, err)
			require.Equal(b.t, 1, n)
		},
		"the turn's again": reclaimTurn(false), "the turn's again after a crash": reclaimTurn(true),
		"reclaimed": func(turn store.Turn, _ store.Job) {
			require.NoError(b.t, b.expire(ctx, turn.ID))
			b.checkUntil(b.kind.NewReclaimer(), func(got store.Reclaimed) bool { return got.Jobs == 1 })
		},
	}
}

func (m meanwhile) check(b *bundle) {
	for name, end := range endings(b) {
		key := "key, " + name
		id := b.one(org, key, 2, 0)
		turn := b.turn("run/" + name)
		var jobs []store.Job
		b.eventually(func() bool {
			jobs = b.lease(turn, 1)
			return len(jobs) > 0
		}, "it is leased")
		require.Equal(b.t, []string{id}, ids(jobs))
		for _, ask := range m.asks {
			ask(b, key, id)
		}
		assert.Equal(b.t, models.JobLeased, b.read(id).State, "its attempt goes on")
		end(turn, jobs[0])
		got := b.read(id)
		assert.Equal(b.t, m.ends, got.State, name)
		assert.Empty(b.t, got.Turn, name)
		assert.False(b.t, got.Cancelling, name)
		if m.ends == models.JobPending {
			assert.Zero(b.t, got.Attempts, "%s: its attempts are counted anew", name)
			assert.LessOrEqual(b.t, got.Due, 0.0, "%s: it is due when the request said", name)
			require.NoError(b.t, b.cancel(b.t.Context(), b.Pool, id))
		}
	}
}

func requeued(b *bundle) {
	id := b.one(org, "key", 2, 0)
	turn := b.turn("run/0/1")
	jobs := b.lease(turn, 1)
	require.Len(b.t, jobs, 1)
	anew(b, "key", id)
	completed, err := b.complete(turn, done, jobs...)
	require.NoError(b.t, err)
	assert.Equal(b.t, store.Completed{models.OutcomeCompleted: 1, store.Requeued: 1}, completed)
	assert.Equal(b.t, models.OutcomeCompleted, b.log(id)[0].Outcome, "the attempt counts as what it was")
}

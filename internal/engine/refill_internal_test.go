package engine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/wake"
	"github.com/daybook-dev/daybook/models"
)

// TestRefillOfAnAbandonedCall: what it has leased is the turn's, and of one that failed it is
// looked for.
func TestRefillOfAnAbandonedCall(t *testing.T) {
	t.Parallel()
	r := &runner{}
	r.acquirer.underWay = true
	require.NoError(t, r.takeRefilled(t.Context(), refilled{call: &call{abandoned: true}, jobs: []store.Job{{ID: "a"}}}))
	assert.Equal(t, []string{"a"}, idsOf(r.holder.queue))
	assert.True(t, r.holder.leaseUnknownSince.IsZero())
	require.NoError(t, r.takeRefilled(t.Context(), refilled{call: &call{abandoned: true}, err: store.ErrLeaseLost}))
	assert.False(t, r.holder.leaseUnknownSince.IsZero())
	assert.True(t, r.acquirer.underWay, "another one is under way")
}

// TestCapThatIsFreedIsLookedAtAtOnce: a job that ends in the turn may leave a place under the cap.
func TestCapThatIsFreedIsLookedAtAtOnce(t *testing.T) {
	t.Parallel()
	for _, capped := range []bool{true, false} {
		p := part{turn: &turn{tally: &tally{}}}
		r := &runner{turn: p.turn, acquirer: acquirer{part: p, nothingDue: true, outlook: outlook{capped: capped}}}
		r.tally.count(store.Completed{models.OutcomeCompleted: 1})
		r.noticeCompleted()
		assert.Equal(t, !capped, r.acquirer.nothingDue)
	}
}

// TestCapThatIsFreedDuringARefill: the refill may have counted the jobs that ended meanwhile
// towards their organization's cap. So another one follows, although the loop did not know yet that
// organizations with a cap have work.
func TestCapThatIsFreedDuringARefill(t *testing.T) {
	t.Parallel()
	waker := wake.NewWaker(wake.Queue{
		Connect: func(context.Context) (*pgx.Conn, error) { return nil, pgx.ErrNoRows },
		Wake:    func(context.Context) {},
	}, time.Second, slog.New(slog.DiscardHandler))
	t.Cleanup(waker.Close)
	waiter := waker.Subscribe()
	for name, c := range map[string]struct {
		completed int
		capped    bool
		dry       bool
	}{
		"freed":             {completed: 3, capped: true, dry: false},
		"nothing completed": {completed: 0, capped: true, dry: true},
		"no caps":           {completed: 3, capped: false, dry: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := part{turn: &turn{tally: &tally{}}}
			r := &runner{turn: p.turn, acquirer: acquirer{part: p, waiter: waiter, underWay: true}}
			r.tally.count(store.Completed{models.OutcomeCompleted: c.completed})
			r.noticeCompleted()
			require.NoError(t, r.takeRefilled(t.Context(), refilled{asked: 50, outlook: outlook{capped: c.capped}}))
			assert.Equal(t, c.dry, r.acquirer.nothingDue)
		})
	}
}

package engine

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestSuspectBeginsBesideNothing has a job that was reclaimed twice wait for all that would be
// charged with it, and has the turn get no more jobs meanwhile.
func TestSuspectBeginsBesideNothing(t *testing.T) {
	t.Parallel()
	e, _ := picking(t, pgtest.New(t), 1, done)
	some := []ended{{job: store.Job{ID: "b", Type: "named"}}}
	for name, busy := range map[string]func(r *runner){
		"a job is worked":             func(r *runner) { r.worker.active = 1 },
		"a refill is under way":       func(r *runner) { r.acquirer.underWay = true },
		"a job has ended":             func(r *runner) { r.finisher.ended = some },
		"a completion is under way":   func(r *runner) { r.finisher.completing = true },
		"a completion is tried again": func(r *runner) { r.finisher.held = some },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := []store.Job{{ID: "a", Type: "named", Reclaims: 2}, {ID: "c", Type: "named"}}
			r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1"}, Batch: 50, Length: time.Minute}, e.waker.Subscribe(), nil)
			busy(r)
			suspects := func() int { return r.worker.suspects(queue, r.acquirer.underWay || r.finisher.busy()) }
			assert.Zero(t, suspects())

			r.worker.active, r.acquirer.underWay, r.finisher.completing = 0, false, false
			r.finisher.drop()
			r.refill(context.Background())
			assert.False(t, r.acquirer.underWay, "nothing is picked before it begins")
			assert.Equal(t, 1, suspects(), "it begins alone")
		})
	}
}

// inBulk works bulks of a hundred.
type inBulk struct{ work }

func (inBulk) Handling(string) (Handling, bool) {
	return Handling{Bulk: true, Parallel: 100, Timeout: time.Minute}, true
}

// TestSuspectsBeginInTenths: jobs of a bulk type that were reclaimed once begin ten at a time,
// without others.
func TestSuspectsBeginInTenths(t *testing.T) {
	t.Parallel()
	w := worker{part: part{turn: &turn{engine: &Engine{handlers: inBulk{done}}}}}
	many := func(jobType string, reclaims, n int) []store.Job {
		return slices.Repeat([]store.Job{{Type: jobType, Reclaims: reclaims}}, n)
	}
	assert.Equal(t, 10, w.suspects(many("a", 1, 30), false))
	assert.Equal(t, 5, w.suspects(slices.Concat(many("a", 0, 20), many("a", 1, 5)), false),
		"without those that are not suspicious")
	assert.Equal(t, 5, w.suspects(slices.Concat(many("b", 1, 20), many("a", 1, 5)), false), "of one type")
	assert.Equal(t, 1, w.suspects(slices.Concat(many("a", 1, 30), many("a", 2, 2)), false))
}

// TestStatementsThatFailKeepTheQueue: jobs that could not be marked are begun later.
func TestStatementsThatFailKeepTheQueue(t *testing.T) {
	t.Parallel()
	e, _ := picking(t, pgtest.New(t), 1, done)
	failed, cancel := context.WithCancel(t.Context())
	cancel()
	for name, waiting := range map[string]bool{"mark waiting": false, "mark working": true} {
		r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1"}}, e.waker.Subscribe(), nil)
		r.holder.queue = []store.Job{{ID: "a", Type: "named", Waiting: waiting}}
		if !waiting {
			e.room.used["named"] = 10
		}
		require.Error(t, r.begin(failed), name)
		assert.Equal(t, []string{"a"}, idsOf(r.holder.queue), name)
		e.room.used["named"] = 0
	}
}

// TestPickLeasesItsSuspectsAlone has a pick find one job that an earlier pick was lost with. Its
// neighbours are picked the next time.
func TestPickLeasesItsSuspectsAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, done)
	enqueueNamed(t, db, 5)
	var suspect string
	lost, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, lost.QueryRow(t.Context(),
		`SELECT id FROM daybook.jobs ORDER BY ready_at, id LIMIT 1 FOR NO KEY UPDATE`).Scan(&suspect))
	require.NoError(t, lost.Rollback(t.Context()))

	r := picker(t, e, TurnRequest{Length: time.Minute})
	l := pickUntil(t, r, 10)
	require.NoError(t, l.err)
	require.Equal(t, []string{suspect}, idsOf(l.jobs))
	var state string
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT state || ' ' || working FROM daybook.jobs WHERE id = $1`,
		suspect).Scan(&state))
	assert.Equal(t, "leased false", state, "it is not charged before it begins")
	assert.Equal(t, 1, e.room.used["named"], "the room of the others is free")
	r.acquirer.underWay = true
	require.NoError(t, r.takeRefilled(t.Context(), l))
	assert.Equal(t, []string{suspect}, idsOf(r.holder.queue))
	assert.False(t, r.acquirer.underWay)

	l = pickUntil(t, r, 10)
	assert.Equal(t, 4, l.worked, "nothing is suspicious because it was picked with a suspect")
	require.NoError(t, r.takeRefilled(t.Context(), l))
	require.NoError(t, r.begin(t.Context()))
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT state || ' ' || working FROM daybook.jobs WHERE id = $1`,
		suspect).Scan(&state))
	assert.Equal(t, "leased true", state, "it is charged when it has begun")
	for r.worker.active > 0 {
		require.NoError(t, r.wait(t.Context(), nil, nil, nil))
	}
	r.close()
}

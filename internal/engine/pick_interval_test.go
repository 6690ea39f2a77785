package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
)

// TestPickInterval has jobs come one by one while a turn lingers: what comes within the interval is
// completed in one transaction.
func TestPickInterval(t *testing.T) {
	t.Parallel()
	b := setupWith(t, effortless{}, engine.Options{Direct: true, PickInterval: 3 * time.Second})
	stop := make(chan struct{})
	report := b.processing(b.engine,
		engine.TurnRequest{Turn: turn(1), Batch: 50, Wait: time.Hour, Length: time.Hour, Linger: true, Stop: stop})
	enqueue := func(document string) {
		b.exec(`SELECT daybook.enqueue_accounting_job($1, $2, 1)`, org, document)
	}
	completed := func(n int) func() bool {
		return func() bool {
			return fixture.Count(t, b.Pool,
				`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed'`) == n
		}
	}
	enqueue("a")
	require.Eventually(t, completed(1), time.Minute, 5*time.Millisecond)
	enqueue("b")
	enqueue("c")
	require.Eventually(t, completed(3), time.Minute, 5*time.Millisecond)

	assert.Equal(t, 2, fixture.Count(t, b.Pool, `SELECT count(DISTINCT xmin::text) FROM daybook.accounting_work_queue`))
	close(stop)
	assert.Equal(t, 3, (<-report).Completed)
}

// TestPickIntervalOfTheProcess has two turns of one process linger: the second one does not pick
// what comes within the interval either.
func TestPickIntervalOfTheProcess(t *testing.T) {
	t.Parallel()
	const interval = 3 * time.Second
	b := setupWith(t, effortless{}, engine.Options{Direct: true, PickInterval: interval})
	stop := make(chan struct{})
	first := b.processing(b.engine,
		engine.TurnRequest{Turn: turn(1), Batch: 50, Wait: time.Hour, Length: time.Hour, Linger: true, Stop: stop})
	second := b.processing(b.engine,
		engine.TurnRequest{Turn: turn(2), Batch: 50, Wait: time.Hour, Length: time.Hour, Linger: true, Stop: stop})
	for n, document := range []string{"a", "b", "c"} {
		b.exec(`SELECT daybook.enqueue_accounting_job($1, $2, 1)`, org, document)
		require.Eventually(t, func() bool {
			return fixture.Count(t, b.Pool,
				`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed'`) == n+1
		}, time.Minute, 5*time.Millisecond)
	}
	var shortest time.Duration
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT min(gap) FROM (SELECT started_at - lag(started_at) OVER (ORDER BY started_at) FROM daybook.attempts) AS a (gap)`).Scan(&shortest))
	assert.Greater(t, shortest, interval/2, "the pause between two picks, give or take how long each takes")
	close(stop)
	assert.Equal(t, 3, (<-first).Completed+(<-second).Completed)
}

// TestFullTurnHoldsUpNoOther has two turns of one process work a backlog: a turn whose refills find
// as many as they ask for does not keep the other one from its first refill.
func TestFullTurnHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	const documents = 100_000
	b := setupWith(t, effortless{}, engine.Options{Direct: true, PickInterval: 500 * time.Millisecond})
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) SELECT 'org_' || i % 100, 'doc_' || i, 1 FROM generate_series(1, $1) i`, documents)
	stop := make(chan struct{})
	first := b.processing(b.engine,
		engine.TurnRequest{Turn: turn(1), Batch: 50, Wait: time.Hour, Length: time.Hour, Linger: true, Stop: stop})
	second := b.processing(b.engine,
		engine.TurnRequest{Turn: turn(2), Batch: 50, Wait: time.Hour, Length: time.Hour, Linger: true, Stop: stop})
	require.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM (SELECT DISTINCT turn_id FROM daybook.attempts) AS s`) == 2
	}, time.Minute, 20*time.Millisecond)
	left := fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending'`)
	close(stop)
	<-first
	<-second
	assert.Positive(t, left, "the backlog lasts")
}

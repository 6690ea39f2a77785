package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/pgtest/fixture"
)

// TestPickInterval has jobs come one by one while a turn lingers: what comes within the interval is completed in one transaction.
func TestPickInterval(t *testing.T) {
	t.Parallel()
	b := setupWith(t, effortless{}, engine.Options{Direct: true, PickInterval: 3 * time.Second})
	stop := make(chan struct{})
	report := b.processing(b.engine, engine.TurnRequest{Turn: turn(1), Batch: 50, Length: time.Hour, Linger: true, Stop: stop})
	enqueue := func(document string) {
		b.exec(`SELECT daybook.enqueue_accounting_job($1, $2, 1)`, org, document)
	}
	completed := func(n int) func() bool {
		return func() bool {
			return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed'`) == n
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

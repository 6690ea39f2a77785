package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TestDocumentThatKillsAWaitingTurnEndsAlone: a document that ends the worker of a turn which waits
// is charged as in any other turn.
func TestDocumentThatKillsAWaitingTurnEndsAlone(t *testing.T) {
	t.Parallel()
	k := &killer{Processor: ledger.New(nil), document: "doc-3", met: make(chan struct{}), revive: make(chan struct{})}
	b := setupWith(t, k, engine.Options{ChunkSize: 50})
	fixture.ManyReady(t, b.Pool, org, "doc-", 5)

	dead := 0
	ended := make(chan engine.Report, 30)
	for alive := true; alive; {
		again := dead > 0
		go func() {
			r, err := b.engine.Process(t.Context(), engine.TurnRequest{
				Turn: store.Turn{ID: "run/0/1", Worker: "w"}, Batch: 50, Wait: time.Minute, Fresh: !again, Crashed: again,
			})
			assert.NoError(t, err)
			ended <- r
		}()
		select {
		case <-k.met:
			dead++
			require.Less(t, dead, 20, "it must end")
		case <-ended:
			alive = false
		case <-time.After(pgtest.Patience):
			require.Fail(t, "the turn neither died nor ended")
		}
	}
	b.assertJob("doc-3", models.JobFailed, 6, models.CodeWorkerLost)
	assert.Equal(t, 4, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed' AND run_count = 1`))
	close(k.revive)
	for range dead {
		<-ended
	}
	assert.Equal(t, 4, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
}

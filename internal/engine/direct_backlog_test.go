package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
)

// effortless completes every job.
type effortless struct{}

func (effortless) Prepare(context.Context, []engine.Job) (engine.Commit, error) {
	return engine.PerJob(nothing{}).Prepare(context.Background(), nil)
}

type nothing struct{}

func (nothing) Prepare(context.Context, engine.Job) (engine.JobCommit, error) { return nil, nil }

// TestSpentPlacesHideNoBacklog has a lane meet more organizations whose only job is done than it
// asks at once, beside one with many jobs. It waits for no wake-up while those are due.
func TestSpentPlacesHideNoBacklog(t *testing.T) {
	t.Parallel()
	b := setupWith(t, effortless{}, engine.Options{Direct: true})
	b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint)
SELECT 'small_' || i, 'doc', 1 FROM generate_series(1, 2000) i
UNION ALL
SELECT 'big', 'doc_' || i, 1 FROM generate_series(1, 5000) i`)
	stop := make(chan struct{})
	done := make(chan engine.Report, 1)
	go func() {
		r, err := b.engine.Process(context.Background(),
			engine.TurnRequest{Turn: turn(1), Batch: 50, Wait: time.Hour, Length: time.Hour, Linger: true, Stop: stop})
		assert.NoError(t, err)
		done <- r
	}()
	assert.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending'`) == 0
	}, 2*time.Minute, 20*time.Millisecond)
	close(stop)
	require.Equal(t, 7000, (<-done).Completed)
}

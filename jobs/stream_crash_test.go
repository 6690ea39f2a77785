package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestTransactionThatTakesTheDatabaseAwayEnds: a job whose completing transaction ends every
// session each time, as one that crashes PostgreSQL does, is counted in the end, and does not go on
// for ever.
func TestTransactionThatTakesTheDatabaseAwayEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	line, e := b.onLine()
	var tries atomic.Int32
	crash := func(ctx context.Context, tx pgx.Tx) error {
		tries.Add(1)
		line.Cut()
		time.AfterFunc(200*time.Millisecond, line.Mend)
		_, err := tx.Exec(ctx, `SELECT $1::integer`, 1)
		return err
	}
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(_ context.Context, job *jobs.Job[greet]) error {
		job.InTx(crash)
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	r, err := e.Process(ctx, engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, 1, r.Failed, "tries: %d", tries.Load())
	assert.Equal(t, models.JobFailed, b.row(id).State)
	assert.Equal(t, string(models.CodeDatabaseError), b.row(id).Code)
	assert.LessOrEqual(t, tries.Load(), int32(20))
}

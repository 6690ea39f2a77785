package jobs_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// TestTransactionThatTakesTheDatabaseAwayEnds: a job whose completing transaction ends every
// session each time, as one that crashes PostgreSQL does, is counted in the end, and does not go on
// for ever. Those that share a transaction with it are completed by their first attempts.
func TestTransactionThatTakesTheDatabaseAwayEnds(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"own transaction": false, "shared transactions": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 1
			if shared {
				n = 10
			}
			b := setup(t)
			line := b.Line(t)
			e := engine.NewJobs(store.NewQueue(line.Pool, store.Jobs), b.registry,
				engine.Options{Log: slog.New(slog.DiscardHandler), GatherShared: long, ShareFor: long})
			t.Cleanup(e.Close)
			var tries atomic.Int32
			b.share(n, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, s sharer) error {
				if !s.special() {
					return nil
				}
				tries.Add(1)
				line.Cut()
				time.AfterFunc(200*time.Millisecond, line.Mend)
				_, err := s.tx.Exec(ctx, `SELECT $1::integer`, 1)
				return err
			})
			id := b.neighbours(n)
			ctx, cancel := context.WithTimeout(t.Context(), long)
			defer cancel()
			r, err := e.Process(ctx, engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: time.Minute})
			require.NoError(t, err)
			assert.Equal(t, 1, r.Failed, "tries: %d", tries.Load())
			assert.Equal(t, models.JobFailed, b.row(id).State)
			assert.Equal(t, string(models.CodeDatabaseError), b.row(id).Code)
			assert.LessOrEqual(t, tries.Load(), int32(20))
			b.assertNeighbours(n)
		})
	}
}

package engine_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
)

// TestOutageInATurn stops the database in mid-turn: the turn waits for it and goes on, and no
// document is charged.
func TestOutageInATurn(t *testing.T) {
	t.Parallel()
	const documents = 120
	for name, direct := range map[string]bool{"leased": false, "worked without a lease": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupWith(t, failing{}, engine.Options{})
			fixture.ManyReady(t, b.Pool, org, "doc-", documents)
			line := b.Line(t)
			var chunks atomic.Int32
			reached, proceed := make(chan struct{}), make(chan struct{})
			p := failing{prepare: func(context.Context, []engine.Job) error {
				if chunks.Add(1) == 3 {
					close(reached)
					<-proceed
				}
				return nil
			}}
			e := engine.New(store.New(line.Pool), p,
				engine.Options{ChunkSize: 10, Direct: direct, Log: slog.New(slog.DiscardHandler)})
			t.Cleanup(e.Close)
			done := make(chan error, 1)
			go func() {
				_, err := e.Process(context.Background(), engine.TurnRequest{Turn: turn(1), Batch: 50, Length: time.Minute})
				done <- err
			}()
			<-reached
			line.Cut()
			close(proceed)
			line.AwaitTries(10)
			line.Mend()
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(time.Minute):
				require.FailNow(t, "the turn does not end")
			}
			assert.Equal(t, documents,
				fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed' AND run_count = 1`))
			assert.Equal(t, documents, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts`))
		})
	}
}

package workers_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

// Close ends a Run, which drains and returns nil; a second Run beside it, and one after it, are
// refused.
func TestCloseEndsRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, lazy := b.later()
	w, err := workers.NewAccounting(workers.AccountingOptions{
		Client: lazy, Pool: b.Pool,
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ran := make(chan error, 2)
	for range 2 {
		go func() { ran <- w.Run(context.WithoutCancel(t.Context())) }()
	}
	require.ErrorIs(t, <-ran, workers.ErrRunning, "the other one runs until Close")
	w.Close()
	require.NoError(t, <-ran)
	require.ErrorIs(t, w.Run(t.Context()), workers.ErrClosed)
	w.Close()
}

func TestWorkersThatWereNotMade(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*workers.Worker{"zero": {}, "nil": nil} {
		require.ErrorIs(t, w.Run(t.Context()), workers.ErrNotMade, name)
		got, cancel := w.Subscribe(queue.EventFilter{})
		_, open := <-got
		assert.False(t, open, name)
		cancel()
		w.Close()
	}
	for name, d := range map[string]*workers.DueJobs{"zero": {}, "nil": nil} {
		_, err := d.Run(t.Context(), 1)
		require.ErrorIs(t, err, workers.ErrNotMade, name)
		got, cancel := d.Subscribe(queue.EventFilter{})
		_, open := <-got
		assert.False(t, open, name)
		cancel()
		d.Close()
	}
}

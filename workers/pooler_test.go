package workers_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

// TestEmbeddedWorkerBehindAPooler: a program's own worker refuses a pool without sessions of its
// own, and takes one with a direct one beside it.
func TestEmbeddedWorkerBehindAPooler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, lazy := b.later()
	pool, err := pgxpool.New(t.Context(), b.Pooler(t, pgtest.PoolTransactions)+"&default_query_exec_mode=cache_describe")
	require.NoError(t, err)
	defer pool.Close()
	run := func(past *pgxpool.Pool) (*workers.Worker, chan error) {
		w, err := workers.NewAccounting(workers.AccountingOptions{
			Client: lazy, Pool: pool, DirectPool: past, Log: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		t.Cleanup(w.Close)
		ran := make(chan error, 1)
		go func() { ran <- w.Run(context.WithoutCancel(t.Context())) }()
		return w, ran
	}
	for _, past := range []*pgxpool.Pool{nil, pool} {
		_, ran := run(past)
		require.ErrorIs(t, <-ran, queue.ErrDirectAddressNeeded)
	}
	w, ran := run(b.Pool)
	select {
	case err := <-ran:
		require.NoError(t, err, "it waits for Temporal")
	case <-time.After(time.Second):
	}
	w.Close()
	require.NoError(t, <-ran)
}

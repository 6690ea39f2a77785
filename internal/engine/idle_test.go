package engine_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
)

// sends counts what is sent to the database, a batch as one.
type sends struct{ n atomic.Int64 }

func (s *sends) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (s *sends) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (*sends) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*sends) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*sends) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// TestIdleTurnAsksOnce: a turn that waits in vain is one transaction, and one that work comes to
// finds it all the same.
func TestIdleTurnAsksOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	asked := &sends{}
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	config.ConnConfig.Tracer = asked
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	e := engine.New(store.New(pool), ledger.New(nil), engine.Options{Direct: true, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	wait := func(wait time.Duration) engine.Report {
		r, err := e.Process(t.Context(), engine.TurnRequest{Turn: turn(1), Batch: 10, Wait: wait, Fresh: true})
		require.NoError(t, err)
		return r
	}
	require.Eventually(t, func() bool {
		before := asked.n.Load()
		assert.Zero(t, wait(1200*time.Millisecond).Leased) // longer than until it would ask for jobs of other workers
		return asked.n.Load()-before == 1
	}, time.Minute, time.Millisecond, "each turn asks more than once")

	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	assert.Equal(t, 1, wait(time.Minute).Leased)
}

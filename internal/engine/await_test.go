package engine_test

import (
	"context"
	"log/slog"
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
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

// waiting has a turn wait for its first job, with a poll interval that no test waits for, and work
// it. It returns when the turn waits and hears of work.
func (b *bundle) waiting(e *engine.Engine) <-chan engine.Report {
	b.t.Helper()
	got := make(chan engine.Report, 1)
	go func() {
		r, err := e.Process(b.t.Context(), engine.TurnRequest{Turn: turn(1), Batch: 50, Wait: time.Hour, Fresh: true})
		assert.NoError(b.t, err)
		got <- r
	}()
	const hears = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND classid = daybook.lock_class('wakers')::oid
	                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	require.Eventually(b.t, func() bool { return fixture.Count(b.t, b.Pool, hears) > 0 }, 60*time.Second,
		20*time.Millisecond)
	return got
}

func (b *bundle) worked(got <-chan engine.Report) engine.Report {
	b.t.Helper()
	select {
	case r := <-got:
		return r
	case <-time.After(3 * time.Minute):
		require.Fail(b.t, "the turn waits on")
		return engine.Report{}
	}
}

// TestWaitingTurnAwaitsWhatIsDueLater: what is enqueued for later while a turn waits is worked when
// it is due.
func TestWaitingTurnAwaitsWhatIsDueLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := b.waiting(b.engine)
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.PutDocument(ctx, tx, fixture.Invoice(org, "inv", 1000))
		require.NoError(t, err)
		due := time.Now().Add(2 * time.Second)
		_, err = store.EnqueueAccountingJob(ctx, tx, org, "inv", 0, &due, 0)
		require.NoError(t, err)
	})
	assert.Equal(t, 1, b.worked(got).Leased)
}

// TestWakerConnectsAsThePool: a pool whose hook fills in the password that is valid now.
func TestWakerConnectsAsThePool(t *testing.T) {
	t.Parallel()
	b := setup(t)
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	right := config.ConnConfig.User
	config.ConnConfig.User = "expired"
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { c.User = right; return nil }
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	e := engine.New(store.New(pool), ledger.New(nil), engine.Options{Direct: true, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	got := b.waiting(e)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv", 1000))
	assert.Equal(t, 1, b.worked(got).Leased)
}

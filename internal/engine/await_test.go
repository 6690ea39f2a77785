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

// fetching fetches with a poll interval that no test waits for, until there is work. It returns
// when the fetch waits and hears of work.
func (b *bundle) fetching(e *engine.Engine) <-chan engine.Fetched {
	b.t.Helper()
	got := make(chan engine.Fetched, 1)
	go func() {
		f, err := e.Fetch(b.t.Context(), engine.FetchRequest{Turn: turn(1), Batch: 50, Wait: time.Hour})
		assert.NoError(b.t, err)
		got <- f
	}()
	const hears = `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND classid = daybook.lock_class('wakers')::oid
	                  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
	require.Eventually(b.t, func() bool { return fixture.Count(b.t, b.Pool, hears) > 0 }, 60*time.Second,
		20*time.Millisecond)
	return got
}

func (b *bundle) fetched(got <-chan engine.Fetched) engine.Fetched {
	b.t.Helper()
	select {
	case f := <-got:
		return f
	case <-time.After(3 * time.Minute):
		require.Fail(b.t, "the fetch waits on")
		return engine.Fetched{}
	}
}

// TestWaitingFetchAwaitsWhatIsDueLater: what is enqueued for later while a fetch waits is worked
// when it is due.
func TestWaitingFetchAwaitsWhatIsDueLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := b.fetching(b.engine)
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := ledgerdb.PutDocument(ctx, tx, fixture.Invoice(org, "inv", 1000))
		require.NoError(t, err)
		due := time.Now().Add(2 * time.Second)
		_, err = store.EnqueueAccountingJob(ctx, tx, org, "inv", 0, &due, 0)
		require.NoError(t, err)
	})
	assert.Equal(t, 1, b.fetched(got).Leased)
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
	got := b.fetching(e)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv", 1000))
	assert.Equal(t, 1, b.fetched(got).Leased)
}

package queue_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/queue"
)

// inMode adds pgx's mode to an address.
func inMode(t *testing.T, address string, mode pgx.QueryExecMode) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	query := u.Query()
	query.Set("default_query_exec_mode", strings.ReplaceAll(mode.String(), " ", "_"))
	u.RawQuery = query.Encode()
	return u.String()
}

// driversBehindAPooler are the ways of Go programs that work, as the table of docs/scaling.md has
// them.
func driversBehindAPooler(t *testing.T, address string) map[string]inTx {
	t.Helper()
	all := map[string]inTx{}
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		pool, err := pgxpool.New(t.Context(), inMode(t, address, mode)+"&pool_max_conns=8")
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		all["pgx "+mode.String()] = func(ctx context.Context, f func(queue.Querier) error) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return f(tx) })
		}
		db, err := sql.Open("pgx", inMode(t, address, mode))
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		all["database/sql "+mode.String()] = func(ctx context.Context, f func(queue.Querier) error) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			return errors.Join(f(queue.SQL(tx)), tx.Commit())
		}
	}
	for name, config := range map[string]postgres.Config{
		"GORM PreferSimpleProtocol": {DSN: address, PreferSimpleProtocol: true},
		"GORM cache_describe":       {DSN: inMode(t, address, pgx.QueryExecModeCacheDescribe)},
	} {
		db, err := gorm.Open(postgres.New(config), &gorm.Config{Logger: logger.Discard})
		require.NoError(t, err)
		pool, err := db.DB()
		require.NoError(t, err)
		t.Cleanup(func() { _ = pool.Close() })
		all[name] = func(ctx context.Context, f func(queue.Querier) error) error {
			return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return f(queue.GORM(tx)) })
		}
	}
	return all
}

// TestEnqueuingBehindAPooler: eight clients at a time share three sessions, each of which other
// clients have after each transaction.
func TestEnqueuingBehindAPooler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const clients, each = 8, 25
	enqueue := func(tx inTx) (failed int) {
		errs := make(chan error, clients*each)
		var all errgroup.Group
		for range clients {
			all.Go(func() error {
				for range each {
					errs <- tx(t.Context(), func(q queue.Querier) error {
						_, err := queue.EnqueueJob(t.Context(), q, org, welcome{UserID: "u"}, queue.JobOptions{})
						return err
					})
				}
				return nil
			})
		}
		require.NoError(t, all.Wait())
		for range clients * each {
			if err := <-errs; err != nil {
				assert.Contains(t, []string{"42P05", "26000"}, store.SQLState(err), err)
				assert.ErrorContains(t, err, "default_query_exec_mode=cache_describe")
				failed++
			}
		}
		return failed
	}
	address := b.Pooler(t, pgtest.PoolTransactions)
	for name, tx := range driversBehindAPooler(t, address) {
		assert.Zero(t, enqueue(tx), name)
		assert.Equal(t, clients*each, b.queuedJobs(), name)
		b.exec(`DELETE FROM daybook.jobs`)
	}
	pool, err := pgxpool.New(t.Context(), address)
	require.NoError(t, err)
	defer pool.Close()
	failed := enqueue(func(ctx context.Context, f func(queue.Querier) error) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return f(tx) })
	})
	assert.Positive(t, failed, "pgx's own default prepares statements")
	t.Logf("pgx cache_statement: %d of %d failed", failed, clients*each)
	require.ErrorIs(t, store.VerifySession(t.Context(), pool), store.ErrSession)
	assert.ErrorContains(t, store.VerifySession(t.Context(), pool), "default_query_exec_mode=cache_describe")
	assert.ErrorIs(t, queue.ListenEvents(t.Context(), pool, queue.EventFilter{}, func(queue.Event) {}), queue.ErrDirectAddressNeeded)
}

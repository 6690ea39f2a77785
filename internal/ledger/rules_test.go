package ledger_test

import (
	"context"
	"fmt"
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
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// manyOrganizations clones the bundle's organization n times as o1, o2, …, and enqueues a ready
// document for each.
func (b *bundle) manyOrganizations(n int) {
	b.t.Helper()
	b.exec(`INSERT INTO daybook.organizations (id) SELECT 'o' || i FROM generate_series(1, $1::int) i`, n)
	b.exec(`ALTER TABLE daybook.accounts DISABLE TRIGGER accounts_changed`)
	b.exec(`INSERT INTO daybook.accounts (org_id, code, name, type, currencies) SELECT o.id, a.code, a.name, a.type, a.currencies FROM daybook.organizations o, daybook.accounts a WHERE a.org_id = $1 AND o.id <> $1`, org)
	b.exec(`ALTER TABLE daybook.accounts ENABLE TRIGGER accounts_changed`)
	b.exec(`INSERT INTO daybook.rule_sets (org_id, version, name, source, sha256) SELECT o.id, 1, r.name, r.source, r.sha256 FROM daybook.organizations o, daybook.rule_sets r WHERE r.org_id = $1 AND o.id <> $1`, org)
	b.exec(`UPDATE daybook.organizations SET active_rule_set = 1, config_version = 1 WHERE id <> $1`, org)
	for i := range n {
		fixture.ManyReady(b.t, b.Pool, fmt.Sprint("o", i+1), "doc-", 1)
	}
}

// counter counts queries.
type counter struct{ n atomic.Int64 }

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestConfigurationsAreReadTogether posts a document for each of many organizations, which an
// engine sees for the first time.
func TestConfigurationsAreReadTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.manyOrganizations(200)
	// One of them takes no euros.
	b.exec(`UPDATE daybook.accounts SET currencies = '{CHF}' WHERE org_id = 'o7'`)
	config := b.Pool.Config()
	queries := &counter{}
	config.ConnConfig.Tracer = queries
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	e := engine.New(store.New(pool), ledger.New(nil), engine.Options{Direct: true, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	r, err := e.Process(t.Context(), engine.TurnRequest{Turn: store.Turn{ID: "run/0/1"}, Batch: 200, Length: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, 199, r.Completed)
	assert.Equal(t, 1, r.Failed)
	assert.Equal(t, models.CodeUnknownAccount, *fixture.Job(t, b.Pool, "o7", "doc-1").LastErrorCode)
	assert.Less(t, queries.n.Load(), int64(200), "fewer than one for each organization")
}

// TestManyOrganizationsTakeFewLocks uses the configurations of many organizations in each of many
// transactions.
func TestManyOrganizationsTakeFewLocks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	locks := func(tx pgx.Tx) (n int) {
		require.NoError(t, tx.QueryRow(t.Context(),
			`SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'`).Scan(&n))
		return n
	}
	orgs := make([]string, 5000)
	for i := range orgs {
		orgs[i] = fmt.Sprint("org-", i)
	}
	change, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, change.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = change.Exec(t.Context(), `SELECT daybook.lock_configuration('org-1234')`)
	require.NoError(t, err)
	for range 2 {
		tx, err := b.Pool.Begin(t.Context())
		require.NoError(t, err)
		defer func() { assert.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) }()
		used, err := ledgerdb.UseConfigurations(t.Context(), tx, orgs)
		require.NoError(t, err)
		assert.LessOrEqual(t, locks(tx), 128)
		assert.NotContains(t, used, "org-1234")
		assert.Greater(t, len(used), 4900, "most of its neighbours are not kept out")

		few, err := ledgerdb.UseConfigurations(t.Context(), tx, orgs[1200:1300])
		require.NoError(t, err)
		assert.Len(t, few, 99, "only the one that is changed is kept out")
	}
}

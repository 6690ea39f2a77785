package engine_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/dev/testdb"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
)

// TestPreparedTransactions: a transaction that is prepared (two-phase commit) belongs to no
// session, and keeps its locks until another one ends it. PostgreSQL takes none by default, so the
// test has a server of its own.
func TestPreparedTransactions(t *testing.T) {
	t.Parallel()
	s, err := devstack.Start(t.Context(),
		devstack.Options{
			Private: true, NoTemporal: true, FastAndUnsafe: true,
			PostgresSettings: []string{"max_prepared_transactions=5"},
		})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) }()
	require.NoError(t, migrations.Up(t.Context(), s.DatabaseURL))
	pool, err := pgxpool.New(t.Context(), s.DatabaseURL)
	require.NoError(t, err)
	defer pool.Close()
	b := &bundle{DB: &pgtest.DB{Database: &testdb.Database{URL: s.DatabaseURL, Pool: pool}}, t: t, store: store.New(pool)}
	fixture.Organization(t, pool, org)
	e := engine.New(b.store, ledger.New(nil), engine.Options{Direct: true, Log: slog.New(slog.DiscardHandler)})
	defer e.Close()

	// prepare marks documents ready in a transaction, and prepares it.
	prepare := func(name, notify string, documents ...string) error {
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		_, err = tx.Exec(t.Context(), `SELECT set_config('daybook.notify', $1, true)`, notify)
		require.NoError(t, err)
		for _, id := range documents {
			_, err := ledgerdb.PutDocument(t.Context(), tx, fixture.Invoice(org, id, 1000))
			require.NoError(t, err)
			_, err = store.MarkDocumentReady(t.Context(), tx, org, id, models.PriorityNormal)
			require.NoError(t, err)
		}
		_, err = tx.Exec(t.Context(), `PREPARE TRANSACTION '`+name+`'`, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	// completed waits until so many documents are posted, and works turn n meanwhile; 0: another turn
	// does.
	completed := func(n, want int) {
		t.Helper()
		began := time.Now()
		if n > 0 {
			r, err := e.Process(t.Context(), engine.TurnRequest{Turn: turn(n), Batch: 50, Wait: time.Minute})
			require.NoError(t, err)
			assert.Positive(t, r.Leased)
		}
		if !assert.Eventually(t, func() bool {
			return fixture.Count(t, pool,
				`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed'`) == want
		}, soon, 10*time.Millisecond) {
			var rows string
			require.NoError(t, pool.QueryRow(t.Context(),
				`SELECT string_agg(q::text, E'\n') FROM daybook.accounting_work_queue q`).Scan(&rows))
			t.Fatalf("want %d completed:\n%s", want, rows)
		}
		assert.Less(t, time.Since(began), soon)
	}

	got := b.waiting(e)
	var refused *pgconn.PgError
	require.ErrorAs(t, prepare("told", "", "doc-1"), &refused)
	assert.Equal(t, "0A000", refused.Code, "PostgreSQL prepares no transaction that has notified")
	require.NoError(t, prepare("ready", "off", "doc-1", "doc-2"))
	require.NoError(t, prepare("undone", "off", "doc-3"))
	fixture.Ready(t, pool, fixture.Invoice(org, "doc-4", 1000))
	assert.Equal(t, 1, b.worked(got).Leased, "others do not wait for it")
	_, err = e.Process(t.Context(), request(1))
	require.NoError(t, err)
	completed(0, 1)

	b.exec(`COMMIT PREPARED 'ready'`)
	completed(2, 3)
	b.exec(`ROLLBACK PREPARED 'undone'`)

	// One that has the rows of what is due keeps it from being worked, and nothing else.
	fixture.Ready(t, pool, fixture.Invoice(org, "doc-5", 1000))
	require.NoError(t, prepare("again", "off", "doc-5"))
	fixture.Ready(t, pool, fixture.Invoice(org, "doc-6", 1000))
	completed(3, 4)
	b.exec(`COMMIT PREPARED 'again'`)
	completed(4, 5)
	found, err := audit.Run(t.Context(), pool, audit.Options{})
	require.NoError(t, err)
	assert.Zero(t, found.Wrong(), "%+v", found)
}

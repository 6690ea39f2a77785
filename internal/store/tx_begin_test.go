package store_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TestTransactionBegins: a transaction of the worker begins with its first statement, a batch
// included, with the settings that Daybook's rules depend on; and not at all without one.
func TestTransactionBegins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, _ := b.oneConnection()
	const ask = `SELECT concat_ws(' ', current_setting('transaction_isolation'), current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'))`
	status := func(tx pgx.Tx) string { return string(tx.Conn().PgConn().TxStatus()) }
	for name, first := range map[string]func(tx pgx.Tx) string{
		"a row": func(tx pgx.Tx) (got string) {
			require.NoError(t, tx.QueryRow(t.Context(), ask).Scan(&got))
			return got
		},
		"rows": func(tx pgx.Tx) string {
			rows, err := tx.Query(t.Context(), ask)
			require.NoError(t, err)
			got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
			require.NoError(t, err)
			return got
		},
		"a batch": func(tx pgx.Tx) (got string) {
			batch := &pgx.Batch{}
			batch.Queue(`SELECT 1`)
			batch.Queue(ask)
			results := tx.SendBatch(t.Context(), batch)
			_, err := results.Exec()
			require.NoError(t, err)
			require.NoError(t, results.QueryRow().Scan(&got))
			require.NoError(t, results.Close())
			return got
		},
		"a savepoint": func(tx pgx.Tx) (got string) {
			nested, err := tx.Begin(t.Context())
			require.NoError(t, err)
			require.NoError(t, nested.QueryRow(t.Context(), ask).Scan(&got))
			return got
		},
		"a row of a statement with arguments": func(tx pgx.Tx) (got string) {
			require.NoError(t, tx.QueryRow(t.Context(), ask+` WHERE $1`, true).Scan(&got))
			return got
		},
		"a statement with arguments": func(tx pgx.Tx) (got string) {
			tag, err := tx.Exec(t.Context(), `SELECT $1::integer`, 1)
			require.NoError(t, err)
			require.EqualValues(t, 1, tag.RowsAffected())
			require.NoError(t, tx.QueryRow(t.Context(), ask).Scan(&got))
			return got
		},
		"an order to begin": func(tx pgx.Tx) (got string) {
			require.NoError(t, store.BeginNow(t.Context(), tx))
			require.Equal(t, "T", status(tx))
			require.NoError(t, tx.QueryRow(t.Context(), ask).Scan(&got))
			return got
		},
		"the connection": func(tx pgx.Tx) (got string) {
			require.NoError(t, tx.Conn().QueryRow(t.Context(), ask).Scan(&got))
			return got
		},
	} {
		require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
			begun, err := store.HasBegun(tx)
			require.NoError(t, err)
			assert.False(t, begun, name)
			assert.Equal(t, "read committed 0 10s", first(tx), name)
			assert.Equal(t, "T", status(tx), name)
			begun, err = store.HasBegun(tx)
			assert.True(t, begun, name)
			return err
		}), name)
	}
	require.NoError(t, s.InTx(t.Context(), func(pgx.Tx) error { return nil }))
}

// TestTransactionThatCannotBegin: what a transaction requires when it begins fails its first
// statement, and nothing of that is done.
func TestTransactionThatCannotBegin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, _ := b.oneConnection()
	s.GuardSchema(func(context.Context) error { return nil }, slog.New(slog.DiscardHandler))
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `CREATE TABLE effects (name text)`)
		return err
	}))
	for name, first := range map[string]func(tx pgx.Tx) error{
		"a statement": func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO effects VALUES ('a')`)
			return err
		},
		"a batch": func(tx pgx.Tx) error {
			batch := &pgx.Batch{}
			batch.Queue(`INSERT INTO effects VALUES ('b')`)
			return tx.SendBatch(t.Context(), batch).Close()
		},
		"a statement with arguments": func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO effects VALUES ($1)`, "c")
			_, why := store.HasBegun(tx)
			assert.Equal(t, why, err, "it is not the statement's doing")
			return err
		},
		"a row of a statement with arguments": func(tx pgx.Tx) error {
			var name string
			err := tx.QueryRow(t.Context(), `INSERT INTO effects VALUES ($1) RETURNING name`, "d").Scan(&name)
			_, why := store.HasBegun(tx)
			assert.Equal(t, why, err, "it is not the statement's doing")
			return err
		},
	} {
		// The table is verified, and replaced after that.
		require.NoError(t, s.InTx(t.Context(), func(pgx.Tx) error { return nil }))
		b.exec(`ALTER TABLE daybook.accounting_work_queue RENAME TO "` + name + `"`)
		b.exec(`CREATE TABLE daybook.accounting_work_queue (LIKE daybook."` + name + `")`)
		err := s.InTx(t.Context(), first)
		assert.True(t, store.IsSchemaMismatch(err), "%s: %v", name, err)
	}
	var n int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM effects`).Scan(&n))
	assert.Zero(t, n)
}

// TestFirstStatementThatFails: a first statement fails in the transaction, also one that cannot be
// prepared, which is found out before BEGIN is sent. One without a row fails nothing.
func TestFirstStatementThatFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, _ := b.oneConnection()
	var n int
	for name, c := range map[string]struct {
		first  func(tx pgx.Tx) error
		state  string
		status byte
	}{
		"an unknown table": {func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO nowhere VALUES ($1)`, 1)
			return err
		}, "42P01", 'E'},
		"a row of an unknown table": {func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT n FROM nowhere WHERE n = $1`, 1).Scan(&n)
		}, "42P01", 'E'},
		"a division by zero": {func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), `SELECT 1 / $1::integer`, 0); return err }, "22012", 'E'},
		"a row with a division by zero": {func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT 1 / $1::integer`,
				0).Scan(&n)
		}, "22012", 'E'},
		"no row": {func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), `SELECT 1 WHERE $1`, false).Scan(&n) }, "", 'T'},
	} {
		_ = s.InTx(t.Context(), func(tx pgx.Tx) error {
			err := c.first(tx)
			require.Error(t, err, name)
			assert.Equal(t, c.state, store.SQLState(err), name)
			begun, why := store.HasBegun(tx)
			require.NoError(t, why, name)
			assert.True(t, begun, name)
			assert.Equal(t, string(c.status), string(tx.Conn().PgConn().TxStatus()), name)
			return err
		})
	}
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT $1::integer`, 7).Scan(&n)
	}), "the only connection is as it was")
	assert.Equal(t, 7, n)
}

// TestTransactionPlansAnew: the store's batches are planned by key, also after a statement of the
// application that may have changed that.
func TestTransactionPlansAnew(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	id := b.enqueue("org_1", "short", 0)
	pick, err := b.jobs.PickTypes(t.Context(), 10, short, pgtest.Unbounded())
	require.NoError(t, err)
	require.NoError(t, b.jobs.InTx(t.Context(), func(tx pgx.Tx) error {
		show := func() (scans string) {
			require.NoError(t, tx.QueryRow(t.Context(), `SHOW enable_seqscan`).Scan(&scans))
			return scans
		}
		jobs, err := pick.Lock(t.Context(), tx)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		assert.Equal(t, id, jobs[0].ID)
		assert.Equal(t, "off", show())
		_, err = tx.Exec(t.Context(), `SET LOCAL enable_seqscan = on`)
		require.NoError(t, err)
		_, err = store.Jobs.Complete(t.Context(), tx, store.Turn{ID: "run/0/1", Fence: 1},
			[]store.Completion{{Job: jobs[0], Outcome: models.OutcomeCompleted}}, store.Access{Picked: true})
		assert.Equal(t, "off", show())
		return err
	}))
}

// TestNoLimitOfTheWholeTransaction: transaction_timeout, which servers have from PostgreSQL 17 on,
// ends no session of Daybook's.
func TestNoLimitOfTheWholeTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, made := b.oneConnection()
	const ask = `SELECT current_setting('transaction_timeout', true)`
	var there *string
	require.NoError(t, s.Pool().QueryRow(t.Context(), ask).Scan(&there))
	if there == nil {
		t.Skip("the server has no transaction_timeout")
	}
	// To set it to another time does not move a timer that runs, but to set it to 0 stops the timer.
	_, err := s.Pool().Exec(t.Context(), `SET transaction_timeout = '1s'`)
	require.NoError(t, err)
	var limit string
	read := func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `SELECT current_setting('transaction_timeout') FROM pg_sleep(1.2)`).Scan(&limit)
	}
	for name, run := range map[string]func() error{
		"a transaction of the worker": func() error { return s.InTx(t.Context(), read) },
		"a transaction":               func() error { return store.Begin(t.Context(), s.Pool(), read) },
		"a snapshot":                  func() error { return store.ReadSnapshot(t.Context(), s.Pool(), read) },
	} {
		limit = ""
		require.NoError(t, run(), name)
		assert.Equal(t, "0", limit, name)
	}
	require.NoError(t, s.Pool().QueryRow(t.Context(), ask).Scan(&limit))
	assert.Equal(t, "1s", limit, "the session keeps it")
	assert.EqualValues(t, 1, made())
}

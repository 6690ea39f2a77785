package store_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// stricter returns a pool whose sessions begin with defaults that the worker must not depend on.
func stricter(t *testing.T, db *pgtest.DB) *pgxpool.Pool {
	t.Helper()
	for _, setting := range []string{
		`default_transaction_isolation = 'serializable'`, `statement_timeout = '1s'`, `lock_timeout = '1s'`,
		`idle_session_timeout = '1h'`,
	} {
		_, err := db.Pool.Exec(t.Context(), `ALTER DATABASE `+db.Name+` SET `+setting)
		require.NoError(t, err)
	}
	pool, err := pgxpool.New(t.Context(), db.URL)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

const readSettings = `SELECT current_setting('transaction_isolation') || ' ' || current_setting('statement_timeout') || ' ' || current_setting('lock_timeout')`

func TestTransactionsNameWhatTheyDependOn(t *testing.T) {
	t.Parallel()
	pool := stricter(t, pgtest.New(t))
	const own = "read committed 0 0"
	var got string
	read := func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), readSettings).Scan(&got) }

	require.NoError(t, store.Begin(t.Context(), pool, read))
	assert.Equal(t, own, got, "Begin")
	require.NoError(t, store.New(pool).InTx(t.Context(), read))
	assert.Equal(t, own, got, "InTx")
	require.NoError(t, store.ReadSnapshot(t.Context(), pool, read))
	assert.Equal(t, "repeatable read 0 0", got, "readSnapshot")

	rows, err := store.ByKey(t.Context(), pool, pgx.RowTo[string], readSettings)
	require.NoError(t, err)
	assert.Equal(t, []string{own}, rows, "a batch without a transaction around it")

	require.NoError(t, pool.QueryRow(t.Context(), readSettings).Scan(&got))
	assert.Equal(t, "serializable 1s 1s", got, "the session keeps its own defaults")
}

func TestBatchWithoutTransactionIsReadCommittedInEveryExecMode(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	stricter(t, db)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			config, err := pgxpool.ParseConfig(db.URL)
			require.NoError(t, err)
			config.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			defer pool.Close()
			for range 2 {
				rows, err := store.ByKey(t.Context(), pool, pgx.RowTo[string], readSettings)
				require.NoError(t, err)
				assert.Equal(t, []string{"read committed 0 0"}, rows)
			}
		})
	}
}

// begins is how a transaction is begun by pgx's own means.
var begins = regexp.MustCompile(`pgx\.Begin(Tx)?Func\(|(pool|Pool|Pool\(\)|conn|Conn|db)\.Begin(Tx)?\(`)

// savepoint is how a part of a transaction, which has its level already, is rolled back by itself.
var savepoint = regexp.MustCompile(`pgx\.BeginFunc\(ctx, tx,`)

// writes is a statement on a pool, which is a transaction under the session's default.
var writes = regexp.MustCompile(`s\.pool\.(Exec|Query|SendBatch)\(`)

func TestTransactionsBeginInOnePlace(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case e.IsDir() && (name == "bench" || name == "examples" || name == "tools" || name == ".git" ||
			name == filepath.Join("cmd", "daybook", "internal", "newapp", "app") || // an application's
			strings.HasPrefix(name, filepath.Join("internal", "dev"))):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"),
			name == filepath.Join("internal", "store", "tx.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(source), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "//") {
				continue
			}
			assert.False(t, begins.MatchString(line) && !savepoint.MatchString(line),
				"%s:%d begins a transaction by itself: use store.Begin or Store.InTx", name, i+1)
			if strings.HasPrefix(name, filepath.Join("internal", "store")) && filepath.Base(name) != "queuetest.go" {
				assert.False(t, writes.MatchString(line),
					"%s:%d runs a statement under the session's default isolation: use byKey or Store.InTx", name, i+1)
			}
		}
		return nil
	})
	require.NoError(t, err)
}

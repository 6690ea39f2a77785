package migrations_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Daybook's tables, and those with a few rows, whatever there is to do.
const ownTables = `SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND ` + ofDaybook

var smallTables = map[string]bool{"daybook.defaults": true, "daybook.fleets": true}

// inside applies a migration that is a transaction. While it holds a strong lock on a table it may
// read none, as then the lock lasts for as long as that table is large.
func inside(t *testing.T, conn *pgx.Conn, up string) []string {
	t.Helper()
	const files = `SELECT oid::regclass || ' ' || relfilenode FROM pg_class WHERE relkind = 'r' AND ` + ofDaybook
	before, known := texts(t, conn, files), texts(t, conn, ownTables)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = conn.PgConn().Exec(t.Context(), up).ReadAll()
	require.NoError(t, err)
	var found []string
	after, left := texts(t, conn, files), texts(t, conn, ownTables)
	for file := range before {
		if table, _, _ := strings.Cut(file, " "); !after[file] && left[table] {
			found = append(found, "writes "+table+" anew")
		}
	}
	const read = `SELECT relid::regclass::text FROM pg_stat_xact_all_tables WHERE coalesce(seq_scan, 0) + coalesce(idx_scan, 0) > 0`
	const locked = `
SELECT l.mode || ' on ' || l.relation::regclass
  FROM pg_locks l JOIN pg_class r ON r.oid = l.relation AND r.relkind = 'r'
 WHERE l.pid = pg_backend_pid() AND l.mode IN ('RowExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`
	locks := texts(t, conn, locked)
	for table := range texts(t, conn, read) {
		if !known[table] || smallTables[table] {
			continue
		}
		for lock := range locks {
			mode, of, _ := strings.Cut(lock, " on ")
			// Rows that are written hold up those who write the same ones: the table's own.
			if known[of] && (of == table || mode != "RowExclusiveLock") {
				found = append(found, fmt.Sprintf("reads %s while it holds %s: the lock lasts as long as the table is large", table, lock))
			}
		}
	}
	require.NoError(t, tx.Commit(t.Context()))
	return found
}

// What may be outside of a transaction, each as a whole statement.
var (
	dropsIndex = regexp.MustCompile(`^DROP INDEX CONCURRENTLY IF EXISTS ([\w.]+)$`)
	makesIndex = regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX CONCURRENTLY (?:IF NOT EXISTS )?(\w+) ON (?:ONLY )?(\w+)\.\w+`)
	validates  = regexp.MustCompile(`^ALTER TABLE [\w.]+ VALIDATE CONSTRAINT \w+$`)
)

// outside applies a migration that is none: only what takes no strong lock may be in it, and an
// index that a try has left half done is dropped before it is made.
func outside(t *testing.T, conn *pgx.Conn, up string) []string {
	t.Helper()
	const indexes = `SELECT indexrelid::regclass::text FROM pg_index`
	known, dropped := texts(t, conn, indexes), map[string]bool{}
	var found, old []string
	for statement := range strings.SplitSeq(up, ";") {
		plain := withoutComments(statement)
		if plain == "" {
			continue
		}
		drops, makes := dropsIndex.FindStringSubmatch(plain), makesIndex.FindStringSubmatch(plain)
		switch {
		case drops != nil:
			dropped[drops[1]] = true
			if known[drops[1]] {
				old = append(old, drops[1])
			}
		case makes != nil:
			name := makes[2] + "." + makes[1]
			if !dropped[name] {
				found = append(found, "wants DROP INDEX CONCURRENTLY IF EXISTS "+name+" first: a try that failed leaves an index that is not valid")
			}
			for _, index := range old {
				found = append(found, fmt.Sprintf("drops %s before it makes %s: workers go without as long as that takes, so make one of another name first", index, name))
			}
		case validates.MatchString(plain):
		default:
			found = append(found, "may not be outside of a transaction: "+plain)
		}
		_, err := conn.Exec(t.Context(), plain)
		require.NoError(t, err)
	}
	return found
}

// withoutComments is a statement on one line.
func withoutComments(statement string) string {
	var words []string
	for line := range strings.SplitSeq(statement, "\n") {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "--") {
			words = append(words, strings.Fields(line)...)
		}
	}
	return strings.Join(words, " ")
}

func texts(t *testing.T, conn *pgx.Conn, query string) map[string]bool {
	t.Helper()
	rows, _ := conn.Query(t.Context(), query)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	set := map[string]bool{}
	for _, text := range list {
		set[text] = true
	}
	return set
}

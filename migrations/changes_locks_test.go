package migrations_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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

// outside applies a migration that is none: only what takes no strong lock may be in it. A run that
// is interrupted, were it only before the note that all is applied, begins anew with the first
// statement.
func outside(t *testing.T, conn *pgx.Conn, up string) []string {
	t.Helper()
	const indexes = `SELECT indexrelid::regclass::text FROM pg_index`
	known := texts(t, conn, indexes)
	var found, old, made []string
	for _, plain := range statementsOf(up) {
		drops, makes := dropsIndex.FindStringSubmatch(plain), makesIndex.FindStringSubmatch(plain)
		switch {
		case drops != nil:
			if known[drops[1]] {
				old = append(old, drops[1])
			}
		case makes != nil:
			made = append(made, makes[2]+"."+makes[1])
		case validates.MatchString(plain):
		default:
			found = append(found, "may not be outside of a transaction: "+plain)
		}
		_, err := conn.Exec(t.Context(), plain)
		require.NoError(t, err)
	}
	if len(old) > 0 && len(made) > 0 {
		found = append(found, fmt.Sprintf("drops %s and makes %s: a run that begins anew would leave workers without any as long as that takes, "+
			"so make one of another name, and drop the old one in a migration that follows", old[0], made[0]))
	}
	return found
}

// again runs a migration that is no transaction again, as after an interruption, and its other
// direction twice. It is applied in the end. An index that a try has left half done is to be dropped
// before it is made.
func again(t *testing.T, conn *pgx.Conn, up, down string) (found []string) {
	t.Helper()
	for _, text := range []string{up, down} {
		dropped := map[string]bool{}
		for _, statement := range statementsOf(text) {
			if drops := dropsIndex.FindStringSubmatch(statement); drops != nil {
				dropped[drops[1]] = true
			}
			if makes := makesIndex.FindStringSubmatch(statement); makes != nil && !dropped[makes[2]+"."+makes[1]] {
				found = append(found, fmt.Sprintf("wants DROP INDEX CONCURRENTLY IF EXISTS %s.%s first: a try that failed leaves an index that is not valid", makes[2], makes[1]))
			}
		}
	}
	for _, way := range []struct{ name, text string }{{"Up", up}, {"Down", down}, {"Down", down}, {"Up", up}} {
		for _, statement := range statementsOf(way.text) {
			_, err := conn.Exec(t.Context(), statement)
			if refusal, is := errors.AsType[*pgconn.PgError](err); is {
				return append(found, fmt.Sprintf("cannot begin anew after an interruption, as %q of its %s fails then: %s", statement, way.name, refusal.Message))
			}
			require.NoError(t, err)
		}
	}
	return found
}

// statementsOf are the statements of a migration that is no transaction, each on one line.
func statementsOf(text string) (list []string) {
	for statement := range strings.SplitSeq(text, ";") {
		if plain := withoutComments(statement); plain != "" {
			list = append(list, plain)
		}
	}
	return list
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

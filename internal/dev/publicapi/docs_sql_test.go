package publicapi_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// tablesAround is what a reader has around the pieces of SQL on the pages.
const tablesAround = `
CREATE TABLE public.images (id bigint, thumbnail text);
CREATE TABLE public.archive (task_id bigint, facts jsonb);
CREATE SCHEMA comms`

// runElsewhere are beginnings of pieces that other tests run with all that they need.
var runElsewhere = map[string]*regexp.Regexp{
	"docs/adopting.md":             regexp.MustCompile(`^CREATE VIEW`),               // cmd/daybook: TestAdoptingAsDocumented
	"docs/job-types.md":            regexp.MustCompile(``),                           // handlers: TestDocsExamples
	"docs/jobs.md":                 regexp.MustCompile(`^WITH signed`),               // examples/welcome: TestPageOfCTEs
	"docs/tasks.md":                regexp.MustCompile(`shop\.`),                     // cmd/daybook: TestWalkthrough
	"docs/runbook.md":              regexp.MustCompile(`^(SET session|DELETE FROM)`), // cmd/daybook: TestDumpsOfThePages
	"docs/from-river.md":           regexp.MustCompile(`^WITH taken`),                // bench/moving
	"docs/from-pg-boss.md":         regexp.MustCompile(`^WITH taken`),                // the same
	"docs/from-graphile-worker.md": regexp.MustCompile(`^WITH taken`),                // the same
}

var (
	// asked is a span of code that asks Daybook or PostgreSQL.
	asked   = regexp.MustCompile(`^(?:SELECT|INSERT INTO|UPDATE) [^…]*\b(?:daybook\.|queues\.|pg_)[^…]+$`)
	comment = regexp.MustCompile(`(?m)--.*$`)
	leftOut = regexp.MustCompile(`\$\$ … \$\$`)
	// statement is one, with the bodies of functions in it.
	statement = regexp.MustCompile(`(?s)(?:\$\$.*?\$\$|[^;])+?(?:;|\z)`)
	// query is a statement that PostgreSQL checks without running it.
	query = regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
	// control is left out: a test has one transaction.
	control = regexp.MustCompile(`^(BEGIN|COMMIT|VACUUM\b.*)$`)
)

// TestSQLOfThePages has PostgreSQL check each piece of SQL in README.md and docs: the functions,
// arguments, tables and columns of queries, and other statements by running them.
func TestSQLOfThePages(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	all := piecesOfSQL(t)
	checked := 0
	for page, pieces := range all {
		tx, err := db.Pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), tablesAround)
		require.NoError(t, err)
		for _, piece := range pieces {
			if elsewhere := runElsewhere[page]; elsewhere != nil && elsewhere.MatchString(piece.Text) {
				continue
			}
			checked++
			for _, statement := range statements(piece.Text) {
				assert.NoError(t, accepts(t.Context(), tx, statement), "%s:%d: %s", page, piece.Line, statement)
			}
		}
		require.NoError(t, tx.Rollback(t.Context()))
	}
	assert.Greater(t, checked, 30)
}

// piecesOfSQL returns the blocks of each page, what psql is given, and the spans that ask something.
func piecesOfSQL(t *testing.T) map[string][]pages.Block {
	t.Helper()
	found := map[string][]pages.Block{}
	blocks, err := pages.Of("", "sql")
	require.NoError(t, err)
	commands, err := pages.Commands("psql")
	require.NoError(t, err)
	for _, c := range commands {
		for i, word := range c.Words[1:] {
			if c.Words[i] == "-c" {
				blocks = append(blocks, pages.Block{Page: c.Page, Line: c.Line, Text: word})
			}
		}
	}
	spans, err := pages.Spans()
	require.NoError(t, err)
	spans = slices.DeleteFunc(spans, func(b pages.Block) bool { return !asked.MatchString(b.Text) })
	for _, b := range slices.Concat(blocks, spans) {
		found[b.Page] = append(found[b.Page], b)
	}
	return found
}

// statements returns those of a piece. What a function's body leaves out is written as "…".
func statements(piece string) (found []string) {
	piece = leftOut.ReplaceAllString(comment.ReplaceAllString(piece, ""), "$$$$ BEGIN RETURN NULL; END $$$$")
	for _, statement := range statement.FindAllString(piece, -1) {
		if statement = strings.Trim(statement, "; \n"); statement != "" && !control.MatchString(statement) {
			found = append(found, statement)
		}
	}
	return found
}

// accepts returns what PostgreSQL says against a statement.
func accepts(ctx context.Context, tx pgx.Tx, statement string) error {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	if query.MatchString(statement) {
		_, err = savepoint.Prepare(ctx, "", statement)
	} else {
		_, err = savepoint.Exec(ctx, statement)
	}
	if err == nil {
		return savepoint.Commit(ctx)
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if ok && refused.Code == "42710" && strings.HasPrefix(statement, "CREATE ROLE") {
		err = nil // another database of the server has it
	}
	return errors.Join(err, savepoint.Rollback(ctx))
}

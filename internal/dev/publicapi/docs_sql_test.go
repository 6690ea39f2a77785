package publicapi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	"job-types.md":            regexp.MustCompile(``),             // handlers: TestDocsExamples
	"jobs.md":                 regexp.MustCompile(`^WITH signed`), // examples/welcome: TestPageOfCTEs
	"tasks.md":                regexp.MustCompile(`shop\.`),       // cmd/daybook: TestWalkthrough
	"from-river.md":           regexp.MustCompile(`^WITH taken`),  // bench/moving
	"from-pg-boss.md":         regexp.MustCompile(`^WITH taken`),  // the same
	"from-graphile-worker.md": regexp.MustCompile(`^WITH taken`),  // the same
}

var (
	// pieceOfSQL is a block, what psql is given, or a span of code that asks Daybook or PostgreSQL.
	pieceOfSQL = regexp.MustCompile("(?s)\n```sql\n(.*?)```|\\bpsql [^\n]* -c \"([^\"\n]*)\"|`((?:SELECT|INSERT INTO|UPDATE) [^`…]*\\b(?:daybook\\.|queues\\.|pg_)[^`…]+)`")
	comment    = regexp.MustCompile(`(?m)--.*$`)
	leftOut    = regexp.MustCompile(`\$\$ … \$\$`)
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
	pages, err := filepath.Glob("../../../docs/*.md")
	require.NoError(t, err)
	db := pgtest.New(t)
	pieces := 0
	for _, page := range append(pages, "../../../README.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		tx, err := db.Pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), tablesAround)
		require.NoError(t, err)
		for _, m := range pieceOfSQL.FindAllSubmatchIndex(text, -1) {
			piece := string(text[max(m[2], m[4], m[6]):max(m[3], m[5], m[7])])
			if elsewhere := runElsewhere[filepath.Base(page)]; elsewhere != nil && elsewhere.MatchString(piece) {
				continue
			}
			pieces++
			where := fmt.Sprintf("%s:%d", filepath.Base(page), 1+strings.Count(string(text[:m[0]+1]), "\n"))
			for _, statement := range statements(piece) {
				assert.NoError(t, accepts(t.Context(), tx, statement), "%s: %s", where, statement)
			}
		}
		require.NoError(t, tx.Rollback(t.Context()))
	}
	assert.Greater(t, pieces, 15)
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

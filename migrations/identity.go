package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/daybook-dev/daybook/failure"
)

// ErrDifferent means that the database was made by other migrations than this build has under the
// same numbers.
var ErrDifferent = failure.New(failure.SchemaDifferent,
	"the database was made by other migrations of the same number, as by a program from before the first release: use the "+
		"program that made it, or make the database anew (`daybook migrate down --all` by the program that made it, with "+
		"--delete-data if it asks for that, or, if the schemas queues and internal have nothing of yours, DROP SCHEMA daybook, queues, internal "+
		"CASCADE, then `daybook migrate up`)")

// ErrIncomplete means that constraints, indexes or triggers are missing that the migrations made.
var ErrIncomplete = failure.New(failure.SchemaIncomplete,
	"the database's schema is incomplete: wait until the restore of a dump is done, or restore what is missing")

// createTexts makes the table that says by which texts the schema was made, and which constraints,
// indexes and triggers it got. A text is noted before it is applied. What is noted of a migration
// that is not applied means nothing. A migration that breaks is one that programs cannot work with
// which do not know it.
const createTexts = `
CREATE TABLE IF NOT EXISTS daybook.schema_texts (
    version bigint PRIMARY KEY,
    sha256  text NOT NULL,
    breaks  boolean NOT NULL DEFAULT true,
    objects text[]
)`

// objectsQuery lists the constraints, indexes and triggers of Daybook's tables. A restore makes
// them after the rows of all tables. An index that is not valid is none yet: it is being made, or
// that has failed.
const objectsQuery = `
SELECT 'constraint ' || r.relname || '.' || c.conname AS object
  FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_class r ON r.oid = c.conrelid
 WHERE ` + ownRelation + ` AND c.contype IN ('p', 'u', 'f', 'c')
UNION ALL
SELECT 'index ' || i.relname
  FROM pg_catalog.pg_class i JOIN pg_catalog.pg_index x ON x.indexrelid = i.oid JOIN pg_catalog.pg_class r ON r.oid = x.indrelid
 WHERE ` + ownRelation + ` AND i.relkind = 'i' AND x.indisvalid
UNION ALL
SELECT 'trigger ' || r.relname || '.' || t.tgname
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class r ON r.oid = t.tgrelid
 WHERE ` + ownRelation + ` AND NOT t.tgisinternal`

// ownRelation says whether the table r is Daybook's. Other tables of schema queues are the
// application's.
const ownRelation = `(r.relnamespace = 'daybook'::regnamespace OR r.oid = ANY (` + taskTables + `))`

// taskTables are Daybook's tables in schema queues.
const taskTables = `ARRAY[to_regclass('queues.task'), to_regclass('queues.task_lease'), to_regclass('queues.task_completed'), to_regclass('queues.error'),
       to_regclass('queues.open_task'), to_regclass('queues.task_cursor'), to_regclass('queues.task_limit')]::oid[]`

// breaksMark is the line of a migration which takes away what programs use that do not know it.
const breaksMark = "-- +daybook breaks"

// text is one migration of this build.
type text struct {
	version int64
	file    string
	body    string
	sha256  string
	breaks  bool
	// alone: it is applied outside of a transaction, statement by statement.
	alone bool
}

// readTexts returns the migrations, oldest first.
func readTexts(files fs.FS) ([]text, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	list := make([]text, 0, len(entries))
	for _, e := range entries {
		version, err := goose.NumericComponent(e.Name())
		if err != nil {
			return nil, fmt.Errorf("migration file %s: %w", e.Name(), err)
		}
		content, err := fs.ReadFile(files, e.Name())
		if err != nil {
			return nil, err
		}
		sum, body := sha256.Sum256(content), string(content)
		list = append(list, text{
			version: version, file: e.Name(), body: body, sha256: hex.EncodeToString(sum[:]),
			breaks: version <= Baseline || hasLine(body, breaksMark), alone: hasLine(body, "-- +goose NO TRANSACTION"),
		})
	}
	return list, nil
}

func hasLine(body, line string) bool {
	return slices.Contains(strings.Split(body, "\n"), line)
}

// up applies what is missing, and notes by which texts.
func (c chapters) up(ctx context.Context, db *sql.DB, p *goose.Provider) error {
	steps, err := p.Status(ctx)
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, createTexts); err != nil {
		return fmt.Errorf("make the table of texts: %w", err)
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if want := steps[len(steps)-1].Source.Version; have > want {
		if err := refuseNewer(want, have, db.QueryRowContext(ctx, survivesNewer, want).Scan); err != nil {
			return err
		}
	}
	list, err := c.texts()
	if err != nil {
		return err
	}
	var missing []text
	for i, t := range list {
		if i >= len(steps) || steps[i].State != goose.StateApplied {
			missing = append(missing, t)
			continue
		}
		var have sql.NullString
		if err := db.QueryRowContext(ctx, `SELECT max(sha256) FROM daybook.schema_texts WHERE version = $1`,
			t.version).Scan(&have); err != nil {
			return fmt.Errorf("read the text of migration %d: %w", t.version, err)
		}
		if have.String != t.sha256 {
			return fmt.Errorf("%w (%s)", ErrDifferent, t.file)
		}
	}
	for _, t := range missing {
		const note = `
INSERT INTO daybook.schema_texts (version, sha256, breaks) VALUES ($1, $2, $3)
ON CONFLICT (version) DO UPDATE SET sha256 = excluded.sha256, breaks = excluded.breaks, objects = NULL`
		if _, err := db.ExecContext(ctx, note, t.version, t.sha256, t.breaks); err != nil {
			return fmt.Errorf("note the text of migration %d: %w", t.version, err)
		}
	}
	// A run before may have ended between a migration and its note. What there was before that one is
	// not known.
	if applied := len(list) - len(missing); applied > 0 && list[applied-1].version >= Baseline {
		if err := noteObjects(ctx, db, list[applied-1], "{}"); err != nil {
			return err
		}
	}
	for _, t := range missing {
		if err := applyAndNote(ctx, db, p, t); err != nil {
			return err
		}
	}
	return nil
}

// applyAndNote applies the next migration and notes what it leaves: an older program that starts
// before the rest is applied compares with that. No program compares with what is older than the
// baseline.
func applyAndNote(ctx context.Context, db *sql.DB, p *goose.Provider, t text) error {
	if t.version < Baseline {
		return apply(ctx, db, p, t)
	}
	had, err := listObjects(ctx, db)
	if err != nil {
		return err
	}
	if err := apply(ctx, db, p, t); err != nil {
		return err
	}
	return noteObjects(ctx, db, t, had)
}

// listObjects returns what the schema has, as PostgreSQL writes an array.
func listObjects(ctx context.Context, db *sql.DB) (objects string, err error) {
	if err := db.QueryRowContext(ctx,
		`SELECT coalesce(array_agg(object)::text, '{}') FROM (`+objectsQuery+`) o`).Scan(&objects); err != nil {
		return "", fmt.Errorf("list what the schema has: %w", err)
	}
	return objects, nil
}

// noteObjects notes what a migration from the baseline on has left, unless it is noted already: what
// the one before it left and is there still, what was not there when it began (had), and what it
// names, which a try before may have made. The rest is the application's, which may drop it.
func noteObjects(ctx context.Context, db *sql.DB, t text, had string) error {
	const whole = `
UPDATE daybook.schema_texts t
   SET objects = (SELECT array_agg(o.object ORDER BY o.object) FROM (` + objectsQuery + `) o
                   WHERE l.objects IS NULL OR o.object = ANY (l.objects) OR o.object <> ALL ($2::text::text[])
                      OR position(regexp_replace(o.object, '^.*[ .]', '') IN $3) > 0)
  FROM (SELECT (SELECT b.objects FROM daybook.schema_texts b
                 WHERE b.version < $1 AND b.objects IS NOT NULL
                   AND EXISTS (SELECT FROM daybook.schema_migrations m WHERE m.version_id = b.version AND m.is_applied)
                 ORDER BY b.version DESC LIMIT 1) AS objects) l
 WHERE t.version = $1 AND t.objects IS NULL`
	if _, err := db.ExecContext(ctx, whole, t.version, had, t.body); err != nil {
		return fmt.Errorf("note what the schema has: %w", err)
	}
	return nil
}

// apply applies the next migration. One of a release that follows the baseline finds workers beside
// it, and gives way to them. Outside of a transaction only such locks are asked for that hold up
// nothing (a test of the migrations sees to it), and to give up would leave half an index.
func apply(ctx context.Context, db *sql.DB, p *goose.Provider, t text) error {
	up := func() error {
		_, err := p.UpByOne(ctx)
		return err
	}
	if t.version <= Baseline || t.alone {
		return up()
	}
	return givingWay(ctx, db, up)
}

// verifyTexts says whether the schema was made by the texts of this build, and has all that they
// made. There are as many migrations as this build has, or more.
func (c chapters) verifyTexts(ctx context.Context, db Querier) error {
	list, err := c.texts()
	if err != nil {
		return err
	}
	var exists bool
	if err := db.QueryRow(ctx, `SELECT to_regclass('daybook.schema_texts') IS NOT NULL`).Scan(&exists); err != nil {
		return fmt.Errorf("look for the schema: %w", err)
	}
	if !exists {
		return ErrDifferent
	}
	versions, sums := make([]int64, len(list)), make([]string, len(list))
	for i, t := range list {
		versions[i], sums[i] = t.version, t.sha256
	}
	const compare = `
SELECT count(t.version) = cardinality($1::bigint[]), (SELECT min(v.version) FROM unnest($1::bigint[], $2::text[]) AS v (version, sha256)
                                    JOIN daybook.schema_texts t USING (version) WHERE t.sha256 <> v.sha256)
  FROM daybook.schema_texts t
 WHERE t.version = ANY ($1)`
	var all bool
	var different *int64
	if err := db.QueryRow(ctx, compare, versions, sums).Scan(&all, &different); err != nil {
		return fmt.Errorf("read the schema's texts: %w", err)
	}
	if different != nil {
		return fmt.Errorf("%w (migration %d)", ErrDifferent, *different)
	}
	if !all {
		return fmt.Errorf("%w (the table schema_texts lacks rows)", ErrIncomplete)
	}
	return verifyObjects(ctx, db, versions[len(versions)-1])
}

// verifyObjects compares with what was noted last: by the migration newest, or by those of a newer
// program that are applied still.
func verifyObjects(ctx context.Context, db Querier, newest int64) error {
	const missing = `
SELECT t.objects IS NOT NULL, (SELECT min(o) FROM unnest(t.objects) AS o WHERE o NOT IN (` + objectsQuery + `))
  FROM daybook.schema_texts t
 WHERE t.version >= $1 AND EXISTS (SELECT FROM daybook.schema_migrations m WHERE m.version_id = t.version AND m.is_applied)
 ORDER BY t.objects IS NULL, t.version DESC
 LIMIT 1`
	var noted bool
	var lacks *string
	err := db.QueryRow(ctx, missing, newest).Scan(&noted, &lacks)
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && !noted:
		return fmt.Errorf("%w (the last run did not end: run it again)", ErrPending)
	case err != nil:
		return fmt.Errorf("look for what the schema has: %w", err)
	case lacks != nil:
		return fmt.Errorf("%w (%s)", ErrIncomplete, *lacks)
	}
	return nil
}

// Wrong reports whether err says that the schema is not the one of this build, which no waiting
// mends.
func Wrong(err error) bool {
	return errors.Is(err, ErrPending) || errors.Is(err, ErrNewer) || errors.Is(err, ErrDifferent)
}

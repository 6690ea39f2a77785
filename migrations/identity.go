package migrations

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/daybook-dev/daybook/failure"
)

// ErrDifferent means that the database was made by other migrations than this build has under the
// same numbers.
var ErrDifferent = failure.New(failure.SchemaDifferent,
	"the database was made by other migrations of the same number: until the first release they are edited in place, "+
		"so make the database anew (`daybook migrate down --all` by the program that made it, or, if the schemas queues "+
		"and internal have nothing of yours, DROP SCHEMA daybook, queues, internal CASCADE, then `daybook migrate up`)")

// ErrIncomplete means that constraints, indexes or triggers are missing that the migrations made.
var ErrIncomplete = failure.New(failure.SchemaIncomplete,
	"the database's schema is incomplete: wait until the restore of a dump is done, or restore what is missing")

// createTexts makes the table that says by which texts the schema was made, and which constraints,
// indexes and triggers it got. A text is noted before it is applied. What is noted of a migration
// that is not applied means nothing.
const createTexts = `
CREATE TABLE IF NOT EXISTS daybook.schema_texts (
    version bigint PRIMARY KEY,
    sha256  text NOT NULL,
    objects text[]
)`

// objectsQuery lists the constraints, indexes and triggers of Daybook's tables. A restore makes
// them after the rows of all tables. Other tables of schema queues are the application's.
const objectsQuery = `
SELECT 'constraint ' || r.relname || '.' || c.conname AS object
  FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_class r ON r.oid = c.conrelid
 WHERE (r.relnamespace = 'daybook'::regnamespace OR r.oid = ANY (` + taskTables +
	`)) AND c.contype IN ('p', 'u', 'f', 'c')
UNION ALL
SELECT 'index ' || i.relname
  FROM pg_catalog.pg_class i JOIN pg_catalog.pg_index x ON x.indexrelid = i.oid JOIN pg_catalog.pg_class r ON r.oid = x.indrelid
 WHERE (r.relnamespace = 'daybook'::regnamespace OR r.oid = ANY (` + taskTables + `)) AND i.relkind = 'i'
UNION ALL
SELECT 'trigger ' || r.relname || '.' || t.tgname
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class r ON r.oid = t.tgrelid
 WHERE (r.relnamespace = 'daybook'::regnamespace OR r.oid = ANY (` + taskTables + `)) AND NOT t.tgisinternal`

// taskTables are Daybook's tables in schema queues.
const taskTables = `ARRAY[to_regclass('queues.task'), to_regclass('queues.task_lease'), to_regclass('queues.task_completed'), to_regclass('queues.error'),
       to_regclass('queues.open_task'), to_regclass('queues.task_cursor'), to_regclass('queues.task_limit')]::oid[]`

// text is one migration of this build.
type text struct {
	version int64
	file    string
	sha256  string
}

// texts returns the migrations of this build, oldest first.
func texts() ([]text, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	list := make([]text, 0, len(entries))
	for _, e := range entries {
		version, err := goose.NumericComponent(e.Name())
		if err != nil {
			return nil, fmt.Errorf("migration file %s: %w", e.Name(), err)
		}
		content, err := files.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(content)
		list = append(list, text{version: version, file: e.Name(), sha256: hex.EncodeToString(sum[:])})
	}
	return list, nil
}

// up applies what is missing, and notes by which texts.
func up(ctx context.Context, db *sql.DB, p *goose.Provider) error {
	steps, err := p.Status(ctx)
	if err != nil {
		return err
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	if want := steps[len(steps)-1].Source.Version; have > want {
		return newer(have, want)
	}
	if _, err := db.ExecContext(ctx, createTexts); err != nil {
		return fmt.Errorf("make the table of texts: %w", err)
	}
	list, err := texts()
	if err != nil {
		return err
	}
	for i, t := range list {
		const note = `
INSERT INTO daybook.schema_texts AS t (version, sha256) VALUES ($1, $2)
ON CONFLICT (version) DO UPDATE SET sha256 = excluded.sha256, objects = NULL WHERE t.sha256 <> excluded.sha256`
		if i < len(steps) && steps[i].State == goose.StateApplied {
			var have sql.NullString
			err := db.QueryRowContext(ctx, `SELECT max(sha256) FROM daybook.schema_texts WHERE version = $1`,
				t.version).Scan(&have)
			if err != nil {
				return fmt.Errorf("read the text of migration %d: %w", t.version, err)
			}
			if have.String != t.sha256 {
				return fmt.Errorf("%w (%s)", ErrDifferent, t.file)
			}
			continue
		}
		if _, err := db.ExecContext(ctx, note, t.version, t.sha256); err != nil {
			return fmt.Errorf("note the text of migration %d: %w", t.version, err)
		}
	}
	applied, err := p.Up(ctx)
	if err != nil {
		return err
	}
	const whole = `
UPDATE daybook.schema_texts SET objects = (SELECT array_agg(object ORDER BY object) FROM (` + objectsQuery + `) o)
 WHERE version = $1 AND ($2 OR objects IS NULL)`
	if _, err := db.ExecContext(ctx, whole, list[len(list)-1].version, len(applied) > 0); err != nil {
		return fmt.Errorf("note what the schema has: %w", err)
	}
	return nil
}

// verifyTexts says whether the schema was made by the texts of this build, and has all that they
// made. There are as many migrations as this build has.
func verifyTexts(ctx context.Context, db Querier) error {
	list, err := texts()
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

func verifyObjects(ctx context.Context, db Querier, newest int64) error {
	const missing = `
SELECT t.objects IS NOT NULL, (SELECT min(o) FROM unnest(t.objects) AS o WHERE o NOT IN (` + objectsQuery + `))
  FROM daybook.schema_texts t
 WHERE t.version = $1`
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

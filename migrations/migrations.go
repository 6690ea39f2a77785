// Package migrations holds Daybook's schema as numbered SQL files and applies them. Those up to
// Baseline are chapters of the schema of release 0.1.0, to be read in their order; each object
// stands in one of them. They are not edited any more. Each later file is a change, which a running
// program of the release before survives: docs/decisions/0008 says how they are written.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store/direct"
	"github.com/daybook-dev/daybook/internal/store/hosts"
	"github.com/daybook-dev/daybook/models/locks"
)

//go:embed 0*.sql
var files embed.FS

// Baseline is the last chapter of the schema of release 0.1.0.
const Baseline = 34

// chapters are the migrations that a program has.
type chapters struct {
	files fs.FS
	// texts returns them, oldest first. It reads them once: each command asks, and they are 640 KB.
	texts func() ([]text, error)
}

func chaptersOf(files fs.FS) chapters {
	return chapters{files, sync.OnceValues(func() ([]text, error) { return readTexts(files) })}
}

var shipped = chaptersOf(files)

// versionTable is where goose keeps what was applied.
const versionTable = "daybook.schema_migrations"

// ErrPending means that the database's schema is older than this build of Daybook.
var ErrPending = failure.New(failure.SchemaOld,
	"the database's schema is older than this program: run `daybook migrate up`")

// ErrNewer means that a newer build of Daybook has taken away from the database's schema what this
// one uses.
var ErrNewer = failure.New(failure.SchemaNew, "the database's schema is newer than this program can work with: update the program")

// ErrHasData means that Down would delete rows and was not told to.
var ErrHasData = failure.New(failure.ConfirmationRequired, "the database holds data, which taking a migration back may delete: "+
	"dump it, then say that it may be deleted (`daybook migrate down --delete-data`); an older program may also work with a "+
	"newer schema, which its `daybook migrate status` tells")

// verifyLimit is how long Verify waits for the database.
const verifyLimit = 5 * time.Second

// ownSettings give the session that migrates settings of its own, because the database and the role
// may have other defaults. It calls no function or operator that another role has put into a schema
// of the search path, waits for as long as it takes (for locks see apply), and compiles functions and
// keeps comments as they were written to be.
const ownSettings = `
SET search_path = pg_catalog, pg_temp;
SET client_encoding = 'UTF8';
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET idle_session_timeout = 0;
SET default_transaction_isolation = 'read committed';
SET plpgsql.extra_errors = 'none';
SELECT CASE WHEN current_setting('transaction_timeout', true) <> '0' THEN set_config('transaction_timeout', '0', false) END`

// errLockLost means that the session was ended that held the migration lock. What it had not
// committed is rolled back.
var errLockLost = failure.New(failure.DatabaseUnavailable, "the session that migrates was ended: run the command again")

// ErrNoAnswer means that the database did not say in time which schema it has: another session may
// have locked the tables that do.
var ErrNoAnswer = failure.New(failure.DatabaseUnavailable,
	"the database did not say within "+verifyLimit.String()+" which schema it has")

// Step is one migration and whether it is applied.
type Step struct {
	Version int64  `json:"version"`
	File    string `json:"file,omitempty"` // empty: this build does not have it
	Applied bool   `json:"applied"`
}

// Up applies every migration that is missing. Concurrent calls wait for each other; a second call
// does nothing. It applies nothing, and returns ErrDifferent when an applied migration has another
// text than this build's, ErrNewer when a newer build has taken something away from the schema. The
// address must lead to PostgreSQL itself, or through a pooler in session mode: else it returns
// queue.ErrDirectAddressNeeded.
func Up(ctx context.Context, databaseURL string) error {
	return shipped.withProvider(ctx, databaseURL, func(db *sql.DB, p *goose.Provider) error { return shipped.up(ctx, db, p) })
}

// DownOptions say what Down may do.
type DownOptions struct {
	All        bool // take every migration back, not the newest alone
	DeleteData bool // also with data in Daybook's tables
}

// Down takes the newest applied migration back, with the data in its tables. It returns ErrHasData,
// and does nothing, when a table of Daybook has rows and options do not say that they may be
// deleted. Stop workers and servers first: rows that are written at that very moment are deleted
// all the same.
func Down(ctx context.Context, databaseURL string, options DownOptions) error {
	return shipped.withProvider(ctx, databaseURL, func(db *sql.DB, p *goose.Provider) error {
		return shipped.down(ctx, db, p, options)
	})
}

func (c chapters) down(ctx context.Context, db *sql.DB, p *goose.Provider, options DownOptions) error {
	list, err := c.texts()
	if err != nil {
		return err
	}
	for {
		newest, err := p.GetDBVersion(ctx)
		if err != nil || newest == 0 {
			return err
		}
		down := func() error {
			if !options.DeleteData {
				if err := refuseData(ctx, db); err != nil {
					return err
				}
			}
			_, err := p.Down(ctx)
			return err
		}
		if slices.ContainsFunc(list, func(t text) bool { return t.version == newest && t.alone }) {
			err = down()
		} else {
			err = givingWay(ctx, db, down)
		}
		if err != nil || !options.All {
			return err
		}
	}
}

// refuseData returns ErrHasData, with the tables that have rows. Migrations make rows themselves
// in two tables.
func refuseData(ctx context.Context, db *sql.DB) error {
	const tables = `
SELECT coalesce(string_agg(format('SELECT %L WHERE EXISTS (SELECT FROM %s)', r.oid::regclass, r.oid::regclass), ' UNION ALL '), '')
  FROM pg_catalog.pg_class r
 WHERE r.relkind = 'r' AND ` + ownRelation + `
   AND r.relname NOT IN ('schema_migrations', 'schema_texts', 'defaults', 'fleets')`
	var query string
	if err := db.QueryRowContext(ctx, tables).Scan(&query); err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	if query == "" {
		return nil
	}
	var filled sql.NullString
	if err := db.QueryRowContext(ctx, `SELECT string_agg(t, ', ') FROM (`+query+`) AS filled (t)`).Scan(&filled); err != nil {
		return fmt.Errorf("look for data: %w", err)
	}
	if filled.Valid {
		return fmt.Errorf("%w (%s)", ErrHasData, filled.String)
	}
	return nil
}

// Status lists the migrations of this build, oldest first, and whether they are applied, and those
// that a newer build has applied. It reads
// alone, and waits for no migration that runs: a role that may read Daybook's tables
// (daybook_reader) is enough, and any role for a database without the schema.
func Status(ctx context.Context, databaseURL string) (steps []Step, err error) {
	list, err := shipped.texts()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", err)
	}
	// Behind a pooler a prepared statement may be looked for in another session.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := hosts.Connect(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	applied, err := appliedVersions(ctx, conn)
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		steps = append(steps, Step{Version: t.version, File: t.file, Applied: slices.Contains(applied, t.version)})
	}
	for _, version := range applied {
		if version > list[len(list)-1].version {
			steps = append(steps, Step{Version: version, Applied: true})
		}
	}
	return steps, nil
}

// appliedVersions are the versions that the database has, lowest first; none without the schema.
func appliedVersions(ctx context.Context, conn *pgx.Conn) ([]int64, error) {
	var exists bool
	if err := conn.QueryRow(ctx,
		`SELECT to_regclass('daybook.schema_migrations') IS NOT NULL`).Scan(&exists); err != nil || !exists {
		return nil, err
	}
	// A version that was taken back and applied again may have several rows; the newest holds.
	const q = `SELECT version_id FROM (SELECT DISTINCT ON (version_id) version_id, is_applied FROM daybook.schema_migrations ORDER BY version_id, id DESC) v WHERE is_applied`
	rows, _ := conn.Query(ctx, q)
	versions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("read the schema's version: %w", err)
	}
	return versions, nil
}

// Querier is what Verify and VerifyRoles need: a pgx pool, connection or transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Verify returns ErrPending, ErrNewer or ErrDifferent when the schema is not one that this build can
// work with: the one that it was made for, or a newer one that takes nothing away. It returns
// ErrIncomplete when a part of it is missing, for instance while a dump is being restored. After five
// seconds it returns ErrNoAnswer; a connection or transaction that it was given is closed then.
func Verify(ctx context.Context, db Querier) error {
	within, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	err := shipped.verify(within, db)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}

func (c chapters) verify(ctx context.Context, db Querier) error {
	want, err := c.newest()
	if err != nil {
		return err
	}
	var exists bool
	if err := db.QueryRow(ctx, `SELECT to_regclass('daybook.schema_migrations') IS NOT NULL`).Scan(&exists); err != nil {
		return fmt.Errorf("look for the schema: %w", err)
	}
	if !exists {
		return ErrPending
	}
	var have int64
	const q = `SELECT coalesce(max(version_id), 0) FROM daybook.schema_migrations WHERE is_applied`
	if err := db.QueryRow(ctx, q).Scan(&have); err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	switch {
	case have < want:
		return fmt.Errorf("%w (it is at %d, the program needs %d)", ErrPending, have, want)
	case have > want:
		if err := refuseNewer(want, have, db.QueryRow(ctx, survivesNewer, want).Scan); err != nil {
			return err
		}
	}
	return c.verifyTexts(ctx, db)
}

// survivesNewer asks whether each migration that follows $1 is one that programs survive which do not
// know it.
const survivesNewer = `
SELECT coalesce(bool_and(NOT coalesce(t.breaks, true)), true)
  FROM daybook.schema_migrations m LEFT JOIN daybook.schema_texts t ON t.version = m.version_id
 WHERE m.is_applied AND m.version_id > $1`

// refuseNewer returns ErrNewer when the answer to survivesNewer, which scan reads, is no.
func refuseNewer(want, have int64, scan func(...any) error) error {
	var survives bool
	if err := scan(&survives); err != nil {
		return fmt.Errorf("read what newer migrations break: %w", err)
	}
	if !survives {
		return fmt.Errorf("%w (it is at %d, the program knows %d)", ErrNewer, have, want)
	}
	return nil
}

// Newest returns the number of the newest migration of this build, which is the schema that it
// needs. An error means that the build is broken.
func Newest() (int64, error) { return shipped.newest() }

func (c chapters) newest() (int64, error) {
	list, err := c.texts()
	var last int64
	for _, t := range list {
		last = max(last, t.version)
	}
	return last, err
}

// withProvider runs f while it holds the migration lock. There is one session: when it is ended, so
// is what it was doing, before another call has the lock.
func (c chapters) withProvider(ctx context.Context, databaseURL string, f func(*sql.DB, *goose.Provider) error) (err error) {
	// The address is the worker's, which may carry settings of its pool (pool_max_conns …).
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return fmt.Errorf("database address: %w", err)
	}
	hosts.SideBySide(config)
	connected := false
	db := stdlib.OpenDB(*config.ConnConfig, stdlib.OptionAfterConnect(direct.Require), stdlib.OptionBeforeConnect(func(ctx context.Context, c *pgx.ConnConfig) error {
		if connected {
			return errLockLost
		}
		connected = true
		return config.BeforeConnect(ctx, c)
	}))
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()

	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	if _, err := db.ExecContext(ctx, ownSettings); err != nil {
		return fmt.Errorf("set the session: %w", err)
	}
	if err := takeLock(ctx, func(got *bool) error {
		return db.QueryRowContext(ctx, tryLock, int64(locks.Migrations)).Scan(got)
	}); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `CREATE SCHEMA IF NOT EXISTS daybook`); err != nil {
		return fmt.Errorf("create schema daybook: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, c.files,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if err := f(db, p); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

package daybooktest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/dev/testdb"
	"github.com/daybook-dev/daybook/migrations"
)

// EnvDatabaseURL names a running server to use instead of a private one.
const EnvDatabaseURL = testdb.EnvDatabaseURL

// searchPath is that of the databases: by PostgreSQL's default the role that owns the private
// server's databases, daybook, would find the schema of the same name first, and an application's
// tables would be made there.
const searchPath = "public"

// Options say what the databases of a test program have.
type Options struct {
	// Migrate makes the application's own schema in the template database, once a test program, after
	// Daybook's. It must close the connections that it opens. The search path is public. Nil: only
	// Daybook's schema.
	Migrate func(ctx context.Context, databaseURL string) error
}

// DB is a database of one test.
type DB struct {
	// URL is its address, for the role that owns it.
	URL string
	// Pool is connected to it. It is closed when the test ends.
	Pool *pgxpool.Pool
}

var (
	mu      sync.Mutex
	options *Options // nil: not between the beginning and the end of Run
)

// Main is the body of TestMain: it runs the tests, stops the server that they started, and exits.
func Main(m *testing.M, o Options) { os.Exit(Run(m, o)) }

// Run is Main for a TestMain that has more to do: it returns the exit code, which is not 0 either
// when what the tests started cannot be stopped.
func Run(m interface{ Run() int }, o Options) int {
	set(&o)
	code := m.Run()
	set(nil)
	if err := testdb.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "daybooktest: stop after the tests:", err)
		code = max(code, 1)
	}
	return code
}

func set(o *Options) {
	mu.Lock()
	defer mu.Unlock()
	options = o
}

// New returns a database with Daybook's schema and what Options.Migrate made. It fails the test
// when there is no PostgreSQL, and says what to install.
func New(tb testing.TB) *DB {
	tb.Helper()
	mu.Lock()
	o := options
	mu.Unlock()
	if o == nil {
		tb.Fatalf("daybooktest: TestMain must run the tests: func TestMain(m *testing.M) { daybooktest.Main(m, " +
			"daybooktest.Options{}) }")
		return nil
	}
	db, err := newDatabase(tb, *o)
	if err != nil {
		tb.Fatalf("daybooktest: %v", err)
		return nil
	}
	return &DB{URL: db.URL, Pool: db.Pool}
}

func newDatabase(tb testing.TB, o Options) (*testdb.Database, error) {
	tb.Helper()
	s, err := testdb.Shared(false)
	if err != nil {
		return nil, err
	}
	template, err := s.Template("application", searchPath, func(ctx context.Context, address string) error {
		if err := migrations.Up(ctx, address); err != nil {
			return fmt.Errorf("make Daybook's schema in the template database: %w", err)
		}
		if o.Migrate == nil {
			return nil
		}
		if err := o.Migrate(ctx, address); err != nil {
			return fmt.Errorf("Options.Migrate, in the template database: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.New(tb, template, searchPath)
}

// SQL is for Options.Migrate: it runs scripts, one after the other, each in a transaction of its
// own.
func SQL(scripts ...string) func(ctx context.Context, databaseURL string) error {
	return func(ctx context.Context, databaseURL string) error {
		conn, err := pgx.Connect(ctx, databaseURL)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
		for i, script := range scripts {
			if _, err := conn.Exec(ctx, script); err != nil {
				return fmt.Errorf("script %d: %w", i+1, err)
			}
		}
		return nil
	}
}

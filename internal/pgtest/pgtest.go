// Package pgtest gives each test a PostgreSQL database of its own, with Daybook's schema in it.
//
// A test program starts one private server when its first test asks for a database, and migrates one template database. Each
// test's database is a copy of that template, which takes a fraction of a second, and is dropped when the test ends.
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		db := pgtest.New(t)
//		… db.Pool …
//	}
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

// EnvDatabaseURL names a server to use instead of a private one, by the URL of any database on it. Its role must be allowed
// to create databases.
const EnvDatabaseURL = "DAYBOOK_TEST_DATABASE_URL"

// maxConns is how many connections the pool of one test may open.
const maxConns = 16

// cleanupTimeout bounds what happens after a test.
const cleanupTimeout = 30 * time.Second

// DB is a database for one test.
type DB struct {
	// Name is the database's name.
	Name string
	// URL is its address, for the role that owns it.
	URL string
	// Pool is connected to it. It is closed when the test ends.
	Pool *pgxpool.Pool
}

// Main is the body of TestMain: it runs the tests, stops what they started, fails when a goroutine was leaked, and exits.
// stop holds further things to stop, such as temporaltest.Stop.
func Main(m *testing.M, stop ...func() error) {
	code := m.Run()
	for _, f := range append([]func() error{Stop}, stop...) {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, "stop after the tests:", err)
			code = max(code, 1)
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "leaked goroutines:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// New returns a database with Daybook's schema.
func New(tb testing.TB) *DB {
	tb.Helper()
	s := shared(tb)
	template, err := s.template()
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return s.newDatabase(tb, template)
}

// NewEmpty returns a database without any schema, for tests of the migrations themselves.
func NewEmpty(tb testing.TB) *DB {
	tb.Helper()
	return shared(tb).newDatabase(tb, "template0")
}

func (s *server) newDatabase(tb testing.TB, template string) *DB {
	tb.Helper()
	db := &DB{Name: s.name()}
	if err := s.create(tb.Context(), db.Name, template); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := errors.Join(closePool(ctx, db.Pool), s.drop(ctx, db.Name)); err != nil {
			tb.Errorf("pgtest: %v", err)
		}
	})
	db.URL = s.databaseURL(db.Name)
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	config.MaxConns = maxConns
	db.Pool, err = pgxpool.NewWithConfig(tb.Context(), config)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	return db
}

// closePool closes the pool. One whose connection a test did not give back would otherwise wait for ever.
func closePool(ctx context.Context, pool *pgxpool.Pool) error {
	if pool == nil {
		return nil
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the test did not give back %d of its pool's connections", pool.Stat().AcquiredConns())
	}
}

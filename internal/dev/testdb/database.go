// Package testdb is what pgtest, for this module's own tests, and daybooktest, for those of
// applications, have in common: one server a test program, templates on it, and a copy of a
// template for each test.
package testdb

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// EnvDatabaseURL names a server to use instead of a private one, by the URL of any database on it.
// Its role must be allowed to create databases.
const EnvDatabaseURL = "DAYBOOK_TEST_DATABASE_URL"

// maxConns is how many connections the pool of one test may open.
const maxConns = 16

// cleanupTimeout bounds what happens after a test.
const cleanupTimeout = 30 * time.Second

// Database is a database of one test.
type Database struct {
	// Name is the database's name.
	Name string
	// URL is its address, for the role that owns it.
	URL string
	// Pool is connected to it. It is closed when the test ends.
	Pool *pgxpool.Pool
}

// New returns a copy of a template, which is dropped when the test ends.
func (s *Server) New(tb testing.TB, template, searchPath string) (*Database, error) {
	tb.Helper()
	db := &Database{Name: s.name()}
	if err := s.create(tb.Context(), db.Name, template, searchPath); err != nil {
		return nil, err
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		if err := errors.Join(closePool(ctx, db.Pool), s.drop(ctx, db.Name)); err != nil {
			tb.Errorf("the test's database: %v", err)
		}
	})
	db.URL = s.databaseURL(db.Name)
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = maxConns
	db.Pool, err = pgxpool.NewWithConfig(tb.Context(), config)
	return db, err
}

// closePool closes the pool. One whose connection a test did not give back would otherwise wait for
// ever.
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

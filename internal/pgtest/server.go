package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/devstack"
	"github.com/daybook-dev/daybook/migrations"
)

// startTimeout bounds the start of the server and the migration of the template; it leaves time to install PostgreSQL.
const startTimeout = 10 * time.Minute

// server is the server that the tests of this program share.
type server struct {
	stack    *devstack.Stack // nil: not ours
	base     *url.URL
	admin    *pgxpool.Pool
	prefix   string
	strategy string // how a database is copied
	count    atomic.Int64
	template func() (string, error)
}

var (
	mu      sync.Mutex
	current *server
	failure error
)

// shared returns the server, which the first call starts. When that fails, no later test tries again.
func shared(tb testing.TB) *server {
	tb.Helper()
	mu.Lock()
	defer mu.Unlock()
	if current == nil && failure == nil {
		current, failure = startServer()
	}
	if failure != nil {
		tb.Fatalf("pgtest: %v", failure)
	}
	return current
}

// Stop drops the template and stops the server, if a test started it. Main calls it.
func Stop() error {
	mu.Lock()
	defer mu.Unlock()
	if current == nil {
		return nil
	}
	s := current
	current, failure = nil, errors.New("the server was stopped")
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	var errs []error
	if s.stack == nil {
		errs = append(errs, s.drop(ctx, s.templateName()))
	}
	s.admin.Close()
	if s.stack != nil {
		errs = append(errs, s.stack.Stop(ctx))
	}
	return errors.Join(errs...)
}

func startServer() (_ *server, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	// Letters in lower case need no quotes in SQL.
	s := &server{prefix: "daybook_test_" + strings.ToLower(rand.Text()[:8])}
	s.template = sync.OnceValues(s.makeTemplate)
	address := os.Getenv(EnvDatabaseURL)
	if address == "" {
		s.stack, err = devstack.Start(ctx, devstack.Options{
			NoTemporal: true, FastAndUnsafe: true, Private: true,
			Progress: func(line string) {
				if strings.Contains(line, "Installing") {
					fmt.Fprintln(os.Stderr, line)
				}
			},
		})
		if err != nil {
			return nil, err
		}
		address = s.stack.DatabaseURL
	}
	defer func() {
		if err == nil {
			return
		}
		if s.admin != nil {
			s.admin.Close()
		}
		if s.stack != nil {
			err = errors.Join(err, s.stack.Kill())
		}
	}()
	if s.base, err = url.Parse(address); err != nil || s.base.Scheme == "" {
		return nil, fmt.Errorf("%s is not a URL: write it as postgres://user:password@host:5432/database", EnvDatabaseURL)
	}
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 4
	if s.admin, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	return s, s.chooseStrategy(ctx)
}

// chooseStrategy prefers copying files: without fsync that is twice as fast as writing everything to the log. PostgreSQL 14
// copies files anyway and does not know the clause; on a server that is not ours its own choice is the better one.
func (s *server) chooseStrategy(ctx context.Context) error {
	var version int
	if err := s.admin.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	if s.stack != nil && version >= 150000 {
		s.strategy = " STRATEGY FILE_COPY"
	}
	return nil
}

func (s *server) templateName() string { return s.prefix + "_template" }

func (s *server) name() string { return fmt.Sprintf("%s_%d", s.prefix, s.count.Add(1)) }

func (s *server) databaseURL(name string) string {
	u := *s.base
	u.Path = "/" + name
	return u.String()
}

func (s *server) makeTemplate() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	name := s.templateName()
	if err := s.create(ctx, name, "template0"); err != nil {
		return "", err
	}
	if err := migrations.Up(ctx, s.databaseURL(name)); err != nil {
		return "", fmt.Errorf("migrate the template database: %w", err)
	}
	return name, nil
}

// create creates a database. Its search path is set again because a copy does not get the settings of its template.
func (s *server) create(ctx context.Context, name, template string) error {
	database := pgx.Identifier{name}.Sanitize()
	if _, err := s.admin.Exec(ctx, `CREATE DATABASE `+database+` TEMPLATE `+pgx.Identifier{template}.Sanitize()+s.strategy); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	if _, err := s.admin.Exec(ctx, `ALTER DATABASE `+database+` SET search_path = daybook, public`); err != nil {
		return fmt.Errorf("set the search path of database %s: %w", name, err)
	}
	return nil
}

// drop ends the sessions of a database and drops it. An autovacuum that is at work there has no role, so that only a superuser may end it:
// it is waited for.
func (s *server) drop(ctx context.Context, name string) error {
	for {
		_, err := s.admin.Exec(ctx, `DROP DATABASE IF EXISTS `+pgx.Identifier{name}.Sanitize()+` WITH (FORCE)`)
		if err == nil {
			return nil
		}
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "42501" {
			return fmt.Errorf("drop database %s: %w", name, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("drop database %s: %w", name, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

package testdb

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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/store"
)

// startTimeout bounds the start of the server and the migration of a template; it leaves time to
// install PostgreSQL.
const startTimeout = 10 * time.Minute

// Server is the server that the tests of this program share.
type Server struct {
	stack    *devstack.Stack // nil: not ours
	base     *url.URL
	admin    *pgxpool.Pool
	prefix   string
	strategy string // how a database is copied
	count    atomic.Int64

	mu        sync.Mutex
	templates map[string]func() (string, error)
}

var (
	mu      sync.Mutex
	current *Server
	failure error
)

// Shared returns the server, which the first call starts. When that fails, no later call tries
// again. With install, root on Debian gets PostgreSQL installed when it is missing.
func Shared(install bool) (*Server, error) {
	mu.Lock()
	defer mu.Unlock()
	if current == nil && failure == nil {
		current, failure = startServer(install)
	}
	return current, failure
}

// Stop drops the templates and stops the server, if a test started it.
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
		for name := range s.templates {
			errs = append(errs, s.drop(ctx, s.templateName(name)))
		}
	}
	s.admin.Close()
	if s.stack != nil {
		errs = append(errs, s.stack.Stop(ctx))
	}
	return errors.Join(errs...)
}

// errInstall says what to do where there is no PostgreSQL.
var errInstall = fmt.Errorf("%w. It need not run: the tests start a server of their own. Do one of these two:\n"+
	"  - install it, for example: apt-get install postgresql, dnf install postgresql-server, brew install postgresql@17\n"+
	"  - set %s to a server whose role may create databases, for example postgres://user:password@host:5432/postgres",
	devstack.ErrNoPostgres, EnvDatabaseURL)

func startServer(install bool) (_ *Server, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	// Letters in lower case need no quotes in SQL.
	s := &Server{
		prefix:    "daybook_test_" + strings.ToLower(rand.Text()[:8]),
		templates: map[string]func() (string, error){},
	}
	address := os.Getenv(EnvDatabaseURL)
	if address == "" {
		s.stack, err = devstack.Start(ctx, devstack.Options{
			NoTemporal: true, FastAndUnsafe: true, Private: true, NoInstall: !install,
			Progress: func(line string) {
				if strings.Contains(line, "Installing") {
					fmt.Fprintln(os.Stderr, line)
				}
			},
		})
		if errors.Is(err, devstack.ErrNoPostgres) && !install {
			return nil, errInstall
		}
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

// chooseStrategy prefers copying files: without fsync that is twice as fast as writing everything
// to the log. PostgreSQL 14 copies files anyway and does not know the clause; on a server that is
// not ours its own choice is the better one.
func (s *Server) chooseStrategy(ctx context.Context) error {
	var version int
	if err := s.admin.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	if s.stack != nil && version >= 150000 {
		s.strategy = " STRATEGY FILE_COPY"
	}
	return nil
}

func (s *Server) templateName(name string) string { return s.prefix + "_template_" + name }

func (s *Server) name() string { return fmt.Sprintf("%s_%d", s.prefix, s.count.Add(1)) }

func (s *Server) databaseURL(name string) string {
	u := *s.base
	u.Path = "/" + name
	return u.String()
}

// Template returns the database that prepare has filled, which the first call for a name creates:
// prepare is given the address of an empty one. When that fails, no later call tries again. The
// name has letters in lower case.
func (s *Server) Template(name, searchPath string,
	prepare func(ctx context.Context, address string) error,
) (string, error) {
	s.mu.Lock()
	made := s.templates[name]
	if made == nil {
		made = sync.OnceValues(func() (string, error) {
			ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
			defer cancel()
			template := s.templateName(name)
			if err := s.create(ctx, template, "template0", searchPath); err != nil {
				return "", err
			}
			return template, prepare(ctx, s.databaseURL(template))
		})
		s.templates[name] = made
	}
	s.mu.Unlock()
	return made()
}

// Own reports whether this program started the server.
func (s *Server) Own() bool { return s.stack != nil }

// AdminURL is the address of a database for the superuser; empty when the server is not ours.
func (s *Server) AdminURL(name string) (string, error) {
	if s.stack == nil {
		return "", nil
	}
	u, err := url.Parse(s.stack.AdminURL)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Programs is the directory of the server's own programs, such as pg_dump; empty when the server is
// not ours.
func (s *Server) Programs(ctx context.Context) (string, error) {
	if s.stack == nil {
		return "", nil
	}
	conn, err := pgx.Connect(ctx, s.stack.AdminURL)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return store.ServerPrograms(ctx, conn)
}

// create creates a database. Its search path is set each time because a copy does not get the
// settings of its template.
func (s *Server) create(ctx context.Context, name, template, searchPath string) error {
	database := pgx.Identifier{name}.Sanitize()
	_, err := s.admin.Exec(ctx, `CREATE DATABASE `+database+` TEMPLATE `+pgx.Identifier{template}.Sanitize()+s.strategy)
	if err == nil {
		if _, err = s.admin.Exec(ctx, `ALTER DATABASE `+database+` SET search_path = `+searchPath); err != nil {
			return fmt.Errorf("set the search path of database %s: %w", name, err)
		}
		return nil
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "55006" {
		return fmt.Errorf("copy the template database: a connection to it is open: what migrates it must close its "+
			"connections: %w", err)
	}
	return fmt.Errorf("create database %s: %w", name, err)
}

// drop ends the sessions of a database and drops it. An autovacuum that is at work there has no
// role, so that only a superuser may end it: it is waited for.
func (s *Server) drop(ctx context.Context, name string) error {
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

package devstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	postgresName = "postgres" // PostgreSQL's directory in the stack's, and the superuser's name
	databaseName = "daybook"  // the database, its owner and its schema
	dataName     = "data"     // the data directory in PostgreSQL's
	versionName  = "PG_VERSION"

	// postgresTimeout bounds one start, crash recovery included.
	postgresTimeout = 2 * time.Minute
)

// startPostgres starts PostgreSQL in the stack's directory, which it prepares if needed, and fills
// in the addresses.
func (s *Stack) startPostgres(ctx context.Context, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, postgresTimeout+installTimeout)
	defer cancel()
	password, err := s.password(o.StandbyOf)
	if err != nil {
		return fmt.Errorf("dev stack's password: %w", err)
	}
	home, err := s.existingHome()
	if err != nil {
		return err
	}
	// Before the user is chosen: installing the package creates one.
	bin, err := postgresBinaries(ctx, home, !o.NoInstall, s.progress)
	if err != nil {
		return err
	}
	user, err := postgresUser(home)
	if err != nil {
		return err
	}
	if home == "" {
		if home, err = s.newHome(ctx, user); err != nil {
			return err
		}
	} else if err := checkAccess(ctx, home, user); err != nil {
		return fmt.Errorf("user %s, as whom PostgreSQL runs, may not enter %s any more: make its parent directories "+
			"searchable "+
			"for every user, or remove it to start afresh", user.name, home)
	}
	data := filepath.Join(home, dataName)
	if o.StandbyOf != nil {
		err = copyFrom(ctx, o.StandbyOf, bin, home, user)
	} else {
		err = initialise(ctx, bin, home, password, user, o.FastAndUnsafe)
	}
	if err != nil {
		return err
	}
	if err := waitForPredecessor(ctx, data); err != nil {
		return err
	}
	s.progress("Starting PostgreSQL.")
	port, err := s.launchPostgres(ctx, bin, data, password, user, o)
	if err != nil {
		return err
	}
	if o.StandbyOf == nil {
		err = prepareDatabase(ctx, postgresURL(postgresName, password, port, postgresName), password)
	}
	if err != nil {
		return fmt.Errorf("prepare the dev stack's database: %w", err)
	}
	s.DatabaseURL = postgresURL(databaseName, password, port, databaseName)
	s.AdminURL = postgresURL(postgresName, password, port, databaseName)
	return nil
}

// launchPostgres starts the server and waits until it answers. When another program takes the free
// port first, it takes another.
func (s *Stack) launchPostgres(ctx context.Context, bin, data, password string, user *identity,
	o Options,
) (int, error) {
	for attempt := 1; ; attempt++ {
		ports, err := choosePorts(ctx, o.PostgresPort)
		if err != nil {
			return 0, fmt.Errorf("PostgreSQL: %w", err)
		}
		log, err := openLog(filepath.Join(s.Dir, "postgres.log"))
		if err != nil {
			return 0, err
		}
		c := command{
			name: "PostgreSQL", path: filepath.Join(bin, "postgres"), args: serverArgs(data, ports[0], o),
			env: environment(append([]string{"LC_ALL=C"}, o.PostgresEnv...), "PG", "LC_"), dir: filepath.Dir(data), user: user, out: log,
			// Fast shutdown leaves a clean database; without fsync only speed matters.
			onDeath: syscall.SIGINT,
		}
		if o.FastAndUnsafe {
			c.onDeath = syscall.SIGQUIT
		}
		p, err := start(c, s.log)
		_ = log.Close()
		if err != nil {
			return 0, err
		}
		s.postgres = p
		err = p.waitReady(ctx, func(ctx context.Context) error {
			return ping(ctx, postgresURL(postgresName, password, ports[0], postgresName))
		})
		lostRace := o.PostgresPort == 0 && p.ended() && strings.Contains(logTail(log.Name()), "could not bind")
		if err == nil || !lostRace || attempt == 3 {
			return ports[0], err
		}
	}
}

// serverArgs are the settings of the server. What is not named has PostgreSQL's default, durability
// above all.
func serverArgs(data string, port int, o Options) []string {
	settings := []string{
		"listen_addresses=" + loopback,
		fmt.Sprintf("port=%d", port),
		// Loopback is enough, and the path of a socket has a limit of about 100 characters.
		"unix_socket_directories=",
		"max_connections=200",
		"shared_buffers=256MB",
		"logging_collector=off",
		"log_line_prefix=%m [%p] ",
	}
	if o.FastAndUnsafe {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=64MB")
	}
	args := []string{"-D", data}
	for _, setting := range append(settings, o.PostgresSettings...) {
		args = append(args, "-c", setting)
	}
	return args
}

// initialise creates the database cluster. It becomes visible under its name only when it is
// complete, so that a start that is killed half way leaves nothing that a later one trips over.
func initialise(ctx context.Context, bin, home, password string, user *identity, fastAndUnsafe bool) error {
	data := filepath.Join(home, dataName)
	if _, err := os.Stat(filepath.Join(data, versionName)); err == nil {
		return nil
	}
	partial, passwordFile := data+".partial", filepath.Join(home, "password")
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.WriteFile(passwordFile, []byte(password+"\n"), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(passwordFile) }()
	if err := give(passwordFile, user); err != nil {
		return err
	}
	args := []string{
		"-D", partial, "-U", postgresName, "--pwfile=" + passwordFile, "--auth=scram-sha-256",
		"--encoding=UTF8", "--no-locale", "--no-instructions",
	}
	if fastAndUnsafe {
		args = append(args, "--no-sync")
	}
	err := run(ctx, command{
		name: "initdb", path: filepath.Join(bin, "initdb"), args: args,
		env: environment([]string{"LC_ALL=C"}, "PG", "LC_"), dir: home, user: user,
	})
	if err != nil {
		return fmt.Errorf("create the database cluster in %s: %w", home, err)
	}
	return os.Rename(partial, data)
}

// copyFrom makes the data of a standby: a base backup of the server that it follows.
func copyFrom(ctx context.Context, from *Stack, bin, home string, user *identity) error {
	if _, err := os.Stat(filepath.Join(home, dataName, versionName)); err == nil {
		return nil
	}
	return run(ctx, command{
		name: "pg_basebackup", path: filepath.Join(bin, "pg_basebackup"),
		args: []string{
			"-D", filepath.Join(home, dataName), "-d", from.AdminURL, "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
		},
		env: environment([]string{"LC_ALL=C"}, "PG", "LC_"), dir: home, user: user,
	})
}

// prepareDatabase creates the role and the database, each unless it exists, and puts the schema on
// the search path, so that queries work without naming it.
func prepareDatabase(ctx context.Context, adminURL, password string) (err error) {
	conn, err := pgx.Connect(ctx, adminURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var role, database bool
	const q = `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1), EXISTS (SELECT FROM pg_database WHERE datname = $1)`
	if err := conn.QueryRow(ctx, q, databaseName).Scan(&role, &database); err != nil {
		return err
	}
	if !role {
		// The password is of our own making: letters and digits only. The role may create databases
		// (tests) and roles (migrate --roles).
		if _, err := conn.Exec(ctx, `CREATE ROLE daybook LOGIN CREATEDB CREATEROLE PASSWORD '`+password+`'`); err != nil {
			return err
		}
	}
	if !database {
		if _, err := conn.Exec(ctx, `CREATE DATABASE daybook OWNER daybook`); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, `ALTER DATABASE daybook SET search_path = daybook, public`)
	return err
}

// ping reports whether the server takes connections; a wrong password or another server on the port
// is an answer of its own.
func ping(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
			return fmt.Errorf("PostgreSQL answers: %s (%s)", pgErr.Message, pgErr.Code)
		}
		return err
	}
	return conn.Close(ctx)
}

func postgresURL(user, password string, port int, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: address(port), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// password returns the password of both roles, which the first start in the directory makes, or
// which a standby's primary has. It is kept in the directory: a standby may be promoted and followed.
func (s *Stack) password(primary *Stack) (string, error) {
	path := filepath.Join(s.Dir, "database-password")
	from := path
	if primary != nil {
		from = filepath.Join(primary.Dir, "database-password")
	}
	password := rand.Text()
	b, err := os.ReadFile(from)
	if err == nil {
		password = strings.TrimSpace(string(b))
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err == nil && from == path {
		return password, nil
	}
	return password, os.WriteFile(path, []byte(password+"\n"), 0o600)
}

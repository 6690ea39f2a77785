package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/bom"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/migrations"
)

// environment is what the command line takes from environment variables.
type environment struct {
	DatabaseURL string `env:"DAYBOOK_DATABASE_URL"`
	// TasksDatabaseURL is the database as the worker of tasks sees it; empty: DatabaseURL.
	TasksDatabaseURL string `env:"DAYBOOK_TASKS_DATABASE_URL"`
	LogLevel         string `env:"DAYBOOK_LOG_LEVEL"`
	// Fleet is the fleet of its workers; empty: the one without a name.
	Fleet string `env:"DAYBOOK_FLEET"`
	// AccountingOwner owns the accounting jobs.
	AccountingOwner string `env:"DAYBOOK_ACCOUNTING_OWNER"`
	// NotifyEvents is "1" to have other processes told of events.
	NotifyEvents string `env:"DAYBOOK_NOTIFY_EVENTS"`
	// LogEnqueue is "1" to log each request that enqueues.
	LogEnqueue string `env:"DAYBOOK_LOG_ENQUEUE"`
	// MetricsListen is where /metrics is answered without a token; empty: nowhere.
	MetricsListen string `env:"DAYBOOK_METRICS_LISTEN"`
	// MetricsOrganizations is "1" to have metrics and history tell organizations apart.
	MetricsOrganizations string `env:"DAYBOOK_METRICS_ORGANIZATIONS"`
	// MetricsSampleEvery is the pause between two samples of the queues; 0: the default.
	MetricsSampleEvery time.Duration `env:"DAYBOOK_METRICS_SAMPLE_EVERY"`
	NoColor            string        `env:"NO_COLOR"`
	Term               string        `env:"TERM"`
}

// app is what every command shares: streams, global flags and what follows from them.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	environment environment
	databaseURL string
	logLevel    string
	json        bool

	// organization is the one that the command is about; empty: it is about all.
	organization string
	// create is the flag --create, which lets that be an organization that Daybook does not know; mayCreate: the command has it.
	create, mayCreate bool

	// begun is set when a command's own code begins: an error before that is one of usage.
	begun bool
	level slog.LevelVar
	log   *slog.Logger

	// waitsEvery is the pause between two lines of a long command; 0: the default. drawing says that a bar is shown.
	waitsEvery time.Duration
	drawing    atomic.Bool
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) (*app, error) {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	if err := env.Parse(&a.environment); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	return a, nil
}

// setUp makes of the global flags what the commands use.
func (a *app) setUp() error {
	a.databaseURL = cmp.Or(a.databaseURL, a.environment.DatabaseURL)
	if err := a.setLevel(cmp.Or(a.logLevel, a.environment.LogLevel, "info")); err != nil {
		return err
	}
	options := &slog.HandlerOptions{Level: &a.level}
	if isTerminal(a.stderr) {
		a.log = slog.New(slog.NewTextHandler(a.stderr, options))
	} else {
		a.log = slog.New(slog.NewJSONHandler(a.stderr, options))
	}
	return nil
}

func (a *app) setLevel(name string) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return usagef("log level %q: want debug, info, warn or error", name)
	}
	a.level.Set(level)
	return nil
}

// quiet raises the log level for commands that talk to a person, unless a level was asked for.
func (a *app) quiet(level slog.Level) {
	if a.logLevel == "" && a.environment.LogLevel == "" {
		a.level.Set(level)
	}
}

// say writes a line for people to the error stream, apart from the command's result.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
}

// database holds what a command reads and writes with.
type database struct {
	*pgxpool.Pool
	*listing.Listing
}

// close ends the listing and the pool.
func (d *database) close() {
	_ = d.Listing.Close()
	closePool(d.Pool)
}

// closeLimit is how long a command waits in the end until its sessions have ended. A server that stands still ends none, and the driver waits for it for 15 seconds.
const closeLimit = 2 * time.Second

func closePool(pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeLimit):
	}
}

// open connects to the database and checks that its schema is the one of this program. conns is the size of the pool.
func (a *app) open(ctx context.Context, conns int32) (*database, error) {
	pool, err := a.pool(ctx, conns)
	if err != nil {
		return nil, err
	}
	if err = verify(ctx, pool); err == nil {
		err = a.knowsOrganization(ctx, pool)
	}
	if err != nil {
		closePool(pool)
		return nil, err
	}
	listing, err := listing.New(pool)
	if err != nil {
		closePool(pool)
		return nil, err
	}
	return &database{Pool: pool, Listing: listing}, nil
}

// verify checks that the database and its sessions can be used and that the schema is this program's. If that takes too long it says which tables are locked.
func verify(ctx context.Context, pool *pgxpool.Pool) error {
	if err := store.VerifySession(ctx, pool); err != nil {
		return fmt.Errorf("the database cannot be used: %w", err)
	}
	err := migrations.Verify(ctx, pool)
	if !errors.Is(err, migrations.ErrNoAnswer) {
		return err
	}
	says := []string{migrations.ErrNoAnswer.Error()}
	for _, f := range health.Locks(ctx, pool) {
		says = append(says, f.Says+" "+f.Todo)
	}
	return tagged(migrations.ErrNoAnswer, "%s", strings.Join(says, "\n"))
}

// onDatabase is the action of a command that needs one connection to the database: it opens it, and closes it in the end.
func (a *app) onDatabase(run func(c *cobra.Command, db *database, args []string) error) func(c *cobra.Command, args []string) error {
	return func(c *cobra.Command, args []string) error {
		db, err := a.open(c.Context(), 1)
		if err != nil {
			return err
		}
		defer db.close()
		return run(c, db, args)
	}
}

// pool returns a pool that has not connected yet.
func (a *app) pool(ctx context.Context, conns int32) (*pgxpool.Pool, error) {
	if err := a.checkDatabaseURL(); err != nil {
		return nil, err
	}
	return poolOf(ctx, a.databaseURL, conns)
}

// poolOf returns a pool of an address that has not connected yet.
func poolOf(ctx context.Context, address string, conns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, errBadDatabaseURL
	}
	if !strings.Contains(address, "pool_max_conns") {
		config.MaxConns = conns
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "daybook"
	}
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // the driver knows no other
	config.AfterConnect = nameDefaults
	config.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		return p.IdleDuration > trustedFor && hasEnded(p.Conn)
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// trustedFor is how long a connection may have been idle to be used without a look whether the server has ended it. pgx asks the server after a second: that is a
// transaction of its own for nearly each statement of an idle worker.
const trustedFor = 10 * time.Second

// hasEnded reports whether the server has ended an idle session, which then has something to read: so it costs no transaction, and a millisecond. What breaks in
// silence is noticed by the next statement, as it would be by asking.
func hasEnded(conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := conn.PgConn().ReceiveMessage(ctx)
	return err != nil && !pgconn.Timeout(err)
}

// nameDefaults has the session begin transactions as Daybook's own, also those of a single statement, and gives no statement
// less time than it takes. What the address itself says is left alone.
func nameDefaults(ctx context.Context, conn *pgx.Conn) error {
	said := conn.Config().RuntimeParams
	var statements strings.Builder
	for _, d := range []struct{ name, value string }{
		{"default_transaction_isolation", "'read committed'"}, {"statement_timeout", "0"}, {"lock_timeout", "0"}, {"idle_session_timeout", "0"},
	} {
		if _, ok := said[d.name]; !ok && !strings.Contains(said["options"], d.name) {
			statements.WriteString("SET " + d.name + " = " + d.value + ";")
		}
	}
	if _, ok := said["transaction_timeout"]; !ok && !strings.Contains(said["options"], "transaction_timeout") { // PostgreSQL 17
		statements.WriteString(`SELECT set_config(s, '0', false) FROM (VALUES ('transaction_timeout')) v (s) WHERE current_setting(s, true) <> '0'`)
	}
	_, err := conn.Exec(ctx, statements.String())
	return err
}

// checkDatabaseURL refuses an address that cannot be read, without repeating any of it: what is wrong may be the password.
func (a *app) checkDatabaseURL() error {
	if a.databaseURL == "" {
		return errNoDatabaseURL
	}
	if _, err := pgxpool.ParseConfig(a.databaseURL); err != nil {
		return errBadDatabaseURL
	}
	return nil
}

// isTerminal reports whether what is written goes to a terminal.
func isTerminal(w io.Writer) bool {
	if s, ok := w.(screen); ok {
		w = s.terminal
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// readInput reads a file of text, or standard input for "-", without the byte order mark that some programs write.
func (a *app) readInput(path string) ([]byte, error) {
	var data []byte
	var err error
	if path == "-" {
		data, err = io.ReadAll(a.stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	if data, err = bom.Trim(data); err != nil {
		return nil, usagef("%s: %v", path, err)
	}
	return data, nil
}

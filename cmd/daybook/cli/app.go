// Package cli is what the commands of daybook share: streams, flags, output, errors, and
// connections to PostgreSQL and Temporal. It knows no command.
package cli

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/encryption"
)

// Environment is what the command line takes from environment variables.
type Environment struct {
	DatabaseURL string `env:"DAYBOOK_DATABASE_URL"`
	// DatabaseDirectURL is that of DatabaseURL past a pooler in transaction mode; empty: there is none.
	DatabaseDirectURL string `env:"DAYBOOK_DATABASE_DIRECT_URL"`
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
	// EncryptionKeys is the file of the keys that encrypt payloads; empty: there are none.
	EncryptionKeys string `env:"DAYBOOK_ENCRYPTION_KEYS"`
	// ClosingKey is the file of the private key that signs closings; empty: they are not signed.
	ClosingKey string `env:"DAYBOOK_CLOSING_KEY"`
	// NotifySocket is where the service manager listens, and WatchdogMicroseconds after which silence
	// it restarts the program; systemd sets both. Empty, 0: it does not.
	NotifySocket         string `env:"NOTIFY_SOCKET"`
	WatchdogMicroseconds int64  `env:"WATCHDOG_USEC"`

	NoColor string `env:"NO_COLOR"`
	Term    string `env:"TERM"`
}

// App is what every command shares: streams, global flags and what follows from them.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	Environment Environment
	DatabaseURL string
	// DirectURL is the address of the same database past a pooler; empty: there is none.
	DirectURL string
	LogLevel  string
	JSON      bool

	// Organization is the one that the command is about; empty: it is about all.
	Organization string
	// Create is the flag --create, which lets that be an organization that Daybook does not know;
	// mayCreate: the command has it.
	Create, mayCreate bool

	// Version is that of the program.
	Version string

	// Begun is set when a command's own code begins: an error before that is one of usage.
	Begun bool
	// Level is the one from which Log writes.
	Level slog.LevelVar
	Log   *slog.Logger

	// cipher and keysError are what Encryption returns, once it was called.
	encrypting sync.Once
	cipher     *encryption.Cipher
	keysError  error

	// waitsEvery is the pause between two lines of a long command; 0: the default. drawing says that
	// a bar is shown.
	waitsEvery time.Duration
	drawing    atomic.Bool
}

// New returns an app on these streams, with what the environment says.
func New(stdin io.Reader, stdout, stderr io.Writer) (*App, error) {
	a := &App{Stdin: stdin, Stdout: stdout, Stderr: stderr}
	if err := env.Parse(&a.Environment); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	return a, nil
}

// Begin notes that a command's own code begins, and which organization it is about.
func (a *App) Begin(c *cobra.Command) {
	a.Begun = true
	a.Organization, _ = c.Flags().GetString("org")
	a.mayCreate = c.Flags().Lookup("create") != nil
}

// SetUp makes of the global flags what the commands use.
func (a *App) SetUp() error {
	if a.DatabaseURL == "" { // else the variables are another database's
		a.DatabaseURL, a.DirectURL = a.Environment.DatabaseURL, cmp.Or(a.DirectURL, a.Environment.DatabaseDirectURL)
	}
	if err := a.setLevel(cmp.Or(a.LogLevel, a.Environment.LogLevel, "info")); err != nil {
		return err
	}
	options := &slog.HandlerOptions{Level: &a.Level}
	if IsTerminal(a.Stderr) {
		a.Log = slog.New(slog.NewTextHandler(a.Stderr, options))
	} else {
		a.Log = slog.New(slog.NewJSONHandler(a.Stderr, options))
	}
	return nil
}

func (a *App) setLevel(name string) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return Usagef("log level %q: want debug, info, warn or error", name)
	}
	a.Level.Set(level)
	return nil
}

// Quiet raises the log level for commands that talk to a person, unless a level was asked for.
func (a *App) Quiet(level slog.Level) {
	if a.LogLevel == "" && a.Environment.LogLevel == "" {
		a.Level.Set(level)
	}
}

// Say writes a line for people to the error stream, apart from the command's result.
func (a *App) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Stderr, format+"\n", args...)
}

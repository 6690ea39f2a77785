package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/start"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/workers"
)

// The ports of a dev stack, unless they are taken.
const (
	defaultTemporalPort = 7233
	defaultUIPort       = 8233
	defaultPostgresPort = 5433
	defaultConsolePort  = 8080
)

func devCommand(a *cli.App) *cobra.Command {
	var options devstack.Options
	var noWorker bool
	var consolePort int
	command := &cobra.Command{
		Use:   "dev",
		Short: "Run PostgreSQL, Temporal and a worker until Ctrl-C",
		Long: "Starts a PostgreSQL and a Temporal development server on this machine, applies the migrations, starts the workflows\n" +
			"of every queue unless they run, and works them. Ctrl-C stops everything; a second start finds the data again.\n\n" +
			"Servers that DAYBOOK_DATABASE_URL and TEMPORAL_ADDRESS name are used instead. With --no-worker it starts no worker, for\n" +
			"programs that embed workers of their own.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if options.Dir == "" {
				cache, err := os.UserCacheDir()
				if err != nil {
					return cli.Usagef("there is no cache directory: give --dir: %v", err)
				}
				options.Dir = filepath.Join(cache, "daybook", "dev")
			}
			for name, port := range map[string]*int{
				"temporal-port": &options.TemporalPort, "ui-port": &options.UIPort, "postgres-port": &options.PostgresPort,
				"console-port": &consolePort,
			} {
				if !c.Flags().Changed(name) && !portIsFree(c.Context(), *port) {
					a.Say("Port %d is taken: another one is chosen (or give --%s).", *port, name)
					*port = 0
				}
			}
			return runDev(c.Context(), a, options, devOptions{noWorker: noWorker, consolePort: consolePort})
		},
	}
	flags := command.Flags()
	flags.BoolVar(&noWorker, "no-worker", false,
		"run the servers and start the workflows, and leave the work to workers that you run")
	flags.StringVar(&options.Dir, "dir", "", "where the data is kept (default daybook/dev in the user's cache directory)")
	flags.IntVar(&options.TemporalPort, "temporal-port", defaultTemporalPort, "Temporal's port")
	flags.IntVar(&options.UIPort, "ui-port", defaultUIPort, "the port of Temporal's web interface")
	flags.IntVar(&consolePort, "console-port", defaultConsolePort, "the port of the web console and the HTTP API")
	flags.IntVar(&options.PostgresPort, "postgres-port", defaultPostgresPort, "PostgreSQL's port")
	return command
}

// portIsFree reports whether the port is free to listen on.
func portIsFree(ctx context.Context, port int) bool {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// startStack starts a dev stack, in which the database that --database-url names counts as one that
// the environment names, and applies the migrations.
func startStack(ctx context.Context, a *cli.App, options devstack.Options) (*devstack.Stack, error) {
	options.Log = a.Log
	options.Progress = func(line string) { a.Say("%s", line) }
	if a.DatabaseURL != "" {
		if err := a.CheckDatabaseURL(); err != nil {
			return nil, err
		}
		if a.DatabaseURL != a.Environment.DatabaseURL {
			options.NoPostgres = true
		}
	}
	stack, err := devstack.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	if a.DatabaseURL == "" {
		a.DatabaseURL, a.DirectURL = stack.DatabaseURL, ""
	}
	if err := migrations.Up(ctx, a.SessionURL()); err != nil {
		return nil, errors.Join(err, cli.StopStack(ctx, stack))
	}
	return stack, nil
}

// devOptions say what runs beside the servers.
type devOptions struct {
	noWorker    bool
	consolePort int
}

func runDev(ctx context.Context, a *cli.App, options devstack.Options, o devOptions) (err error) {
	stack, err := startStack(ctx, a, options)
	if err != nil {
		return tellNamed(a, err)
	}
	defer func() {
		a.Say("Stopping.")
		err = errors.Join(err, cli.StopStack(ctx, stack))
	}()
	dir, err := devDir(stack, options)
	if err != nil {
		return err
	}
	files, err := sample.Write(filepath.Join(dir, "sample"))
	if err != nil {
		return fmt.Errorf("write the sample: %w", err)
	}
	logs, err := logInto(a, filepath.Join(dir, "daybook.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	temporal, err := stackOptions(a, stack)
	if err != nil {
		return err
	}
	if err := ensureLoops(ctx, a, stack, temporal); err != nil {
		return tellNamed(a, err)
	}
	console, err := serveConsole(ctx, a, stack, temporal, o.consolePort)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, console.end()) }()
	if err := announce(a, stack, console, logs.Name(), files); err != nil {
		return err
	}
	if o.noWorker {
		a.Say("No worker runs here: start yours, with DAYBOOK_DATABASE_URL and TEMPORAL_ADDRESS as above.")
		<-ctx.Done()
		return nil
	}
	return start.Work(ctx, a, temporal, workers.AccountingOptions{}, a.Environment.MetricsListen)
}

// devDir is where dev keeps its log and the sample, also when the stack has started nothing and has
// no directory.
func devDir(s *devstack.Stack, o devstack.Options) (string, error) {
	if s.Dir != "" {
		return s.Dir, nil
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// logInto has what the program logs from now on written to the end of a file, so that the terminal
// stays readable.
func logInto(a *cli.App, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	a.Log = slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: &a.Level}))
	return file, nil
}

// tellNamed says, of a server that cannot be reached, that the environment names it and how to do
// without: the variables may be those of an earlier dev, whose servers are gone.
func tellNamed(a *cli.App, err error) error {
	switch class := store.Failure(err); {
	case class != failure.TemporalUnavailable && class != failure.DatabaseUnavailable:
		return err
	case class == failure.DatabaseUnavailable && a.DatabaseURL != a.Environment.DatabaseURL:
		return err // --database-url names it
	}
	var named []string
	for _, name := range []string{devstack.EnvDatabaseURL, devstack.EnvTemporalAddress} {
		if os.Getenv(name) != "" {
			named = append(named, name)
		}
	}
	if len(named) == 0 {
		return err
	}
	return fmt.Errorf("%w\ndev uses the servers that the environment names: unset %s to have dev start its own", err,
		strings.Join(named, " and "))
}

// ensureLoops starts the workflows of every queue unless they run.
func ensureLoops(ctx context.Context, a *cli.App, stack *devstack.Stack, temporal client.Options) error {
	c, err := a.ConnectTemporal(ctx, temporal)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, l := range cli.Loops {
		running, err := l.Runs(ctx, c)
		if err != nil {
			return err
		}
		if running {
			a.Say("Workflow %s runs already.", l.ID)
			continue
		}
		a.Say("Starting workflow %s.", l.ID)
		if err := startLoop(ctx, a, stack, l); err != nil {
			return err
		}
	}
	return nil
}

// announce prints where everything is: what a person opens first, and what a shell is given, as it
// is pasted.
func announce(a *cli.App, s *devstack.Stack, console devConsole, log string, files sample.Files) error {
	if a.JSON {
		return a.Emit(map[string]string{
			"databaseUrl": a.DatabaseURL, "temporalAddress": s.TemporalAddress, "temporalUi": s.TemporalUI, "dir": s.Dir,
			"console": console.address, "token": console.token, "log": log,
		}, nil)
	}
	ui := s.TemporalUI
	if ui == "" {
		ui = "(that of the server at " + s.TemporalAddress + ")"
	}
	exports := ""
	if a.DatabaseURL == s.DatabaseURL && s.AdminURL != "" { // else it is the caller's own, with its password
		exports = "  export " + devstack.EnvDatabaseURL + "=" + quoted(a.DatabaseURL) + "\n"
	}
	exports += "  export " + devstack.EnvTemporalAddress + "=" + quoted(s.TemporalAddress)
	data := s.Dir
	if data == "" {
		data = "(on the servers that the environment names)"
	}
	path := ""
	if _, err := exec.LookPath("daybook"); err != nil {
		path = " They need `daybook` on the PATH; in a clone,\n`make build` builds it into bin/."
	}
	_, err := fmt.Fprintf(a.Stdout, `
Console       %s
              sign in with the token %s
Temporal UI   %s
Data          %s
Log           %s

In another terminal, for Daybook's commands and your programs:

%s

The workflows were started as an operator does it:

%s

Try, there, a chart of accounts, rules, an invoice and its payment, and a background job.%s

%s

Ctrl-C stops everything; a second start finds the data again.
`, console.address, console.token, ui, data, log, exports, cli.StartCommandLines("  "), path, TryLines(files))
	return err
}

// TryLines are commands that run as they are printed, whatever the working directory is.
func TryLines(f sample.Files) string {
	org := sample.Organization
	return strings.Join([]string{
		"  daybook accounts import " + quoted(f.Chart) + " --org " + org + " --create",
		"  daybook rules apply " + quoted(f.Rules) + " --org " + org,
		"  daybook import ndjson " + quoted(f.Documents),
		"  daybook trial-balance --org " + org,
		"  daybook explain " + org + " invoice-1",
		"",
		"  daybook jobs enqueue cleanup --org " + org,
		"  daybook jobs list",
		"  daybook tasks list",
		"  daybook doctor",
	}, "\n")
}

// quoted is a word as a shell takes it, whatever is in it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
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

func devCommand(a *app) *cobra.Command {
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
					return usagef("there is no cache directory: give --dir: %v", err)
				}
				options.Dir = filepath.Join(cache, "daybook", "dev")
			}
			for name, port := range map[string]*int{
				"temporal-port": &options.TemporalPort, "ui-port": &options.UIPort, "postgres-port": &options.PostgresPort, "console-port": &consolePort,
			} {
				if !c.Flags().Changed(name) && !portIsFree(c.Context(), *port) {
					a.say("Port %d is taken: another one is chosen (or give --%s).", *port, name)
					*port = 0
				}
			}
			return a.dev(c.Context(), options, devOptions{noWorker: noWorker, consolePort: consolePort})
		},
	}
	flags := command.Flags()
	flags.BoolVar(&noWorker, "no-worker", false, "run the servers and start the workflows, and leave the work to workers that you run")
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

// startStack starts a dev stack, in which the database that --database-url names counts as one that the environment names,
// and applies the migrations.
func (a *app) startStack(ctx context.Context, options devstack.Options) (*devstack.Stack, error) {
	options.Log = a.log
	options.Progress = func(line string) { a.say("%s", line) }
	if a.databaseURL != "" {
		if err := a.checkDatabaseURL(); err != nil {
			return nil, err
		}
		if a.databaseURL != a.environment.DatabaseURL {
			options.NoPostgres = true
		}
	}
	stack, err := devstack.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	if a.databaseURL == "" {
		a.databaseURL = stack.DatabaseURL
	}
	if err := migrations.Up(ctx, a.databaseURL); err != nil {
		return nil, errors.Join(err, stopStack(ctx, stack))
	}
	return stack, nil
}

// devOptions say what runs beside the servers.
type devOptions struct {
	noWorker    bool
	consolePort int
}

func (a *app) dev(ctx context.Context, options devstack.Options, o devOptions) (err error) {
	stack, err := a.startStack(ctx, options)
	if err != nil {
		return a.tellNamed(err)
	}
	defer func() {
		a.say("Stopping.")
		err = errors.Join(err, stopStack(ctx, stack))
	}()
	logs, err := a.logInto(filepath.Join(stack.Dir, "daybook.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logs.Close()) }()
	temporal, err := a.stackOptions(stack)
	if err != nil {
		return err
	}
	if err := a.ensureLoops(ctx, stack, temporal); err != nil {
		return a.tellNamed(err)
	}
	console, err := a.devConsole(ctx, stack, temporal, o.consolePort)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, console.end()) }()
	if err := a.announce(stack, console, logs.Name()); err != nil {
		return err
	}
	if o.noWorker {
		a.say("No worker runs here: start yours, with DAYBOOK_DATABASE_URL and TEMPORAL_ADDRESS as above.")
		<-ctx.Done()
		return nil
	}
	return a.work(ctx, temporal, workers.AccountingOptions{}, a.environment.MetricsListen)
}

// logInto has what the program logs from now on written to the end of a file, so that the terminal stays readable.
func (a *app) logInto(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	a.log = slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: &a.level}))
	return file, nil
}

// tellNamed says, of a server that cannot be reached, that the environment names it and how to do without: the variables may be those of an
// earlier dev, whose servers are gone.
func (a *app) tellNamed(err error) error {
	switch class := store.Failure(err); {
	case class != failure.TemporalUnavailable && class != failure.DatabaseUnavailable:
		return err
	case class == failure.DatabaseUnavailable && a.databaseURL != a.environment.DatabaseURL:
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
	return fmt.Errorf("%w\ndev uses the servers that the environment names: unset %s to have dev start its own", err, strings.Join(named, " and "))
}

// ensureLoops starts the workflows of every queue unless they run.
func (a *app) ensureLoops(ctx context.Context, stack *devstack.Stack, temporal client.Options) error {
	c, err := a.connectTemporal(ctx, temporal)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, l := range loops {
		running, err := l.runs(ctx, c)
		if err != nil {
			return err
		}
		if running {
			a.say("Workflow %s runs already.", l.id)
			continue
		}
		a.say("Starting workflow %s.", l.id)
		if err := a.startLoop(ctx, stack, l); err != nil {
			return err
		}
	}
	return nil
}

// announce prints where everything is: what a person opens first, and what a shell is given, as it is pasted.
func (a *app) announce(s *devstack.Stack, console devConsole, log string) error {
	if a.json {
		return a.emit(map[string]string{
			"databaseUrl": a.databaseURL, "temporalAddress": s.TemporalAddress, "temporalUi": s.TemporalUI, "dir": s.Dir,
			"console": console.address, "token": console.token, "log": log,
		}, nil)
	}
	ui := s.TemporalUI
	if ui == "" {
		ui = "(that of the server at " + s.TemporalAddress + ")"
	}
	exports := ""
	if a.databaseURL == s.DatabaseURL && s.AdminURL != "" { // else it is the caller's own, with its password
		exports = "  export " + devstack.EnvDatabaseURL + "=" + quoted(a.databaseURL) + "\n"
	}
	exports += "  export " + devstack.EnvTemporalAddress + "=" + quoted(s.TemporalAddress)
	_, err := fmt.Fprintf(a.stdout, `
Console       %s
              sign in with the token %s
Temporal UI   %s
Data          %s
Log           %s

In another terminal, for Daybook's commands and your programs:

%s

The workflows were started as an operator does it:

%s

Try, there:

  daybook status
  daybook import gobl --org-by country --create FILES…
  daybook accounts import FILE --all-orgs
  daybook rules apply FILE --all-orgs

  daybook jobs enqueue TYPE --org ORG --payload JSON
  daybook jobs stats
  daybook tasks enqueue TYPE --payload JSON
  daybook tasks list

Ctrl-C stops everything; a second start finds the data again.
`, console.address, console.token, ui, s.Dir, log, exports, startCommandLines("  "))
	return err
}

// quoted is a word as a shell takes it, whatever is in it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

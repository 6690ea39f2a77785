package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server"
	"github.com/daybook-dev/daybook/workers"
)

// serveConns is the size of the server's pool, unless the database's address says another.
const serveConns = 16

func serveCommand(a *cli.App) *cobra.Command {
	var listen, metricsListen string
	var expose bool
	var temporalUI string
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HTTP API and the web console until a signal ends it",
		Long: "Serves the HTTP API (https://github.com/daybook-dev/daybook/blob/main/docs/http-api.md) and the web console\n" +
			"(https://github.com/daybook-dev/daybook/blob/main/docs/console.md), at /console/, until SIGINT or SIGTERM; then it\n" +
			"accepts no new requests, finishes those that it is answering, and ends. Its OpenAPI document is at /openapi.json; /healthz says that it runs, /readyz that the database answers.\n" +
			"Every other request of the API needs a token, and a token signs in to the console: see `daybook tokens create`.\n\n" +
			"The console shows workflows, workers and schedules of the Temporal that the environment names; without Temporal all else works.\n\n" +
			"It answers only this machine, unless --listen names another address and --expose confirms it. It speaks plain HTTP:\n" +
			"put a proxy that does TLS in front before tokens travel over a network.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkListen(c.Context(), listen, expose); err != nil {
				return err
			}
			return Serve(c.Context(), a, ServeOptions{
				Listen: listen, metricsListen: cmp.Or(metricsListen, a.Environment.MetricsListen), Temporal: a.TemporalOptions,
				TemporalUI: temporalUI,
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:8080", "the address to listen on; port 0 is a free one")
	flags.StringVar(&temporalUI, "temporal-ui", "",
		"the address of Temporal's own pages, such as http://localhost:8233, to which the console links runs")
	flags.StringVar(&metricsListen, "metrics-listen", "", metricsFlag)
	flags.BoolVar(&expose, "expose", false,
		"let --listen name an address that other machines reach; what they send, tokens included, is not encrypted")
	return command
}

// checkListen refuses an address that other machines reach, unless that was confirmed.
func checkListen(ctx context.Context, listen string, expose bool) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return cli.Usagef("--listen %q: want an address such as 127.0.0.1:8080", listen)
	}
	if expose {
		return nil
	}
	loopback := false
	if host != "" {
		addresses, err := net.DefaultResolver.LookupIPAddr(ctx, host)
		if err != nil {
			return cli.Usagef("--listen %q: %v", listen, err)
		}
		loopback = len(addresses) > 0
		for _, address := range addresses {
			loopback = loopback && address.IP.IsLoopback()
		}
	}
	if !loopback {
		return cli.Usagef("--listen %q: other machines reach this address, and what they send, tokens included, is not "+
			"encrypted. "+
			"Put a proxy that does TLS in front and listen on 127.0.0.1, or add --expose", listen)
	}
	return nil
}

// ServeOptions say what a server is to do.
type ServeOptions struct {
	Listen string
	// metricsListen is where metrics are shown without a token; empty: nowhere.
	metricsListen string
	// Temporal are the settings of the client that the console asks.
	Temporal   func() (client.Options, error)
	TemporalUI string
	// Serving is called as soon as the address is listened on; nil: nothing is.
	Serving func(address string)
}

// Serve answers requests until ctx ends. It returns nil after a drain.
func Serve(ctx context.Context, a *cli.App, o ServeOptions) (err error) {
	stopTracing, err := trace(ctx, a, "daybook-serve")
	if err != nil {
		return err
	}
	defer stopTracing()
	db, err := a.Open(ctx, serveConns)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := cli.RequireRight(ctx, db.Pool, "SELECT", "daybook.console_sessions"); err != nil {
		return err
	}
	registry, builtin, err := a.BuiltinJobs(db.Pool, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, builtin.Close()) }()
	closingKey, err := a.ClosingKey()
	if err != nil {
		return err
	}
	keys, err := a.Encryption()
	if err != nil {
		return err
	}
	measured, stopMeasuring, err := newMetrics(ctx, a,
		workers.MetricsOptions{Pool: db.Pool, Service: "daybook-serve", Standby: true}, o.metricsListen)
	if err != nil {
		return err
	}
	defer stopMeasuring()
	temporal, closeTemporal := consoleTemporal(a, o)
	defer closeTemporal()
	// When every worker is gone, the server is the one that says so.
	defer runMetrics(ctx, measured, sampled(temporal, o))()
	due, err := workers.NewDueJobs(workers.DueJobsOptions{
		Pool: db.Pool, Registry: registry, Metrics: measured,
		Fleet: a.Environment.Fleet, Log: a.Log,
	})
	if err != nil {
		return err
	}
	defer due.Close()
	tokens, err := tokens.List(ctx, db.Pool, "")
	if err != nil {
		return err
	}
	listener, err := listenOn(ctx, o.Listen, "--listen")
	if err != nil {
		return err
	}
	a.Log.Info("serving", "address", "http://"+listener.Addr().String(), "console", server.ConsoleRoot, "openapi",
		"/openapi.json")
	if len(tokens) == 0 {
		a.Log.Warn("there is no token yet: create one with `daybook tokens create`")
	}
	if o.Serving != nil {
		o.Serving("http://" + listener.Addr().String())
	}
	serving, err := server.New(ctx, server.Options{
		Pool: db.Pool, DueJobs: due, CheckPayload: cli.CheckBuiltinPayload, TypeName: registry.TypeName, Metrics: measured, Encryption: keys, ClosingKey: closingKey,
		Temporal: temporal, Log: a.Log, Version: a.Version,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, serving.Close()) }()
	defer notify(ctx, a, "starts", "answers at http://"+listener.Addr().String(), answers("http://"+listener.Addr().String()))()
	return serving.Serve(ctx, listener)
}

// listenOn listens on an address that a flag names.
func listenOn(ctx context.Context, address, flag string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, cli.Tagged(devstack.ErrPortTaken, "%s is taken: end what listens there, or give another %s", address,
			flag)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// sampled is the client by which metrics learn of workflows and workers; nil: no Temporal is named,
// and the default address says nothing.
func sampled(temporal server.TemporalOptions, o ServeOptions) client.Client {
	if settings, err := o.Temporal(); err != nil || settings.HostPort == "" {
		return nil
	}
	return temporal.Client
}

// consoleTemporal gives the console a client of Temporal, which connects when it is first asked, or
// says why there is none.
func consoleTemporal(a *cli.App, o ServeOptions) (t server.TemporalOptions, closeClient func()) {
	settings, err := o.Temporal()
	t = server.TemporalOptions{
		UI: strings.TrimSuffix(o.TemporalUI, "/"), Address: cmp.Or(settings.HostPort, client.DefaultHostPort),
		Namespace: settings.Namespace,
	}
	if err == nil {
		settings.Logger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)) // pages say what fails
		t.Client, err = client.NewLazyClient(settings)
	}
	if err != nil {
		a.Log.Warn("the console has no connection to Temporal", "error", err)
		t.Client, t.Err = nil, err
		return t, func() {}
	}
	return t, t.Client.Close
}

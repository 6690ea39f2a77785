package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/console"
	"github.com/daybook-dev/daybook/internal/devstack"
	"github.com/daybook-dev/daybook/internal/httpapi"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/workers"
)

// serveConns is the size of the server's pool, unless the database's address says another.
const serveConns = 16

func serveCommand(a *app) *cobra.Command {
	var listen string
	var expose bool
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the HTTP API until a signal ends it",
		Long: "Serves the HTTP API (docs/http-api.md) until SIGINT or SIGTERM; then it accepts no new requests, finishes those that it is\n" +
			"answering, and ends. Its OpenAPI document is at /openapi.json; /healthz says that it runs, /readyz that the database answers.\n" +
			"Every other request needs a token: see `daybook tokens create`.\n\n" +
			"It answers only this machine, unless --listen names another address and --expose confirms it. It speaks plain HTTP:\n" +
			"put a proxy that does TLS in front before tokens travel over a network.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkListen(c.Context(), listen, expose); err != nil {
				return err
			}
			return a.serve(c.Context(), listen)
		},
	}
	flags := command.Flags()
	flags.StringVar(&listen, "listen", "127.0.0.1:8080", "the address to listen on; port 0 is a free one")
	flags.BoolVar(&expose, "expose", false, "let --listen name an address that other machines reach; what they send, tokens included, is not encrypted")
	return command
}

// checkListen refuses an address that other machines reach, unless that was confirmed.
func checkListen(ctx context.Context, listen string, expose bool) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return usagef("--listen %q: want an address such as 127.0.0.1:8080", listen)
	}
	if expose {
		return nil
	}
	loopback := false
	if host != "" {
		addresses, err := net.DefaultResolver.LookupIPAddr(ctx, host)
		if err != nil {
			return usagef("--listen %q: %v", listen, err)
		}
		loopback = len(addresses) > 0
		for _, address := range addresses {
			loopback = loopback && address.IP.IsLoopback()
		}
	}
	if !loopback {
		return usagef("--listen %q: other machines reach this address, and what they send, tokens included, is not encrypted. "+
			"Put a proxy that does TLS in front and listen on 127.0.0.1, or add --expose", listen)
	}
	return nil
}

// serve answers requests until ctx ends. It returns nil after a drain.
func (a *app) serve(ctx context.Context, listen string) (err error) {
	db, err := a.open(ctx, serveConns)
	if err != nil {
		return err
	}
	defer db.close()
	registry, builtin, err := a.builtinJobs(db.Pool)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, builtin.Close()) }()
	due, err := workers.NewDueJobs(db.Pool, registry, a.log)
	if err != nil {
		return err
	}
	defer due.Close()
	tokens, err := tokens.List(ctx, db.Pool, "")
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return tagged(devstack.ErrPortTaken, "%s is taken: end what listens there, or give another --listen", listen)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", listen, err)
	}
	a.log.Info("serving", "address", "http://"+listener.Addr().String(), "console", console.Root, "openapi", "/openapi.json")
	if len(tokens) == 0 {
		a.log.Warn("there is no token yet: create one with `daybook tokens create`")
	}
	resuming, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { httpapi.ResumeBulk(resuming, db.Pool, a.log) })
	defer background.Wait()
	defer stop()
	pages := console.New(console.Options{Pool: db.Pool, Listing: db.Listing, Log: a.log, Version: readVersion().Version, GoOn: func(operation string) {
		background.Go(func() {
			if err := store.RunBulk(resuming, db.Pool, operation); err != nil && resuming.Err() == nil {
				a.log.Warn("a bulk operation stopped; it is gone on with later", "operation", operation, "error", err)
			}
		})
	}})
	handler := httpapi.New(httpapi.Options{
		Console: pages, ConsoleRoot: console.Root,
		Pool: db.Pool, Listing: db.Listing, Runner: dueJobs{due}, CheckPayload: checkBuiltinPayload, TypeName: registry.TypeName, Log: a.log, Version: readVersion().Version,
	})
	return httpapi.Serve(ctx, listener, handler, a.log)
}

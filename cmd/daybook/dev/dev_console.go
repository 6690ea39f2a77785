package dev

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/start"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server"
)

// devTokenName is the name of the token that a dev stack makes for its console.
const devTokenName = "dev stack"

// serveConsole is the console beside a dev stack, until it is ended.
type devConsole struct {
	address, token string
	end            func() error
}

// serveConsole serves the console and the API beside a dev stack, with a token that is made now;
// those of earlier starts are revoked.
func serveConsole(ctx context.Context, a *cli.App, stack *devstack.Stack, temporal client.Options,
	port int,
) (served devConsole, err error) {
	db, err := a.Open(ctx, 1)
	if err != nil {
		return served, err
	}
	defer db.Close()
	if err := revokeDevTokens(ctx, db); err != nil {
		return served, err
	}
	_, secret, err := tokens.Create(ctx, db.Pool, tokens.NewToken{Name: devTokenName, Scopes: tokens.Scopes()})
	if err != nil {
		return served, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	serving := make(chan string, 1)
	go func() {
		ended <- start.Serve(ctx, a, start.ServeOptions{
			Listen: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), TemporalUI: stack.TemporalUI,
			Serving:  func(address string) { serving <- address },
			Temporal: func() (client.Options, error) { return temporal, nil },
		})
	}()
	select {
	case err := <-ended:
		cancel()
		return served, err
	case address := <-serving:
		served.address = address + server.ConsoleRoot
	}
	served.token = secret
	served.end = func() error {
		cancel()
		return <-ended
	}
	return served, nil
}

// revokeDevTokens revokes the tokens that earlier starts of the stack made.
func revokeDevTokens(ctx context.Context, db *cli.Database) error {
	all, err := tokens.List(ctx, db.Pool, "")
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Name == devTokenName && all[i].RevokedAt == nil {
			if _, _, err := tokens.Revoke(ctx, db.Pool, all[i].ID); err != nil {
				return fmt.Errorf("revoke the token of an earlier start: %w", err)
			}
		}
	}
	return nil
}

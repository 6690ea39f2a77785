package main

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server"
)

// devTokenName is the name of the token that a dev stack makes for its console.
const devTokenName = "dev stack"

// devConsole is the console beside a dev stack, until it is ended.
type devConsole struct {
	address, token string
	end            func() error
}

// devConsole serves the console and the API beside a dev stack, with a token that is made now; those of earlier starts are revoked.
func (a *app) devConsole(ctx context.Context, stack *devstack.Stack, temporal client.Options, port int) (served devConsole, err error) {
	db, err := a.open(ctx, 1)
	if err != nil {
		return served, err
	}
	defer db.close()
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
		ended <- a.serve(ctx, serveOptions{
			listen: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), temporalUI: stack.TemporalUI, serving: func(address string) { serving <- address },
			temporal: func() (client.Options, error) { return temporal, nil },
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
func revokeDevTokens(ctx context.Context, db *database) error {
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

// Command sql is an example: billing in tables of its own, written by SQL alone. Triggers enqueue
// what is to be posted; this program only posts it. README.md says how to run it.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/queue/source"
	"github.com/daybook-dev/daybook/workers"
)

// schema makes the tables, their triggers and the functions that the source calls.
//
//go:embed schema.sql
var schema string

// sources are where the organizations' documents are read that have "billing" on record.
func sources() (accounting.Sources, error) {
	billing, err := source.New(
		source.SQL[int64]{
			Namespace: "invoice",
			Lock:      `SELECT billing.lock_invoices($1, $2)`,
			Read:      `SELECT * FROM billing.read_invoices($1, $2)`,
			SetPosted: `SELECT billing.set_posted($1, $2, $3)`,
		},
		source.SQL[[16]byte]{
			Namespace: "payment",
			Lock:      `SELECT billing.lock_payments($1, $2)`,
			Read:      `SELECT * FROM billing.read_payments($1, $2)`,
		},
	)
	return accounting.Sources{"billing": billing}, err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sql:", err)
		os.Exit(1)
	}
}

// run posts until ctx ends.
func run(ctx context.Context) error {
	billing, err := sources()
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, os.Getenv("DAYBOOK_DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	temporal, err := client.DialContext(ctx, options)
	if err != nil {
		return err
	}
	defer temporal.Close()
	worker, err := workers.NewAccounting(workers.AccountingOptions{Client: temporal, Pool: pool, Sources: billing})
	if err != nil {
		return err
	}
	defer worker.Close()
	return worker.Run(ctx)
}

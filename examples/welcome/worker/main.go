// Command worker is the program of docs/jobs.md, "A handler in five minutes": it signs a user up
// and works the jobs that greet. DAYBOOK_DATABASE_URL and TEMPORAL_ADDRESS name its servers, as
// `daybook dev --no-worker` prints them.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	"github.com/daybook-dev/daybook/examples/welcome"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/workers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// run signs a user up, and works jobs until ctx ends.
func run(ctx context.Context, log *slog.Logger) error {
	options, err := envconfig.LoadDefaultClientOptions() // TEMPORAL_ADDRESS and the like
	if err != nil {
		return err
	}
	options.Logger = sdklog.NewStructuredLogger(log) // the SDK's own prints lines of level DEBUG
	temporal, err := client.NewLazyClient(options)
	if err != nil {
		return err
	}
	defer temporal.Close()
	pool, err := pgxpool.New(ctx, os.Getenv("DAYBOOK_DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx,
		`CREATE TABLE IF NOT EXISTS users (id text PRIMARY KEY, address text NOT NULL, welcomed_at timestamptz)`); err != nil {
		return err
	}
	if err := welcome.SignUp(ctx, pool, "user-"+time.Now().Format("150405"), "ada@example.com"); err != nil {
		return err
	}

	registry := jobs.NewRegistry()
	(&welcome.Greeter{Pool: pool, Send: send}).Register(registry)
	w, err := workers.NewJobs(workers.JobsOptions{Client: temporal, Pool: pool, Registry: registry, Log: log})
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Run(ctx)
}

// send stands for a service that sends messages.
func send(_ context.Context, address, text, key string) error {
	_, err := fmt.Println(address, text, key)
	return err
}

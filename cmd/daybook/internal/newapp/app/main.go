// Command app takes orders, posts their invoices and writes their receipts. README.md says how to
// run it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/queue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], slog.New(slog.NewTextHandler(os.Stderr, nil)))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("want `work`, or `order CUSTOMER CENTS`")

// run is the program: it works until ctx ends, or places one order.
func run(ctx context.Context, args []string, log *slog.Logger) error {
	url := os.Getenv("DAYBOOK_DATABASE_URL")
	if url == "" {
		return errors.New("set DAYBOOK_DATABASE_URL and TEMPORAL_ADDRESS, as `make servers` prints them")
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := setUp(ctx, pool, url); err != nil {
		return err
	}
	switch {
	case len(args) == 1 && args[0] == "work":
		return work(ctx, pool, log)
	case len(args) == 3 && args[0] == "order":
		cents, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return errUsage
		}
		return placeOne(ctx, pool, args[1], cents)
	}
	return errUsage
}

// placeOne places an order and waits until the worker has posted it.
func placeOne(ctx context.Context, pool *pgxpool.Pool, customer string, netCents int64) error {
	id, err := Place(ctx, pool, customer, netCents)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	status, err := queue.WaitAccountingJob(within, pool, document(id), queue.WaitAccountingJobOptions{})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("order %d is placed, and waits to be posted: does `make run` run?", id)
	}
	if err != nil {
		return err
	}
	fmt.Printf("order %d of %s: %s\n", id, customer, status.State)
	return nil
}

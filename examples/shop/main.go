// Command shop is an example: a small program with tables of its own that embeds Daybook. README.md
// says how to run it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	"github.com/daybook-dev/daybook/queue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

// run places an order, tells when it is booked, and works on until ctx ends.
func run(ctx context.Context, log *slog.Logger) (err error) {
	var settings struct {
		DatabaseURL string `env:"DAYBOOK_DATABASE_URL,required"`
		WebhookURL  string `env:"SHOP_WEBHOOK_URL,required"`
	}
	if err := env.Parse(&settings); err != nil {
		return err
	}
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	options.Logger = sdklog.NewStructuredLogger(log)
	temporal, err := client.DialContext(ctx, options)
	if err != nil {
		return err
	}
	defer temporal.Close()
	pool, err := pgxpool.New(ctx, settings.DatabaseURL)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := open(ctx, config{pool: pool, webhookURL: settings.WebhookURL, log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	working := make(chan error, 1)
	go func() {
		defer cancel() // no worker would be left for what the order asks for
		working <- s.run(ctx, temporal)
	}()
	if placed := s.placeOne(ctx); placed != nil && ctx.Err() == nil {
		cancel()
		return errors.Join(placed, <-working)
	}
	return <-working
}

// placeOne places an order and waits until it is booked.
func (s *shop) placeOne(ctx context.Context) error {
	o := order{
		ID: fmt.Sprintf("order-%d", time.Now().Unix()), Customer: "Ada", NetCents: 10000, TaxCents: 1900,
		PlacedAt: time.Now(),
	}
	if err := s.place(ctx, o); err != nil {
		return fmt.Errorf("place %s: %w", o.ID, err)
	}
	status, err := queue.WaitAccountingJob(ctx, s.pool, queue.Document{OrgID: org, ID: o.ID},
		queue.WaitAccountingJobOptions{})
	if err != nil {
		return err
	}
	s.log.Info("the order is done", "order", o.ID, "state", status.State, "error", status.Error)
	return nil
}

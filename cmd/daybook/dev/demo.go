package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/start"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/moving/sample"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
)

const (
	// demoTimeout bounds the posting of the documents, which takes a few seconds.
	demoTimeout = 2 * time.Minute
	// demoPoll is the pause between two reads of the queue.
	demoPoll = 200 * time.Millisecond
)

func demoCommand(a *cli.App) *cobra.Command {
	var keep, offline bool
	options := devstack.Options{InMemory: true}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Start everything, post sample invoices of many countries, show the result",
		Long: "Starts a PostgreSQL and a Temporal development server of its own, imports the published examples of the GOBL format\n" +
			"(or, without a network, a few documents that come with the program), starts the workflow through the Temporal CLI,\n" +
			"works the queue, and shows what was posted. It fails unless exactly the expected documents are posted.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.Quiet(slog.LevelError) // what fails is a part of the result
			d := demo{App: a, keep: keep, offline: offline}
			return d.run(c.Context(), options)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&keep, "keep", false, "keep everything running until Ctrl-C")
	flags.BoolVar(&offline, "offline", false, "post the documents that come with the program, without a network")
	flags.IntVar(&options.TemporalPort, "temporal-port", 0, "Temporal's port (default a free one)")
	flags.IntVar(&options.UIPort, "ui-port", 0, "the port of Temporal's web interface (default a free one)")
	flags.IntVar(&options.PostgresPort, "postgres-port", 0, "PostgreSQL's port (default a free one)")
	return command
}

// demo is one run of the demonstration.
type demo struct {
	*cli.App
	keep, offline bool

	stack    *devstack.Stack
	temporal client.Options
	db       *cli.Database
	// documents is what is to be posted.
	documents demoDocuments
	started   time.Time
}

func (d *demo) run(ctx context.Context, options devstack.Options) (err error) {
	if err := d.refuseUsedDatabase(ctx); err != nil {
		return err
	}
	if d.stack, err = startStack(ctx, d.App, options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cli.StopStack(ctx, d.stack)) }()
	if d.db, err = d.Open(ctx, books.ImportWriters+2); err != nil {
		return err
	}
	defer d.db.Close()
	if d.temporal, err = stackOptions(d.App, d.stack); err != nil {
		return err
	}
	if err := d.refuseUsedTemporal(ctx); err != nil {
		return err
	}
	if d.documents, err = d.findDocuments(ctx); err != nil {
		return err
	}
	if err := d.prepare(ctx); err != nil {
		return err
	}
	return d.withWorker(ctx, d.postAndShow)
}

// refuseUsedDatabase keeps the demonstration out of a database that is in use, before anything is
// changed there.
func (d *demo) refuseUsedDatabase(ctx context.Context) error {
	if d.DatabaseURL == "" {
		return nil
	}
	pool, err := d.Pool(ctx, 1)
	if err != nil {
		return err
	}
	defer cli.ClosePool(pool)
	empty, err := store.IsEmpty(ctx, pool)
	if err != nil {
		return err
	}
	if !empty {
		return cli.Tagged(errNotEmpty, "the database that DAYBOOK_DATABASE_URL names holds documents already, and the "+
			"demo wants one of its own: unset the variable")
	}
	return nil
}

// refuseUsedTemporal keeps the demonstration off a task queue that is in use.
func (d *demo) refuseUsedTemporal(ctx context.Context) error {
	c, err := d.ConnectTemporal(ctx, d.temporal)
	if err != nil {
		return err
	}
	defer c.Close()
	running, err := cli.AccountingLoop.Runs(ctx, c)
	if err != nil {
		return err
	}
	if running {
		return cli.Tagged(errNotEmpty,
			"workflow %s runs at %s already, and the demo wants a Temporal of its own: unset TEMPORAL_ADDRESS",
			cli.AccountingLoop.ID, d.stack.TemporalAddress)
	}
	return nil
}

// prepare gives every organization the sample chart and rules, and imports the documents.
func (d *demo) prepare(ctx context.Context) error {
	orgs := d.documents.organizations()
	d.Say("Applying the sample chart of accounts and the sample rules to %s.",
		phrase.Plural(int64(len(orgs)), "organization", "organizations"))
	for _, org := range orgs {
		err := store.Begin(ctx, d.db.Pool, func(tx pgx.Tx) error {
			if _, err := ledgerdb.PutAccounts(ctx, tx, org, sample.Chart(), nil); err != nil {
				return err
			}
			_, err := ledgerdb.ApplyRuleSet(ctx, tx, org, "sample", string(sample.Rules()))
			return err
		})
		if err != nil {
			return fmt.Errorf("organization %s: %w", org, err)
		}
	}
	d.Say("Importing %s.", d.documents.description)
	bar := d.NewProgress("importing", int64(len(d.documents.items)))
	i := books.NewImporter(d.db.Pool, func() { bar.Add(1) })
	i.Create, i.Format = true, "gobl"
	err := i.Run(ctx, func(_ context.Context, put func(books.ImportItem) error) error {
		for _, item := range d.documents.items {
			if err := put(item); err != nil {
				return err
			}
		}
		return nil
	})
	bar.End()
	if err != nil {
		return err
	}
	if len(i.Result.Failed) > 0 {
		return cli.Tagged(cli.ErrNotAsExpected, "%d documents were not imported; the first one: %s: %s",
			len(i.Result.Failed), i.Result.Failed[0].Source, i.Result.Failed[0].Reason)
	}
	return nil
}

// withWorker runs f while a worker of this process works the queue, and drains the worker.
func (d *demo) withWorker(ctx context.Context, f func(context.Context) error) error {
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- start.Work(working, d.App, d.temporal, workers.AccountingOptions{}, "") }()

	running, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(running) }()
	select {
	case err := <-done:
		stop()
		return errors.Join(err, <-ended)
	case err := <-ended:
		stop()
		cancel()
		shown := <-done
		if err == nil { // ctx ended, and f ended with it
			return shown
		}
		return fmt.Errorf("the worker ended: %w", err)
	}
}

// postAndShow starts the workflow, waits until every job has ended, shows the result, and ends the
// workflow.
func (d *demo) postAndShow(ctx context.Context) error {
	d.Say("Starting the workflow through the Temporal CLI:\n\n%s\n", indent(cli.AccountingLoop.StartCommandLine()))
	d.started = time.Now()
	if err := startLoop(ctx, d.App, d.stack, cli.AccountingLoop); err != nil {
		return err
	}
	if err := d.awaitCompletion(ctx); err != nil {
		return err
	}
	result, err := d.collect(ctx)
	if err != nil {
		return err
	}
	if err := d.show(result); err != nil {
		return err
	}
	if d.keep {
		d.sayWhereToLook()
		<-ctx.Done()
		return result.verdict()
	}
	return errors.Join(result.verdict(), d.endWorkflow(ctx))
}

// awaitCompletion shows progress until no job is pending or leased.
func (d *demo) awaitCompletion(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	total := int64(len(d.documents.items))
	bar := d.NewProgress("posting", total)
	defer bar.End()
	tick := time.NewTicker(demoPoll)
	defer tick.Stop()
	open := total
	for {
		queues, err := store.Status(ctx, d.db.Pool, "")
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			open = queues[0].Open() // the accounting queue's
			if bar.Set(total - open); open == 0 {
				bar.End()
				d.Say("Worked %s in %s, the start of the workflow included.", phrase.Plural(total, "document", "documents"),
					phrase.Duration(time.Since(d.started)))
				return nil
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return cli.Tagged(cli.ErrNotAsExpected, "after %s, %d documents are still not done: see %s", demoTimeout, open,
					cmp.Or(d.stack.TemporalUI, "the Temporal UI"))
			}
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// endWorkflow cancels the workflow and waits until it has given everything back.
func (d *demo) endWorkflow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, workers.DrainTimeout)
	defer cancel()
	c, err := client.NewLazyClient(d.temporal)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.CancelWorkflow(ctx, cli.AccountingLoop.ID, ""); err != nil {
		return fmt.Errorf("cancel the workflow: %w", err)
	}
	if err := c.GetWorkflow(ctx, cli.AccountingLoop.ID, "").Get(ctx, nil); err != nil && !isCancelled(err) {
		return fmt.Errorf("wait for the end of the workflow: %w", err)
	}
	return nil
}

func (d *demo) sayWhereToLook() {
	d.Say("\nEverything runs until Ctrl-C. In another terminal:\n\n  export DAYBOOK_DATABASE_URL='%s'\n  daybook "+
		"status\n  daybook accounting list --state failed\n  daybook entries --org %s\n  daybook trial-balance --all-orgs",
		d.DatabaseURL, d.documents.organizations()[0])
}

// demoDocuments is what the demonstration posts.
type demoDocuments struct {
	description string
	// source is for programs: "gobl" or "embedded".
	source string
	items  []books.ImportItem
	// skipped are files that cause no booking.
	skipped []books.ImportProblem
	// mustFail names the sources that cannot be posted, and why.
	mustFail map[string]models.ErrorCode
}

func (d *demoDocuments) organizations() []string {
	var orgs []string
	for _, item := range d.items {
		orgs = append(orgs, item.Document.OrgID)
	}
	slices.Sort(orgs)
	return slices.Compact(orgs)
}

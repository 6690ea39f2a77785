package start

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/direct"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/workers"
)

// spareConns is what a worker's pool has beyond four connections an activity: most of it is for
// functions that tasks name.
const spareConns = 12

func workerCommand(a *cli.App) *cobra.Command {
	var options workers.AccountingOptions
	var metricsListen string
	command := &cobra.Command{
		Use:   "worker",
		Short: "Work every queue until a signal ends it",
		Long: "Works every queue until SIGINT or SIGTERM; then it finishes what it has begun, gives the rest back and ends.\n" +
			"A second signal ends it at once. While the database or Temporal is unavailable it tries again.\n\n" +
			"Temporal is found as by Temporal's own programs: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY,\n" +
			"TEMPORAL_TLS…, TEMPORAL_PROFILE and the configuration file. The queues' settings are\n" +
			"ACCOUNTING_QUEUE_BATCH_SIZE, ACCOUNTING_QUEUE_POLL_INTERVAL_SECONDS and ACCOUNTING_QUEUE_RETRY_BASE_SECONDS,\n" +
			"JOB_QUEUE_BATCH_SIZE and JOB_QUEUE_POLL_INTERVAL_SECONDS, TASK_QUEUE_BATCH_SIZE and TASK_QUEUE_POLL_INTERVAL_SECONDS;\n" +
			"those of the built-in types are in https://github.com/daybook-dev/daybook/blob/main/docs/job-types.md and\n" +
			"https://github.com/daybook-dev/daybook/blob/main/docs/tasks.md.\n\n" +
			"DAYBOOK_TASKS_DATABASE_URL is the same database for tasks alone, best as worker_service_user, which may call the functions\n" +
			"that tasks need and nothing else; without it tasks are worked as DAYBOOK_DATABASE_URL says.\n\n" +
			"It works documents, background jobs and tasks; each queue has a workflow that is started once, by an operator:\n\n" +
			cli.StartCommandLines(""),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case options.MaxConcurrentActivities < 2:
				return cli.Usagef("--activities %d: want at least 2, because one activity waits for work while another works",
					options.MaxConcurrentActivities)
			case options.MaxConcurrentWorkflowTasks < 2:
				return cli.Usagef("--workflow-tasks %d: want at least 2", options.MaxConcurrentWorkflowTasks)
			case options.PickInterval < 0 || options.PickInterval > time.Second:
				return cli.Usagef("--pick-interval %s: want 0, which is the default, to 1s", options.PickInterval)
			}
			temporal, err := a.TemporalOptions()
			if err != nil {
				return err
			}
			tuneGC()
			return Work(c.Context(), a, temporal, options, cmp.Or(metricsListen, a.Environment.MetricsListen))
		},
	}
	flags := command.Flags()
	flags.IntVar(&options.MaxConcurrentActivities, "activities", 3, "how many activities run at once, at least 2")
	flags.IntVar(&options.MaxConcurrentWorkflowTasks, "workflow-tasks", 5,
		"how many workflow tasks run at once, at least 2")
	flags.DurationVar(&options.PickInterval, "pick-interval", 0,
		"jobs that come within it are picked together: a longer one costs less processor time and begins jobs later "+
			"(default 5ms)")
	flags.StringVar(&options.Name, "name", "", "the worker's name in leases and attempts (default host and process id)")
	flags.StringVar(&metricsListen, "metrics-listen", "", metricsFlag)
	return command
}

const (
	// gcPercent lets garbage grow to four times what is in use before it is collected: a worker keeps
	// little, and makes much garbage for each document. gcLimit bounds what comes of that.
	gcPercent = 400
	gcLimit   = 56 << 20
)

// tuneGC sets the garbage collector for a worker, unless the environment does (GOGC, GOMEMLIMIT).
func tuneGC() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(gcPercent)
		debug.SetMemoryLimit(gcLimit)
	}
}

// tellWorker says which program works what, before it waits for any server, and what another signal
// does once the first has come. Each queue's worker says more when it has started.
func tellWorker(ctx context.Context, a *cli.App, pool *pgxpool.Pool, temporal client.Options,
	options workers.AccountingOptions,
) {
	name := cmp.Or(options.Name, store.ProcessName())
	var kinds []string
	for _, w := range newWorkers {
		kinds = append(kinds, w.kind)
	}
	says := []any{
		"version", a.Version, "worker", name, "kinds", kinds, "temporal", cmp.Or(temporal.HostPort, client.DefaultHostPort),
		"namespace", cmp.Or(temporal.Namespace, client.DefaultNamespace), "database",
		store.Address(pool.Config().ConnConfig), "connections", pool.Config().MaxConns,
	}
	if fleet := a.Environment.Fleet; fleet != "" {
		says = append(says, "fleet", fleet)
	}
	a.Log.Info("the worker starts", says...)
	context.AfterFunc(ctx, func() {
		a.Log.Info("the worker was told to stop; a second signal ends it at once, and other workers reclaim what it "+
			"holds when its leases have expired",
			"worker", name, "limit", workers.DrainTimeout.String())
	})
}

// Work runs a worker until ctx ends. It returns nil after a drain.
func Work(ctx context.Context, a *cli.App, temporal client.Options, options workers.AccountingOptions,
	metricsListen string,
) error {
	stopTracing, err := trace(ctx, a, "daybook-worker")
	if err != nil {
		return err
	}
	defer stopTracing()
	pool, err := a.Pool(ctx, int32(4*max(3, options.MaxConcurrentActivities)+spareConns))
	if err != nil {
		return err
	}
	defer cli.ClosePool(pool)
	if options.DirectPool, err = a.DirectPool(ctx); err != nil {
		return err
	}
	if options.DirectPool != nil {
		defer cli.ClosePool(options.DirectPool)
	}
	// A wrong schema, user, password, database or role is told at once; while the database is
	// unavailable, the worker waits for it.
	err = cli.Verify(ctx, pool)
	if err == nil {
		err = store.VerifyWorker(ctx, pool, options.DirectPool)
	}
	if err == nil {
		err = cli.RequireRight(ctx, pool, "INSERT", "daybook.impacts")
	}
	if migrations.Wrong(err) || store.RefusesConnection(err) || errors.Is(err, cli.ErrRoleLacksRight) ||
		errors.Is(err, direct.ErrNeeded) || errors.Is(err, store.ErrSession) {
		return err
	}
	tellWorker(ctx, a, pool, temporal, options)
	measured, stop, err := newMetrics(ctx, a,
		workers.MetricsOptions{Pool: pool, Name: options.Name, Service: "daybook-worker", Namespace: temporal.Namespace},
		metricsListen)
	if err != nil {
		return err
	}
	defer stop()
	temporal.MetricsHandler = measured.TemporalHandler()
	polls := newPolls(len(newWorkers))
	temporal.ConnectionOptions.DialOptions = append(temporal.ConnectionOptions.DialOptions,
		grpc.WithChainUnaryInterceptor(polls.note))
	defer notify(ctx, a, "waits for the database and Temporal", "works every queue", polls.alive)()
	c, err := client.NewLazyClient(temporal)
	if err != nil {
		return cli.Tagged(cli.ErrTemporalSetup, "Temporal's settings: %v", err)
	}
	defer c.Close()
	options.Client, options.Pool, options.Log, options.Metrics = c, pool, a.Log, measured
	defer runMetrics(ctx, measured, c)()
	options.NotifyEvents = a.Environment.NotifyEvents == "1"
	// The workers wait themselves; asked here, a namespace that does not exist is named with the
	// address.
	if err := cli.AwaitTemporal(ctx, c, temporal, a.Log); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return workQueues(ctx, a, options)
}

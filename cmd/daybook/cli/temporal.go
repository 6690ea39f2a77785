package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/temporalwait"
	"github.com/daybook-dev/daybook/workers"
)

// Loop is a run of a queue's workflow as the documentation starts it.
type Loop struct{ TaskQueue, Workflow, ID string }

// Loops are those of every kind of queue.
var Loops = loopsOf(store.Queues())

// AccountingLoop is that of the accounting queue.
var AccountingLoop = Loops[0]

func loopsOf(queues []store.Queue) []Loop {
	list := make([]Loop, len(queues))
	for i, q := range queues {
		list[i] = Loop{q.TaskQueue, q.WorkflowType, q.TaskQueue + "-worker-production"}
	}
	return list
}

// StartCommandLines are how a person starts all of them, each after what goes before a line.
func StartCommandLines(before string) string {
	lines := make([]string, len(Loops))
	for i, l := range Loops {
		lines[i] = before + strings.ReplaceAll(l.StartCommandLine(), "\n", "\n"+before)
	}
	return strings.Join(lines, "\n\n")
}

// loopInput is their input.
const loopInput = `{"batchSize": 50, "pollIntervalSeconds": 10}`

// StartArguments is how the Temporal CLI starts the loop.
func (l Loop) StartArguments() []string {
	return []string{
		"workflow", "start", "--task-queue", l.TaskQueue, "--type", l.Workflow, "--workflow-id", l.ID,
		"--input", loopInput,
	}
}

// StartCommandLine is the same for a person to type.
func (l Loop) StartCommandLine() string {
	return "temporal workflow start --task-queue " + l.TaskQueue + " --type " + l.Workflow + " \\\n" +
		"  --workflow-id " + l.ID + " --input '" + loopInput + "'"
}

// TemporalOptions reads the connection's settings as Temporal's own programs do: from environment
// variables and the configuration file.
func (a *App) TemporalOptions() (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, Usagef("Temporal's settings: %v", err)
	}
	options.Logger = sdklog.NewStructuredLogger(slog.New(workers.FoldRepeats(a.Log.Handler())))
	return options, nil
}

// connectTimeout is how long commands that are no worker wait for Temporal.
const connectTimeout = 20 * time.Second

// AwaitTemporal returns when Temporal answers for the client's namespace. While it is unavailable
// it tries again; when it refuses the client, that is final.
func AwaitTemporal(ctx context.Context, c client.Client, o client.Options, log *slog.Logger) error {
	namespace, address := cmp.Or(o.Namespace, client.DefaultNamespace), cmp.Or(o.HostPort, client.DefaultHostPort)
	err := temporalwait.Until(ctx, log, address, func(ctx context.Context) error {
		_, err := c.WorkflowService().DescribeNamespace(ctx,
			&workflowservice.DescribeNamespaceRequest{Namespace: namespace})
		return err
	})
	switch {
	case temporalwait.NoNamespace(err):
		return Tagged(ErrTemporalSetup, "Temporal at %s has no namespace %q: create it with `temporal operator namespace "+
			"create`, or set TEMPORAL_NAMESPACE", address, namespace)
	case temporalwait.RefusesTLS(err):
		return Tagged(ErrTemporalSetup, "Temporal at %s and this program do not agree on TLS: check TEMPORAL_TLS and "+
			"TEMPORAL_TLS_SERVER_CA_CERT_PATH, _SERVER_NAME, _CLIENT_CERT_PATH and _CLIENT_KEY_PATH: %v", address, err)
	case temporalwait.Refuses(err):
		return Tagged(ErrTemporalSetup,
			"Temporal at %s refuses access to namespace %q: check TEMPORAL_API_KEY and the TLS settings: %v", address,
			namespace, err)
	}
	return err
}

// ConnectTemporal returns a client when Temporal answers; other than a worker it does not wait for
// long.
func (a *App) ConnectTemporal(ctx context.Context, o client.Options) (client.Client, error) {
	c, err := client.NewLazyClient(o)
	if err != nil {
		return nil, Tagged(ErrTemporalSetup, "Temporal's settings: %v", err)
	}
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err = AwaitTemporal(bounded, c, o, a.Log)
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() == nil && bounded.Err() != nil:
		err = Tagged(ErrTemporalUnavailable,
			"Temporal at %s does not answer: check that it runs and that TEMPORAL_ADDRESS names it",
			cmp.Or(o.HostPort, client.DefaultHostPort))
	}
	c.Close()
	return nil, err
}

// Runs reports whether the loop runs now.
func (l Loop) Runs(ctx context.Context, c client.Client) (bool, error) {
	description, err := c.DescribeWorkflow(ctx, l.ID, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask for workflow %s: %w", l.ID, err)
	}
	return description.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// WithTemporal calls f with a client while Temporal answers.
func (a *App) WithTemporal(ctx context.Context, f func(client.Client) error) error {
	options, err := a.TemporalOptions()
	if err != nil {
		return err
	}
	if err := a.mayRecord(ctx); err != nil {
		return err
	}
	a.Quiet(slog.LevelWarn)
	c, err := a.ConnectTemporal(ctx, options)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

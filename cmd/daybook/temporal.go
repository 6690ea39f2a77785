package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/temporalwait"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// loop is a run of a queue's workflow as the documentation starts it.
type loop struct{ taskQueue, workflow, id string }

// loops are those of every kind of queue.
var loops = loopsOf(store.Queues())

// accountingLoop is that of the accounting queue.
var accountingLoop = loops[0]

func loopsOf(queues []store.Queue) []loop {
	list := make([]loop, len(queues))
	for i, q := range queues {
		list[i] = loop{q.TaskQueue, q.WorkflowType, q.TaskQueue + "-worker-production"}
	}
	return list
}

// startCommandLines are how a person starts all of them, each after what goes before a line.
func startCommandLines(before string) string {
	lines := make([]string, len(loops))
	for i, l := range loops {
		lines[i] = before + strings.ReplaceAll(l.startCommandLine(), "\n", "\n"+before)
	}
	return strings.Join(lines, "\n\n")
}

// loopInput is their input.
const loopInput = `{"batchSize": 50, "pollIntervalSeconds": 10}`

// startArguments is how the Temporal CLI starts the loop.
func (l loop) startArguments() []string {
	return []string{"workflow", "start", "--task-queue", l.taskQueue, "--type", l.workflow, "--workflow-id", l.id, "--input", loopInput}
}

// startCommandLine is the same for a person to type.
func (l loop) startCommandLine() string {
	return "temporal workflow start --task-queue " + l.taskQueue + " --type " + l.workflow + " \\\n" +
		"  --workflow-id " + l.id + " --input '" + loopInput + "'"
}

// temporalOptions reads the connection's settings as Temporal's own programs do: from environment variables and the
// configuration file.
func (a *app) temporalOptions() (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, usagef("Temporal's settings: %v", err)
	}
	options.Logger = sdklog.NewStructuredLogger(slog.New(workers.FoldRepeats(a.log.Handler())))
	return options, nil
}

// stackOptions is the connection to a dev stack: that of its own server, or of the one that the environment names.
func (a *app) stackOptions(s *devstack.Stack) (client.Options, error) {
	if s.TemporalUI == "" {
		return a.temporalOptions()
	}
	return client.Options{
		HostPort: s.TemporalAddress, Namespace: devstack.Namespace, Logger: sdklog.NewStructuredLogger(slog.New(workers.FoldRepeats(a.log.Handler()))),
	}, nil
}

// connectTimeout is how long commands that are no worker wait for Temporal.
const connectTimeout = 20 * time.Second

// awaitTemporal returns when Temporal answers for the client's namespace. While it is unavailable it tries again; when it refuses
// the client, that is final.
func awaitTemporal(ctx context.Context, c client.Client, o client.Options, log *slog.Logger) error {
	namespace, address := cmp.Or(o.Namespace, client.DefaultNamespace), cmp.Or(o.HostPort, client.DefaultHostPort)
	err := temporalwait.Until(ctx, log, address, func(ctx context.Context) error {
		_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
		return err
	})
	switch {
	case temporalwait.NoNamespace(err):
		return tagged(errTemporalSetup, "Temporal at %s has no namespace %q: create it with `temporal operator namespace create`, or set TEMPORAL_NAMESPACE", address, namespace)
	case temporalwait.Refuses(err):
		return tagged(errTemporalSetup, "Temporal at %s refuses access to namespace %q: check TEMPORAL_API_KEY and the TLS settings: %v", address, namespace, err)
	}
	return err
}

// connectTemporal returns a client when Temporal answers; other than a worker it does not wait for long.
func (a *app) connectTemporal(ctx context.Context, o client.Options) (client.Client, error) {
	c, err := client.NewLazyClient(o)
	if err != nil {
		return nil, tagged(errTemporalSetup, "Temporal's settings: %v", err)
	}
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err = awaitTemporal(bounded, c, o, a.log)
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() == nil && bounded.Err() != nil:
		err = tagged(errTemporalUnavailable, "Temporal at %s does not answer: check that it runs and that TEMPORAL_ADDRESS names it", cmp.Or(o.HostPort, client.DefaultHostPort))
	}
	c.Close()
	return nil, err
}

// runs reports whether the loop runs now.
func (l loop) runs(ctx context.Context, c client.Client) (bool, error) {
	description, err := c.DescribeWorkflowExecution(ctx, l.id, "")
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask for workflow %s: %w", l.id, err)
	}
	return description.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// startLoop starts a loop through the Temporal CLI, as an operator does.
func (a *app) startLoop(ctx context.Context, s *devstack.Stack, l loop) error {
	cli := s.TemporalCLI
	if cli == "" {
		var err error
		if cli, err = devstack.TemporalCLI(ctx, func(line string) { a.say("%s", line) }); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var output bytes.Buffer
	about := workflows.Describe(l.workflow)
	arguments := append(l.startArguments(), "--static-summary", about.Summary, "--static-details", about.Details)
	command := exec.CommandContext(ctx, cli, arguments...)
	command.Env = temporalEnvironment(s)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("start the workflow with %s: %w\n%s", cli, err, strings.TrimSpace(output.String()))
	}
	return nil
}

// temporalEnvironment is what the Temporal CLI is told by: for a stack's own server its address and nothing else.
func temporalEnvironment(s *devstack.Stack) []string {
	if s.TemporalUI == "" {
		return os.Environ()
	}
	environment := []string{"TEMPORAL_ADDRESS=" + s.TemporalAddress, "TEMPORAL_CONFIG_FILE=" + os.DevNull}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "TEMPORAL_") {
			environment = append(environment, variable)
		}
	}
	return environment
}

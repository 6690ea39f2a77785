package dev

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

// stackOptions is the connection to a dev stack: that of its own server, or of the one that the
// environment names.
func stackOptions(a *cli.App, s *devstack.Stack) (client.Options, error) {
	if s.TemporalUI == "" {
		return a.TemporalOptions()
	}
	return client.Options{
		HostPort: s.TemporalAddress, Namespace: devstack.Namespace,
		Logger: sdklog.NewStructuredLogger(slog.New(workers.FoldRepeats(a.Log.Handler()))),
	}, nil
}

// startLoop starts a loop through the Temporal CLI, as an operator does.
func startLoop(ctx context.Context, a *cli.App, s *devstack.Stack, l cli.Loop) error {
	cli := s.TemporalCLI
	if cli == "" {
		var err error
		if cli, err = devstack.TemporalCLI(ctx, func(line string) { a.Say("%s", line) }); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var output bytes.Buffer
	about := workflows.Describe(l.Workflow)
	arguments := append(l.StartArguments(), "--static-summary", about.Summary, "--static-details", about.Details)
	command := exec.CommandContext(ctx, cli, arguments...)
	command.Env = temporalEnvironment(s)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("start the workflow with %s: %w\n%s", cli, err, strings.TrimSpace(output.String()))
	}
	return nil
}

// temporalEnvironment is what the Temporal CLI is told by: for a stack's own server its address and
// nothing else.
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

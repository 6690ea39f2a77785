package start

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

func workflowPauseCommand(a *cli.App) *cobra.Command {
	return signalCommand(a, "pause", "Let running turns end, and begin no other until `resume`", models.SignalPause,
		"Pauses the workflow of each kind, or of those that are named, and waits until running turns have ended, which takes about five seconds.\n"+
			"Jobs that are due wait, and can be enqueued as usual. A pause lasts through restarts.",
		func(s models.RunStatus) bool { return s.Paused && s.Lanes == 0 })
}

func workflowResumeCommand(a *cli.App) *cobra.Command {
	return signalCommand(a, "resume", "Begin turns again after a pause", models.SignalResume,
		"Ends the pause of the workflow of each kind, or of those that are named.",
		func(s models.RunStatus) bool { return !s.Paused })
}

// signalCommand sends a signal to workflows and waits until it has taken effect.
func signalCommand(a *cli.App, name, short, signal, long string, effective func(models.RunStatus) bool) *cobra.Command {
	var of workflowsOf
	command := &cobra.Command{
		Use:     name + " [KIND…]",
		Short:   short,
		Long:    long,
		Example: "  daybook workflow " + name + "\n  daybook workflow " + name + " --kind jobs",
		RunE: func(c *cobra.Command, args []string) error {
			return forEach(a, c, &of, args,
				func(ctx context.Context, temporal client.Client, s health.WorkflowState) (WorkflowChange, error) {
					began := time.Now()
					if err := temporal.SignalWorkflow(ctx, s.ID, "", signal, nil); err != nil {
						return WorkflowChange{}, gone(s, err)
					}
					if of.noWait {
						return change(s, "sent", "the signal "+signal+" is sent; it takes effect at the end of each running turn."),
							nil
					}
					return awaitStatus(ctx, temporal, s, signal, of.wait, began, effective)
				})
		},
	}
	of.add(command, true)
	return command
}

// gone says of a workflow that has ended meanwhile that it does not run.
func gone(s health.WorkflowState, err error) error {
	if _, ok := errors.AsType[*serviceerror.NotFound](err); ok {
		return cli.Tagged(errNoWorkflow,
			"the workflow of %s does not run: start it with `daybook workflow start --kind %s`", s.Kind, s.Kind)
	}
	return err
}

// askEvery is the pause between two questions whether something has taken effect.
const askEvery = 200 * time.Millisecond

// awaitStatus asks the workflow for its status until it is as it was asked to be.
func awaitStatus(ctx context.Context, c client.Client, s health.WorkflowState, signal string, wait time.Duration,
	began time.Time, effective func(models.RunStatus) bool,
) (WorkflowChange, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	answered := false
	for {
		status, err := queryStatus(waiting, c, s.ID)
		answered = answered || err == nil
		if err == nil && effective(status) {
			break
		}
		select {
		case <-waiting.Done():
			if ctx.Err() != nil {
				return WorkflowChange{}, ctx.Err()
			}
			if !answered {
				return change(s, "sent", fmt.Sprintf("the signal %s is sent, but no worker answers: it takes effect when one "+
					"runs. Start `daybook worker`.", signal)), nil
			}
			return change(s, "sent", fmt.Sprintf("the signal %s is sent, but has not taken effect after %s: a turn still "+
				"runs (`daybook workflow show --kind %s`).", signal, wait, s.Kind)), nil
		case <-time.After(askEvery):
		}
	}
	now, took := time.Now(), time.Since(began)
	result, word := "paused", "paused"
	if signal == models.SignalResume {
		result, word = "running", "resumed"
	}
	done := change(s, result,
		fmt.Sprintf("%s; it took effect at %s, after %s.", word, cli.FormatTime(now), phrase.Duration(took)))
	done.Since, done.TookMS = &now, took.Milliseconds()
	return done, nil
}

// queryStatus asks a worker for the workflow's status.
func queryStatus(ctx context.Context, c client.Client, id string) (status models.RunStatus, err error) {
	asking, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	answer, err := c.QueryWorkflow(asking, id, "", models.QueryStatus)
	if err != nil {
		return status, err
	}
	err = answer.Get(&status)
	return status, err
}

func workflowConfigureCommand(a *cli.App) *cobra.Command {
	var of workflowsOf
	var settings queueSettings
	command := &cobra.Command{
		Use:   "configure [KIND…]",
		Short: "Change the settings of running workflows; what is left out stays as it is",
		Long: "Changes the settings of the workflow of each kind that runs, or of those that are named, from the next " +
			"turn on. A worker must run to take them in.",
		Example: "  daybook workflow configure --kind jobs --batch-size 200 --concurrency 6",
		RunE: func(c *cobra.Command, args []string) error {
			in, err := settings.read(c)
			if err != nil {
				return err
			}
			if in == (workflows.ConfigureInput{}) {
				return cli.Usagef("nothing to configure: give --batch-size, --poll-interval or --concurrency")
			}
			return forEach(a, c, &of, args,
				func(ctx context.Context, temporal client.Client, s health.WorkflowState) (WorkflowChange, error) {
					return configureWorkflow(ctx, temporal, s, in, of.wait)
				})
		},
	}
	of.add(command, true)
	_ = command.Flags().MarkHidden("no-wait")
	settings.add(command, "", "")
	return command
}

func configureWorkflow(ctx context.Context, c client.Client, s health.WorkflowState, in workflows.ConfigureInput,
	wait time.Duration,
) (WorkflowChange, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	update, err := c.UpdateWorkflow(waiting, client.UpdateWorkflowOptions{
		WorkflowID: s.ID, UpdateName: models.UpdateConfigure, Args: []any{in},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	var now models.RunSettings
	if err == nil {
		err = update.Get(waiting, &now)
	}
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return WorkflowChange{}, cli.Usagef("%s", application.Message())
	}
	// The server may end the wait a moment before the context does.
	_, timedOut := errors.AsType[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err)
	if (timedOut || err != nil && waiting.Err() != nil) && ctx.Err() == nil {
		return WorkflowChange{}, cli.Tagged(errNoWorkerAnswers,
			"no worker took in the settings of %s within %s: start `daybook worker`, then try again", s.Kind, wait)
	}
	if err != nil {
		return WorkflowChange{}, gone(s, err)
	}
	return change(s, "configured", settingsText(now)+", from the next turn on."), nil
}

// settingsText are a workflow's settings in words.
func settingsText(s models.RunSettings) string {
	return fmt.Sprintf("batches of %d, %d s between polls, %s", s.BatchSize, s.PollIntervalSeconds,
		phrase.Plural(int64(s.Concurrency), "lane", "lanes"))
}

func workflowCancelCommand(a *cli.App) *cobra.Command {
	var of workflowsOf
	var all bool
	command := &cobra.Command{
		Use:   "cancel KIND…|--all",
		Short: "End workflows: running turns end, leases are given back; `start` starts them anew",
		Long: "Cancels the workflows of the kinds that are named and waits until they have ended: running turns end first, and what they hold is given\n" +
			"back. Jobs stay as they are. To stop for a while, pause instead. --id ends one workflow of a kind alone.",
		Example: "  daybook workflow cancel --kind tasks\n  daybook workflow cancel --kind jobs --id by-hand",
		RunE: func(c *cobra.Command, args []string) error {
			given := len(of.kinds)+len(args) > 0
			if alone := of.id != "" && !given; given == all && !alone { // what --id lacks is said as for the other commands
				return cli.Usagef("give either the kinds or --all")
			}
			return forEach(a, c, &of, args,
				func(ctx context.Context, temporal client.Client, s health.WorkflowState) (WorkflowChange, error) {
					return cancelWorkflow(ctx, temporal, s, of)
				})
		},
	}
	of.add(command, true)
	command.Flags().BoolVar(&all, "all", false, "of every kind that runs")
	return command
}

func cancelWorkflow(
	ctx context.Context, c client.Client, s health.WorkflowState, of workflowsOf,
) (WorkflowChange, error) {
	began := time.Now()
	if err := c.CancelWorkflow(ctx, s.ID, ""); err != nil {
		return WorkflowChange{}, gone(s, err)
	}
	if of.noWait {
		return change(s, "sent", "it is told to end; running turns end first."), nil
	}
	waiting, cancel := context.WithTimeout(ctx, of.wait)
	defer cancel()
	err := c.GetWorkflow(waiting, s.ID, "").Get(waiting, nil)
	if waiting.Err() != nil {
		if ctx.Err() != nil {
			return WorkflowChange{}, ctx.Err()
		}
		return change(s, "sent", fmt.Sprintf("it is told to end, and has not ended after %s: running turns end first, "+
			"and a worker must run. `daybook workflow show --kind %s` says more.", of.wait, s.Kind)), nil
	}
	if _, cancelled := errors.AsType[*temporal.CanceledError](err); err != nil && !cancelled {
		return WorkflowChange{}, fmt.Errorf("workflow %s: %w", s.ID, err)
	}
	now, took := time.Now(), time.Since(began)
	done := change(s, "cancelled",
		fmt.Sprintf("ended at %s, after %s. Its jobs stay as they are; `daybook workflow start --kind %s` starts it anew.",
			cli.FormatTime(now), phrase.Duration(took), s.Kind))
	done.Since, done.TookMS = &now, took.Milliseconds()
	return done, nil
}

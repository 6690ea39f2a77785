package start

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/text/phrase"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

func workflowShowCommand(a *cli.App) *cobra.Command {
	var of workflowsOf
	command := &cobra.Command{
		Use:   "show [KIND…]",
		Short: "Show how the workflows stand, and which workers poll for them",
		Long: "Shows the workflow of each kind, or of those that are named: whether it runs or is paused, its settings, what it did since it was started, activities that fail,\n" +
			"and the workers that poll its task queue. What only a worker can answer is left out while none runs. What is `done` is what turns have reported since the\n" +
			"workflow's start; `daybook status` counts the jobs that there are in the database.",
		RunE: func(c *cobra.Command, args []string) error {
			which, _, err := of.resolve(args)
			if err != nil {
				return err
			}
			return a.WithTemporal(c.Context(), func(temporal client.Client) error {
				states, err := health.Workflows(c.Context(), temporal, which, askedFor)
				if err != nil {
					return err
				}
				return a.Emit(map[string]any{"workflows": states}, func(w io.Writer) error {
					for i, s := range states {
						if i > 0 {
							_, _ = fmt.Fprintln(w)
						}
						if err := printWorkflow(a, w, s); err != nil {
							return err
						}
					}
					return nil
				})
			})
		},
	}
	of.add(command, false)
	return command
}

func printWorkflow(a *cli.App, w io.Writer, s health.WorkflowState) error {
	lines := []string{a.Bold(w, s.Kind+": "+stateText(s)), "  workflow    " + s.ID}
	add := func(name, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("  %-11s ", name)+terminal.OneLine(fmt.Sprintf(format, args...)))
	}
	if len(s.Others) > 0 {
		add("runs too", "%s (`--id` shows one of them)", strings.Join(s.Others, ", "))
	}
	add("task queue", "%s", s.TaskQueue)
	if s.RunID != "" {
		add("run", "%s, since %s", s.RunID, cli.OptionalTime(s.StartedAt))
	}
	if s.Settings != nil {
		add("settings", "%s", settingsText(*s.Settings))
	}
	if q := s.Status; q != nil {
		add("lanes", "%d at work", q.Lanes)
		n := q.Counts
		add("done", "in %s since %s: %d completed, %d retried, %d rescheduled, %d failed, %d cancelled, %d lost, %d "+
			"given back", phrase.Plural(n.Turns, "turn", "turns"), cli.FormatTime(q.StartedAt), n.Completed, n.Retried,
			n.Rescheduled, n.Failed, n.Cancelled, n.Lost, n.Released)
		if t := q.LastTurn; t != nil {
			add("last turn", "lane %d, %s: %d leased, %d completed", t.Lane, cli.FormatTime(t.At), t.Report.Leased,
				t.Report.Completed)
		}
	} else if s.State == health.Running {
		add("lanes", "not known: no worker answers")
	}
	for _, r := range s.Retrying {
		add("fails", "%s, attempt %d: %s", r.Type, r.Attempt, r.Failure)
	}
	for _, p := range s.Workers {
		add("worker", "%s, polled %s ago", p.Name, phrase.Age(time.Since(p.LastPoll)))
	}
	if len(s.Workers) == 0 {
		add("worker", "none polls: start `daybook worker`")
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// stateText says in a few words how a workflow stands.
func stateText(s health.WorkflowState) string {
	switch {
	case s.State == health.NeverStarted:
		return "never started; `daybook workflow start --kind " + s.Kind + "` starts it"
	case s.State == health.Ended:
		return s.Ended + " at " + cli.OptionalTime(s.ClosedAt)
	case s.Paused && s.PausedSince != nil:
		return "paused since " + cli.FormatTime(*s.PausedSince)
	case s.Paused:
		return "paused"
	case s.Status != nil && s.Status.Draining:
		return "draining: running turns end"
	default:
		return "running"
	}
}

package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/internal/store/actions"
)

func schedulesCommand(a *cli.App) *cobra.Command {
	command := &cobra.Command{
		Use:   "schedules",
		Short: "Periodic jobs: Temporal schedules that enqueue a job each time they fire",
	}
	command.AddCommand(schedulesCreateCommand(a), schedulesListCommand(a),
		scheduleCommand(a, "delete", "Delete a schedule; jobs that it enqueued stay", "deleted", nil,
			always(schedules.Delete)),
		scheduleCommand(a, "pause", "Stop a schedule until it is resumed; firings that it misses are not made up for",
			"paused", notes,
			schedules.Pause),
		scheduleCommand(a, "resume", "Let a paused schedule fire again", "resumed", notes,
			schedules.Resume),
		scheduleCommand(a, "trigger",
			"Fire a schedule once now, also while it is paused; two triggers within a second are one firing", "triggered",
			nil,
			always(schedules.Trigger)),
	)
	return command
}

// always is a change without a note that each call makes.
func always(do func(context.Context, client.Client, string) error) func(context.Context, client.Client, string,
	string) (bool, error) {
	return func(ctx context.Context, c client.Client, id, _ string) (bool, error) { return true, do(ctx, c, id) }
}

// notes gives a command the flag --note.
func notes(command *cobra.Command, note *string) {
	command.Flags().StringVar(note, "note", "",
		"why, for people who look at it, in place of the schedule's note (default it keeps its note)")
}

// scheduleChange is what a command did to a schedule, for programs.
type scheduleChange struct {
	ID     string `json:"id"`
	Result string `json:"result"`
	// NextFirings are those of a schedule that was created or replaced.
	NextFirings []time.Time `json:"next_firings,omitempty"`
}

// scheduleCommand is a command that does one thing to one schedule, and says when nothing was
// changed by it.
func scheduleCommand(a *cli.App, name, short, result string, flags func(*cobra.Command, *string),
	do func(ctx context.Context, c client.Client, id, note string) (changed bool, err error),
) *cobra.Command {
	var note string
	command := &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.WithTemporal(c.Context(), func(temporal client.Client) error {
				changed, err := do(c.Context(), temporal, args[0], note)
				if err != nil {
					return noSchedule(err)
				}
				actions.About(c.Context(), "", args[0], map[string]any{"changed": changed})
				if !changed {
					a.Say("Nothing was changed: the schedule %s is %s already.", args[0],
						map[string]string{"paused": "paused", "resumed": "active"}[result])
					return a.Emit(scheduleChange{ID: args[0], Result: "unchanged"}, func(io.Writer) error { return nil })
				}
				return a.Emit(scheduleChange{ID: args[0], Result: result}, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "%s %s\n", result, args[0])
					return err
				})
			})
		},
	}
	if flags != nil {
		flags(command, &note)
	}
	return command
}

// noSchedule says what to do about a schedule that is not there, or is none of Daybook's.
func noSchedule(err error) error {
	if errors.Is(err, schedules.ErrNotFound) {
		return cli.Tagged(schedules.ErrNotFound, "%v; `daybook schedules list` lists Daybook's", err)
	}
	return err
}

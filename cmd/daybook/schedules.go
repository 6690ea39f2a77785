package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/internal/failure"
	"github.com/daybook-dev/daybook/workflows"
)

// Errors of schedules.
var (
	errScheduleExists   = failure.New(failure.ScheduleExists, "there is such a schedule already")
	errScheduleNotFound = failure.New(failure.ScheduleNotFound, "no such schedule")
	errScheduleInvalid  = failure.New(failure.InvalidSchedule, "the schedule is invalid")
)

func schedulesCommand(a *app) *cobra.Command {
	command := &cobra.Command{
		Use:   "schedules",
		Short: "Periodic jobs: Temporal schedules that enqueue a job each time they fire",
	}
	command.AddCommand(schedulesCreateCommand(a), schedulesListCommand(a),
		scheduleCommand(a, "delete", "Delete a schedule; jobs that it enqueued stay", "deleted", nil,
			func(ctx context.Context, h client.ScheduleHandle, _ string) error { return h.Delete(ctx) }),
		scheduleCommand(a, "pause", "Have a schedule not fire until it is resumed; what it misses meanwhile is not made up for", "paused", notes,
			func(ctx context.Context, h client.ScheduleHandle, note string) error {
				return h.Pause(ctx, client.SchedulePauseOptions{Note: note})
			}),
		scheduleCommand(a, "resume", "Have a paused schedule fire again", "resumed", notes,
			func(ctx context.Context, h client.ScheduleHandle, note string) error {
				return h.Unpause(ctx, client.ScheduleUnpauseOptions{Note: note})
			}),
		scheduleCommand(a, "trigger", "Have a schedule fire now, once more than it would, also while it is paused; twice within a second is once", "triggered", nil,
			func(ctx context.Context, h client.ScheduleHandle, _ string) error {
				return h.Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL})
			}),
	)
	return command
}

// notes gives a command the flag --note.
func notes(command *cobra.Command, note *string) {
	command.Flags().StringVar(note, "note", "", "why, for people who look at it")
}

// scheduleChange is what a command did to a schedule, for programs.
type scheduleChange struct {
	ID     string `json:"id"`
	Result string `json:"result"`
}

// scheduleCommand is a command that does one thing to one schedule.
func scheduleCommand(a *app, name, short, result string, flags func(*cobra.Command, *string),
	do func(ctx context.Context, h client.ScheduleHandle, note string) error,
) *cobra.Command {
	var note string
	command := &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withTemporal(c.Context(), func(temporal client.Client) error {
				h := temporal.ScheduleClient().GetHandle(c.Context(), args[0])
				if err := ownSchedule(c.Context(), h); err != nil {
					return err
				}
				if err := do(c.Context(), h, note); err != nil {
					return scheduleError(err, args[0])
				}
				return a.emit(scheduleChange{ID: args[0], Result: result}, func(w io.Writer) error {
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

// ownSchedule refuses a schedule that is not Daybook's.
func ownSchedule(ctx context.Context, h client.ScheduleHandle) error {
	d, err := h.Describe(ctx)
	if err != nil {
		return scheduleError(err, h.GetID())
	}
	if ownAction(d.Schedule.Action) == nil {
		return tagged(errScheduleNotFound, "schedule %s is none of Daybook's: it does not start %s", h.GetID(), workflows.ScheduledJobWorkflow)
	}
	return nil
}

// ownAction is what a schedule of Daybook's does when it fires; nil: it is none of Daybook's.
func ownAction(action client.ScheduleAction) *client.ScheduleWorkflowAction {
	if own, ok := action.(*client.ScheduleWorkflowAction); ok && own.Workflow == workflows.ScheduledJobWorkflow {
		return own
	}
	return nil
}

// withTemporal calls f with a client while Temporal answers.
func (a *app) withTemporal(ctx context.Context, f func(client.Client) error) error {
	options, err := a.temporalOptions()
	if err != nil {
		return err
	}
	a.quiet()
	c, err := a.connectTemporal(ctx, options)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

// scheduleError says in our words what Temporal answered.
func scheduleError(err error, id string) error {
	var missing *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument
	var exists *serviceerror.AlreadyExists
	switch {
	case errors.Is(err, temporal.ErrScheduleAlreadyRunning), errors.As(err, &exists):
		return tagged(errScheduleExists, "schedule %s exists already: --replace changes it, or choose another id", id)
	case errors.As(err, &missing):
		return tagged(errScheduleNotFound, "there is no schedule %s: `daybook schedules list` lists them", id)
	case errors.As(err, &invalid):
		return tagged(errScheduleInvalid, "Temporal refuses schedule %s: %s", id, strings.TrimPrefix(invalid.Error(), "Invalid schedule spec: "))
	}
	return fmt.Errorf("schedule %s: %w", id, err)
}

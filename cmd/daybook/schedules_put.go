package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// put creates the schedule, or replaces the one of this id if the flags say so, and says which. A schedule that never fires is an
// error, and nothing is changed: Temporal alone knows when one fires, so it is asked once it has the schedule.
func (s newSchedule) put(c *cobra.Command, temporal client.ScheduleClient, o client.ScheduleOptions) (result string, err error) {
	result = "created"
	h := temporal.GetHandle(c.Context(), s.id)
	undo := h.Delete
	_, err = temporal.Create(c.Context(), o)
	if err = s.refused(err); errors.Is(err, errScheduleExists) && s.replace {
		result = "replaced"
		undo, err = replaceSchedule(c, h, o)
		err = s.refused(err)
	}
	if err != nil {
		return "", err
	}
	d, err := h.Describe(c.Context())
	if err != nil {
		return "", fmt.Errorf("schedule %s is %s, but Temporal does not say when it fires: %w", s.id, result, err)
	}
	if len(d.Info.NextActionTimes) > 0 {
		return result, nil
	}
	err = tagged(errScheduleInvalid, "schedule %s (%s, %s) would never fire: no time to come matches it", s.id, s.when(), s.timeZone)
	// Also when the command is interrupted: what stays would be a schedule that was not asked for.
	if undone := undo(context.WithoutCancel(c.Context())); undone != nil {
		return "", fmt.Errorf("%w; it is %s all the same, because that could not be undone: %w", err, result, undone)
	}
	return "", err
}

// replaceSchedule makes a schedule of Daybook's what the options say, at once and without a firing too many or too few. undo makes
// it what it was.
func replaceSchedule(c *cobra.Command, h client.ScheduleHandle, o client.ScheduleOptions) (undo func(context.Context) error, err error) {
	var before client.Schedule
	err = h.Update(c.Context(), client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		s := in.Description.Schedule
		if ownAction(s.Action) == nil {
			return nil, tagged(errScheduleExists, "schedule %s exists already, and is none of Daybook's: choose another id", o.ID)
		}
		policy, state := *s.Policy, *s.State
		before = client.Schedule{Action: s.Action, Spec: s.Spec, Policy: &policy, State: &state}
		s.Action, s.Spec = o.Action, &o.Spec
		s.Policy.Overlap, s.Policy.CatchupWindow = o.Overlap, o.CatchupWindow
		if c.Flags().Changed(pausedFlag) {
			s.State.Paused = o.Paused
		}
		if c.Flags().Changed(noteFlag) {
			s.State.Note = o.Note
		}
		return &client.ScheduleUpdate{Schedule: &s}, nil
	}})
	return func(ctx context.Context) error {
		return h.Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			return &client.ScheduleUpdate{Schedule: &before}, nil
		}})
	}, err
}

// refused says in our words why Temporal does not take the schedule; nil: it does.
func (s newSchedule) refused(err error) error {
	var invalid *serviceerror.InvalidArgument
	switch {
	case err == nil, errors.Is(err, errScheduleExists):
		return err
	case errors.As(err, &invalid):
		return scheduleError(err, s.id+" ("+s.when()+", "+s.timeZone+")")
	}
	return scheduleError(err, s.id)
}

package schedules

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/store"
)

// Create makes a schedule. For a schedule that would never fire it returns ErrInvalid and leaves none.
//
// Errors: ErrExists, ErrInvalid, ErrNoClient, and those of queue.CheckJob.
func Create(ctx context.Context, c client.Client, s Schedule) error {
	o, err := s.options()
	if err != nil {
		return err
	}
	if store.IsNil(c) {
		return ErrNoClient
	}
	if _, err := c.ScheduleClient().Create(ctx, o); err != nil {
		return s.refused(err)
	}
	h := c.ScheduleClient().GetHandle(ctx, s.ID)
	return s.fires(ctx, h, "created", h.Delete)
}

// ReplaceOptions say what Replace changes of a schedule besides its jobs and when it fires.
type ReplaceOptions struct {
	// SetPaused pauses or resumes an existing schedule, as Schedule.Paused says; otherwise it stays paused or not.
	SetPaused bool
	// SetNote changes its note to Schedule.Note; otherwise it keeps its note.
	SetNote bool
}

// Replace changes the schedule with the id of s to what s says, at once and without a lost or additional firing. If there is none, it
// creates the schedule and returns created as true. For a schedule that would never fire it returns ErrInvalid and changes nothing. For
// an id whose schedule Daybook did not make it returns ErrExists.
//
// Errors: ErrExists, ErrInvalid, ErrNoClient, and those of queue.CheckJob.
func Replace(ctx context.Context, c client.Client, s Schedule, o ReplaceOptions) (created bool, err error) {
	if err := Create(ctx, c, s); !errors.Is(err, ErrExists) {
		return err == nil, err
	}
	options, err := s.options()
	if err != nil {
		return false, err
	}
	h := c.ScheduleClient().GetHandle(ctx, s.ID)
	undo, err := replace(ctx, h, options, o)
	if err != nil {
		return false, s.refused(err)
	}
	return false, s.fires(ctx, h, "replaced", undo)
}

// fires returns an error, and undoes what was done, if the schedule never fires: Temporal alone knows when one does, so it is asked
// once it has the schedule.
func (s Schedule) fires(ctx context.Context, h client.ScheduleHandle, done string, undo func(context.Context) error) error {
	d, err := h.Describe(ctx)
	if err != nil {
		return fmt.Errorf("schedule %s is %s, but Temporal does not say when it fires: %w", s.ID, done, err)
	}
	if len(d.Info.NextActionTimes) > 0 {
		return nil
	}
	err = errorf(ErrInvalid, "schedule %s (%s, %s) would never fire: no time to come matches it", s.ID, s.when(), s.zone())
	// Also when the caller's context has ended: what stays would be a schedule that is not wanted.
	if undone := undo(context.WithoutCancel(ctx)); undone != nil {
		return fmt.Errorf("%w; it is %s all the same, because that could not be undone: %w", err, done, undone)
	}
	return err
}

// replace makes a schedule of Daybook's what the options say. undo makes it what it was.
func replace(ctx context.Context, h client.ScheduleHandle, o client.ScheduleOptions, set ReplaceOptions) (undo func(context.Context) error, err error) {
	var before client.Schedule
	err = h.Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		s := in.Description.Schedule
		if ownAction(s.Action) == nil {
			return nil, errorf(ErrExists, "schedule %s exists already, and is none of Daybook's: choose another id", o.ID)
		}
		policy, state := *s.Policy, *s.State
		before = client.Schedule{Action: s.Action, Spec: s.Spec, Policy: &policy, State: &state}
		s.Action, s.Spec = o.Action, &o.Spec
		s.Policy.Overlap, s.Policy.CatchupWindow = o.Overlap, o.CatchupWindow
		if set.SetPaused {
			s.State.Paused = o.Paused
		}
		if set.SetNote {
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

// refused says in our words why Temporal does not take the schedule.
func (s Schedule) refused(err error) error {
	if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return translate(err, s.ID+" ("+s.when()+", "+s.zone()+")")
	}
	return translate(err, s.ID)
}

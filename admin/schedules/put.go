package schedules

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/store"
)

// replaceTries is how often Replace begins anew when the schedule appears and disappears meanwhile.
const replaceTries = 10

// Create makes a schedule. For a schedule that would never fire it returns ErrInvalid and leaves
// none.
//
// Errors: ErrExists, ErrInvalid, ErrNoClient, ErrUnavailable, and those of queue.CheckJob.
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
	return s.fires(ctx, c, "created", c.ScheduleClient().GetHandle(ctx, s.ID).Delete)
}

// ReplaceOptions say what Replace changes of a schedule besides its jobs and when it fires.
type ReplaceOptions struct {
	// SetPaused pauses or resumes an existing schedule, as Schedule.Paused says; otherwise it stays
	// paused or not.
	SetPaused bool
	// SetNote changes its note to Schedule.Note; otherwise it keeps its note.
	SetNote bool
}

// Replace changes the schedule with the id of s to what s says, at once and without a lost or
// additional firing. If there is none, it creates the schedule and returns created as true. For a
// schedule that would never fire it returns ErrInvalid and changes nothing. For an id whose
// schedule Daybook did not make it returns ErrExists. Replicas may call it when they start, all at
// once: the last one counts.
//
// Errors: ErrExists, ErrInvalid, ErrNoClient, ErrUnavailable, and those of queue.CheckJob.
func Replace(ctx context.Context, c client.Client, s Schedule, o ReplaceOptions) (created bool, err error) {
	options, err := s.options()
	if err != nil {
		return false, err
	}
	for range replaceTries {
		err = Create(ctx, c, s)
		created = err == nil
		if errors.Is(err, ErrExists) {
			undo, failed := replace(ctx, c, options, o)
			if err = s.refused(failed); err == nil {
				err = s.fires(ctx, c, "replaced", undo)
			}
		}
		// Another program may have deleted it meanwhile, for instance because what that had created
		// would never fire.
		if !errors.Is(err, ErrNotFound) {
			return created, err
		}
	}
	return false, err
}

// fires returns an error, and undoes what was done, if the schedule never fires: Temporal alone
// knows when one does, so it is asked once it has the schedule.
func (s Schedule) fires(ctx context.Context, c client.Client, done string, undo func(context.Context) error) error {
	d, err := described(ctx, c, s.ID)
	if err != nil {
		return fmt.Errorf("the schedule is %s, but Temporal does not say when it fires: %w", done, translate(err, s.ID))
	}
	if len(d.Info.NextActionTimes) > 0 || !s.is(d) {
		return nil
	}
	err = errorf(ErrInvalid, "schedule %s (%s, %s) would never fire: no time to come matches it", s.ID, s.when(),
		s.zone())
	// Also when the caller's context has ended: what stays would be a schedule that is not wanted.
	undone := translate(undo(context.WithoutCancel(ctx)), s.ID)
	if undone != nil && !errors.Is(undone, ErrNotFound) {
		return fmt.Errorf("%w; it is %s all the same, because that could not be undone: %w", err, done, undone)
	}
	return err
}

// is reports whether what Temporal has fires when s does. If not, another program has changed it
// since, which judges it itself.
func (s Schedule) is(d *client.ScheduleDescription) bool {
	var when string
	action := ownAction(d.Schedule.Action)
	return action != nil && decode(action.Memo[whenKey], &when) && when == s.when()
}

// replace makes a schedule of Daybook's what the options say. undo makes it what it was.
func replace(ctx context.Context, c client.Client, o client.ScheduleOptions,
	set ReplaceOptions,
) (undo func(context.Context) error, err error) {
	var before client.Schedule
	err = update(ctx, c, o.ID, func(s *client.Schedule) error {
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
		return nil
	})
	return func(ctx context.Context) error {
		return update(ctx, c, o.ID, func(s *client.Schedule) error {
			*s = before
			return nil
		})
	}, err
}

// refused says in our words why Temporal does not take the schedule.
func (s Schedule) refused(err error) error {
	if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return translate(err, s.ID+" ("+s.when()+", "+s.zone()+")")
	}
	return translate(err, s.ID)
}

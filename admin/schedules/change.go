package schedules

import (
	"cmp"
	"context"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/workflows"
)

// Pause stops a schedule from firing until Resume. Firings that it misses meanwhile are not made up
// for. note says why, for people, in place of the schedule's note; empty: the schedule keeps its
// note. changed is false where the schedule is paused already, and note is not another one.
//
// Errors: ErrNotFound, ErrNoClient, ErrUnavailable.
func Pause(ctx context.Context, c client.Client, id, note string) (changed bool, err error) {
	return setPaused(ctx, c, id, note, true, func(h client.ScheduleHandle, note string) error {
		return h.Pause(ctx, client.SchedulePauseOptions{Note: note})
	})
}

// Resume lets a paused schedule fire again. note and changed are as for Pause. Errors: ErrNotFound,
// ErrNoClient, ErrUnavailable.
func Resume(ctx context.Context, c client.Client, id, note string) (changed bool, err error) {
	return setPaused(ctx, c, id, note, false, func(h client.ScheduleHandle, note string) error {
		return h.Unpause(ctx, client.ScheduleUnpauseOptions{Note: note})
	})
}

// setPaused pauses or resumes by do, with the note or else the schedule's own. Temporal has no
// pause without a note: a schedule that has none keeps none by an update.
func setPaused(
	ctx context.Context, c client.Client, id, note string, paused bool, do func(client.ScheduleHandle, string) error,
) (changed bool, err error) {
	err = change(ctx, c, id, func(h client.ScheduleHandle, s client.Schedule) error {
		note = cmp.Or(note, s.State.Note)
		changed = s.State.Paused != paused || s.State.Note != note
		switch {
		case !changed:
			return nil
		case note != "":
			return do(h, note)
		}
		return update(ctx, c, id, func(s *client.Schedule) error {
			s.State.Paused = paused
			return nil
		})
	})
	return changed && err == nil, err
}

// Trigger fires a schedule once now, also while it is paused. Two calls within a second are one
// firing. With Skip, the firing enqueues nothing while a job of the schedule is open;
// Listed.LastResult says so once a worker has executed it.
//
// Errors: ErrNotFound, ErrNoClient, ErrUnavailable.
func Trigger(ctx context.Context, c client.Client, id string) error {
	return change(ctx, c, id, func(h client.ScheduleHandle, _ client.Schedule) error {
		return h.Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL})
	})
}

// Delete removes a schedule; jobs that it enqueued stay. Errors: ErrNotFound, ErrNoClient,
// ErrUnavailable.
func Delete(ctx context.Context, c client.Client, id string) error {
	return change(ctx, c, id, func(h client.ScheduleHandle, _ client.Schedule) error { return h.Delete(ctx) })
}

// change does one thing to a schedule of Daybook's; for any other it returns ErrNotFound.
func change(ctx context.Context, c client.Client, id string,
	do func(client.ScheduleHandle, client.Schedule) error,
) error {
	if store.IsNil(c) {
		return ErrNoClient
	}
	d, err := described(ctx, c, id)
	if err != nil {
		return translate(err, id)
	}
	if ownAction(d.Schedule.Action) == nil {
		return errorf(ErrNotFound, "schedule %s is none of Daybook's: it does not start %s", id,
			workflows.ScheduledJobWorkflow)
	}
	return translate(do(c.ScheduleClient().GetHandle(ctx, id), d.Schedule), id)
}

// ownAction is what a schedule of Daybook's does when it fires; nil: it is none of Daybook's.
func ownAction(action client.ScheduleAction) *client.ScheduleWorkflowAction {
	if own, ok := action.(*client.ScheduleWorkflowAction); ok && own.Workflow == workflows.ScheduledJobWorkflow {
		return own
	}
	return nil
}

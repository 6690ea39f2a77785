package schedules

import (
	"context"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/workflows"
)

// Pause stops a schedule from firing until Resume. Firings that it misses meanwhile are not made up for. note says why, for people.
//
// Errors: ErrNotFound, ErrNoClient.
func Pause(ctx context.Context, c client.Client, id, note string) error {
	return change(ctx, c, id, func(h client.ScheduleHandle) error { return h.Pause(ctx, client.SchedulePauseOptions{Note: note}) })
}

// Resume lets a paused schedule fire again. note says why, for people. Errors: ErrNotFound, ErrNoClient.
func Resume(ctx context.Context, c client.Client, id, note string) error {
	return change(ctx, c, id, func(h client.ScheduleHandle) error { return h.Unpause(ctx, client.ScheduleUnpauseOptions{Note: note}) })
}

// Trigger fires a schedule once now, also while it is paused. Two calls within a second are one firing.
//
// Errors: ErrNotFound, ErrNoClient.
func Trigger(ctx context.Context, c client.Client, id string) error {
	return change(ctx, c, id, func(h client.ScheduleHandle) error {
		return h.Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL})
	})
}

// Delete removes a schedule; jobs that it enqueued stay. Errors: ErrNotFound, ErrNoClient.
func Delete(ctx context.Context, c client.Client, id string) error {
	return change(ctx, c, id, func(h client.ScheduleHandle) error { return h.Delete(ctx) })
}

// change does one thing to a schedule of Daybook's; for any other it returns ErrNotFound.
func change(ctx context.Context, c client.Client, id string, do func(client.ScheduleHandle) error) error {
	if store.IsNil(c) {
		return ErrNoClient
	}
	h := c.ScheduleClient().GetHandle(ctx, id)
	d, err := h.Describe(ctx)
	if err != nil {
		return translate(err, id)
	}
	if ownAction(d.Schedule.Action) == nil {
		return errorf(ErrNotFound, "schedule %s is none of Daybook's: it does not start %s", id, workflows.ScheduledJobWorkflow)
	}
	return translate(do(h), id)
}

// ownAction is what a schedule of Daybook's does when it fires; nil: it is none of Daybook's.
func ownAction(action client.ScheduleAction) *client.ScheduleWorkflowAction {
	if own, ok := action.(*client.ScheduleWorkflowAction); ok && own.Workflow == workflows.ScheduledJobWorkflow {
		return own
	}
	return nil
}

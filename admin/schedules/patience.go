package schedules

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/temporalwait"
)

const (
	// patience bounds how long a request is tried that Temporal puts off, when the caller's context
	// has no earlier deadline.
	patience = 30 * time.Second
	// attemptTimeout bounds one try.
	attemptTimeout       = 10 * time.Second
	firstPause, maxPause = 50 * time.Millisecond, time.Second
)

// patient does what may be done twice until Temporal takes it. Temporal answers one question about
// a schedule at a time while that changes, and refuses further ones ("consistent query buffer is
// full"): replicas that start together meet there.
func patient(ctx context.Context, id string, do func(context.Context) error) error {
	until, end := context.WithTimeout(ctx, patience)
	defer end()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		attempt, over := context.WithTimeout(until, attemptTimeout)
		err := do(attempt)
		late := attempt.Err() != nil
		over()
		switch {
		case err == nil, ctx.Err() != nil, !late && !temporalwait.Unavailable(err) && !unpolled(err):
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // it spreads programs in time, and is no secret
		select {
		case <-timer.C:
		case <-until.Done():
			timer.Stop()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errorf(ErrUnavailable,
				"schedule %s: Temporal did not take the request within %s, as when many programs change one schedule: "+
					"try again (%v)", id, patience, err)
		}
	}
}

// unpolled reports whether Temporal says that no worker has asked for tasks lately. Those of a
// schedule are its own server's, which has just started, or has much to do.
func unpolled(err error) bool {
	_, ok := errors.AsType[*serviceerror.FailedPrecondition](err)
	return ok
}

// described asks Temporal for a schedule as it is now.
func described(ctx context.Context, c client.Client, id string) (d *client.ScheduleDescription, err error) {
	err = patient(ctx, id, func(ctx context.Context) error {
		d, err = c.ScheduleClient().GetHandle(ctx, id).Describe(ctx)
		return err
	})
	return d, err
}

// update changes a schedule of Daybook's by f, which may be called several times.
func update(ctx context.Context, c client.Client, id string, f func(*client.Schedule) error) error {
	return patient(ctx, id, func(ctx context.Context) error {
		h := c.ScheduleClient().GetHandle(ctx, id)
		return h.Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			s := in.Description.Schedule
			if ownAction(s.Action) == nil {
				return nil, errorf(ErrExists, "schedule %s exists already, and is none of Daybook's: choose another id", id)
			}
			if err := f(&s); err != nil {
				return nil, err
			}
			return &client.ScheduleUpdate{Schedule: &s}, nil
		}})
	})
}

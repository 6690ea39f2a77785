package handlers

import (
	"context"
	"encoding/json"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// standaloneError is how a standalone activity ended without a result.
type standaloneError struct{ error }

func (e standaloneError) Unwrap() error { return e.error }

// standaloneReuse are the policies of standalone activities.
var standaloneReuse = map[enums.WorkflowIdReusePolicy]enums.ActivityIdReusePolicy{
	enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE:            enums.ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE,
	enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE:             enums.ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY: enums.ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
}

// runStandalone is run for a standalone activity.
func (h *TemporalHandler) runStandalone(ctx context.Context, job *jobs.Job[queue.RawPayload],
	reuse enums.ActivityIdReusePolicy,
) (run string, found bool, result converter.RawValue, err error) {
	options := client.StartActivityOptions{
		ID: WorkflowID(job.ID), TaskQueue: h.c.TaskQueue, ScheduleToCloseTimeout: h.c.RunTimeout,
		StartToCloseTimeout: h.c.ActivityTimeout, HeartbeatTimeout: h.c.Heartbeat,
		RetryPolicy:           &temporal.RetryPolicy{MaximumAttempts: int32(h.c.ActivityAttempts)}, // at most maxActivityAttempts
		ActivityIDReusePolicy: reuse,
	}
	handle, err := h.c.Client.ExecuteActivity(ctx, options, h.c.Activity, job.Payload.Data)
	if err != nil && serviceerror.ToStatus(err).Code() == codes.AlreadyExists {
		found = true
		handle, err = h.earlier(ctx, options.ID)
	}
	if err != nil {
		return "", found, result, err
	}
	err = handle.Get(ctx, &result)
	if endsActivity(err) {
		err = standaloneError{err}
	}
	return handle.GetRunID(), found, result, err
}

// earlier is the last run of an activity.
func (h *TemporalHandler) earlier(ctx context.Context, id string) (client.ActivityHandle, error) {
	last, err := h.c.Client.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: id}).
		Describe(ctx, client.DescribeActivityOptions{})
	if err != nil {
		return nil, err
	}
	return h.c.Client.GetActivityHandle(
		client.GetActivityHandleOptions{ActivityID: id, RunID: last.ActivityRunID}), nil
}

// endsActivity tells how an activity ended from why its end is not known.
func endsActivity(err error) bool {
	switch err.(type) { //nolint:errorlint // what an activity's failure wraps did not end it
	case *temporal.ApplicationError, *temporal.CanceledError, *temporal.TerminatedError, *temporal.TimeoutError,
		*temporal.ServerError, *temporal.PanicError:
		return true
	default:
		return false
	}
}

// standaloneProgress is what an activity's last heartbeat says; nil: nothing.
func (h *TemporalHandler) standaloneProgress(ctx context.Context, jobID string) json.RawMessage {
	d, err := h.c.Client.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: WorkflowID(jobID)}).
		Describe(ctx, client.DescribeActivityOptions{IncludeHeartbeatDetails: true})
	if err != nil {
		return nil
	}
	return heartbeat(d.RawResponse.GetInfo().GetHeartbeatDetails())
}

// standaloneEndedByDaybook is endedByDaybook for a standalone activity.
func (h *TemporalHandler) standaloneEndedByDaybook(ctx context.Context, jobID, run string) (bool, error) {
	d, err := h.c.Client.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: WorkflowID(jobID), RunID: run}).
		Describe(ctx, client.DescribeActivityOptions{IncludeOutcome: true})
	if err != nil {
		return false, err
	}
	return d.CanceledReason == cancelledByDaybook ||
		d.RawResponse.GetOutcome().GetFailure().GetMessage() == cancelledByDaybook, nil
}

// findStandalone finds a standalone activity that runs; nil: there is none, or the server has none
// at all.
func findStandalone(ctx context.Context, c client.Client, id string) (*openRun, error) {
	handle := c.GetActivityHandle(client.GetActivityHandleOptions{ActivityID: id})
	d, err := handle.Describe(ctx, client.DescribeActivityOptions{})
	if err != nil {
		switch serviceerror.ToStatus(err).Code() {
		case codes.NotFound, codes.Unimplemented:
			return nil, nil
		default:
			return nil, err
		}
	}
	if d.Status != enums.ACTIVITY_EXECUTION_STATUS_RUNNING {
		return nil, nil
	}
	return &openRun{
		cancel: func(ctx context.Context) error {
			return handle.Cancel(ctx, client.CancelActivityOptions{Reason: cancelledByDaybook})
		},
		terminate: func(ctx context.Context) error {
			return handle.Terminate(ctx, client.TerminateActivityOptions{Reason: cancelledByDaybook})
		},
	}, nil
}

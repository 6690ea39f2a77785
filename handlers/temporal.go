package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TemporalConfig says how the jobs of a type are worked by a Temporal workflow or activity, in any
// SDK. Client, Pool, TaskQueue and one of Workflow and Activity are required.
type TemporalConfig struct {
	// Client is of the namespace in which the workflow is worked. It stays the caller's to close.
	Client client.Client
	// Pool is of the database of the jobs. It stays the caller's to close.
	Pool *pgxpool.Pool
	// Workflow is the name of the workflow's type, as its worker registers it.
	Workflow string
	// Activity is the name of an activity's type in place of a workflow. A workflow of Daybook's own
	// runs it (TemporalHandler.Run).
	Activity string
	// Standalone starts the activity without a workflow around it, by Temporal's Standalone
	// Activities. On a server that has none, or has them off, jobs are dead letters with
	// models.CodeActivityNotStandalone. Change it while no job of the type is open.
	Standalone bool
	// ActivityTimeout is how long one attempt at the activity may take (Temporal's
	// StartToCloseTimeout); default 10 minutes. It says nothing of the time until a worker takes the
	// activity: RunTimeout does.
	ActivityTimeout time.Duration
	// Heartbeat is how long the activity may send no heartbeat (Temporal's HeartbeatTimeout); 0: it
	// need not send any. An activity learns by its heartbeats that its job was cancelled.
	Heartbeat time.Duration
	// ActivityAttempts is how often Temporal tries the activity within one attempt at the job;
	// default 1, at most 100.
	ActivityAttempts int
	// TaskQueue is where its worker polls.
	TaskQueue string
	// Organizations are those whose jobs the workflow works; empty: all.
	Organizations []string
	// Timeout is how long an attempt waits for the workflow's end before it puts the job off; default
	// 30 s, at most jobs.MaxTimeout less 10 s. The workflow goes on meanwhile.
	Timeout time.Duration
	// Pause is for how long the job is then put off, which counts no attempt; default a minute.
	Pause time.Duration
	// RunTimeout is when a workflow that has not ended fails, with TIMEOUT, also while no worker
	// polls; 0: never.
	RunTimeout time.Duration
	// CancelGrace is how long a workflow whose job has ended may run after the request to cancel it,
	// for what it undoes; then it is terminated. Default an hour.
	CancelGrace time.Duration
	// MaxResult is how many bytes of JSON a result may have; default 64 KB.
	MaxResult int
}

// TemporalHandler works jobs by a workflow or an activity. It is safe for concurrent use. Register
// it by jobs.RegisterRaw, with FunctionPolicy(Timeout), and have Run run beside the worker.
type TemporalHandler struct {
	c TemporalConfig
	// watchEvery is the pause between two questions about what is worked.
	watchEvery time.Duration
}

// NewTemporal returns a handler. It asks Temporal nothing yet.
func NewTemporal(c TemporalConfig) (*TemporalHandler, error) {
	if c.Client == nil || c.Pool == nil {
		return nil, errors.New("workflow: a Temporal client and a pool of the jobs' database are required")
	}
	return newTemporal(c)
}

// newTemporal leaves client and pool to the caller.
func newTemporal(c TemporalConfig) (*TemporalHandler, error) {
	c.Timeout = cmp.Or(c.Timeout, defaultFunctionTimeout)
	c.Pause = cmp.Or(c.Pause, time.Minute)
	c.MaxResult = cmp.Or(c.MaxResult, 64<<10)
	c.CancelGrace = cmp.Or(c.CancelGrace, time.Hour)
	switch {
	case c.TaskQueue == "" || (c.Workflow == "") == (c.Activity == ""):
		return nil, errors.New("workflow: workflow, or activity in its place, must name a type, and task_queue where its " +
			"worker polls")
	case c.Activity == "" && (c.Standalone || c.ActivityTimeout != 0 || c.Heartbeat != 0 || c.ActivityAttempts != 0):
		return nil, errors.New("workflow: standalone, activity_timeout, heartbeat and activity_attempts are for an " +
			"activity: the workflow itself says them of its own")
	case c.Timeout < 0 || c.Timeout > jobs.MaxTimeout-functionRoom:
		return nil, fmt.Errorf("workflow: timeout must be positive and at most %s: the job waits for a longer workflow "+
			"anyway", jobs.MaxTimeout-functionRoom)
	case c.Pause < 0 || c.RunTimeout < 0 || c.MaxResult < 0 || c.CancelGrace < 0:
		return nil, errors.New("workflow: pause, run_timeout, cancel_grace and max_result must not be negative")
	case c.ActivityTimeout < 0 || c.Heartbeat < 0 || c.ActivityAttempts < 0 || c.ActivityAttempts > maxActivityAttempts:
		return nil, fmt.Errorf("workflow: activity_timeout and heartbeat must not be negative, and activity_attempts "+
			"must be 1 to %d", maxActivityAttempts)
	}
	c.ActivityTimeout = cmp.Or(c.ActivityTimeout, defaultActivityTimeout)
	c.ActivityAttempts = cmp.Or(c.ActivityAttempts, 1)
	return &TemporalHandler{c: c, watchEvery: watchEvery}, nil
}

// TemporalJob is the memo "daybook" of a workflow that works a job: what the workflow may want to
// know besides the payload, which is its argument.
type TemporalJob struct {
	JobID          string `json:"jobId"`
	Type           string `json:"type"`
	OrgID          string `json:"orgId"`
	IdempotencyKey string `json:"idempotencyKey"`
}

// WorkflowID is the id of the workflow, or of the standalone activity, that works a job.
func WorkflowID(jobID string) string { return "daybook-job/" + jobID }

// Handle starts the workflow, or finds the one that an earlier attempt has started, and waits for
// its end. Its result is the job's. A workflow that failed is started again by the next attempt,
// and so fails an attempt once. A workflow that completed is not started again, unless Daybook had
// asked to cancel it, because the job had ended: what it returned then is no result of the job.
func (h *TemporalHandler) Handle(ctx context.Context, job *jobs.Job[queue.RawPayload]) error {
	return outcome(h.work(ctx, job))
}

func (h *TemporalHandler) work(ctx context.Context, job *jobs.Job[queue.RawPayload]) error {
	if len(h.c.Organizations) > 0 && !slices.Contains(h.c.Organizations, job.OrgID) {
		return fail(models.CodeAuthenticationFailed,
			"the configuration does not let the organization %s use the workflow of the type %s", clip(job.OrgID), job.Type)
	}
	waiting, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	namespace, err := namespaceOf(waiting, h.c.Client)
	if err != nil {
		return h.unended(err)
	}
	if open, err := store.OpenJobWorkflow(ctx, h.c.Pool, job.ID, namespace, h.c.CancelGrace); err != nil {
		return store.Unavailable(ctx, err)
	} else if !open {
		return errCancelling
	}
	run, result, err := h.await(waiting, job)
	switch {
	case errors.Is(err, errCancelling):
		return err // its workflow has heard of it before the attempt
	case err != nil && !ended(err) && isOver(ctx):
		return ctx.Err()
	case errors.Is(err, errUnread):
		return err
	case err != nil && !ended(err):
		return h.unended(err)
	}
	if closing := store.CloseJobWorkflow(ctx, h.c.Pool, job.ID); closing != nil {
		return store.Unavailable(ctx, closing)
	}
	if err != nil {
		return h.failed(run, err)
	}
	return h.conclude(job, result)
}

// await returns the end of the workflow, which it starts unless an earlier attempt did. A run that
// has failed before an attempt said so is this attempt's; one that was reported, or that Daybook
// ended itself or asked to end, is followed by another.
func (h *TemporalHandler) await(ctx context.Context, job *jobs.Job[queue.RawPayload]) (run string,
	result converter.RawValue, err error,
) {
	defer h.watch(ctx, job)()
	run, found, result, err := h.run(ctx, job, enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
	if err != nil && !ended(err) {
		return run, result, err
	}
	again, readErr := h.again(ctx, job, run, found, err)
	switch {
	case readErr != nil:
		return run, result, readErr
	case again && err == nil:
		run, _, result, err = h.run(ctx, job, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE)
	case again:
		run, _, result, err = h.run(ctx, job, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY)
	}
	return run, result, err
}

// errCancelling ends an attempt whose job is to be cancelled. The job is cancelled by that, unless
// a request has taken it back meanwhile.
var errCancelling = jobs.Snooze(time.Second)

// again reports whether another run is to follow one that has ended, with that error. A run that was
// found, which an earlier attempt has started, may have been asked to end since, whatever it made of
// that: a workflow that undoes its work may well complete.
func (h *TemporalHandler) again(ctx context.Context, job *jobs.Job[queue.RawPayload], run string,
	found bool, err error,
) (bool, error) {
	asked := found
	switch outermost(err).(type) { //nolint:errorlint // the workflow itself was ended so, not one of its steps
	case *temporal.CanceledError, *temporal.TerminatedError:
		asked = true
	}
	if asked {
		own, err := h.endedByDaybook(ctx, job.ID, run)
		if err != nil {
			return false, err
		}
		if own {
			// The job was tried again, or is to be cancelled, which the workflow has heard of before this
			// attempt.
			cancelling, err := store.JobIsCancelling(ctx, h.c.Pool, job.ID)
			if err == nil && cancelling {
				err = errCancelling
			}
			return true, err
		}
	}
	if err == nil {
		return false, nil
	}
	told, err := reported(ctx, job, run)
	if err != nil {
		return false, fmt.Errorf("%w: %w", errUnread, err)
	}
	return told, nil
}

// errUnread: the database did not say what earlier attempts were.
var errUnread = errors.New("the earlier attempts cannot be read")

// run starts the workflow or the standalone activity, unless one runs, or has ended which no other
// one may follow, and waits for its end. The id is that of the run; found: it was there before.
func (h *TemporalHandler) run(ctx context.Context, job *jobs.Job[queue.RawPayload],
	reuse enums.WorkflowIdReusePolicy,
) (id string, found bool, result converter.RawValue, err error) {
	if h.c.Standalone {
		return h.runStandalone(ctx, job, standaloneReuse[reuse])
	}
	options := client.StartWorkflowOptions{
		ID: WorkflowID(job.ID), TaskQueue: h.c.TaskQueue, WorkflowExecutionTimeout: h.c.RunTimeout,
		WorkflowIDReusePolicy: reuse, WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo: map[string]any{"daybook": TemporalJob{
			JobID: job.ID, Type: job.Type, OrgID: job.OrgID,
			IdempotencyKey: job.IdempotencyKey,
		}},
	}
	name, args := h.c.Workflow, []any{job.Payload.Data}
	if h.c.Activity != "" {
		options.TaskQueue, name, args = ActivityTaskQueue, ActivityWorkflow, []any{h.activity(), job.Payload.Data}
	}
	run, err := h.c.Client.ExecuteWorkflow(ctx, options, name, args...)
	if there, ok := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ok {
		run, found, err = h.c.Client.GetWorkflow(ctx, options.ID, there.RunId), true, nil
	}
	if err != nil {
		return "", false, result, err
	}
	err = run.Get(ctx, &result)
	return run.GetRunID(), found, result, err
}

// activity is what Daybook's own workflow is told of the activity.
func (h *TemporalHandler) activity() jobActivity {
	return jobActivity{
		Activity: h.c.Activity, TaskQueue: h.c.TaskQueue, StartToClose: h.c.ActivityTimeout.Milliseconds(),
		Heartbeat: h.c.Heartbeat.Milliseconds(),
		Attempts:  int32(h.c.ActivityAttempts), // at most maxActivityAttempts
	}
}

// isOver reports whether an attempt's time is up. Temporal's answer that it is may come a moment
// before the context says so.
func isOver(ctx context.Context) bool {
	if ends, ok := ctx.Deadline(); ok && time.Until(ends) < 100*time.Millisecond {
		<-ctx.Done()
	}
	return ctx.Err() != nil
}

// ended reports whether err says that the workflow or the standalone activity ended without a
// result.
func ended(err error) bool { return outermost(err) != nil }

// reported reports whether an earlier attempt has failed because that run did. The text of its
// error names the run.
func reported(ctx context.Context, job *jobs.Job[queue.RawPayload], run string) (bool, error) {
	earlier, err := job.EarlierAttempts(ctx)
	return slices.ContainsFunc(earlier, func(a jobs.EarlierAttempt) bool { return strings.Contains(a.Error, run) }), err
}

// conclude makes a workflow's result the job's.
func (h *TemporalHandler) conclude(job *jobs.Job[queue.RawPayload], result converter.RawValue) error {
	p := result.Payload()
	if p == nil {
		return nil
	}
	switch encoding := string(p.GetMetadata()[converter.MetadataEncoding]); encoding {
	case converter.MetadataEncodingNil:
		return nil
	case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
		setAnswer(job, p.GetData(), h.c.MaxResult, "the workflow "+WorkflowID(job.ID))
		return nil
	default:
		job.SetResult(unstorable("the workflow %s returned %s, which is not JSON", WorkflowID(job.ID), clip(encoding)))
		return nil
	}
}

// setAnswer makes JSON from elsewhere the job's result. Nothing is no result, and the job is
// completed without one that cannot be stored: what it is about is done.
func setAnswer(job *jobs.Job[queue.RawPayload], body json.RawMessage, most int, who string) {
	switch {
	case len(body) == 0:
	case len(body) > most:
		job.SetResult(unstorable("%s answered more than %d bytes: keep what is large elsewhere, and its name in the result",
			who, most))
	default:
		job.SetResult(body)
	}
}

// unstorable is a result that says why there is none.
func unstorable(format string, args ...any) json.Marshaler {
	return unstorableResult{fmt.Errorf(format, args...)}
}

type unstorableResult struct{ why error }

// MarshalJSON fails with the reason.
func (r unstorableResult) MarshalJSON() ([]byte, error) { return nil, r.why }

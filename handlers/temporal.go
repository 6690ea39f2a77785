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

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TemporalConfig says how the jobs of a type are worked by a Temporal workflow, in any SDK. Client, Workflow and TaskQueue are required.
type TemporalConfig struct {
	// Client is of the namespace in which the workflow is worked. It stays the caller's to close.
	Client client.Client
	// Workflow is the name of the workflow's type, as its worker registers it.
	Workflow string
	// TaskQueue is where its worker polls.
	TaskQueue string
	// Organizations are those whose jobs the workflow works; empty: all.
	Organizations []string
	// Timeout is how long an attempt waits for the workflow's end before it puts the job off; default 30 s, at most jobs.MaxTimeout less 10 s.
	// The workflow goes on meanwhile.
	Timeout time.Duration
	// Pause is for how long the job is then put off, which counts no attempt; default a minute.
	Pause time.Duration
	// RunTimeout is when a workflow that has not ended fails, with TIMEOUT, also while no worker polls; 0: never.
	RunTimeout time.Duration
	// MaxResult is how many bytes of JSON a result may have; default 64 KB.
	MaxResult int
}

// TemporalHandler works jobs by a workflow. It is safe for concurrent use. Register it by jobs.RegisterRaw, with FunctionPolicy(Timeout).
type TemporalHandler struct{ c TemporalConfig }

// NewTemporal returns a handler. It asks Temporal nothing yet.
func NewTemporal(c TemporalConfig) (*TemporalHandler, error) {
	if c.Client == nil {
		return nil, errors.New("workflow: a Temporal client is required")
	}
	return newTemporal(c)
}

// newTemporal leaves the client to the caller.
func newTemporal(c TemporalConfig) (*TemporalHandler, error) {
	c.Timeout = cmp.Or(c.Timeout, defaultFunctionTimeout)
	c.Pause = cmp.Or(c.Pause, time.Minute)
	c.MaxResult = cmp.Or(c.MaxResult, 64<<10)
	switch {
	case c.Workflow == "" || c.TaskQueue == "":
		return nil, errors.New("workflow: workflow and task_queue must name a workflow's type and the task queue where its worker polls")
	case c.Timeout < 0 || c.Timeout > jobs.MaxTimeout-functionRoom:
		return nil, fmt.Errorf("workflow: timeout must be positive and at most %s: the job waits for a longer workflow anyway", jobs.MaxTimeout-functionRoom)
	case c.Pause < 0 || c.RunTimeout < 0 || c.MaxResult < 0:
		return nil, errors.New("workflow: pause, run_timeout and max_result must not be negative")
	}
	return &TemporalHandler{c: c}, nil
}

// TemporalJob is the memo "daybook" of a workflow that works a job: what the workflow may want to know besides the payload, which is its argument.
type TemporalJob struct {
	JobID          string `json:"jobId"`
	Type           string `json:"type"`
	OrgID          string `json:"orgId"`
	IdempotencyKey string `json:"idempotencyKey"`
}

// WorkflowID is the id of the workflow that works a job.
func WorkflowID(jobID string) string { return "daybook-job/" + jobID }

// Handle starts the workflow, or finds the one that an earlier attempt has started, and waits for its end. Its result is the job's. A workflow that
// failed is started again by the next attempt, and so fails an attempt once. A workflow that completed is never started again.
func (h *TemporalHandler) Handle(ctx context.Context, job *jobs.Job[queue.RawPayload]) error {
	return outcome(h.work(ctx, job))
}

func (h *TemporalHandler) work(ctx context.Context, job *jobs.Job[queue.RawPayload]) error {
	if len(h.c.Organizations) > 0 && !slices.Contains(h.c.Organizations, job.OrgID) {
		return fail(models.CodeAuthenticationFailed, "the configuration does not let the organization %s use the workflow of the type %s", clip(job.OrgID), job.Type)
	}
	waiting, cancel := context.WithTimeout(ctx, h.c.Timeout)
	defer cancel()
	run, result, err := h.run(waiting, job, enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
	if ended(err) {
		reported, readErr := reported(ctx, job, run.GetRunID())
		if readErr != nil {
			return readErr
		}
		if reported {
			run, result, err = h.run(waiting, job, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY)
		}
	}
	switch {
	case ended(err):
		return h.failed(run, err)
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return h.unended(err)
	}
	return h.conclude(job, result)
}

// run starts the workflow, if the policy for one that has ended allows it, and waits for its end.
func (h *TemporalHandler) run(ctx context.Context, job *jobs.Job[queue.RawPayload], reuse enums.WorkflowIdReusePolicy) (client.WorkflowRun, converter.RawValue, error) {
	var result converter.RawValue
	run, err := h.c.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: WorkflowID(job.ID), TaskQueue: h.c.TaskQueue, WorkflowExecutionTimeout: h.c.RunTimeout,
		WorkflowIDReusePolicy: reuse, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		Memo: map[string]any{"daybook": TemporalJob{JobID: job.ID, Type: job.Type, OrgID: job.OrgID, IdempotencyKey: job.IdempotencyKey}},
	}, h.c.Workflow, job.Payload.Data)
	if err == nil {
		err = run.Get(ctx, &result)
	}
	return run, result, err
}

// ended reports whether err says that the workflow ended without a result.
func ended(err error) bool {
	_, ok := errors.AsType[*temporal.WorkflowExecutionError](err)
	return ok
}

// reported reports whether an earlier attempt has failed because that run did. The text of its error names the run.
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
		return setAnswer(job, p.GetData(), h.c.MaxResult, "the workflow "+WorkflowID(job.ID))
	default:
		return failFinally("the workflow %s returned %s, which is not JSON; what it did is done", WorkflowID(job.ID), clip(encoding))
	}
}

// setAnswer makes JSON from elsewhere the job's result. Nothing is no result.
func setAnswer(job *jobs.Job[queue.RawPayload], body json.RawMessage, most int, who string) error {
	switch {
	case len(body) == 0:
		return nil
	case len(body) > most:
		return failFinally("%s answered more than %d bytes: keep what is large elsewhere, and its name in the result; what it did is done", who, most)
	case !storable(body):
		return failFinally("%s answered what is not JSON that the database can hold; what it did is done", who)
	}
	job.SetResult(body)
	return nil
}

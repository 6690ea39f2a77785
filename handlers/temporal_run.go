package handlers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/temporalwait"
)

const (
	// keepEvery is the pause between two searches for workflows whose jobs have ended.
	keepEvery = 2 * time.Second
	// arrivalTime is how long after an attempt asked Temporal to start a workflow its record is kept
	// although Temporal has none that runs: the request of a worker that was stopped for a moment may
	// still be on its way.
	arrivalTime = time.Minute
	// callTimeout bounds one request to Temporal.
	callTimeout = 10 * time.Second
	// cancelledByDaybook is the reason that Temporal is given. An attempt that finds a workflow which
	// was asked to end for it starts another one.
	cancelledByDaybook = "daybook: the job has ended"
)

// temporalKeeper sees to the end of workflows whose jobs have ended, and works the workflow that
// runs activities.
type temporalKeeper struct {
	client client.Client
	pool   *pgxpool.Pool
	log    *slog.Logger
}

// Run works what belongs to the handlers of a namespace, beside their attempts, until ctx ends, and
// returns nil then: it has the workflow of a job cancelled that has ended in any way, also while no
// worker has the job; a workflow that runs on for CancelGrace is terminated. It also works
// Daybook's own workflow by which activities are run. One of the handlers of a client and a
// database has to run it, in one process at least; Register does. While Temporal or the database is
// unavailable it tries again.
func (h *TemporalHandler) Run(ctx context.Context) error {
	return (&temporalKeeper{client: h.c.Client, pool: h.c.Pool, log: slog.Default()}).run(ctx)
}

func (k *temporalKeeper) run(ctx context.Context) error {
	// The workers beside it log an outage.
	if err := temporalwait.Until(ctx, slog.New(slog.DiscardHandler), "", func(ctx context.Context) error {
		_, err := k.client.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	}); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	w := worker.New(k.client, ActivityTaskQueue,
		worker.Options{LocalActivityWorkerOnly: true, MaxConcurrentWorkflowTaskPollers: 2})
	w.RegisterWorkflowWithOptions(runJobActivity, workflow.RegisterOptions{Name: ActivityWorkflow})
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	wrong := false
	for {
		err := k.keep(ctx)
		if err != nil && !wrong && ctx.Err() == nil {
			k.log.Warn("workflows whose jobs have ended cannot be cancelled now; trying again", "error", err)
		}
		wrong = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// keep sees to each workflow that is due.
func (k *temporalKeeper) keep(ctx context.Context) error {
	namespace, err := namespaceOf(ctx, k.client)
	if err != nil {
		return err
	}
	left, err := store.ClaimLeftWorkflows(ctx, k.pool, namespace)
	if err != nil {
		return err
	}
	var errs []error
	for _, w := range left {
		errs = append(errs, k.end(ctx, w))
	}
	return errors.Join(errs...)
}

// end takes the next step to the end of a workflow.
func (k *temporalKeeper) end(ctx context.Context, w store.LeftWorkflow) error {
	if !w.Over {
		return store.SpareLeftWorkflow(ctx, k.pool, w)
	}
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	open, err := k.find(asking, WorkflowID(w.JobID))
	switch {
	case err != nil:
		return err
	case open == nil && w.Asked > arrivalTime:
		return store.DropLeftWorkflow(ctx, k.pool, w)
	case open == nil:
		return store.KeepLeftWorkflow(ctx, k.pool, w, arrivalTime-w.Asked+time.Second, false)
	case w.Cancelled == nil:
		if err := open.cancel(asking); err != nil {
			return err
		}
		return store.KeepLeftWorkflow(ctx, k.pool, w, min(w.Grace, arrivalTime), true)
	case *w.Cancelled < w.Grace:
		return store.KeepLeftWorkflow(ctx, k.pool, w, min(w.Grace-*w.Cancelled, max(*w.Cancelled, arrivalTime)), false)
	}
	if err := open.terminate(asking); err != nil {
		return err
	}
	return store.KeepLeftWorkflow(ctx, k.pool, w, arrivalTime, false)
}

// openRun is a workflow or a standalone activity that runs.
type openRun struct {
	cancel, terminate func(ctx context.Context) error
}

// find finds what runs under an id; nil: nothing does.
func (k *temporalKeeper) find(ctx context.Context, id string) (*openRun, error) {
	d, err := k.client.DescribeWorkflow(ctx, id, "")
	switch _, missing := errors.AsType[*serviceerror.NotFound](err); {
	case missing || err == nil && d.Status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return findStandalone(ctx, k.client, id)
	case err != nil:
		return nil, err
	}
	return &openRun{
		cancel: func(ctx context.Context) error {
			return k.client.CancelWorkflowWithOptions(ctx,
				client.CancelWorkflowOptions{WorkflowID: id, Reason: cancelledByDaybook})
		},
		terminate: func(ctx context.Context) error {
			return k.client.TerminateWorkflow(ctx, id, "", cancelledByDaybook)
		},
	}, nil
}

// namespaceOf is the namespace of a client that has reached Temporal. The client says it only in
// requests: it writes it into one that names none.
func namespaceOf(ctx context.Context, c client.Client) (string, error) {
	over, cancel := context.WithCancel(ctx)
	cancel()
	for reached := false; ; reached = true {
		asked := &workflowservice.CountWorkflowExecutionsRequest{}
		_, _ = c.CountWorkflow(over, asked) // it is not sent
		if asked.GetNamespace() != "" || reached {
			return asked.GetNamespace(), nil
		}
		if _, err := c.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
			return "", err
		}
	}
}

// endedByDaybook reports whether a run that has ended was terminated, or asked to end, because its job
// had ended.
func (h *TemporalHandler) endedByDaybook(ctx context.Context, jobID, run string) (bool, error) {
	if h.c.Standalone {
		return h.standaloneEndedByDaybook(ctx, jobID, run)
	}
	d, err := h.c.Client.DescribeWorkflow(ctx, WorkflowID(jobID), run)
	if err != nil || d.Status != enums.WORKFLOW_EXECUTION_STATUS_TERMINATED &&
		!d.RawResponse.GetWorkflowExtendedInfo().GetCancelRequested() {
		return false, err // its history, which may be long, says no more
	}
	for events := h.c.Client.GetWorkflowHistory(ctx, WorkflowID(jobID), run, false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			return false, err
		}
		if e.GetWorkflowExecutionCancelRequestedEventAttributes().GetCause() == cancelledByDaybook ||
			e.GetWorkflowExecutionTerminatedEventAttributes().GetReason() == cancelledByDaybook {
			return true, nil
		}
	}
	return false, nil
}

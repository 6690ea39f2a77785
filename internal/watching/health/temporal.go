package health

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// temporalAnswer is what Temporal said.
type temporalAnswer struct {
	asked  bool
	states []WorkflowState
	err    error
	took   time.Duration
	// schedules are Daybook's; without them, unlisted is why.
	schedules []*client.ScheduleListEntry
	unlisted  error
	// slowly says that it did not answer within the time that a question has, and was asked again.
	slowly bool
}

// slowTimeout is how long a question may take that is asked again: a server that is busy answers
// late, and is not away.
const slowTimeout = 5 * time.Second

// askTemporal asks for all workflows at the same time.
func askTemporal(ctx context.Context, o Options) (a temporalAnswer) {
	a = temporalAnswer{asked: o.Temporal != nil || o.TemporalError != nil, err: o.TemporalError}
	if o.Temporal == nil {
		return a
	}
	began := time.Now()
	var listing sync.WaitGroup
	defer listing.Wait()
	listing.Go(func() { a.schedules, a.unlisted = listSchedules(ctx, o.Temporal, o.Timeout) })
	a.states, a.err = Workflows(ctx, o.Temporal, o.Workflows, o.Timeout)
	if tookTooLong(a.err) && ctx.Err() == nil {
		if err := unavailable(ctx, o.Temporal, o.Timeout); err != nil {
			a.err = err
		} else {
			a.slowly = true
			a.states, a.err = Workflows(ctx, o.Temporal, o.Workflows, max(o.Timeout, slowTimeout))
		}
	}
	a.took = time.Since(began)
	return a
}

// unavailable says why no connection to Temporal comes about; nil: there is one, or it is not known.
// A call by the client itself tries again until its time is over, and then says only that.
func unavailable(ctx context.Context, c client.Client, timeout time.Duration) error {
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := c.WorkflowService().GetSystemInfo(asking, &workflowservice.GetSystemInfoRequest{})
	if _, away := errors.AsType[*serviceerror.Unavailable](err); away {
		return err
	}
	return nil
}

// tookTooLong reports whether an error says that no answer came in time: that is no word of a
// server that is unavailable, nor of one that refuses.
func tookTooLong(err error) bool {
	return err != nil && (errors.Is(err, context.DeadlineExceeded) || isDeadline(err) ||
		strings.Contains(err.Error(), context.DeadlineExceeded.Error()))
}

// Workflows asks Temporal how workflows stand and which workers poll for them, all at the same
// time. Each question may take as long as timeout. It fails when Temporal cannot be asked at all.
func Workflows(ctx context.Context, c client.Client, which []Workflow, timeout time.Duration) ([]WorkflowState, error) {
	return eachWorkflow(ctx, c, which, timeout, askWorkflow)
}

// FindWorkflows is Workflows for what Temporal itself knows: it asks no worker, so that it waits for
// none.
func FindWorkflows(
	ctx context.Context, c client.Client, which []Workflow, timeout time.Duration,
) ([]WorkflowState, error) {
	return eachWorkflow(ctx, c, which, timeout, findWorkflow)
}

func eachWorkflow(ctx context.Context, c client.Client, which []Workflow, timeout time.Duration,
	ask func(context.Context, client.Client, Workflow, time.Duration) (WorkflowState, error),
) ([]WorkflowState, error) {
	states, failed := make([]WorkflowState, len(which)), make([]error, len(which))
	var all sync.WaitGroup
	for i, w := range which {
		all.Go(func() { states[i], failed[i] = ask(ctx, c, w, timeout) })
	}
	all.Wait()
	// As a rule all fail for the same.
	for _, err := range failed {
		if err != nil {
			return states, err
		}
	}
	return states, nil
}

// RunsOf are the ids of the workflows of a kind that run. It asks no worker, as FindWorkflows does.
func RunsOf(ctx context.Context, c client.Client, w Workflow, timeout time.Duration) ([]string, error) {
	s, err := findWorkflow(ctx, c, w, timeout)
	return s.Runs(), err
}

func askWorkflow(ctx context.Context, c client.Client, w Workflow, timeout time.Duration) (s WorkflowState, err error) {
	if s, err = findWorkflow(ctx, c, w, timeout); err != nil {
		return s, err
	}
	var both sync.WaitGroup
	both.Go(func() {
		if s.State == Running {
			s.query(ctx, c, timeout)
		}
	})
	var workers []PollingWorker
	both.Go(func() { workers = pollers(ctx, c, s.TaskQueue, timeout) })
	both.Wait()
	s.Workers = workers
	return s, nil
}

// findWorkflow says which workflows of a kind run, and what Temporal has on record of the one that
// is shown.
func findWorkflow(ctx context.Context, c client.Client, w Workflow,
	timeout time.Duration,
) (s WorkflowState, err error) {
	s = WorkflowState{Workflow: w, State: NeverStarted, Workers: []PollingWorker{}}
	var d *workflowservice.DescribeWorkflowExecutionResponse
	var both sync.WaitGroup
	both.Go(func() { d, err = describeWorkflow(ctx, c, w.ID, timeout) })
	if !w.Exact {
		both.Go(func() { s.Others, s.Unpaused = listOthers(ctx, c, w, timeout) })
	}
	both.Wait()
	if err != nil {
		return s, err
	}
	if d != nil {
		s.describe(d)
	}
	if s.State != Running && len(s.Others) > 0 {
		s.takeOther(ctx, c, timeout)
	}
	return s, nil
}

// describeWorkflow asks for a workflow; nil: there is none of that id.
func describeWorkflow(ctx context.Context, c client.Client, id string,
	timeout time.Duration,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d, err := c.DescribeWorkflow(asking, id, "")
	if _, missing := errors.AsType[*serviceerror.NotFound](err); missing {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return d.RawResponse, nil
}

// listOthers lists the workflows of the kind that run under other ids. Temporal lists runs a moment
// late, and may be set up not to list them at all: then there is none.
func listOthers(ctx context.Context, c client.Client, w Workflow,
	timeout time.Duration,
) (ids []string, unpaused string) {
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list, err := c.ListWorkflow(asking, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: 100, Query: "WorkflowType = '" + w.Type + "' AND ExecutionStatus = 'Running'",
	})
	if err != nil {
		return nil, ""
	}
	for _, e := range list.GetExecutions() {
		if id := e.GetExecution().GetWorkflowId(); id != w.ID && !w.isOthers(e.GetTaskQueue()) {
			ids = append(ids, id)
			if state := ""; !recall(e.GetMemo().GetFields(), models.MemoState, &state) || state != models.MemoStatePaused {
				unpaused = id
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), unpaused
}

// takeOther takes the first of the others in the place of a workflow that does not run.
func (s *WorkflowState) takeOther(ctx context.Context, c client.Client, timeout time.Duration) {
	id := s.Others[0]
	d, err := describeWorkflow(ctx, c, id, timeout)
	if err == nil && d.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		s.ID, s.Others = id, s.Others[1:]
		s.describe(d)
	}
}

// describe notes what Temporal says of the run.
func (s *WorkflowState) describe(d *workflowservice.DescribeWorkflowExecutionResponse) {
	info := d.GetWorkflowExecutionInfo()
	s.RunID = info.GetExecution().GetRunId()
	s.StartedAt, s.ClosedAt, s.Ended = nil, nil, ""
	if t := info.GetStartTime(); t != nil {
		s.StartedAt = store.TimeOrNil(t.AsTime())
	}
	s.State, s.Ended = Ended, endWords[info.GetStatus()]
	if t := info.GetCloseTime(); t != nil {
		s.ClosedAt = store.TimeOrNil(t.AsTime())
	}
	if info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		s.State = Running
		// That of a run that has ended does not count: the next one may have another.
		s.TaskQueue = cmp.Or(d.GetExecutionConfig().GetTaskQueue().GetName(), s.TaskQueue)
		s.remember(info.GetMemo().GetFields())
	}
	for _, a := range d.GetPendingActivities() {
		var beat models.TurnHeartbeat
		if p := a.GetHeartbeatDetails().GetPayloads(); len(p) == 1 &&
			converter.GetDefaultDataConverter().FromPayload(p[0], &beat) == nil {
			s.Trouble = cmp.Or(s.Trouble, beat.Trouble)
		}
		if a.GetLastFailure() == nil || a.GetAttempt() < 2 {
			continue
		}
		r := RetryingActivity{
			Type: a.GetActivityType().GetName(), Attempt: a.GetAttempt(),
			Failure: a.GetLastFailure().GetMessage(),
		}
		if cause := a.GetLastFailure().GetCause().GetMessage(); cause != "" {
			r.Failure += ": " + cause
		}
		if t := cmp.Or(a.GetScheduledTime(), a.GetLastStartedTime()); t != nil {
			r.Since = t.AsTime()
		}
		s.Retrying = append(s.Retrying, r)
	}
	if t := d.GetPendingWorkflowTask(); t.GetAttempt() > 2 {
		r := RetryingActivity{
			Type: "workflow task", Attempt: t.GetAttempt(),
			Failure: "the workflow's code fails, or does not fit the run's history: the worker's log says why",
		}
		if at := t.GetOriginalScheduledTime(); at != nil {
			r.Since = at.AsTime()
		}
		s.Retrying = append(s.Retrying, r)
	}
}

// remember notes what the run's memo says. A run of an earlier version has none.
func (s *WorkflowState) remember(memo map[string]*common.Payload) {
	read := func(name string, to any) bool { return recall(memo, name, to) }
	var state, since string
	var settings models.RunSettings
	s.Paused = read(models.MemoState, &state) && state == models.MemoStatePaused
	if read(models.MemoPausedSince, &since) && s.Paused {
		if at, err := time.Parse(time.RFC3339, since); err == nil {
			s.PausedSince = &at
		}
	}
	if read(models.MemoSettings, &settings) {
		s.Settings = &settings
	}
}

// recall reads a field of a memo.
func recall(memo map[string]*common.Payload, name string, to any) bool {
	field, ok := memo[name]
	return ok && converter.GetDefaultDataConverter().FromPayload(field, to) == nil
}

var endWords = map[enums.WorkflowExecutionStatus]string{
	enums.WORKFLOW_EXECUTION_STATUS_COMPLETED:  "completed",
	enums.WORKFLOW_EXECUTION_STATUS_FAILED:     "failed",
	enums.WORKFLOW_EXECUTION_STATUS_CANCELED:   "was cancelled",
	enums.WORKFLOW_EXECUTION_STATUS_TERMINATED: "was terminated",
	enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:  "timed out",
}

// query asks the workflow for its status, which a worker answers.
func (s *WorkflowState) query(ctx context.Context, c client.Client, timeout time.Duration) {
	// A worker that has ended may still be the first to be asked, for a second.
	asking, cancel := context.WithTimeout(ctx, max(timeout, DefaultTimeout))
	defer cancel()
	answer, err := c.QueryWorkflow(asking, s.ID, s.RunID, models.QueryStatus)
	for isDeadline(err) && asking.Err() == nil {
		// The question itself went to the worker that has ended. Temporal asks another one from now on.
		answer, err = c.QueryWorkflow(asking, s.ID, s.RunID, models.QueryStatus)
	}
	if err == nil {
		var status models.RunStatus
		if err = answer.Get(&status); err == nil {
			s.Answered, s.Status = true, &status
			s.Paused, s.PausedSince, s.Settings = status.Paused, status.PausedSince, &status.Settings
			return
		}
	}
	s.Silent = err.Error()
}

// isDeadline says that Temporal waited in vain for an answer.
func isDeadline(err error) bool {
	_, is := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return is
}

// pollers lists the workers that polled a task queue lately, for workflows or for activities.
func pollers(ctx context.Context, c client.Client, taskQueue string, timeout time.Duration) []PollingWorker {
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last := map[string]time.Time{}
	for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
		d, err := c.DescribeTaskQueue(asking, taskQueue, kind)
		if err != nil {
			continue
		}
		for _, w := range d.GetPollers() {
			if at := w.GetLastAccessTime().AsTime(); at.After(last[w.GetIdentity()]) {
				last[w.GetIdentity()] = at
			}
		}
	}
	all := []PollingWorker{}
	for name, at := range last {
		all = append(all, PollingWorker{name, at})
	}
	slices.SortFunc(all, func(a, b PollingWorker) int {
		return cmp.Or(b.LastPoll.Compare(a.LastPoll), strings.Compare(a.Name, b.Name))
	})
	return all
}

package workflows

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/models"
)

// turnSeconds is how long a turn goes on refilling: short enough for pause and settings to take
// effect soon, long enough that hops through Temporal do not count.
const turnSeconds = 5

// runQueue is the workflow of every kind of queue. The kind follows from the task queue, on which
// the activities of one kind are registered, and from the workflow's type: a run continues as new
// under the same type.
func runQueue(ctx workflow.Context, in Input) (*models.RunCounts, error) {
	a, err := newRun(ctx, in)
	if err != nil {
		return nil, err
	}
	return a.run(ctx)
}

// run is the state of one run.
type run struct {
	input Input
	state models.RunState
	// runID is the run's id, and stays the same when the workflow is reset: turns are named by it, and
	// messages in the history name turns.
	runID string

	// lanes are the running lanes by number; nil: the lane has ended, or was never started.
	lanes []*lane
	// turns counts the turns of this run; it numbers them.
	turns int
	// configured is set when the settings are there.
	configured bool
	// waiting is the lane that waits for work; nil: none does.
	waiting *lane
	// backlog grows whenever there is more work than one lane could take: then parked lanes begin as
	// well.
	backlog int
	// worksAtOnce: lanes begin with a turn that does not wait.
	worksAtOnce bool
	// wholeTurns: a turn is one activity, which waits as well.
	wholeTurns bool
	// keepsMemo: the run keeps a memo; memo is what it says, nil before it was written.
	keepsMemo bool
	memo      *memo
	// draining: no new turn begins. cancelled and empty say why; neither: the run continues as new.
	draining, cancelled, empty bool

	laneCtx    workflow.Context
	cancelLane workflow.CancelFunc
}

func newRun(ctx workflow.Context, in Input) (*run, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if in.refusesUnknown(ctx) {
		return nil, refuseUnknown(in.unknown)
	}
	info := workflow.GetInfo(ctx)
	// The test environment knows no original.
	a := &run{input: in, runID: cmp.Or(info.OriginalRunID, info.WorkflowExecution.RunID)}
	// Lanes end by themselves when the run is cancelled, so they live in a context of their own.
	a.laneCtx, _ = workflow.NewDisconnectedContext(ctx)
	a.laneCtx, a.cancelLane = workflow.WithCancel(a.laneCtx)
	if in.Carried != nil {
		a.state = *in.Carried
	} else {
		a.state.StartedAt = workflow.Now(ctx)
	}
	a.state.Runs++
	if a.state.MoreKnown {
		a.backlog = 1
	}
	a.keepMemo(ctx)
	a.wholeTurns = workflow.GetVersion(ctx, changeTurns, workflow.DefaultVersion, 1) == 1
	if err := a.handleMessages(ctx); err != nil {
		return nil, err
	}
	if in.Carried == nil {
		if err := a.begin(ctx); err != nil {
			return nil, err
		}
	}
	a.configured = true
	return a, nil
}

// changeBegin is the change of the code by which a workflow begins with turns: its first workflow
// task reads the settings itself and has lanes work. Before, it waited for three activities, one
// after the other, until the first job began.
const changeBegin = "begin"

// changeTurns is the change of the code by which a turn is one activity, which waits for work as
// well. Before, a turn fetched first, and then processed what was fetched.
const changeTurns = "turns"

// begin makes the first run of a workflow ready.
func (a *run) begin(ctx workflow.Context) error {
	local := workflow.GetVersion(ctx, changeBegin, workflow.DefaultVersion, 1) == 1
	a.worksAtOnce = local && !a.input.ExitWhenEmpty
	s, err := readSettings(ctx, local)
	if err != nil {
		return err
	}
	a.state.Settings = models.RunSettings{
		BatchSize: s.BatchSize, PollIntervalSeconds: s.PollIntervalSeconds,
		Concurrency: models.DefaultConcurrency,
	}
	setSettings(&a.state.Settings, a.input.BatchSize, a.input.PollIntervalSeconds, a.input.Concurrency)
	return nil
}

// readSettings reads the environment of a worker: local, of the one that runs the workflow.
func readSettings(ctx workflow.Context, local bool) (activities.Settings, error) {
	const limit, summary = 10 * time.Second, "read the worker's environment"
	var acts *activities.Queue
	var read workflow.Future
	if local {
		ctx = workflow.WithLocalActivityOptions(ctx,
			workflow.LocalActivityOptions{StartToCloseTimeout: limit, RetryPolicy: retryForEver(), Summary: summary})
		read = workflow.ExecuteLocalActivity(ctx, acts.ReadSettings)
	} else {
		ctx = workflow.WithActivityOptions(ctx,
			workflow.ActivityOptions{StartToCloseTimeout: limit, RetryPolicy: retryForEver(), Summary: summary})
		read = workflow.ExecuteActivity(ctx, acts.ReadSettings)
	}
	var s activities.Settings
	err := read.Get(ctx, &s)
	return s, err
}

// retryForEver is how every activity is retried: an outage passes, and a job must not be lost for
// it. The first tries follow at once: most often a connection was cut, or a worker has ended, and
// another one can go on.
func retryForEver() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{
		InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2,
		MaximumInterval: 5 * time.Second,
	}
}

// run starts lanes as the settings say and waits until they have drained.
func (a *run) run(ctx workflow.Context) (*models.RunCounts, error) {
	a.describe()
	a.remember()
	workflow.Go(a.laneCtx, func(laneCtx workflow.Context) {
		ctx.Done().Receive(laneCtx, nil)
		a.cancelled = true
		a.drain()
		a.cancelLane()
	})
	for !a.draining {
		a.startLanes()
		started := a.state.Settings.Concurrency
		// Woken by a cancellation as well: then draining is set a moment later, by the coroutine above.
		if err := workflow.Await(a.laneCtx,
			func() bool { return a.draining || a.state.Settings.Concurrency != started }); err != nil {
			break
		}
	}
	ending, _ := workflow.NewDisconnectedContext(ctx)
	if err := workflow.Await(ending,
		func() bool { return a.count((*lane).any) == 0 && workflow.AllHandlersFinished(ending) }); err != nil {
		return nil, err
	}
	a.drainSignals(ending)
	a.describe()
	switch {
	case a.cancelled:
		a.release(ending)
		return nil, temporal.NewCanceledError("drained and released")
	case a.empty && !a.state.Paused:
		return &a.state.Counts, nil
	}
	next := a.input
	next.Carried = &a.state
	a.state.MoreKnown = a.backlog > 0
	return nil, workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, next)
}

// drain keeps new turns from beginning.
func (a *run) drain() {
	a.draining = true
	a.interruptWaiting()
}

// interruptWaiting ends the turn that waits for work, so that a change takes effect now and not
// after the poll interval.
func (a *run) interruptWaiting() {
	if a.waiting != nil {
		a.waiting.cancelWait()
	}
}

// release gives back the leases of turns that will not be processed.
func (a *run) release(ctx workflow.Context) {
	if len(a.state.LeftBehind) == 0 {
		return
	}
	var acts *activities.Queue
	// The time is limited: a transaction that holds a row for minutes must not keep the run from
	// ending. The lease of that row expires.
	policy := retryForEver()
	policy.MaximumAttempts = 10
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         policy,
		Summary:             "give back what is leased",
	})
	var n int
	if err := workflow.ExecuteActivity(ctx, acts.ReleaseTurns,
		activities.ReleaseInput{TurnIDs: a.state.LeftBehind}).Get(ctx, &n); err != nil {
		workflow.GetLogger(ctx).Error("leases were not given back; they will be reclaimed when they expire", "turns",
			a.state.LeftBehind, "error", err)
	}
	a.state.Counts.Released += int64(n)
}

package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/activities"
)

// Names by which the accounting queue is started and spoken to.
const (
	AccountingWorkflow  = "syncAccountingQueueWorkflow"
	AccountingTaskQueue = "accounting-queue"

	SignalPause     = "pause"
	SignalResume    = "resume"
	QueryStatus     = "status"
	UpdateConfigure = "configure"
)

// turnSeconds is how long a turn goes on refilling: short enough for pause and settings to take effect soon, long enough
// that hops through Temporal do not count.
const turnSeconds = 5

// Accounting is the workflow syncAccountingQueueWorkflow. It runs for ever: it returns only when it is cancelled, when its
// input is out of range, or when ExitWhenEmpty is set and nothing is due.
func Accounting(ctx workflow.Context, in AccountingInput) (*Counts, error) {
	a, err := newAccounting(ctx, in)
	if err != nil {
		return nil, err
	}
	return a.run(ctx)
}

// accounting is the state of one run.
type accounting struct {
	input AccountingInput
	state AccountingState
	runID string

	// lanes holds those that run, by number; nil: it has ended, or was never started.
	lanes []*lane
	// turns counts the turns of this run; it numbers them.
	turns int
	// settled is set when the settings are there.
	settled bool
	// waiting is the lane that waits for work in a fetch; nil: none does.
	waiting *lane
	// backlog grows whenever there is more than one lane could lease: then parked lanes fetch as well.
	backlog int
	// draining: no new turn begins. cancelled and empty say why; neither: the run continues as new.
	draining, cancelled, empty bool

	laneCtx    workflow.Context
	cancelLane workflow.CancelFunc
}

func newAccounting(ctx workflow.Context, in AccountingInput) (*accounting, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	a := &accounting{input: in, runID: workflow.GetInfo(ctx).WorkflowExecution.RunID}
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
	if err := a.handleMessages(ctx); err != nil {
		return nil, err
	}
	if in.Carried == nil {
		if err := a.readSettings(ctx); err != nil {
			return nil, err
		}
	}
	a.settled = true
	return a, nil
}

// readSettings fills in what the input leaves out from the environment of a worker.
func (a *accounting) readSettings(ctx workflow.Context) error {
	var acts *activities.Accounting
	var s activities.Settings
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         retryForEver(),
		Summary:             "read the worker's environment",
	})
	if err := workflow.ExecuteActivity(ctx, acts.ReadSettings).Get(ctx, &s); err != nil {
		return err
	}
	a.state.Settings = AccountingSettings{BatchSize: s.BatchSize, PollIntervalSeconds: s.PollIntervalSeconds, Concurrency: DefaultConcurrency}
	a.state.Settings.set(a.input.BatchSize, a.input.PollIntervalSeconds, a.input.Concurrency)
	return nil
}

// retryForEver is how every activity is retried: an outage passes, and a job must not be lost for it. The first tries follow at once: most
// often a connection was cut, or a worker has ended, and another one can go on.
func retryForEver() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 5 * time.Second}
}

// run starts lanes as the settings say and waits until they have drained.
func (a *accounting) run(ctx workflow.Context) (*Counts, error) {
	a.describe()
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
		if err := workflow.Await(a.laneCtx, func() bool { return a.draining || a.state.Settings.Concurrency != started }); err != nil {
			break
		}
	}
	ending, _ := workflow.NewDisconnectedContext(ctx)
	if err := workflow.Await(ending, func() bool { return a.count((*lane).any) == 0 && workflow.AllHandlersFinished(ending) }); err != nil {
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

// drain lets no new turn begin.
func (a *accounting) drain() {
	a.draining = true
	a.interruptWaiting()
}

// interruptWaiting ends the fetch that waits for work, so that a change takes effect now and not after the poll interval.
func (a *accounting) interruptWaiting() {
	if a.waiting != nil {
		a.waiting.cancelFetch()
	}
}

// release gives back what turns hold that will not be processed any more.
func (a *accounting) release(ctx workflow.Context) {
	if len(a.state.LeftBehind) == 0 {
		return
	}
	var acts *activities.Accounting
	// Not for ever: a transaction that holds a row for minutes must not keep the run from ending. What it holds then
	// expires.
	policy := retryForEver()
	policy.MaximumAttempts = 10
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         policy,
		Summary:             "give back what is leased",
	})
	var n int
	if err := workflow.ExecuteActivity(ctx, acts.ReleaseTurns, activities.ReleaseInput{TurnIDs: a.state.LeftBehind}).Get(ctx, &n); err != nil {
		workflow.GetLogger(ctx).Error("leases were not given back; they will be reclaimed when they expire", "turns", a.state.LeftBehind, "error", err)
	}
	a.state.Counts.Released += int64(n)
}

// handleMessages registers signals, the query and the update.
func (a *accounting) handleMessages(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, QueryStatus, func() (AccountingStatus, error) {
		return AccountingStatus{AccountingState: a.state, Lanes: a.count((*lane).isProcessing), Draining: a.draining}, nil
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(ctx, UpdateConfigure,
		func(ctx workflow.Context, in ConfigureInput) (AccountingSettings, error) {
			if err := workflow.Await(ctx, func() bool { return a.settled }); err != nil {
				return AccountingSettings{}, err
			}
			a.state.Settings.set(in.BatchSize, in.PollIntervalSeconds, in.Concurrency)
			a.interruptWaiting()
			a.describe()
			return a.state.Settings, nil
		},
		workflow.UpdateHandlerOptions{
			Description: "changes batchSize, pollIntervalSeconds or concurrency from the next turn on",
			Validator: func(_ workflow.Context, in ConfigureInput) error {
				if in == (ConfigureInput{}) {
					return temporal.NewNonRetryableApplicationError(
						"nothing to configure: give batchSize, pollIntervalSeconds or concurrency", ErrTypeInvalidInput, nil)
				}
				return checkRanges(in.BatchSize, in.PollIntervalSeconds, in.Concurrency)
			},
		})
	if err != nil {
		return err
	}
	a.onSignal(ctx, SignalPause)
	a.onSignal(ctx, SignalResume)
	return nil
}

// onSignal sets paused whenever the signal comes. What came last counts, also when both come at once.
func (a *accounting) onSignal(ctx workflow.Context, name string) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			workflow.GetSignalChannel(ctx, name).Receive(ctx, nil)
			a.setPaused(pauseAsked(ctx, name))
		}
	})
}

func (a *accounting) setPaused(paused bool) {
	a.state.Paused = paused
	if paused {
		a.interruptWaiting()
	}
	a.describe()
}

// drainSignals takes in what came while the run was ending, so that continue-as-new loses no message.
func (a *accounting) drainSignals(ctx workflow.Context) {
	for _, name := range []string{SignalResume, SignalPause} {
		for workflow.GetSignalChannel(ctx, name).ReceiveAsync(nil) {
			a.setPaused(pauseAsked(ctx, name))
		}
	}
}

// describe writes what the Temporal UI shows on the run's page.
func (a *accounting) describe() {
	var b strings.Builder
	s := a.state.Settings
	mode := "running"
	switch {
	case a.draining:
		mode = "draining"
	case a.state.Paused:
		mode = "paused"
	case a.state.IdleSince != nil:
		mode = "idle since " + a.state.IdleSince.UTC().Format(time.RFC3339)
	}
	fmt.Fprintf(&b, "**%s**, %d lanes, batch %d, poll %d s\n\n", mode, s.Concurrency, s.BatchSize, s.PollIntervalSeconds)
	if t := a.state.LastTurn; t != nil {
		fmt.Fprintf(&b, "last turn (lane %d, %s): %s\n\n", t.Lane, t.At.UTC().Format(time.RFC3339), say(t.Report))
	}
	c := a.state.Counts
	fmt.Fprintf(&b, "in %d turns since %s: leased %d, completed %d, retried %d, rescheduled %d, failed %d, cancelled %d, lost %d, released %d",
		c.Turns, a.state.StartedAt.UTC().Format(time.RFC3339), c.Leased, c.Completed, c.Retried, c.Rescheduled, c.Failed, c.Cancelled, c.Lost, c.Released)
	workflow.SetCurrentDetails(a.laneCtx, b.String())
}

// say puts a turn's counts into words, without those that are zero.
func say(r activities.ProcessOutput) string {
	words := []string{fmt.Sprintf("leased %d", r.Leased)}
	for _, w := range []struct {
		name string
		n    int
	}{
		{"completed", r.Completed},
		{"retried", r.Retried},
		{"rescheduled", r.Rescheduled},
		{"failed", r.Failed},
		{"cancelled", r.Cancelled},
		{"lost", r.Lost},
		{"released", r.Released},
	} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%s %d", w.name, w.n))
		}
	}
	return strings.Join(words, ", ")
}

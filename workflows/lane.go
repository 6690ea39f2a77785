package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/models"
)

const (
	// processTimeout bounds a turn that sends heartbeats; one without heartbeats is begun anew after
	// the heartbeat timeout.
	processTimeout = 2 * time.Hour
	// A lane rests when an activity failed in a way that its retries could not mend, longer each
	// further time.
	firstRest = 200 * time.Millisecond
	lastRest  = 5 * time.Second
)

// lane is one of the loops that run side by side, turn after turn.
type lane struct {
	a      *run
	number int
	// worksAtOnce: the lane's next turn, which is its first, does not wait.
	worksAtOnce bool
	// turnNumber is the number of the lane's present turn.
	turnNumber int
	// seen is the backlog when the lane's last turn began: when it has grown since, there is work for
	// one more lane.
	seen int
	// turnID names the lane's present turn, or its last one.
	turnID     string
	processing bool
	// fetching: the lane's fetch is under way, in a run of versions 1 to 3.
	fetching   bool
	cancelWait workflow.CancelFunc
	// said is what the lane's last turn did, for the summary of its next activity; empty: that was
	// told already.
	said string
}

// startLanes starts the lanes that the settings ask for and that do not run yet. Surplus ones end
// by themselves.
func (a *run) startLanes() {
	for n := range a.state.Settings.Concurrency {
		if n == len(a.lanes) {
			a.lanes = append(a.lanes, nil)
		}
		if a.lanes[n] != nil {
			continue
		}
		l := &lane{a: a, number: n, worksAtOnce: a.worksAtOnce}
		a.lanes[n] = l
		workflow.GoNamed(a.laneCtx, fmt.Sprintf("lane %d", n), l.run)
	}
}

// run works turn after turn until the run drains or there are more lanes than the settings ask for.
func (l *lane) run(ctx workflow.Context) {
	a := l.a
	defer func() { a.lanes[l.number] = nil }()
	rest := firstRest
	for {
		// An error is the cancellation: then the run drains.
		if err := workflow.Await(ctx, func() bool { return l.ending() || l.mayBegin() }); err != nil || l.ending() {
			return
		}
		if err := l.turn(ctx); err != nil && !temporal.IsCanceledError(err) {
			workflow.GetLogger(ctx).Error("turn failed", "lane", l.number, "error", err)
			if err := workflow.Sleep(ctx, rest); err != nil {
				return
			}
			rest = min(2*rest, lastRest)
		} else {
			rest = firstRest
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			a.drain()
		}
	}
}

func (l *lane) ending() bool { return l.a.draining || l.number >= l.a.state.Settings.Concurrency }

// mayBegin says whether the lane may begin a turn. One lane waits for work; the others are parked
// until it has found some, or there is more than the lanes that work can take.
func (l *lane) mayBegin() bool {
	a := l.a
	if a.state.Paused {
		return false
	}
	if l.worksAtOnce || l.seen < a.backlog {
		return true
	}
	if a.input.ExitWhenEmpty {
		return a.count((*lane).isBusy) == 0
	}
	return a.waiting == nil
}

// count counts the running lanes of which something is true.
func (a *run) count(is func(*lane) bool) int {
	n := 0
	for _, l := range a.lanes {
		if l != nil && is(l) {
			n++
		}
	}
	return n
}

func (l *lane) any() bool          { return true }
func (l *lane) isProcessing() bool { return l.processing }
func (l *lane) isBusy() bool       { return l.fetching || l.processing }

// turn is one pass over the queue. The lane that finds no other lane waiting waits for work; it
// waits no more when the turn says that it has found some.
func (l *lane) turn(ctx workflow.Context) error {
	a := l.a
	a.turns++
	l.turnNumber = a.turns
	l.turnID = fmt.Sprintf("%s/%d/%d", a.runID, l.number, l.turnNumber)
	if !a.wholeTurns {
		return l.fetchAndProcess(ctx, l.turnID)
	}
	first := l.worksAtOnce
	l.worksAtOnce, l.seen, l.processing = false, a.backlog, true
	in := activities.ProcessInput{
		TurnID: l.turnID, Batch: a.state.Settings.BatchSize, TurnSeconds: turnSeconds,
		Linger: !a.input.ExitWhenEmpty, LeftBehind: slices.Clone(a.state.LeftBehind), Alone: true,
	}
	ctx, l.cancelWait = workflow.WithCancel(ctx)
	defer l.cancelWait()
	defer func() {
		l.stopWaiting()
		l.processing = false
		a.noteIdle(ctx)
	}()
	switch {
	case a.input.ExitWhenEmpty:
		in.Silent = slices.Clone(a.state.Silent)
		if len(in.LeftBehind)+len(in.Silent) > 0 {
			in.WaitSeconds = 1 // only rows are left that another transaction or worker holds
		}
	case a.waiting == nil && !first:
		in.WaitSeconds = a.state.Settings.PollIntervalSeconds
		a.waiting, l.processing = l, false
		a.noteIdle(ctx)
	}
	out, err := l.process(ctx, in, first)
	if err != nil {
		a.leaveBehind(l.turnID)
		return err
	}
	a.noteReclaimed(in.LeftBehind, out.LeftBehind)
	a.noteSilent(in.Silent, out.Silent)
	if out.Leased > 0 {
		l.countTurn(ctx, out)
	} else {
		addJobs(&a.state.Counts, out)
	}
	if a.input.ExitWhenEmpty && out.Leased == 0 && len(in.LeftBehind)+len(in.Silent) == 0 &&
		a.count((*lane).isBusy) == 1 && len(a.state.LeftBehind)+len(a.state.Silent) == 0 {
		a.empty = true
		a.drain()
	}
	return nil
}

// process has an activity work the turn. Temporal hands turns out, so that lanes spread over
// workers; the workflow's first one begins at once, on the worker that runs the workflow.
func (l *lane) process(ctx workflow.Context, in activities.ProcessInput, first bool) (out models.TurnReport, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:   time.Duration(in.WaitSeconds)*time.Second + processTimeout,
		HeartbeatTimeout:      activities.HeartbeatTimeout,
		RetryPolicy:           retryForEver(),
		WaitForCancellation:   true,
		DisableEagerExecution: !first || l.number > 0,
		Summary:               l.turnSummary(in.WaitSeconds > 0),
	})
	var acts *activities.Queue
	err = workflow.ExecuteActivity(ctx, acts.ProcessBatch, in).Get(ctx, &out)
	return out, err
}

// countTurn adds what a turn did.
func (l *lane) countTurn(ctx workflow.Context, out models.TurnReport) {
	a := l.a
	a.state.IdleSince = nil
	l.said = fmt.Sprintf("turn %d worked %s", l.turnNumber, say(out))
	if out.More {
		a.backlog++
	}
	addTurn(&a.state.Counts, out)
	a.state.LastTurn = &models.TurnSummary{ID: l.turnID, Lane: l.number, At: workflow.Now(ctx), Report: out}
	a.describe()
}

// found takes in that a turn has found work: its lane waits no more, and with more work than it
// takes all lanes begin.
func (a *run) found(f models.FoundWork) {
	for _, l := range a.lanes {
		if l == nil || !l.processing && a.waiting != l || l.turnID != f.TurnID {
			continue
		}
		l.stopWaiting()
		l.processing, a.state.IdleSince = true, nil
		if f.Full {
			a.backlog++
			l.seen = a.backlog
		}
		a.describe()
	}
}

// stopWaiting lets another lane wait.
func (l *lane) stopWaiting() {
	if l.a.waiting == l {
		l.a.waiting = nil
	}
}

// noteIdle notes that nothing is due: a lane waits for work, and no other one works or is to look
// for more.
func (a *run) noteIdle(ctx workflow.Context) {
	if a.state.IdleSince != nil || a.waiting == nil || a.waiting.seen < a.backlog || a.count((*lane).isProcessing) > 0 {
		return
	}
	now := workflow.Now(ctx)
	a.state.IdleSince = &now
	a.describe()
}

// leaveBehind remembers turns that hold leases and have ended. Every turn is told of them when it
// begins, and reclaims what they hold; one that waits already is begun anew for it.
func (a *run) leaveBehind(turns ...string) {
	for _, id := range turns {
		if !slices.Contains(a.state.LeftBehind, id) {
			a.state.LeftBehind = append(a.state.LeftBehind, id)
		}
	}
	if len(turns) > 0 {
		a.interruptWaiting()
	}
}

// noteReclaimed forgets the turns that no longer hold anything, and remembers new ones.
func (a *run) noteReclaimed(asked, left []string) {
	a.state.LeftBehind = update(a.state.LeftBehind, asked, left)
}

// noteSilent does the same for turns whose worker fell silent, for which a run with ExitWhenEmpty
// waits.
func (a *run) noteSilent(asked, holding []string) {
	if a.input.ExitWhenEmpty {
		a.state.Silent = update(a.state.Silent, asked, holding)
	}
}

// update removes from known turns those that were asked about and hold nothing any more, and adds
// those that hold something.
func update(known, asked, holding []string) []string {
	known = slices.DeleteFunc(known, func(id string) bool {
		return slices.Contains(asked, id) && !slices.Contains(holding, id)
	})
	for _, id := range holding {
		if !slices.Contains(known, id) {
			known = append(known, id)
		}
	}
	return known
}

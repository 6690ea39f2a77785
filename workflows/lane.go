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

// lane is one of the loops that run side by side: fetch, process, again.
type lane struct {
	a      *run
	number int
	// worksAtOnce: the lane's next turn, which is its first, needs no fetch before it.
	worksAtOnce bool
	// turn is the number of the lane's present turn.
	turnNumber int
	// seen is the backlog at the lane's last fetch: when it has grown since, there is work for one
	// more lane.
	seen        int
	processing  bool
	fetching    bool
	cancelFetch workflow.CancelFunc
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
		if err := workflow.Await(ctx, func() bool { return l.ending() || l.mayFetch() }); err != nil || l.ending() {
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

// mayFetch says whether the lane may fetch. One lane waits for work; the others are parked until
// there is more than that lane can lease, or until it is busy.
func (l *lane) mayFetch() bool {
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

// turn is one pass: fetch, and process what was fetched.
func (l *lane) turn(ctx workflow.Context) error {
	a := l.a
	a.turns++
	l.turnNumber = a.turns
	id := fmt.Sprintf("%s/%d/%d", a.runID, l.number, l.turnNumber)
	if l.worksAtOnce {
		l.worksAtOnce = false
		return l.process(ctx, id, 0)
	}
	fetched, err := l.fetch(ctx, id)
	if err != nil {
		// If it leased something before it failed, a later fetch reclaims it.
		a.leaveBehind(id)
		return err
	}
	a.state.Counts.Lost += int64(fetched.Lost)
	a.state.Counts.Failed += int64(fetched.Failed)
	if fetched.Worked != nil {
		addJobs(&a.state.Counts, *fetched.Worked)
	}
	if fetched.Full {
		a.backlog++
		l.seen = a.backlog
	}
	if fetched.Leased == 0 {
		if a.input.ExitWhenEmpty && a.count((*lane).isBusy) == 0 && len(a.state.LeftBehind)+len(a.state.Silent) == 0 {
			a.empty = true
			a.drain()
		}
		return nil
	}
	a.state.IdleSince = nil
	if a.cancelled {
		a.leaveBehind(id)
		return nil
	}
	return l.process(ctx, id, fetched.Leased)
}

// fetch leases the first jobs of a turn. The lane that finds no other lane waiting waits.
func (l *lane) fetch(ctx workflow.Context, id string) (activities.FetchOutput, error) {
	a := l.a
	in := activities.FetchInput{
		TurnID: id, Batch: a.state.Settings.BatchSize,
		LeftBehind: slices.Clone(a.state.LeftBehind),
	}
	l.seen = a.backlog
	ctx, l.cancelFetch = workflow.WithCancel(ctx)
	defer l.cancelFetch()
	l.fetching = true
	defer func() { l.fetching = false }()
	if a.waiting == nil && !a.input.ExitWhenEmpty {
		in.WaitSeconds = a.state.Settings.PollIntervalSeconds
		a.waiting = l
		defer func() { a.waiting = nil }()
		a.noteIdle(ctx)
	}
	if a.input.ExitWhenEmpty {
		in.Silent = slices.Clone(a.state.Silent)
		if len(in.LeftBehind)+len(in.Silent) > 0 {
			// Only rows are left that another transaction or worker holds: fetch again, but not at once.
			in.WaitSeconds = 1
		}
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Duration(in.WaitSeconds)*time.Second + time.Minute,
		HeartbeatTimeout:    activities.HeartbeatTimeout,
		RetryPolicy:         retryForEver(),
		WaitForCancellation: true,
		Summary:             l.fetchSummary(),
	})
	var acts *activities.Queue
	var out activities.FetchOutput
	err := workflow.ExecuteActivity(ctx, acts.FetchBatch, in).Get(ctx, &out)
	if err == nil {
		a.noteReclaimed(in.LeftBehind, out.LeftBehind)
		a.state.Silent = slices.DeleteFunc(a.state.Silent, func(id string) bool {
			return slices.Contains(in.Silent, id) && !slices.Contains(out.Silent, id)
		})
	}
	return out, err
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

// leaveBehind remembers turns that hold leases and have ended. Every fetch is told of them, so that
// the next lane reclaims what they hold; a fetch that waits already is begun anew for it.
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
	a.state.LeftBehind = slices.DeleteFunc(a.state.LeftBehind, func(id string) bool {
		return slices.Contains(asked, id) && !slices.Contains(left, id)
	})
	for _, id := range left {
		if !slices.Contains(a.state.LeftBehind, id) {
			a.state.LeftBehind = append(a.state.LeftBehind, id)
		}
	}
}

// process works the turn, for which leased jobs were fetched. A turn for which none were is the
// first one of its lane, and ends when nothing is due. Temporal hands turns out, so that lanes
// spread over workers; the workflow's first one begins at once, on the worker that runs the
// workflow.
func (l *lane) process(ctx workflow.Context, id string, leased int) error {
	a := l.a
	first := leased == 0
	l.processing = true
	defer func() {
		l.processing = false
		a.noteIdle(ctx)
	}()
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:   processTimeout,
		HeartbeatTimeout:      activities.HeartbeatTimeout,
		RetryPolicy:           retryForEver(),
		WaitForCancellation:   true,
		DisableEagerExecution: !first || l.number > 0,
		Summary:               l.processSummary(leased),
	})
	in := activities.ProcessInput{
		TurnID: id, Batch: a.state.Settings.BatchSize, TurnSeconds: turnSeconds, Linger: !a.input.ExitWhenEmpty && !first,
	}
	var acts *activities.Queue
	var out models.TurnReport
	if err := workflow.ExecuteActivity(ctx, acts.ProcessBatch, in).Get(ctx, &out); err != nil {
		a.leaveBehind(id)
		return err
	}
	a.leaveBehind(out.LeftBehind...)
	if a.input.ExitWhenEmpty {
		a.state.Silent = append(a.state.Silent, out.Silent...)
	}
	l.said = fmt.Sprintf("turn %d worked %s", l.turnNumber, say(out))
	if out.More {
		a.backlog++
	}
	addTurn(&a.state.Counts, out)
	a.state.LastTurn = &models.TurnSummary{ID: id, Lane: l.number, At: workflow.Now(ctx), Report: out}
	a.describe()
	return nil
}

package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/daybook-dev/daybook/activities"
)

// Runs of versions 1 to 3 have two activities a turn: one fetches, which also waits, and one
// processes what was fetched.

// fetchAndProcess is turn in runs of versions 1 to 3.
func (l *lane) fetchAndProcess(ctx workflow.Context, id string) error {
	a := l.a
	if l.worksAtOnce {
		l.worksAtOnce = false
		return l.processFetched(ctx, id, 0)
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
	return l.processFetched(ctx, id, fetched.Leased)
}

// fetch leases the first jobs of a turn. The lane that finds no other lane waiting waits.
func (l *lane) fetch(ctx workflow.Context, id string) (activities.FetchOutput, error) {
	a := l.a
	in := activities.FetchInput{
		TurnID: id, Batch: a.state.Settings.BatchSize,
		LeftBehind: slices.Clone(a.state.LeftBehind),
	}
	l.seen = a.backlog
	ctx, l.cancelWait = workflow.WithCancel(ctx)
	defer l.cancelWait()
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
		Summary:             l.summary(fmt.Sprintf("turn %d looks for work", l.turnNumber)),
	})
	var acts *activities.Queue
	var out activities.FetchOutput
	err := workflow.ExecuteActivity(ctx, acts.FetchBatch, in).Get(ctx, &out)
	if err == nil {
		a.noteReclaimed(in.LeftBehind, out.LeftBehind)
		a.noteSilent(in.Silent, out.Silent)
	}
	return out, err
}

// processFetched works the turn, for which leased jobs were fetched. A turn for which none were is
// the first one of its lane, and ends when nothing is due.
func (l *lane) processFetched(ctx workflow.Context, id string, leased int) error {
	a := l.a
	first := leased == 0
	l.processing = true
	defer func() {
		l.processing = false
		a.noteIdle(ctx)
	}()
	out, err := l.process(ctx, activities.ProcessInput{
		TurnID: id, Batch: a.state.Settings.BatchSize, TurnSeconds: turnSeconds, Linger: !a.input.ExitWhenEmpty && !first,
	}, first)
	if err != nil {
		a.leaveBehind(id)
		return err
	}
	a.leaveBehind(out.LeftBehind...)
	a.noteSilent(nil, out.Silent)
	l.countTurn(ctx, out)
	return nil
}

package health

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// queueFinding is about due jobs whose named queue is paused or has no worker.
func (p *probe) queueFinding(f Finding, g diagnosis.Due, waits time.Duration) Finding {
	f.Severity, f.Queue = Warning, g.Needs
	name := shell(f.Queue)
	if g.Reason == diagnosis.QueuePaused {
		f.Code, f.Since = QueuePaused, store.TimeOrNil(g.HeldSince)
		f.Says = fmt.Sprintf("Queue %s has been paused for %s: %s", f.Queue, phrase.Age(p.clock().Sub(g.HeldSince)),
			waiting(f, waits))
		f.Todo = "Resume it when its jobs may be worked: `daybook queues resume " + name + "`."
		return f
	}
	f.Code, f.follows = QueueUnworked,
		slices.ContainsFunc(p.Workflows, func(w Workflow) bool { return w.fleet == g.Fleet })
	if g.Fleet == "" {
		f.Says = fmt.Sprintf("No worker runs that works queue %s: %s", f.Queue, waiting(f, waits))
		f.Todo = "Start `daybook worker`."
		return f
	}
	f.Says = fmt.Sprintf("Queue %s is worked by the workers of the fleet %s, and none of them runs: %s", f.Queue, g.Fleet,
		waiting(f, waits))
	f.Todo = "Start one: `DAYBOOK_FLEET=" + shell(g.Fleet) +
		" daybook worker`. Or give the queue to the workers without a fleet: `daybook queues set " + name + " --fleet ''`."
	return f
}

// limitedFinding is about due jobs whose named queue is at its limit or its rate.
func (p *probe) limitedFinding(f Finding, g diagnosis.Due, u store.NamedQueue, waits time.Duration) Finding {
	f.Queue, f.Code, f.Severity = g.Needs, CapReached, Info
	if waits > warnAfter {
		f.Severity = Warning
	}
	set := "`daybook queues set " + shell(f.Queue)
	switch {
	case g.Limit == 0:
		rate := ""
		if u.Rate > 0 {
			rate = fmt.Sprintf(" of %s in %s", phrase.Count(int64(u.Rate)),
				phrase.Duration(time.Duration(u.RateSeconds*float64(time.Second))))
		}
		f.Says = fmt.Sprintf("Queue %s has begun as many jobs as its rate%s allows: %s", f.Queue, rate, waiting(f, waits))
		f.Todo = "If more may begin, raise the rate: " + set + " --rate " + raised(int64(max(u.Rate, 1))) + "`."
	case u.MaxParallel == 0 || int64(u.MaxParallel) > g.Limit:
		f.Says = fmt.Sprintf("Queue %s has %s at work, as many as its workers may have, %d each: %s",
			f.Queue, phrase.Plural(g.Limit, "job", "jobs"), u.PerProcess, waiting(f, waits))
		f.Todo = "If each may have more, raise the limit: " + set + " --per-process " +
			raised(int64(max(u.PerProcess, 1))) + "`. Or start another worker: `daybook worker`."
	default:
		f.Says = fmt.Sprintf("Queue %s has %s at work, as many as its limit allows: %s", f.Queue,
			phrase.Plural(g.Limit, "job", "jobs"), waiting(f, waits))
		f.Todo = "If more may run at a time, raise the limit: " + set + " --max-parallel " + raised(g.Limit) + "`."
	}
	return f
}

// heldSequences looks for sequences whose turn a dead letter has.
func (p *probe) heldSequences(ctx context.Context, tx pgx.Tx) ([]Finding, error) {
	held, err := diagnosis.HeldSequences(ctx, tx, p.OrgID, named)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, h := range held {
		p.behind += h.Waiting
		f := Finding{
			Code: SequenceHeld, Severity: Warning, Kind: "jobs", OrgID: h.OrgID, Type: h.Type, ErrorCode: h.Code,
			Count: h.Waiting, AtLeast: h.Waiting >= diagnosis.HeldMost,
			Since: store.TimeOrNil(h.Since), Example: h.ID, ExampleOrg: h.OrgID,
		}
		f.Says = fmt.Sprintf("Sequence %s of organization %s has stood still for %s, because its job of type %s failed "+
			"for good (%s): %s behind it.",
			clip(h.Sequence, 100), clip(h.OrgID, 100), phrase.Age(p.clock().Sub(h.Since)), h.Type, orNoCode(h.Code),
			behind(f))
		f.Todo = "See why it failed: " + showCommand(f) + ". Mend the cause, then `daybook jobs retry " + shell(h.ID) +
			"`; or let the sequence go on without it: `daybook jobs cancel " + shell(h.ID) + "`."
		found = append(found, f)
	}
	if len(held) > 0 && held[0].All > int64(len(held)) {
		more := held[0].All - int64(len(held))
		f := Finding{Code: SequenceHeld, Severity: Warning, Kind: "jobs", OrgID: p.OrgID, Count: more}
		f.Says = fmt.Sprintf("%s more held up by dead letters.",
			map[bool]string{true: "1 sequence is", false: phrase.Count(more) + " sequences are"}[more == 1])
		f.Todo = "List the dead letters: `daybook jobs list --state failed`."
		found = append(found, f)
	}
	late, err := p.lateSequences(ctx, tx)
	return append(found, late...), err
}

// behind says how many jobs of a sequence wait.
func behind(f Finding) string {
	switch {
	case f.AtLeast:
		return phrase.Count(f.Count) + " jobs or more wait"
	case f.Count == 1:
		return "1 job waits"
	}
	return phrase.Count(f.Count) + " jobs wait"
}

// lateAfter is in how long the job that has the turn of a sequence is due that holds it up: more
// than any delay between attempts by default.
const lateAfter = 24 * time.Hour

// lateSequences looks for sequences whose turn a job has that is due only much later.
func (p *probe) lateSequences(ctx context.Context, tx pgx.Tx) ([]Finding, error) {
	late, err := diagnosis.LateSequences(ctx, tx, p.OrgID, named, lateAfter.Seconds())
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, l := range late {
		p.behind += l.Waiting
		f := Finding{
			Code: SequenceHeld, Severity: Warning, Kind: "jobs", OrgID: l.OrgID, Type: l.Type, Count: l.Waiting,
			AtLeast: l.Waiting >= diagnosis.HeldMost,
			Example: l.ID, ExampleOrg: l.OrgID,
		}
		due := time.Duration(l.Seconds) * time.Second
		f.Says = fmt.Sprintf("Sequence %s of organization %s waits for job %s of type %s, which has the turn and is due "+
			"only in %s: %s behind it.",
			clip(l.Sequence, 100), clip(l.OrgID, 100), l.ID, l.Type, phrase.Age(due), behind(f))
		f.Todo = "Look at it: " + showCommand(f) + ". Have it worked now: `daybook jobs retry " + shell(l.ID) +
			"`; or let the sequence go on without it: `daybook jobs cancel " + shell(l.ID) + "`."
		found = append(found, f)
	}
	if len(late) > 0 && late[0].All > int64(len(late)) {
		f := Finding{Code: SequenceHeld, Severity: Warning, Kind: "jobs", OrgID: p.OrgID, Count: late[0].All - int64(len(late))}
		f.Says = fmt.Sprintf("%s for a job that is due only later.",
			map[bool]string{
				true:  "1 more sequence waits",
				false: phrase.Count(f.Count) + " more sequences wait",
			}[f.Count == 1])
		f.Todo = "Mend those above, then ask again: `daybook doctor`."
		found = append(found, f)
	}
	return found, nil
}

package health

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/phrase"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
)

// queueFinding is about due jobs that their named queue holds back.
func (p *probe) queueFinding(f Finding, g diagnosis.Due, waits time.Duration) Finding {
	f.Severity, f.Queue = Warning, g.Needs
	name := shell(f.Queue)
	switch g.Reason {
	case diagnosis.QueuePaused:
		f.Code, f.Since = QueuePaused, store.TimeOrNil(g.HeldSince)
		f.Says = fmt.Sprintf("Queue %s is paused, since %s: %s, the oldest due for %s.", f.Queue, phrase.Age(p.clock().Sub(g.HeldSince)), waiting(f), phrase.Age(waits))
		f.Todo = "Resume it when its jobs may be worked: `daybook queues resume " + name + "`."
	case diagnosis.QueueUnworked:
		f.Code = QueueUnworked
		fleet, start := "the fleet "+g.Fleet, "Start a worker of it: `DAYBOOK_FLEET="+g.Fleet+" daybook worker`, or let another fleet work the queue"
		if g.Fleet == "" {
			fleet, start = "the fleet without a name, which works it", "Start one: `daybook worker`, or let another fleet work the queue"
		}
		f.Says = fmt.Sprintf("No worker of %s runs, and queue %s is its: %s, the oldest due for %s.", fleet, f.Queue, waiting(f), phrase.Age(waits))
		f.Todo = start + ": `daybook queues set " + name + " --fleet NAME`."
	default:
		f.Code, f.Severity = CapReached, Info
		if waits > warnAfter {
			f.Severity = Warning
		}
		limit := "its rate"
		if g.Limit > 0 {
			limit = "its limit of " + plural(g.Limit, "job", "jobs") + " at a time"
		}
		f.Says = fmt.Sprintf("Queue %s is at %s: %s, the oldest due for %s.", f.Queue, limit, waiting(f), phrase.Age(waits))
		f.Todo = "If more may be worked, raise it: `daybook queues set " + name + "` (`daybook queues list " + name + "` shows its settings)."
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
		f := Finding{
			Code: SequenceHeld, Severity: Warning, Kind: "jobs", OrgID: h.OrgID, Type: h.Type, ErrorCode: h.Code, Count: h.Waiting, AtLeast: h.Waiting >= diagnosis.HeldMost,
			Since: store.TimeOrNil(h.Since), Example: h.ID, ExampleOrg: h.OrgID,
		}
		f.Says = fmt.Sprintf("Sequence %s of organization %s has been held up for %s by a dead letter of type %s (%s): %s behind it.",
			clip(h.Sequence, 100), clip(h.OrgID, 100), phrase.Age(p.clock().Sub(h.Since)), h.Type, orNoCode(h.Code), behind(f))
		f.Todo = "See why it failed: " + showCommand(f) + ". Mend the cause, then `daybook jobs retry " + shell(h.ID) + "`; or let the sequence go on without it: `daybook jobs cancel " + shell(h.ID) + "`."
		found = append(found, f)
	}
	if len(held) > 0 && held[0].All > int64(len(held)) {
		more := held[0].All - int64(len(held))
		f := Finding{Code: SequenceHeld, Severity: Warning, Kind: "jobs", Count: more}
		f.Says = fmt.Sprintf("%s more held up by dead letters.", map[bool]string{true: "1 sequence is", false: phrase.Count(more) + " sequences are"}[more == 1])
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

// lateAfter is in how long the job that has the turn of a sequence is due that holds it up: more than any delay between
// attempts by default.
const lateAfter = 24 * time.Hour

// lateSequences looks for sequences whose turn a job has that is due only much later.
func (p *probe) lateSequences(ctx context.Context, tx pgx.Tx) ([]Finding, error) {
	late, err := diagnosis.LateSequences(ctx, tx, p.OrgID, named, lateAfter.Seconds())
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, l := range late {
		f := Finding{
			Code: SequenceHeld, Severity: Warning, Kind: "jobs", OrgID: l.OrgID, Type: l.Type, Count: l.Waiting, AtLeast: l.Waiting >= diagnosis.HeldMost,
			Example: l.ID, ExampleOrg: l.OrgID,
		}
		due := time.Duration(l.Seconds) * time.Second
		f.Says = fmt.Sprintf("Sequence %s of organization %s waits for job %s of type %s, which has the turn and is due only in %s: %s behind it.",
			clip(l.Sequence, 100), clip(l.OrgID, 100), l.ID, l.Type, phrase.Age(due), behind(f))
		f.Todo = "Look at it: " + showCommand(f) + ". Have it worked now: `daybook jobs retry " + shell(l.ID) + "`; or let the sequence go on without it: `daybook jobs cancel " + shell(l.ID) + "`."
		found = append(found, f)
	}
	if len(late) > 0 && late[0].All > int64(len(late)) {
		f := Finding{Code: SequenceHeld, Severity: Warning, Kind: "jobs", Count: late[0].All - int64(len(late))}
		f.Says = fmt.Sprintf("%s for a job that is due only later.", map[bool]string{true: "1 more sequence waits", false: phrase.Count(f.Count) + " more sequences wait"}[f.Count == 1])
		f.Todo = "Mend those above, then ask again: `daybook doctor`."
		found = append(found, f)
	}
	return found, nil
}

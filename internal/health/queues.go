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
		wait := "1 job waits"
		if h.Waiting != 1 {
			wait = phrase.Count(h.Waiting) + " jobs wait"
		}
		if f.AtLeast {
			wait = phrase.Count(h.Waiting) + " jobs or more wait"
		}
		f.Says = fmt.Sprintf("Sequence %s of organization %s has been held up for %s by a dead letter of type %s (%s): %s behind it.",
			clip(h.Sequence, 100), clip(h.OrgID, 100), phrase.Age(p.clock().Sub(h.Since)), h.Type, orNoCode(h.Code), wait)
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
	return found, nil
}

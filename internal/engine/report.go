package engine

import (
	"cmp"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/internal/telemetry/span"
	"github.com/daybook-dev/daybook/models"
)

// Report counts what a turn did: activities.ProcessOutput, which is made of it field by field, says
// what each means.
type Report struct {
	Leased, Completed, Retried, Rescheduled, Failed, Cancelled, Lost, Released int

	More               bool
	LeftBehind, Silent []string
	Stopped            bool
}

func (r *Report) add(o Report) {
	r.Leased += o.Leased
	r.Completed += o.Completed
	r.Retried += o.Retried
	r.Rescheduled += o.Rescheduled
	r.Failed += o.Failed
	r.Cancelled += o.Cancelled
	r.Lost += o.Lost
	r.Released += o.Released
}

// tally is the report of a turn while it is made. It is safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	report Report
	// requeued counts completed jobs that are pending again because they were asked for anew
	// meanwhile.
	requeued int
	// listener is called with the counts when they change; nil: no listener.
	listener func(Report)
}

func (t *tally) note(change func(r *Report)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.report)
}

// count adds the outcomes of attempts, and tells the listener.
func (t *tally) count(completed store.Completed) {
	t.note(func(r *Report) {
		r.Completed += completed[models.OutcomeCompleted]
		r.Retried += completed[models.OutcomeRetried]
		r.Rescheduled += completed[models.OutcomeRescheduled]
		r.Failed += completed[models.OutcomeFailed]
		r.Cancelled += completed[models.OutcomeCancelled]
		t.requeued += completed[store.Requeued]
	})
	t.tell()
}

func (t *tally) tell() {
	t.mu.Lock()
	report, listener := t.report, t.listener
	t.mu.Unlock()
	if listener != nil {
		listener(report)
	}
}

func (t *tally) soFar() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.report
}

// takeRequeued returns how many jobs are pending again since it was last called.
func (t *tally) takeRequeued() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.requeued
	t.requeued = 0
	return n
}

// split returns the report so far and begins a new one, without a listener.
func (t *tally) split() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	report := t.report
	t.report, t.listener = Report{}, nil
	return report
}

// observer tells a sink what is committed. Its methods may be called without one (nil), and from
// any goroutine.
type observer struct {
	sink events.Sink
	// turns is the sink, if it is to know of turns as well; else nil.
	turns    events.TurnSink
	kind     string
	handlers Handlers

	// mu guards how many lanes there are, and lets the sink be told in their order.
	mu           sync.Mutex
	active, idle int
}

// newObserver returns nil when there is no sink. Then nothing is made of events.
func newObserver(sink events.Sink, k Kind, h Handlers) *observer {
	if sink == nil {
		return nil
	}
	o := &observer{sink: sink, kind: k.Name(), handlers: h}
	o.turns, _ = sink.(events.TurnSink)
	k.Observe(o.changed)
	return o
}

// batches are slices of events that are used again.
var batches = sync.Pool{New: func() any { return new([]events.Event) }}

func (o *observer) tell(n int, each func(i int, e *events.Event)) {
	if o == nil || n == 0 {
		return
	}
	batch, _ := batches.Get().(*[]events.Event)
	*batch = (*batch)[:0]
	now := time.Now()
	ownedType, owner := "", ""
	for i := range n {
		*batch = append(*batch, events.Event{Kind: o.kind, At: now})
		e := &(*batch)[i]
		each(i, e)
		if i == 0 || e.Type != ownedType {
			h, _ := o.handlers.Handling(e.Type)
			ownedType, owner = e.Type, h.Owner
		}
		e.Owner = owner
	}
	o.sink.Observe(*batch)
	clear(*batch)
	batches.Put(batch)
}

func about(e *events.Event, j *store.Job) {
	e.OrgID, e.Type, e.JobID, e.DocumentID, e.Attempt = j.OrgID, j.Type, j.ID, j.DocumentID, j.Attempt
	e.Trace = span.TraceID(j.TraceParent)
	if !j.ReadyHere.IsZero() {
		e.Waited = max(0, e.At.Sub(j.ReadyHere))
	}
}

// completed tells how attempts have ended, by a transaction that is committed; counted is what it
// led to. took is how long the call took for attempts that do not say so themselves.
func (o *observer) completed(turn store.Turn, all []store.Completion, counted store.Completed, took time.Duration) {
	o.tell(len(all), func(i int, e *events.Event) {
		c := &all[i]
		about(e, &c.Job)
		outcome := c.Outcome
		if outcome == models.OutcomeCancelled && counted[outcome] == 0 {
			outcome = models.OutcomeRescheduled // the kind cancels nothing
		}
		e.Name, e.Code, e.Error = events.Name(outcome), string(c.Code), c.Message
		e.Worker, e.Turn, e.Took, e.Delay = turn.Worker, turn.ID, cmp.Or(c.Took, took), c.Delay
		e.Counted, e.Unlogged = outcome != models.OutcomeRescheduled, c.Unlogged
		if e.Waited > 0 {
			// When the attempt was ready is known from when its row came, which may have been long after
			// it was sent.
			e.Waited = max(e.Waited, e.Took)
		}
	})
}

// leased tells of jobs that a turn has on record from now on.
func (o *observer) leased(turn store.Turn, jobs []store.Job) {
	o.tell(len(jobs), func(i int, e *events.Event) {
		about(e, &jobs[i])
		e.Name, e.Worker, e.Turn, e.Unlogged = events.Leased, turn.Worker, turn.ID, true
	})
}

// changed tells of what the store has done by itself.
func (o *observer) changed(changes []store.Change) {
	o.tell(len(changes), func(i int, e *events.Event) {
		c := &changes[i]
		about(e, &c.Job)
		e.Name, e.Code, e.Error, e.Worker, e.Turn = c.What, string(c.Code), c.Message, c.Worker, c.Turn
		e.Counted, e.Unlogged = c.Counted, !c.Counted
	})
}

func (o *observer) turn(q TurnRequest, turn store.Turn, r Report, began time.Time, err error) {
	if o == nil || o.turns == nil {
		return
	}
	t := events.Turn{
		Kind: o.kind, ID: turn.ID, Worker: turn.Worker, Batch: q.Batch, Jobs: r.Leased, Completed: r.Completed,
		Retried: r.Retried, Rescheduled: r.Rescheduled, Failed: r.Failed, Cancelled: r.Cancelled, Lost: r.Lost,
		GivenBack: r.Released, Length: time.Since(began), Detached: turn.Detached,
	}
	if err != nil {
		t.Error = err.Error()
	}
	o.turns.ObserveTurn(t)
}

// woken tells why a lane looks for work.
func (o *observer) woken(cause events.Cause) {
	if o != nil && o.turns != nil {
		o.turns.ObserveWakeup(o.kind, cause)
	}
}

// lanes tells that lanes have begun or ended to work, or to wait.
func (o *observer) lanes(active, idle int) {
	if o == nil || o.turns == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.active += active
	o.idle += idle
	o.turns.ObserveLanes(o.kind, o.active, o.idle)
}

// rest tells that the turn's lane waits for work, or works again.
func (r *runner) rest(resting bool) {
	if resting == r.resting {
		return
	}
	if r.resting = resting; resting {
		r.engine.observer.lanes(-1, 1)
	} else {
		r.engine.observer.lanes(1, -1)
	}
}

package engine

import (
	"sync"

	"github.com/daybook-dev/daybook/internal/store"
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

// add counts what another report counts.
func (r *Report) add(o Report) {
	r.Leased += o.Leased
	r.Completed += o.Completed
	r.Retried += o.Retried
	r.Rescheduled += o.Rescheduled
	r.Failed += o.Failed
	r.Cancelled += o.Cancelled
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

// note changes the report.
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

// tell tells the listener the counts so far.
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

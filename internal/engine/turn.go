package engine

import (
	"context"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TurnRequest asks for one bounded pass over the queue.
type TurnRequest struct {
	Turn store.Turn
	// Batch is how many jobs each refill leases at most.
	Batch int
	// Length is how long the turn goes on refilling; running calls are finished after it.
	Length time.Duration
	// Linger lets the turn wait for new work until Length is up when the queue runs empty. Otherwise the turn ends when all is read, and nothing
	// is due that could be worked now: not what another transaction has locked, nor that for which there is no room.
	Linger bool
	// Crashed says that an earlier activity of this turn did not end by itself.
	Crashed bool
	// Stop tells the turn to finish its running calls, give the rest back and report.
	Stop <-chan struct{}
	// Enough tells a turn to begin nothing more and to give back what it has not begun; what runs ends in its own time. Nil: never.
	Enough <-chan struct{}
	// Alive says whether the turn may go on leasing: its last acknowledged heartbeat is young enough. Nil: always.
	Alive func() bool
	// Progress is called with the counts so far when they change. Nil: not called.
	Progress func(Report)
	// Trouble is that of FetchRequest.
	Trouble func(error)
}

// Process works a turn: it reclaims what the turn's earlier activities leased, works it, and refills until the turn's time is up. An error
// means that the database is unavailable: no job is charged, and the same turn may be processed again.
func (e *Engine) Process(ctx context.Context, q TurnRequest) (Report, error) {
	e.StartReclaiming()
	began := time.Now()
	e.observer.lanes(1, 0)
	defer e.observer.lanes(-1, 0)
	err := e.persist(ctx, q.Stop, "begin a turn", func() (err error) {
		q.Turn.Fence, err = e.kind.NextFence(ctx)
		tell(q.Trouble, err)
		return err
	})
	if err != nil {
		return Report{}, err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := e.newRunner(q, cancel)
	end := r.tend(ctx, work)
	detached, err := r.run(ctx, work)
	end()
	if detached {
		report, err := r.goOn(ctx, work)
		e.observer.turn(q, q.Turn, report, began, err)
		return report, err
	}
	defer cancel()
	if err == nil {
		err = r.holder.finish(ctx, q.Stop, r.holder.turn())
	}
	r.close()
	report := r.tally.soFar()
	e.observer.turn(q, q.Turn, report, began, err)
	return e.withLate(report), err
}

// Report counts what a turn did: models.TurnReport, which is made of it field by field, says what each means.
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
	// requeued counts completed jobs that are pending again because they were asked for anew meanwhile.
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

package engine

import (
	"context"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// A turn of background jobs is over when its time is up, also when handlers take longer: nobody waits for them. Their jobs are
// handed over to a turn that no activity belongs to, and go on in this process.

// outliveAfter is how long a job has been worked when its turn ends without it.
const outliveAfter = time.Second

// handOverPause is the pause before another try at a hand-over that a completion held off.
const handOverPause = 20 * time.Millisecond

// outlived is what an engine knows of jobs that go on after their turns.
type outlived struct {
	running sync.WaitGroup

	mu sync.Mutex
	// late is what has become of such jobs and was not reported yet.
	late Report
}

// withLate adds to a turn's report what has become of jobs that outlived earlier ones.
func (e *Engine) withLate(r Report) Report {
	o := &e.outlived
	o.mu.Lock()
	defer o.mu.Unlock()
	r.add(o.late)
	o.late = Report{}
	return r
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

// outlive hands the jobs that are being worked over, if the turn has nothing else to do than to wait for them.
func (s *stream) outlive(work context.Context) (left bool, err error) {
	if s.unattended || !s.request.Linger || s.active == 0 || s.leasing || s.settling || len(s.ended)+len(s.held) > 0 {
		return false, nil
	}
	calls := s.longRunning()
	if len(calls) != s.active {
		return false, nil
	}
	var ids []string
	for _, c := range calls {
		ids = append(ids, idsOf(c.inHand)...)
	}
	if !s.handover.TryLock() {
		// A job is being completed, or the leases renewed: what runs beside them is not to wait.
		s.wakeAt(time.Now().Add(handOverPause))
		return false, nil
	}
	defer s.handover.Unlock()
	inHand := s.inHand()
	before := s.identity()
	after := before
	after.ID = store.OutlivedPrefix + before.ID
	var handed bool
	// A connection that breaks leaves it open who holds the jobs: nothing else is done before that is known.
	err = s.engine.persist(work, nil, "hand jobs over", func() (err error) {
		handed, err = s.engine.store.HandOver(work, before, after, ids)
		return err
	})
	if err != nil {
		return false, err
	}
	if !handed {
		// Somebody holds a row for a moment, or a job is no longer the turn's.
		held, err := s.engine.store.Held(work, before)
		if err == nil {
			s.cancelLost(inHand, held)
		}
		return false, err
	}
	s.named.Store(&after)
	return true, nil
}

// longRunning returns the calls that have worked a job by itself for a while.
func (s *stream) longRunning() []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []*call
	for c := range s.calls {
		if c.alone && !c.abandoned && time.Since(c.began) >= outliveAfter {
			calls = append(calls, c)
		}
	}
	return calls
}

// goOn ends the turn for its activity, and waits for its jobs in the background.
func (s *stream) goOn(ctx, work context.Context) (Report, error) {
	before := s.identity()
	before.ID = s.request.Turn.ID
	err := s.finish(ctx, before)
	s.reclaimDoubtful(before)
	// What has not begun is no longer the stream's: it takes no room while the others go on.
	s.leaveRoom(s.takeQueue())
	s.engine.room.wait(s, nil)
	s.mu.Lock()
	report := s.report
	s.report = Report{}
	s.mu.Unlock()
	// Nobody listens any more.
	s.request.Progress = nil
	e := s.engine
	end := s.tend(e.life, work, e.options.RenewEvery)
	e.outlived.running.Go(func() { s.endAlone(work, s.drain(work, nil), end) })
	return e.withLate(report), err
}

// endAlone ends a stream that no activity waits for; err is its own.
func (s *stream) endAlone(work context.Context, err error, end func()) {
	defer s.cancelWork()
	o, log := &s.engine.outlived, s.engine.options.Log
	if err != nil {
		log.Error("jobs that outlived their turn could not be settled; they are taken over", "turn", s.identity().ID, "error", err)
	} else if err := s.finish(work, s.identity()); err != nil {
		log.Warn("what a turn still held was not given back", "turn", s.identity().ID, "error", err)
	}
	end()
	s.reclaimDoubtful(s.identity())
	s.close()
	late := s.soFar()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.late.add(late)
}

// fetchedTurn is the turn by which a fetch holds what it begins at once.
func fetchedTurn(turn store.Turn) store.Turn {
	turn.ID = store.OutlivedPrefix + turn.ID + "/fetched"
	return turn
}

// bridgeFor is how long a bridge takes more jobs.
const bridgeFor = time.Second

// bridge leases jobs for a fetch that has waited, and begins them at once, in the background: the turn's next activity is a hop
// through Temporal away. For a second it takes what else comes.
func (e *Engine) bridge(ctx context.Context, turn store.Turn, limit int, stop <-chan struct{}) (store.Leased, error) {
	turn = fetchedTurn(turn)
	turn.Begins = true
	leased, err := e.leaseRoomy(ctx, turn, limit)
	if err == nil {
		err = ctx.Err() // cancelled meanwhile: they are not begun
	}
	if err != nil || len(leased.Jobs) == 0 {
		for _, j := range leased.Jobs {
			e.room.Return(j.Type, 1)
		}
		return leased, err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := e.newTurn(TurnRequest{Turn: turn, Batch: limit, Length: bridgeFor, Linger: true, Stop: stop}, cancel)
	t.queue, t.report.Leased = leased.Jobs, len(leased.Jobs)
	s := newStream(t)
	s.unattended = true
	end := t.tend(e.life, work, e.options.RenewEvery)
	e.outlived.running.Go(func() {
		_, err := s.run(e.life, work)
		s.endAlone(work, err, end)
	})
	return leased, nil
}

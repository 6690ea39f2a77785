package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TurnRequest asks for one bounded pass over the queue.
type TurnRequest struct {
	Turn store.Turn
	// Batch is how many jobs each refill leases at most.
	Batch int
	// Length is how long the turn goes on refilling; running chunks are finished after it.
	Length time.Duration
	// Linger lets the turn wait for new work until Length is up when the queue runs empty.
	Linger bool
	// Crashed says that an earlier activity of this turn did not end by itself.
	Crashed bool
	// Stop tells the turn to finish its running chunks, give the rest back and report.
	Stop <-chan struct{}
	// Enough tells a turn of background jobs to begin nothing more and to give back what it has not begun; what runs ends in its own time.
	// Nil: never.
	Enough <-chan struct{}
	// Alive says whether the turn may go on leasing: its last acknowledged heartbeat is young enough. Nil: always.
	Alive func() bool
	// Progress is called after each chunk with the counts so far. Nil: nobody listens.
	Progress func(Report)
}

// Report counts what a turn did.
type Report struct {
	Leased      int `json:"leased"`
	Completed   int `json:"completed"`
	Retried     int `json:"retried"`
	Rescheduled int `json:"rescheduled"`
	Failed      int `json:"failed"`
	Cancelled   int `json:"cancelled"`
	// Lost counts attempts that ended with their worker.
	Lost int `json:"lost"`
	// Released counts jobs that were given back uncounted.
	Released int `json:"released"`
	// More says that the last refill was full: there is probably more to do.
	More bool `json:"more,omitempty"`
	// LeftBehind names the turn when rows that somebody held locked are still leased by it.
	LeftBehind []string `json:"leftBehind,omitempty"`
	// Silent names turns of earlier activities that fell silent and still hold leases: these are worked there, or reclaimed.
	Silent []string `json:"silent,omitempty"`
	// Stopped says that the turn was told to stop.
	Stopped bool `json:"stopped,omitempty"`
}

// Process works a turn: it takes over what the turn's earlier activities leased, works it chunk by chunk, and refills
// until the turn's time is up. An error means that the database is away: nobody is charged, and the same turn may be
// processed again.
func (e *Engine) Process(ctx context.Context, r TurnRequest) (Report, error) {
	var err error
	e.StartReclaiming()
	err = e.persist(ctx, r.Stop, "begin a turn", func() (err error) {
		r.Turn.Fence, err = e.store.NextFence(ctx)
		return err
	})
	if err != nil {
		return Report{}, err
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := e.newTurn(r, cancel)

	end := t.tend(ctx, work, e.options.RenewEvery)
	if e.handlers != nil {
		return e.processJobs(ctx, work, t, end)
	}
	err = t.run(ctx, work)
	end()
	if err == nil {
		err = t.finish(ctx, t.identity())
	}
	cancel()
	return t.soFar(), err
}

// tend watches over the turn until end is called: it renews its leases, and ends its work when ctx or Stop say so.
func (t *turn) tend(ctx, work context.Context, renewEvery time.Duration) (end func()) {
	var background sync.WaitGroup
	over := make(chan struct{})
	renewing, endRenewal := context.WithCancel(work)
	background.Go(func() { t.watchStop(ctx, over) })
	background.Go(func() { t.renew(renewing, renewEvery) })
	return func() {
		close(over)
		endRenewal()
		background.Wait()
	}
}

func (e *Engine) newTurn(r TurnRequest, cancelWork context.CancelFunc) *turn {
	t := &turn{engine: e, request: r, cancelWork: cancelWork, calls: map[*call]bool{}, batch: r.Batch, ends: time.Now().Add(r.Length)}
	t.named.Store(&r.Turn)
	return t
}

// turn is one activity's pass.
type turn struct {
	engine  *Engine
	request TurnRequest
	// named is the turn by which the leases are held. handover is locked while that changes.
	named    atomic.Pointer[store.Turn]
	handover sync.RWMutex
	// taking is locked while jobs are taken over, until they are in the queue.
	taking sync.Mutex
	// unsure: a sweep ended without saying what it took.
	unsure     atomic.Bool
	cancelWork context.CancelFunc
	// lost: leases of the turn were taken while it worked on them.
	lost atomic.Bool
	ends time.Time
	// batch is what the next refill asks for; dry says that the last one brought nothing.
	batch int
	dry   bool
	// leaseNext: there is work that is not to be worked without a lease.
	leaseNext bool

	mu     sync.Mutex
	report Report
	// requeued counts settled jobs that are pending again because they were asked for anew meanwhile.
	requeued int
	// queue holds what is leased and not begun; skipped what somebody held locked when it was to be worked.
	queue, skipped []store.Job
	calls          map[*call]bool
	skipPause      time.Duration
}

// identity is the turn by which the leases are held.
func (t *turn) identity() store.Turn { return *t.named.Load() }

// call is one call of a processor or handler.
type call struct {
	// inHand are the jobs that it works now.
	inHand   []store.Job
	cancel   context.CancelFunc
	deadline time.Time

	// The rest is for background jobs. jobType is their type, open how many they are together. later are those that it is to
	// work after these, one by one.
	jobType string
	open    int
	later   []store.Job
	began   time.Time
	// alone: a job is worked by itself, outside of transactions.
	alone bool
	// direct: what it works is not leased.
	direct bool
	// abandoned: it did not return when its context had ended, and is not waited for.
	abandoned bool
}

func (t *turn) begin(c *call) *call {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[c] = true
	return c
}

func (t *turn) end(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.calls, c)
}

// run works and refills until the turn is over. An outage is waited for: what is leased stays the turn's.
func (t *turn) run(ctx, work context.Context) error {
	if err := t.takeOverFirst(ctx, work); err != nil {
		return err
	}
	for {
		over := false
		err := t.engine.persist(ctx, t.request.Stop, "work a turn", func() (err error) {
			over, err = t.pass(ctx, work)
			return err
		})
		if over || err != nil {
			return err
		}
	}
}

// pass works what is leased, and leases more. over says that the turn is over.
func (t *turn) pass(ctx, work context.Context) (over bool, err error) {
	if err := t.workQueue(ctx, work); err != nil {
		return false, err
	}
	if t.stopping(ctx) {
		return true, nil
	}
	if !time.Now().Before(t.ends) || !t.alive() {
		// What a sleeping predecessor leased behind the take-over is swept in before the turn ends.
		if err := t.takeOver(work, false); err != nil {
			return false, err
		}
		return true, t.workQueue(ctx, work)
	}
	if err := t.refill(ctx, work); err != nil {
		return false, err
	}
	if t.idle() {
		t.report.More = false
		return true, nil
	}
	return false, nil
}

func (t *turn) idle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dry && len(t.queue) == 0 && len(t.skipped) == 0
}

// takeOver adds to the queue what earlier activities of the turn leased.
func (t *turn) takeOver(ctx context.Context, crashed bool) error {
	t.taking.Lock()
	defer t.taking.Unlock()
	taken, err := t.engine.store.TakeOver(ctx, t.identity(), []string{t.identity().ID}, crashed)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, taken.Jobs...)
	t.report.Leased += len(taken.Jobs)
	t.report.Lost += taken.Lost
	t.report.Failed += taken.Failed
	return nil
}

// stopping reports whether the turn was told to stop or is cancelled.
func (t *turn) stopping(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-t.request.Stop:
	default:
		return false
	}
	t.mu.Lock()
	t.report.Stopped = true
	t.mu.Unlock()
	return true
}

func (t *turn) alive() bool { return t.request.Alive == nil || t.request.Alive() }

// Rows that somebody held locked are left alone for firstSkip, and each time twice as long, up to skippedPause: another
// worker's lease that came too late holds them for a moment, a domain transaction for as long as it likes.
const (
	firstSkip    = 5 * time.Millisecond
	skippedPause = 200 * time.Millisecond
)

// refill leases the next batch; when nothing is due it lingers until work comes or the turn's time is up.
func (t *turn) refill(ctx, work context.Context) error {
	n, _, err := t.next(work)
	if err == nil && n == 0 && (t.request.Linger || len(t.skipped) > 0) {
		n, err = t.linger(ctx, work)
	}
	if err != nil {
		return err
	}
	again, err := t.stillHeld(work)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dry = n == 0
	t.report.More = n >= t.batch
	t.batch = t.nextBatch(n)
	t.queue = append(t.queue, again...)
	t.skipped = nil
	return nil
}

// next works the next jobs directly, or leases them and adds them to the queue. It returns how many they are, and when to
// look again if there are none.
func (t *turn) next(work context.Context) (n int, again time.Duration, err error) {
	if t.engine.options.Direct && !t.request.Crashed && !t.leaseNext {
		n, again, ok := t.workDirectly(work)
		if ok {
			return n, again, nil
		}
	}
	t.leaseNext = false
	leased, err := t.engine.leaseWhole(work, t.identity(), t.engine.startable(t.batch), nil)
	if err != nil {
		return 0, 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Leased += len(leased.Jobs)
	t.queue = append(t.queue, leased.Jobs...)
	return len(leased.Jobs), leased.Wait(), nil
}

// maxGrowth and maxRefill bound what a refill may ask for: so many times the batch, so many jobs.
const (
	maxGrowth = 10
	maxRefill = 1000
)

// nextBatch says how much the next refill asks for, after one that brought n jobs: twice as much while the queue is long,
// for fewer and larger transactions; the batch that was asked for as soon as it is not.
func (t *turn) nextBatch(n int) int {
	if n < t.batch {
		return t.request.Batch
	}
	return min(2*t.batch, maxGrowth*t.request.Batch, max(maxRefill, t.request.Batch))
}

// after is time.After, and never for 0.
func after(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// stillHeld returns the skipped jobs that are still the turn's; the others were taken over.
func (t *turn) stillHeld(ctx context.Context) ([]store.Job, error) {
	if len(t.skipped) == 0 {
		return nil, nil
	}
	held, err := t.engine.store.Held(ctx, t.identity())
	return keep(t.skipped, held), err
}

// linger waits for work inside the turn, so that a trickle is picked up without a hop through Temporal.
func (t *turn) linger(ctx, work context.Context) (int, error) {
	wait := time.Until(t.ends)
	if len(t.skipped) > 0 {
		t.skipPause = min(max(2*t.skipPause, firstSkip), skippedPause)
		wait = min(wait, t.skipPause)
	} else {
		t.skipPause = 0
	}
	wake, unsubscribe := t.engine.waker.Subscribe(true)
	defer unsubscribe()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if !t.alive() {
			return 0, nil
		}
		n, again, err := t.next(work)
		if err != nil || n > 0 {
			return n, err
		}
		select {
		case <-after(again):
		case <-ctx.Done():
			return 0, nil
		case <-t.request.Stop:
			return 0, nil
		case <-timer.C:
			return 0, nil
		case <-wake:
		}
	}
}

// workQueue works everything that is leased, unless the turn is told to stop first.
func (t *turn) workQueue(ctx, work context.Context) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	slots := make(chan struct{}, t.engine.options.Parallel)
	for {
		// What to do next is decided when there is somebody to do it.
		slots <- struct{}{}
		mu.Lock()
		failed := first != nil
		mu.Unlock()
		if failed || t.stopping(ctx) || !t.alive() {
			break
		}
		chunk := t.nextChunk()
		if len(chunk) == 0 {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := t.workChunk(work, chunk); err != nil {
				t.putOff(chunk) // what of it is done is passed over
				mu.Lock()
				first = cmp.Or(first, err)
				mu.Unlock()
			}
			t.tellProgress()
		})
	}
	wg.Wait()
	return first
}

// nextChunk takes the next jobs off the queue. A document that kills its worker must end alone: what was taken over once
// is worked in a tenth of the usual chunk, what was taken over again one by one.
func (t *turn) nextChunk() []store.Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return nil
	}
	slices.SortStableFunc(t.queue, func(a, b store.Job) int {
		return cmp.Or(cmp.Compare(a.Takeovers, b.Takeovers), cmp.Compare(a.OrgID, b.OrgID), cmp.Compare(a.DocumentID, b.DocumentID))
	})
	size := t.engine.options.ChunkSize
	switch takeovers := t.queue[0].Takeovers; {
	case takeovers == 1:
		size = max(1, size/10)
	case takeovers > 1:
		size = 1
	}
	n := 1
	for n < size && n < len(t.queue) && min(t.queue[n].Takeovers, 2) == min(t.queue[0].Takeovers, 2) {
		n++
	}
	chunk := slices.Clone(t.queue[:n])
	t.queue = t.queue[n:]
	return chunk
}

// watchStop gives running chunks a grace period after the turn was told to stop.
func (t *turn) watchStop(ctx context.Context, over <-chan struct{}) {
	select {
	case <-over:
		return
	case <-t.request.Stop:
	case <-ctx.Done():
	}
	select {
	case <-over:
	case <-time.After(t.engine.options.Grace):
		t.cancelWork()
	}
}

// overdue returns the jobs in hand whose deadline has passed: they are not renewed any more.
func (t *turn) overdue() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	ids := []string{}
	for c := range t.calls {
		if now.After(c.deadline) {
			ids = append(ids, idsOf(c.inHand)...)
		}
	}
	return ids
}

// inHand returns what each call works now.
func (t *turn) inHand() map[*call][]store.Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := make(map[*call][]store.Job, len(t.calls))
	for c := range t.calls {
		if !c.direct {
			now[c] = c.inHand
		}
	}
	return now
}

// cancelLost ends the calls that work jobs which are not held any more. before is what was in hand before the leases were read.
// It reports whether there were any.
func (t *turn) cancelLost(before map[*call][]store.Job, held []string) (lost bool) {
	still := setOf(held)
	t.mu.Lock()
	defer t.mu.Unlock()
	for c, jobs := range before {
		if t.calls[c] && len(jobs) > 0 && len(c.inHand) == len(jobs) && c.inHand[0].ID == jobs[0].ID &&
			slices.ContainsFunc(jobs, func(j store.Job) bool { return !still[j.ID] }) {
			c.cancel()
			lost = true
		}
	}
	return lost
}

// releaseLimit bounds a try at giving back what a turn holds.
const releaseLimit = 5 * time.Second

// finish gives back what the turn still holds as as, by a context of its own, and says what it could not give back. After an
// error it is not called: the rows stay with the turn, and its next activity takes them over.
func (t *turn) finish(ctx context.Context, as store.Turn) error {
	return t.engine.persist(ctx, t.request.Stop, "end a turn", func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		n, err := t.engine.store.Release(ctx, as, nil, 0)
		if err != nil {
			return err
		}
		if n > 0 {
			t.engine.waker.Remind() // a fetch that waits has not seen them
		}
		left, err := t.engine.store.TurnsWithLeases(ctx, []string{as.ID})
		t.mu.Lock()
		defer t.mu.Unlock()
		t.report.Released += n
		t.report.LeftBehind = left
		return err
	})
}

// tellProgress says what the turn did so far to whoever listens.
func (t *turn) tellProgress() {
	if t.request.Progress == nil {
		return
	}
	t.request.Progress(t.soFar())
}

func (t *turn) soFar() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.report
}

// count adds what a chunk was settled as.
func (t *turn) count(settled store.Settled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Completed += settled[models.OutcomeCompleted]
	t.report.Retried += settled[models.OutcomeRetried]
	t.report.Rescheduled += settled[models.OutcomeRescheduled]
	t.report.Failed += settled[models.OutcomeFailed]
	t.report.Cancelled += settled[models.OutcomeCancelled]
	t.requeued += settled[store.Requeued]
}

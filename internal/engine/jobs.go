package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Handlers works background jobs: each by itself and for as long as it takes, or many of a type in one transaction.
type Handlers interface {
	// Handling says how jobs of a type are worked; ok is false when there is no handler for it.
	Handling(jobType string) (h Handling, ok bool)
	// Work works one job outside of transactions.
	Work(ctx context.Context, job store.Job, progress Progress) Attempt
	// WorkMany works jobs of one type in the transaction that settles them. An error undoes the whole transaction.
	WorkMany(ctx context.Context, tx pgx.Tx, jobs []store.Job) ([]Attempt, error)
	// Failed says how an attempt at a job ends that failed with err.
	Failed(job store.Job, err error) Attempt
}

// Handling says how jobs of a type are worked.
type Handling struct {
	// Parallel is how many jobs of the type a turn works side by side, each in its own call; in bulk it is how many share
	// a call.
	Parallel int
	// Bulk: WorkMany works them.
	Bulk bool
	// Timeout is how long an attempt may take.
	Timeout time.Duration
}

// Progress stores what a running job says of itself.
type Progress func(ctx context.Context, progress []byte) error

// Attempt is how an attempt at a job ended.
type Attempt struct {
	Outcome models.Outcome
	// Code and Message say why, for every outcome but completed.
	Code    models.ErrorCode
	Message string
	// Delay is until the next attempt, for retried and rescheduled.
	Delay time.Duration
	// Result is what a completed job leaves, as JSON.
	Result []byte
	// InTx is run in the transaction that completes the job, and returns the result anew; nil: nothing is run.
	InTx func(ctx context.Context, tx pgx.Tx) (result []byte, err error)
}

func (a Attempt) settlement(job store.Job) store.Settlement {
	return store.Settlement{Job: job, Outcome: a.Outcome, Code: a.Code, Message: a.Message, Delay: a.Delay, Result: a.Result}
}

// laneJobs is how many jobs a turn has begun or leased at a time, at most.
const laneJobs = 500

// gatherFor is how long ended jobs wait for others, to be settled together.
const gatherFor = 2 * time.Millisecond

// ended is a job whose attempt is over.
type ended struct {
	job     store.Job
	attempt Attempt
	// closed: there is nothing to settle any more.
	closed bool
	// since is when it was first to be settled.
	since time.Time
}

// stream works a turn's jobs as they come: it begins those that there is room for, settles those that have ended together,
// and leases more, all at the same time.
type stream struct {
	*turn
	// inWork counts the jobs of each type that are being worked.
	inWork map[string]int
	active int
	// done gets jobs as they end, each batch of a bulk handler as one.
	done chan []ended
	// unsettled could not be settled yet, because somebody holds their rows.
	unsettled []ended
	// limit is how many jobs the turn has at a time: what it can begin, and as many waiting behind.
	limit int
	// crowded is since when leased jobs have been waiting for room; tolerated is how many may, while more is leased.
	crowded   time.Time
	tolerated int
}

// crowdedFor is how long leased jobs wait for room in this turn before they are given back to others.
const crowdedFor = time.Second

// runJobs is run for background jobs.
func (t *turn) runJobs(ctx, work context.Context) error {
	s := &stream{turn: t, inWork: map[string]int{}, done: make(chan []ended, laneJobs), limit: laneJobs}
	if err := t.takeOver(work, t.request.Crashed); err != nil {
		return err
	}
	err := s.loop(ctx, work)
	if err != nil {
		// The database is away: what runs comes to its end, and is settled by whoever takes it over.
		t.cancelWork()
	}
	for s.active > 0 {
		all := s.gather(<-s.done)
		if err == nil {
			err = s.settle(work, all)
		}
	}
	for err == nil && len(s.unsettled) > 0 {
		time.Sleep(firstSkip)
		err = s.settle(work, nil)
	}
	return err
}

// loop begins, settles and leases until the turn is over.
func (s *stream) loop(ctx, work context.Context) error {
	t := s.turn
	sub := t.engine.waker.Subscribe(true)
	defer sub.Close()
	timer := time.NewTimer(time.Until(t.ends))
	defer timer.Stop()
	looked := false
	for {
		if t.stopping(ctx) || !t.alive() {
			return nil
		}
		over := !time.Now().Before(t.ends)
		if over && t.request.Length > 0 {
			s.leaveRest(work)
		}
		if err := s.begin(work); err != nil {
			return err
		}
		var again time.Duration
		if room := s.limit - s.active - t.queued(); room > s.limit/4 && !over && !looked && t.queued() <= max(s.tolerated, s.active) {
			n, wait, err := s.lease(work, min(room, t.batch))
			if err != nil {
				return err
			}
			if n > 0 {
				continue
			}
			again = wait
		}
		switch {
		case s.active > 0:
		case over:
			return nil // what waits for room is given back
		case !t.request.Linger && t.queued() == 0 && len(s.unsettled) == 0:
			return nil
		}
		looked = true
		var retry <-chan time.Time
		if len(s.unsettled) > 0 {
			retry = time.After(skippedPause / 4)
		}
		var crowded <-chan time.Time
		if t.queued() > s.tolerated {
			crowded = time.After(crowdedFor)
		}
		select {
		case <-crowded:
		case first := <-s.done:
			looked = false
			if err := s.settle(work, s.gather(first)); err != nil {
				return err
			}
		case <-sub.C:
			looked = false
		case <-after(again):
			looked = false
		case <-retry:
			if err := s.settle(work, nil); err != nil {
				return err
			}
		case <-timer.C:
		case <-ctx.Done():
		case <-t.request.Stop:
		}
	}
}

// leaveRest gives back what is not begun when the turn's time is up, so that it does not wait for what runs.
func (s *stream) leaveRest(work context.Context) {
	s.mu.Lock()
	rest := s.queue
	s.queue = nil
	s.mu.Unlock()
	s.giveBack(work, rest)
}

// queued counts the leased jobs that are not begun.
func (t *turn) queued() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.queue)
}

// lease leases up to n jobs.
func (s *stream) lease(work context.Context, n int) (int, time.Duration, error) {
	t := s.turn
	turn := t.request.Turn
	turn.Begins = true
	leased, err := t.engine.store.Lease(work, turn, n)
	if err != nil {
		return 0, 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Leased += len(leased.Jobs)
	t.report.More = len(leased.Jobs) >= n
	t.queue = append(t.queue, leased.Jobs...)
	t.batch = t.nextBatch(len(leased.Jobs))
	return len(leased.Jobs), leased.Again, nil
}

// begin starts the queued jobs that there is room for. Those that have to wait are marked as not being worked, so that they
// are not charged when the worker dies.
func (s *stream) begin(work context.Context) error {
	t := s.turn
	t.mu.Lock()
	queue := t.queue
	t.queue = nil
	t.mu.Unlock()
	if len(queue) == 0 {
		return nil
	}
	var start, waiting, resumed []store.Job
	bulk := map[string][]store.Job{}
	for _, j := range queue {
		h, ok := t.engine.handlers.Handling(j.Type)
		switch {
		case ok && h.Bulk:
			bulk[j.Type] = append(bulk[j.Type], j)
		case ok && s.inWork[j.Type] >= h.Parallel:
			waiting = append(waiting, j)
			continue
		default:
			start = append(start, j)
		}
		s.inWork[j.Type]++
		if j.Waiting {
			resumed = append(resumed, j)
		}
	}
	if err := s.markWaiting(work, waiting, resumed); err != nil {
		return err
	}
	if len(waiting) > s.active+len(start) {
		s.limit = max(2*(s.active+len(start)), 2)
	} else if len(waiting) == 0 {
		s.limit = min(2*s.limit, laneJobs)
	}
	waiting = s.makeRoom(work, waiting)
	for _, j := range start {
		s.active++
		go func() {
			// Even a handler that ends its goroutine ends its job: it is given back at the end of the turn.
			e := ended{job: j, closed: true}
			defer func() { s.done <- []ended{e} }()
			e = s.work(work, j)
		}()
	}
	for jobType, jobs := range bulk {
		h, _ := t.engine.handlers.Handling(jobType)
		for len(jobs) > 0 {
			n := min(len(jobs), max(1, h.Parallel))
			s.active += n
			some := jobs[:n]
			go func() { s.done <- s.workMany(work, h, some) }()
			jobs = jobs[n:]
		}
	}
	t.mu.Lock()
	t.queue = append(t.queue, waiting...)
	t.mu.Unlock()
	return nil
}

// makeRoom gives jobs back that have been waiting for long, so that others can have them and this turn can lease jobs of other
// types: as many as are being worked of each type go on waiting.
func (s *stream) makeRoom(work context.Context, waiting []store.Job) []store.Job {
	switch {
	case len(waiting) == 0:
		s.crowded, s.tolerated = time.Time{}, 0
		return nil
	case s.crowded.IsZero():
		s.crowded = time.Now()
		return waiting
	case time.Since(s.crowded) < crowdedFor:
		return waiting
	}
	var kept, excess []store.Job
	of := map[string]int{}
	for _, j := range waiting {
		h, _ := s.engine.handlers.Handling(j.Type)
		if of[j.Type]++; of[j.Type] <= h.Parallel {
			kept = append(kept, j)
		} else {
			excess = append(excess, j)
		}
	}
	s.giveBack(work, excess)
	s.batch = s.request.Batch
	s.crowded, s.tolerated = time.Now(), len(kept)
	return kept
}

// markWaiting says of jobs that they have begun to wait for room, and of others that they are begun now after all.
func (s *stream) markWaiting(work context.Context, waiting, resumed []store.Job) error {
	var fresh []string
	for i := range waiting {
		if !waiting[i].Waiting {
			waiting[i].Waiting = true
			fresh = append(fresh, waiting[i].ID)
		}
	}
	st := s.engine.store
	if len(fresh) > 0 {
		if err := st.MarkWaiting(work, s.request.Turn, fresh); err != nil {
			return err
		}
	}
	if len(resumed) > 0 {
		if _, err := st.MarkWorking(work, s.request.Turn, idsOf(resumed)); err != nil {
			return err
		}
	}
	return nil
}

// work works one job, and commits it where it asked for the transaction that does.
func (s *stream) work(work context.Context, j store.Job) ended {
	t := s.turn
	h, known := t.engine.handlers.Handling(j.Type)
	if !known {
		t.engine.missing(j.Type)
		return ended{job: j, attempt: Attempt{
			Outcome: models.OutcomeFailed, Code: models.CodeHandlerMissing,
			Message: "this worker has no handler for jobs of type " + j.Type + ": they come back when a worker starts that has one",
		}}
	}
	deadline := time.Now().Add(h.Timeout)
	ctx, cancel := context.WithDeadline(work, deadline)
	defer cancel()
	t.begin([]store.Job{j}, running{cancel: cancel, deadline: deadline})
	defer t.end([]store.Job{j})
	a := t.engine.handlers.Work(ctx, j, func(ctx context.Context, p []byte) error {
		return t.engine.store.SetProgress(ctx, t.request.Turn, j.ID, p)
	})
	if a.Outcome == models.OutcomeCompleted && a.InTx != nil {
		settled, err := s.complete(ctx, j, a)
		if err == nil {
			t.count(settled)
			return ended{job: j, closed: true}
		}
		a = s.notCompleted(ctx, j, err)
	}
	// Told to stop, and the grace is over: it is given back at the end of the turn, uncounted.
	return ended{job: j, attempt: a, closed: a.Outcome != models.OutcomeCompleted && work.Err() != nil}
}

// notCompleted is the attempt of a job whose transaction failed with err. What is not the job's fault is not counted.
func (s *stream) notCompleted(ctx context.Context, j store.Job, err error) Attempt {
	if errors.Is(err, errRowHeld) || ctx.Err() == nil && (isConflict(err) || store.IsOutage(err)) {
		return Attempt{Outcome: models.OutcomeRescheduled, Code: models.CodeDatabaseError, Message: err.Error(), Delay: time.Second}
	}
	return s.engine.handlers.Failed(j, err)
}

// errRowHeld says that a job's row could not be locked: somebody holds it, or it is no longer the turn's.
var errRowHeld = errors.New("somebody holds the job's row locked")

// complete runs what the handler wants in the transaction that completes its job. A job that was cancelled meanwhile ends as
// that, and nothing is run.
func (s *stream) complete(ctx context.Context, j store.Job, a Attempt) (store.Settled, error) {
	t := s.turn
	kind := t.engine.store.Kind()
	for began := time.Now(); ; {
		var settled store.Settled
		var locked []store.Job
		err := pgx.BeginFunc(ctx, t.engine.store.Pool(), func(tx pgx.Tx) (err error) {
			defer recovered(&err)
			if locked, err = kind.LockChunk(ctx, tx, t.request.Turn, []string{j.ID}); err != nil || len(locked) == 0 {
				return err
			}
			if locked[0].CancelRequested {
				settled, err = kind.Settle(ctx, tx, t.request.Turn, []store.Settlement{{Job: j, Outcome: models.OutcomeCancelled}})
				return err
			}
			if err := store.PlanFreely(ctx, tx); err != nil {
				return err
			}
			if a.Result, err = a.InTx(ctx, tx); err != nil {
				return err
			}
			if err := store.PlanByKey(ctx, tx); err != nil {
				return err
			}
			settled, err = kind.Settle(ctx, tx, t.request.Turn, []store.Settlement{a.settlement(j)})
			return err
		})
		if err == nil && len(locked) > 0 {
			return settled, nil
		}
		// A connection that was cut and a lost race are nobody's attempt.
		again := err == nil || isConflict(err) || store.IsOutage(err)
		if !again || ctx.Err() != nil || time.Since(began) > lockPatience {
			return nil, cmp.Or(err, ctx.Err(), errRowHeld)
		}
		time.Sleep(firstSkip)
	}
}

// bulkPatience is for how many timeouts of its type the jobs of a failed bulk are worked one by one.
const bulkPatience = 10

// workMany works jobs of a bulk type in one transaction. If that fails they are worked one by one.
func (s *stream) workMany(work context.Context, h Handling, jobs []store.Job) []ended {
	all := make([]ended, len(jobs))
	began := time.Now()
	err := s.tryMany(work, h, jobs)
	for i, j := range jobs {
		all[i] = ended{job: j, closed: true}
		if err == nil || work.Err() != nil {
			continue
		}
		if len(jobs) > 1 && time.Since(began) > bulkPatience*h.Timeout {
			// Each takes its time: the rest another time, uncounted.
			s.giveBack(work, jobs[i:i+1])
			continue
		}
		alone := err
		if len(jobs) > 1 {
			alone = s.tryMany(work, h, jobs[i:i+1])
		}
		if alone != nil {
			all[i].attempt, all[i].closed = s.notCompleted(work, j, alone), work.Err() != nil
		}
	}
	return all
}

func (s *stream) tryMany(work context.Context, h Handling, jobs []store.Job) (err error) {
	t := s.turn
	deadline := time.Now().Add(h.Timeout)
	ctx, cancel := context.WithDeadline(work, deadline)
	defer cancel()
	t.begin(jobs, running{cancel: cancel, deadline: deadline})
	defer t.end(jobs)
	byID := make(map[string]store.Job, len(jobs))
	for _, j := range jobs {
		byID[j.ID] = j
	}
	var settled store.Settled
	var skipped []store.Job
	kind := t.engine.store.Kind()
	err = pgx.BeginFunc(ctx, t.engine.store.Pool(), func(tx pgx.Tx) (err error) {
		defer recovered(&err)
		locked, err := kind.LockChunk(ctx, tx, t.request.Turn, idsOf(jobs))
		if err != nil {
			return err
		}
		skipped = without(jobs, locked)
		var settlements []store.Settlement
		going := make([]store.Job, 0, len(locked))
		for _, l := range locked {
			if l.CancelRequested {
				settlements = append(settlements, store.Settlement{Job: l, Outcome: models.OutcomeCancelled})
				continue
			}
			going = append(going, byID[l.ID])
		}
		if len(going) > 0 {
			if err := store.PlanFreely(ctx, tx); err != nil {
				return err
			}
			attempts, err := t.engine.handlers.WorkMany(ctx, tx, going)
			if err != nil {
				return err
			}
			for i, a := range attempts {
				settlements = append(settlements, a.settlement(going[i]))
			}
		}
		if len(settlements) == 0 {
			return nil
		}
		if err := store.PlanByKey(ctx, tx); err != nil {
			return err
		}
		settled, err = kind.Settle(ctx, tx, t.request.Turn, settlements)
		return err
	})
	if err == nil {
		t.count(settled)
		t.giveBack(work, skipped)
	}
	return err
}

// giveBack releases jobs whose rows somebody held locked, uncounted; what is still locked is given back at the turn's end.
func (t *turn) giveBack(work context.Context, jobs []store.Job) {
	if len(jobs) == 0 {
		return
	}
	n, err := t.engine.store.Release(work, t.request.Turn, idsOf(jobs), time.Second)
	if err != nil {
		t.engine.options.Log.Warn("jobs were not given back", "error", err)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Released += n
}

// gather takes what has ended, and waits a moment for what is about to.
func (s *stream) gather(first []ended) []ended {
	var all []ended
	now := time.Now()
	take := func(some []ended) {
		for _, e := range some {
			s.active--
			s.inWork[e.job.Type]--
			if !e.closed {
				e.since = now
				all = append(all, e)
			}
		}
	}
	take(first)
	limit := time.NewTimer(gatherFor)
	defer limit.Stop()
	for s.active > 0 && len(all) < laneJobs {
		select {
		case some := <-s.done:
			take(some)
		case <-limit.C:
			return all
		}
	}
	return all
}

// settle settles what has ended, and what could not be settled before, in one transaction. What cannot be locked is tried
// again, for as long as it is the turn's.
func (s *stream) settle(work context.Context, all []ended) error {
	all = append(s.unsettled, all...)
	s.unsettled = nil
	if len(all) == 0 {
		return nil
	}
	locked, err := s.trySettle(work, all)
	if err != nil && isConflict(err) {
		s.unsettled = all
		return nil
	}
	if err != nil && !store.IsOutage(err) && len(all) > 1 {
		// One of them has something that cannot be stored: each for itself.
		for _, e := range all {
			if err := s.settleOne(work, e); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil && !store.IsOutage(err) {
		return s.settleOne(work, all[0])
	}
	if err != nil {
		return err
	}
	for _, e := range all {
		if !locked[e.job.ID] {
			s.unsettled = append(s.unsettled, e)
		}
	}
	return s.dropLost(work)
}

func (s *stream) trySettle(work context.Context, all []ended) (map[string]bool, error) {
	t := s.turn
	kind := t.engine.store.Kind()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(work), settleLimit)
	defer cancel()
	byID := make(map[string]ended, len(all))
	ids := make([]string, len(all))
	for i, e := range all {
		byID[e.job.ID], ids[i] = e, e.job.ID
	}
	var settled store.Settled
	done := make(map[string]bool, len(all))
	err := pgx.BeginFunc(ctx, t.engine.store.Pool(), func(tx pgx.Tx) error {
		locked, err := kind.LockChunk(ctx, tx, t.request.Turn, ids)
		if err != nil || len(locked) == 0 {
			return err
		}
		settlements := make([]store.Settlement, len(locked))
		for i, l := range locked {
			done[l.ID] = true
			e := byID[l.ID]
			settlements[i] = e.attempt.settlement(e.job)
			if l.CancelRequested {
				settlements[i] = store.Settlement{Job: e.job, Outcome: models.OutcomeCancelled}
			}
		}
		settled, err = kind.Settle(ctx, tx, t.request.Turn, settlements)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.count(settled)
	t.tellProgress()
	return done, nil
}

// settleOne settles one job; if what its handler said cannot be stored, it fails with that.
func (s *stream) settleOne(work context.Context, e ended) error {
	done, err := s.trySettle(work, []ended{e})
	if err != nil && !store.IsOutage(err) {
		s.engine.options.Log.Error("what a handler said could not be stored", "job", e.job.ID, "type", e.job.Type, "error", err)
		e.attempt = Attempt{Outcome: models.OutcomeFailed, Code: models.CodeHandlerError, Message: "what the handler said could not be stored"}
		done, err = s.trySettle(work, []ended{e})
	}
	if err == nil && !done[e.job.ID] {
		s.unsettled = append(s.unsettled, e)
	}
	return err
}

// dropLost forgets unsettled jobs that are no longer the turn's.
func (s *stream) dropLost(work context.Context) error {
	if len(s.unsettled) == 0 {
		return nil
	}
	ids, err := s.engine.store.Held(context.WithoutCancel(work), s.request.Turn)
	if err != nil {
		return err
	}
	held := setOf(ids)
	kept := s.unsettled[:0]
	for _, e := range s.unsettled {
		if held[e.job.ID] && time.Since(e.since) < settleLimit {
			kept = append(kept, e)
		}
	}
	s.unsettled = kept
	return nil
}

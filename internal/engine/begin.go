package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// takeQueue removes the leased jobs that are not begun from the queue, and returns them.
func (r *runner) takeQueue() []store.Job {
	queue := r.queue
	r.queue = nil
	return queue
}

// sorted are queued jobs by what is done with them now.
type sorted struct {
	// start are begun each by itself, bulk together by type. Of both, unmarked are to be marked as being worked first.
	start, unmarked []store.Job
	bulk            map[string][]store.Job
	// waiting have no room now, wait counts those of them that wait for room of their type. unknown have no handler here.
	waiting, unknown []store.Job
	wait             map[string]int
}

// begin starts the queued jobs. Room is reserved for what was leased for this turn. What was reclaimed may have to wait for it,
// marked as not being worked, so that it is not charged when the worker dies. Jobs without a handler here are left to another worker.
func (r *runner) begin(work context.Context) error {
	queue := r.takeQueue()
	r.engine.room.wait(r, nil)
	if len(queue) == 0 {
		r.careful = r.careful && r.active > 0
		return nil
	}
	q := r.sort(queue)
	r.engine.room.wait(r, q.wait)
	if err := r.markWaiting(work, q.waiting); err != nil {
		r.queue = append(queue, r.queue...) // they keep the room that they have
		return err
	}
	left, err := r.markWorking(work, q.unmarked)
	if err != nil {
		r.queue = append(queue, r.queue...)
		return err
	}
	r.queue = append(r.queue, q.waiting...)
	for _, j := range q.start {
		if !left[j.ID] {
			r.start(work, j)
		}
	}
	for jobType, jobs := range q.bulk {
		r.startBulk(work, jobType, slices.DeleteFunc(jobs, func(j store.Job) bool { return left[j.ID] }))
	}
	r.later(q.unknown, 0)
	return r.giveAllBack(work)
}

// sort decides what is done with queued jobs. It notes reserved room in the queue itself, so that a job that is not begun keeps it.
func (r *runner) sort(queue []store.Job) sorted {
	q := sorted{bulk: map[string][]store.Job{}, wait: map[string]int{}}
	suspects := r.suspects(queue)
	for i := range queue {
		j := &queue[i]
		h, ok := r.engine.handlers.Handling(j.Type)
		switch {
		case !ok:
			q.unknown = append(q.unknown, *j)
			continue
		case i >= suspects, h.Bulk && !r.hasCall(h, len(q.bulk[j.Type]), j.Type), !h.Bulk && !j.Room && !r.engine.room.take(j.Type):
			if !h.Bulk && !j.Room {
				q.wait[j.Type]++
			}
			q.waiting = append(q.waiting, *j)
			continue
		case h.Bulk:
			q.bulk[j.Type] = append(q.bulk[j.Type], *j)
		default:
			j.Room = true
			q.start = append(q.start, *j)
		}
		if j.Waiting && (h.Charged || j.Reclaims > 1) {
			q.unmarked = append(q.unmarked, *j)
		}
	}
	return q
}

// hasCall reports whether one more job of a bulk type may be worked, when n others are begun with it.
func (r *runner) hasCall(h Handling, n int, jobType string) bool {
	return h.Calls == 0 || n < (h.Calls-r.running[jobType])*h.Parallel
}

// suspects puts the leased jobs first whose worker died with them before, and says how many of all may be begun now. A
// job that kills its worker must be found, and other jobs are charged if they are being worked when the worker dies. So bulks that
// were reclaimed once are worked in tenths, jobs that were reclaimed again one by one, and no other jobs meanwhile. Until they can begin, the
// turn gets no more jobs: those could be picked, and begin without going through the queue.
func (r *runner) suspects(queue []store.Job) int {
	suspicion := func(j store.Job) int {
		if h, ok := r.engine.handlers.Handling(j.Type); j.Reclaims == 1 && (!ok || !h.Bulk || h.Parallel == 1) {
			return 0
		}
		return min(j.Reclaims, 2)
	}
	slices.SortStableFunc(queue, func(a, b store.Job) int {
		return cmp.Or(cmp.Compare(suspicion(b), suspicion(a)), cmp.Compare(a.Type, b.Type)*min(1, suspicion(a)))
	})
	worst := suspicion(queue[0])
	switch {
	case worst == 0 && !r.careful:
		return len(queue)
	case r.active > 0, r.refill.underWay, r.completing, len(r.ended)+len(r.held) > 0:
		// A refill may begin what it picks. What has ended would be charged, too, until it is completed.
		r.careful = true
		return 0
	}
	r.careful = worst > 0
	switch worst {
	case 0:
		return len(queue)
	case 1:
		h, _ := r.engine.handlers.Handling(queue[0].Type)
		n := 1
		for n < h.Parallel/10 && n < len(queue) && suspicion(queue[n]) == 1 && queue[n].Type == queue[0].Type {
			n++
		}
		return n
	}
	return 1
}

// markWaiting says of charged jobs that they have begun to wait for room.
func (r *runner) markWaiting(work context.Context, waiting []store.Job) error {
	var fresh []string
	for i := range waiting {
		if !waiting[i].Waiting {
			waiting[i].Waiting = true
			fresh = append(fresh, waiting[i].ID)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return r.engine.kind.MarkWaiting(work, r.holder.turn(), fresh)
}

// markWorking says that jobs which were not charged until now are worked. It returns which of them are not to be begun: those that were cancelled while they
// waited, that another turn has, or whose rows another transaction holds. The last ones go on waiting.
func (r *runner) markWorking(work context.Context, jobs []store.Job) (left map[string]bool, err error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	begun, err := r.engine.kind.BeginWaiting(work, r.holder.turn(), idsOf(jobs))
	if err != nil || len(begun.Working) == len(jobs) {
		return nil, err
	}
	others := without(jobs, keep(jobs, begun.Working))
	r.engine.room.leave(others)
	for i := range others {
		others[i].Room = false
	}
	r.skip(keep(others, begun.Held))
	r.tally.note(func(r *Report) { r.Cancelled += begun.Cancelled })
	return setOf(idsOf(others)), nil
}

// givenBack are jobs that are to be pending again after a delay.
type givenBack struct {
	jobs  []store.Job
	delay time.Duration
}

// later leaves jobs to the next giveAllBack that succeeds. They are not worked any more, because another turn may have them once that
// was tried.
func (r *runner) later(jobs []store.Job, delay time.Duration) {
	if len(jobs) > 0 {
		r.engine.room.leave(jobs)
		r.back = append(r.back, givenBack{jobs, delay})
	}
}

func (r *runner) giveAllBack(work context.Context) error {
	for len(r.back) > 0 {
		n, err := r.holder.giveBack(work, r.back[0].jobs, r.back[0].delay)
		if err != nil {
			return err
		}
		if n < len(r.back[0].jobs) {
			// The turn may go on for long, and renews what it could not give back.
			r.doubt, r.reconcileAt = time.Now(), time.Now().Add(skippedPause)
		}
		r.back = r.back[1:]
		r.recovered(&r.own)
	}
	return nil
}

// beginNoMore has the turn begin no more jobs.
func (r *runner) beginNoMore() {
	r.waitNoMore()
	r.quieten()
}

// quieten tells what runs beside the loop to begin nothing more.
func (r *runner) quieten() {
	if !r.ending {
		r.ending = true
		close(r.quiet)
	}
}

// suspicious reports whether a job may have ended its worker: it was reclaimed since its last completion, or a transaction that had picked it
// was lost.
func suspicious(j store.Job) bool { return j.Reclaims > 0 || j.Dropped }

// leaseSuspects leases the suspicious ones of picked jobs in the transaction that has picked them, and returns them, also with an error. They
// are charged from when they begin.
//
// Their neighbours stay unsuspicious: once this is committed, no transaction that was lost is on record in the neighbours' rows.
func (r *runner) leaseSuspects(ctx context.Context, tx pgx.Tx, picked []store.Job) (suspects []store.Job, err error) {
	for _, j := range picked {
		if suspicious(j) {
			j.Waiting = true
			suspects = append(suspects, j)
		}
	}
	if len(suspects) == 0 {
		return nil, nil
	}
	return suspects, r.leasePicked(ctx, tx, suspects)
}

// leasePicked leases picked jobs in the transaction that has picked them.
func (r *runner) leasePicked(ctx context.Context, tx pgx.Tx, picked []store.Job) error {
	leased, err := r.engine.kind.LeasePicked(ctx, tx, r.holder.turn(), picked, true)
	if err == nil && len(leased) < len(picked) {
		err = store.ErrLeaseLost
	}
	return err
}

// tellSuspects tells the engine's sink that suspects are leased, unless their transaction failed.
func (r *runner) tellSuspects(suspects []store.Job, err error) {
	if err == nil {
		r.engine.observer.leased(r.holder.turn(), suspects)
	}
}

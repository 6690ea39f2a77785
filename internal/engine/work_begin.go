package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// worker has the jobs that are being worked.
type worker struct {
	part
	// active counts them, but for those of abandoned calls; running counts the calls of each bulk
	// type.
	active  int
	running map[string]int
	// begun are the jobs that calls were given and have not returned.
	begun map[string]bool
	// careful: jobs are being worked, or wait to be worked alone, that may have killed their
	// worker.
	careful bool
	// checked is when calls that do not return were last looked for, stoppedAt when that was first
	// done after the turn was told to stop.
	checked, stoppedAt time.Time
}

// unbegun are queued jobs that have not begun: those that wait for room or to be worked alone,
// those whose rows another transaction holds locked, and those that have no handler here.
type unbegun struct{ waiting, locked, unknown []store.Job }

// sorted are queued jobs by what is done with them now.
type sorted struct {
	// start are begun each by itself, bulk together by type. Of both, unmarked are to be marked as
	// being worked first.
	start, unmarked []store.Job
	bulk            map[string][]store.Job
	// waiting have no room now, wait counts those of them that wait for room of their type. unknown
	// have no handler here.
	waiting, unknown []store.Job
	wait             map[string]int
}

// begin starts queued jobs, and returns those that have not begun. Room is reserved for what was
// leased for this turn. What was reclaimed may have to wait for it, marked as not being worked, so
// that it is not charged when the worker dies. Jobs without a handler here are left to another
// worker. busy: the turn has a refill or a completion under way.
func (w *worker) begin(work context.Context, queue []store.Job, busy bool) (unbegun, error) {
	w.engine.room.wait(w.turn, nil)
	if len(queue) == 0 {
		w.careful = w.careful && w.active > 0
		return unbegun{}, nil
	}
	q := w.sort(queue, busy)
	w.engine.room.wait(w.turn, q.wait)
	if err := w.markWaiting(work, q.waiting); err != nil {
		return unbegun{waiting: queue}, err // they keep the room that they have
	}
	left, locked, err := w.markWorking(work, q.unmarked)
	if err != nil {
		return unbegun{waiting: queue}, err
	}
	for _, j := range q.start {
		if !left[j.ID] {
			w.start(work, j)
		}
	}
	for jobType, jobs := range q.bulk {
		w.startBulk(work, jobType, slices.DeleteFunc(jobs, func(j store.Job) bool { return left[j.ID] }))
	}
	return unbegun{waiting: q.waiting, locked: locked, unknown: q.unknown}, nil
}

func (w *worker) start(work context.Context, j store.Job) {
	w.active++
	w.begun[j.ID] = true
	go single{w.turn, &call{jobType: j.Type, single: true, open: 1, inHand: []store.Job{j}}}.run(work)
}

// startBulk works jobs of a bulk type, as many together as its handler takes.
func (w *worker) startBulk(work context.Context, jobType string, jobs []store.Job) {
	h, _ := w.engine.handlers.Handling(jobType)
	for some := range slices.Chunk(jobs, max(1, h.Parallel)) {
		c := &call{jobType: jobType, open: len(some), deadline: time.Now().Add(h.Timeout)}
		for _, j := range some {
			w.begun[j.ID] = true
		}
		w.active += c.open
		w.running[jobType]++
		go bulk{w.turn, c, h}.run(work, some)
	}
}

// goOn takes in the calls of an open pick that go on when its transaction has ended.
func (w *worker) goOn(o *openPick, running []*call) {
	w.active += len(running)
	for _, c := range running {
		if id := c.inHand[0].ID; o.leased[id] {
			w.begun[id] = true
		}
	}
}

// returned is a call that has returned, and what is left to do of its jobs.
type returned struct {
	call *call
	jobs []ended
	// skipped are rows that other transactions hold locked, later those that the handler has put
	// off, back what is to be given back.
	skipped, later []store.Job
	back           []givenBack
}

func (*returned) event() {}

// leave takes a call from what is being worked.
func (w *worker) leave(c *call) {
	w.active -= c.open
	if !c.single {
		w.running[c.jobType]--
	}
}

// sort decides what is done with queued jobs. It notes reserved room in the queue itself, so that a
// job that is not begun keeps it.
func (w *worker) sort(queue []store.Job, busy bool) sorted {
	q := sorted{bulk: map[string][]store.Job{}, wait: map[string]int{}}
	suspects := w.suspects(queue, busy)
	for i := range queue {
		j := &queue[i]
		h, ok := w.engine.handlers.Handling(j.Type)
		switch {
		case !ok || h.Version < j.MinVersion: // an earlier activity of the turn leased it
			q.unknown = append(q.unknown, *j)
			continue
		case i >= suspects,
			h.Bulk && h.Calls > 0 && len(q.bulk[j.Type]) >= (h.Calls-w.running[j.Type])*h.Parallel,
			!h.Bulk && !j.Room && !w.engine.room.take(j.Type):
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

// markWaiting says of charged jobs that they have begun to wait for room.
func (w *worker) markWaiting(work context.Context, waiting []store.Job) error {
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
	return w.engine.kind.MarkWaiting(work, w.leases.heldBy(), fresh)
}

// markWorking says that jobs which were not charged until now are worked. It returns which of them
// are not to be begun: those that were cancelled while they waited, that another turn has, or whose
// rows another transaction holds. The last ones, which are locked, go on waiting.
func (w *worker) markWorking(
	work context.Context, jobs []store.Job,
) (left map[string]bool, locked []store.Job, err error) {
	if len(jobs) == 0 {
		return nil, nil, nil
	}
	begun, err := w.engine.kind.BeginWaiting(work, w.leases.heldBy(), idsOf(jobs))
	if err != nil || len(begun.Working) == len(jobs) {
		return nil, nil, err
	}
	others := without(jobs, keep(jobs, begun.Working))
	w.engine.room.leave(others)
	for i := range others {
		others[i].Room = false
	}
	w.tally.note(func(r *Report) { r.Cancelled += begun.Cancelled })
	return setOf(idsOf(others)), keep(others, begun.Held), nil
}

// suspects puts the leased jobs first whose worker died with them before, and says how many of all
// may be begun now. A job that kills its worker must be found, and other jobs are charged if they
// are being worked when the worker dies. So bulks that were reclaimed once are worked in tenths,
// jobs that were reclaimed again one by one, and no other jobs meanwhile. Until they can begin, the
// turn gets no more jobs: those could be picked, and begin without going through the queue. busy:
// more goes on than the calls.
func (w *worker) suspects(queue []store.Job, busy bool) int {
	suspicion := func(j store.Job) int {
		if h, ok := w.engine.handlers.Handling(j.Type); j.Reclaims == 1 && (!ok || !h.Bulk || h.Parallel == 1) {
			return 0
		}
		return min(j.Reclaims, 2)
	}
	slices.SortStableFunc(queue, func(a, b store.Job) int {
		return cmp.Or(cmp.Compare(suspicion(b), suspicion(a)), cmp.Compare(a.Type, b.Type)*min(1, suspicion(a)))
	})
	worst := suspicion(queue[0])
	switch {
	case worst == 0 && !w.careful:
		return len(queue)
	case w.active > 0, busy:
		// A refill may begin what it picks. What has ended would be charged, too, until it is
		// completed.
		w.careful = true
		return 0
	}
	w.careful = worst > 0
	switch worst {
	case 0:
		return len(queue)
	case 1:
		h, _ := w.engine.handlers.Handling(queue[0].Type)
		n := 1
		for n < h.Parallel/10 && n < len(queue) && suspicion(queue[n]) == 1 && queue[n].Type == queue[0].Type {
			n++
		}
		return n
	}
	return 1
}

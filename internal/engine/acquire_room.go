package engine

import (
	"cmp"
	"sync"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// fullFor is for how long jobs of a type or a named queue are left alone of which as many are leased
// as may be over all workers, unless one of them ends in this process: other workers do not say when
// theirs do.
const fullFor = 100 * time.Millisecond

// room counts what a process works of each type, over all of its turns and detached jobs.
// It is the store's Room: what is leased has its room reserved before, and keeps it until its
// handler has returned. It is safe for concurrent use.
type room struct {
	handlers Handlers

	mu sync.Mutex
	// used counts the jobs of each type that are being worked, or for which room is reserved.
	used map[string]int
	// waiting counts, by turn, the leased jobs that wait for room: they come before those that are
	// not leased yet.
	waiting map[*turn]map[string]int
	// passed are the types that were passed over because there was no room.
	passed map[string]bool
	// closed are those of which nothing may be leased now.
	closed map[limited]closed
	subs   map[chan struct{}]bool
}

// limited is a type, or a named queue, of which only so many may be leased over all workers.
type limited struct{ jobType, queue string }

// closed says until when a type or a named queue is passed over. rated: because of the queue's rate,
// whatever ends.
type closed struct {
	until time.Time
	rated bool
}

func newRoom(h Handlers) *room {
	return &room{
		handlers: h, used: map[string]int{}, waiting: map[*turn]map[string]int{}, passed: map[string]bool{},
		closed: map[limited]closed{}, subs: map[chan struct{}]bool{},
	}
}

// subscribe returns a channel that receives when there is room again for a type that was passed
// over; tokens coalesce.
func (r *room) subscribe() (c <-chan struct{}, end func()) {
	tokens := make(chan struct{}, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subs[tokens] = true
	return tokens, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.subs, tokens)
	}
}

// left is how many more jobs of the type may be begun, those that wait for room left out. bulk: any
// number.
func (r *room) left(jobType string) (n int, bulk bool) {
	h, ok := r.handlers.Handling(jobType)
	if !ok || r.isClosed(limited{jobType: jobType}) {
		return 0, false
	}
	if h.Bulk {
		return 0, true
	}
	return max(0, h.Parallel-r.used[jobType]), false
}

func (r *room) Handles(jobType string, version int) bool {
	h, ok := r.handlers.Handling(jobType)
	return ok && h.Version >= version
}

func (r *room) Free(jobType string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reservable(jobType, 1) > 0
}

func (r *room) Reserve(jobType string, most int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.reservable(jobType, most)
	if h, _ := r.handlers.Handling(jobType); !h.Bulk {
		r.used[jobType] += n
	}
	return n
}

// reservable is for how many of most there is room; a type with none is passed over.
func (r *room) reservable(jobType string, most int) int {
	left, bulk := r.left(jobType)
	if bulk {
		return most
	}
	for _, types := range r.waiting {
		left -= types[jobType]
	}
	if left <= 0 {
		r.passed[jobType] = true
	}
	return max(0, min(left, most))
}

func (r *room) take(jobType string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, _ := r.handlers.Handling(jobType)
	if r.used[jobType] >= h.Parallel {
		r.passed[jobType] = true
		return false
	}
	r.used[jobType]++
	return true
}

func (r *room) Return(jobType string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h, _ := r.handlers.Handling(jobType); !h.Bulk {
		r.used[jobType] -= n
	}
	if r.passed[jobType] && !r.isClosed(limited{jobType: jobType}) {
		delete(r.passed, jobType)
		r.tell()
	}
}

// leave gives back the room of jobs that are not begun after all.
func (r *room) leave(jobs []store.Job) {
	for _, j := range jobs {
		if j.Room {
			r.Return(j.Type, 1)
		}
	}
}

// ended gives back the room of a job that was worked, which may be room over all workers.
func (r *room) ended(jobType string) {
	r.open(limited{jobType: jobType})
	r.Return(jobType, 1)
}

// wait says which leased jobs a turn has that wait for room, by type.
func (r *room) wait(of *turn, types map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(types) == 0 {
		delete(r.waiting, of)
		return
	}
	r.waiting[of] = types
}

func (r *room) Everywhere(jobType string) int {
	h, _ := r.handlers.Handling(jobType)
	return h.Everywhere
}

func (r *room) Full(jobType string) { r.close(limited{jobType: jobType}, 0) }

func (r *room) QueueFull(queue string, wait time.Duration) { r.close(limited{queue: queue}, wait) }

func (r *room) Open(queue string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.isClosed(limited{queue: queue})
}

func (r *room) isClosed(l limited) bool {
	_, closed := r.closed[l]
	return closed
}

// close has a type or a named queue passed over for wait; 0: until one of its jobs ends here, or for
// a while.
func (r *room) close(l limited, wait time.Duration) {
	c := closed{rated: wait > 0}
	wait = cmp.Or(wait, fullFor)
	c.until = time.Now().Add(wait)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed[l] = c
	time.AfterFunc(wait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed[l] == c {
			delete(r.closed, l)
			r.tell()
		}
	})
}

// completed says that jobs are no longer leased: of a named queue that was full there may be more.
func (r *room) completed(queue string) {
	if queue != "" {
		r.open(limited{queue: queue})
	}
}

// open ends what close has begun, unless that is for a rate.
func (r *room) open(l limited) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.closed[l]; !c.until.IsZero() && !c.rated {
		delete(r.closed, l)
		r.tell()
	}
}

func (r *room) tell() {
	for c := range r.subs {
		signal(c)
	}
}

// regained is how many more jobs could be begun of the types that are being worked.
func (r *room) regained() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for jobType, used := range r.used {
		if used > 0 {
			left, _ := r.left(jobType)
			n += left
		}
	}
	return n
}

// known is room for any number of jobs of the types that have a handler and are not full over all
// workers, for a lease that is not begun at once.
type known struct{ *room }

func (k known) Free(jobType string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Handles(jobType, 0) && !k.isClosed(limited{jobType: jobType})
}

func (k known) Reserve(jobType string, most int) int {
	if k.Free(jobType) {
		return most
	}
	return 0
}

func (k known) Return(string, int) {}

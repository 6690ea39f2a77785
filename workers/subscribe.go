package workers

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// Subscribe returns a channel of the events that match the filter, of what this worker does from
// now on. cancel ends the subscription and closes the channel; so does Worker.Close. It may be
// called again.
//
// The worker never waits for a subscriber. When the channel's buffer is full (EventFilter.Buffer)
// events are dropped; an event EventMissed, which says how many, comes before the next one that
// there is room for. Events of a short job come after its commit; when the worker is killed the
// last ones are lost. ListenEvents of package queue tells of what other processes do.
func (w *Worker) Subscribe(f queue.EventFilter) (got <-chan queue.Event, cancel func()) {
	if w == nil {
		return (*hub)(nil).subscribe(f)
	}
	return w.hub.subscribe(f)
}

// defaultBuffer is how many events wait for a subscriber.
const defaultBuffer = 1000

// hub tells subscribers of events. It implements events.Sink.
type hub struct {
	mu sync.Mutex
	// subs is replaced whenever it changes, so that it is read without a lock.
	subs   atomic.Pointer[[]*subscription]
	closed bool
	// notifier tells other processes; nil: they are not told.
	notifier atomic.Pointer[notifier]
}

// notifying has the hub tell other processes as well, if it is to.
func (h *hub) notifying(on bool, pool *pgxpool.Pool, log *slog.Logger) *hub {
	h.mu.Lock()
	defer h.mu.Unlock()
	if on && !h.closed && h.notifier.Load() == nil {
		h.notifier.Store(startNotifying(pool, log))
	}
	return h
}

// subscription is one subscriber.
type subscription struct {
	filter queue.EventFilter
	c      chan queue.Event

	// mu guards the rest, and sends.
	mu     sync.Mutex
	missed int
	over   bool
}

func (h *hub) subscribe(f queue.EventFilter) (got <-chan queue.Event, cancel func()) {
	s := &subscription{filter: f, c: make(chan queue.Event, max(1, cmp.Or(f.Buffer, defaultBuffer)))}
	if h == nil { // of a worker that was not made
		s.end()
		return s.c, func() {}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		s.end()
		return s.c, func() {}
	}
	all := append(slices.Clone(h.all()), s)
	h.subs.Store(&all)
	return s.c, func() {
		h.mu.Lock()
		left := slices.DeleteFunc(slices.Clone(h.all()), func(other *subscription) bool { return other == s })
		h.subs.Store(&left)
		h.mu.Unlock()
		s.end()
	}
}

func (h *hub) all() []*subscription {
	if subs := h.subs.Load(); subs != nil {
		return *subs
	}
	return nil
}

// close ends all subscriptions.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	all := h.all()
	h.subs.Store(nil)
	h.mu.Unlock()
	for _, s := range all {
		s.end()
	}
	if n := h.notifier.Load(); n != nil {
		n.close()
	}
}

// Observe implements events.Sink.
func (h *hub) Observe(batch []events.Event) {
	if n := h.notifier.Load(); n != nil {
		n.Observe(batch)
	}
	subs := h.all()
	if len(subs) == 0 {
		return
	}
	for i := range batch {
		e := eventOf(&batch[i])
		for _, s := range subs {
			if s.filter.Matches(&e) {
				s.send(e)
			}
		}
	}
}

// send never waits.
func (s *subscription) send(e queue.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.missed > 0 {
		select {
		case s.c <- queue.Event{Name: queue.EventMissed, Missed: s.missed, At: time.Now()}:
			s.missed = 0
		default:
		}
	}
	if s.missed > 0 {
		s.missed++
		return
	}
	select {
	case s.c <- e:
	default:
		s.missed++
	}
}

func (s *subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.over = true
		close(s.c)
	}
}

// eventOf is an event as an application sees it.
func eventOf(e *events.Event) queue.Event {
	return queue.Event{
		Name: queue.EventName(e.Name), Kind: queue.Kind(e.Kind), OrgID: e.OrgID, Type: e.Type, JobID: e.JobID,
		DocumentID: e.DocumentID, Attempt: e.Attempt,
		Code: models.ErrorCode(e.Code), Counted: e.Counted, Worker: e.Worker, At: e.At, Error: e.Error, Owner: e.Owner,
		Waited: e.Waited, Took: e.Took,
	}
}

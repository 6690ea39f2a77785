package engine

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
)

// Options say how an engine works. The zero value of each field means its default.
type Options struct {
	// ChunkSize is how many jobs share a transaction; default 500.
	ChunkSize int
	// ChunkTimeout is how long a chunk may take, both phases together; default 1 minute. A job that
	// takes longer alone is a TIMEOUT.
	ChunkTimeout time.Duration
	// Parallel is how many chunks a turn works side by side; default 1.
	Parallel int
	// Slow is for processors whose jobs take seconds or minutes: a turn leases only what it can
	// start at once (ChunkSize × Parallel), and a job that is being worked is charged when its
	// worker dies.
	Slow bool
	// Direct is for processors that prepare in microseconds: what a turn refills is locked,
	// prepared, committed and completed in one transaction, without a lease before it.
	Direct bool
	// PickInterval is the least pause between the beginnings of two refills of the process, unless
	// the turn's last one found as many jobs as it asked for: what comes meanwhile is picked
	// together. Default 5 ms.
	PickInterval time.Duration
	// GatherShared is how long the first job that is ready to share a transaction waits for others of
	// its type whose handlers are running; default 2 ms.
	GatherShared time.Duration
	// ShareFor is how long a shared transaction begins more functions; default 20 ms.
	ShareFor time.Duration
	// RetryBase is the first backoff; default models.DefaultRetryBase.
	RetryBase time.Duration
	// RenewEvery is the pause between two renewals of a turn's leases; default store.RenewEvery.
	RenewEvery time.Duration
	// Grace is how long running chunks may go on after the turn was told to stop; default 20 s.
	Grace time.Duration
	// CountStopped is how long an attempt at a background job has run that is counted when its
	// process is stopped; default a minute.
	CountStopped time.Duration
	// Events observes what is committed; nil: nothing does, and no events are made.
	Events events.Sink
	// Tracer makes spans; nil: nothing does.
	Tracer Tracer
	// Worker is the process's name in the leases of its turns. Without it, others do not see that the
	// process has died, and its leases last until they expire.
	Worker string
	// Owner is who is responsible for accounting jobs; the handlers of other kinds say it by type.
	Owner string
	// Log is where the engine logs; default slog.Default().
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	o.ChunkSize = cmp.Or(o.ChunkSize, 500)
	o.ChunkTimeout = cmp.Or(o.ChunkTimeout, time.Minute)
	o.Parallel = cmp.Or(o.Parallel, 1)
	o.PickInterval = cmp.Or(o.PickInterval, 5*time.Millisecond)
	o.GatherShared = cmp.Or(o.GatherShared, 2*time.Millisecond)
	o.ShareFor = cmp.Or(o.ShareFor, 20*time.Millisecond)
	o.RetryBase = cmp.Or(o.RetryBase, models.DefaultRetryBase)
	o.RenewEvery = cmp.Or(o.RenewEvery, store.RenewEvery)
	o.Grace = cmp.Or(o.Grace, 20*time.Second)
	o.CountStopped = cmp.Or(o.CountStopped, time.Minute)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// Engine works the jobs of one kind of queue. It is safe for concurrent use.
type Engine struct {
	kind     Kind
	waker    *store.Waker
	handlers Handlers
	// reviewer is the handlers, if they are one; else nil.
	reviewer Reviewer
	// room counts what the process works of each type.
	room *room
	// pace is what it has learnt of how long they take.
	pace    *pace
	options Options
	// capacity is how many jobs a turn has begun or leased at a time, at most.
	capacity int
	// begins: what is leased begins at once, so that its lease charges it. Otherwise it may wait in
	// its turn, and is charged when it is worked alone.
	begins bool
	// resumes is what Resumes says.
	resumes bool
	// life ends with the engine.
	life context.Context
	end  context.CancelFunc
	// background is what goes on beside its turns, late what that came to and was not reported yet:
	// the next turn that ends reports it.
	background sync.WaitGroup
	late       tally
	reclaiming sync.Once
	waits      waits
	// handling counts the calls of handlers that have not returned, interrupted those that were cut
	// off when their process was told to stop, lost the turns that found leases of theirs taken.
	handling, interrupted, lost atomic.Int64
	// lastRefill is when one of the turns last began a refill, saidLocked when a log line last said
	// that a table is locked.
	lastRefill, saidLocked moment
	handingOn              handingOn
	// unshared are the types whose jobs share no transaction now.
	unshared unshared
	// observer tells Options.Events; nil: there is none.
	observer *observer
}

// New returns an engine that works the accounting queue of a store with a processor. Close it.
func New(s *store.Store, p Processor, o Options) *Engine {
	o = o.withDefaults()
	k := Tables(s)
	e := NewOn(k, &accounting{processor: p, options: o, holdBack: k.HoldBack}, o)
	e.begins = false
	if o.Slow {
		e.capacity = o.ChunkSize * o.Parallel
	}
	return e
}

// NewJobs returns an engine of jobs, with the handlers of a registry, on a store of their queue.
// Close it.
func NewJobs(s *store.Store, r Registry, o Options) *Engine {
	return NewOn(Tables(s), HandlersOf(r, s.Pool(), o.Log), o)
}

// NewTasks returns an engine of tasks, with the handlers of a registry, on their queue. Close it.
func NewTasks(q *store.TaskQueue, r Registry, o Options) *Engine {
	e := NewOn(Tasks(q), HandlersOf(r, q.Pool(), o.Log), o)
	e.resumes = true
	return e
}

// Resumes reports whether what a silent execution of a turn holds is reclaimed by the next one,
// under the same turn. It is for a kind whose leases last for minutes after their worker has died.
// Otherwise the silent one may go on until its leases expire.
func (e *Engine) Resumes() bool { return e.resumes }

// NewOn returns an engine of a kind whose jobs are begun as they are leased. Close it.
func NewOn(k Kind, h Handlers, o Options) *Engine {
	o = o.withDefaults()
	e := &Engine{
		kind: k, waker: k.NewWaker(o.Worker, o.PickInterval, o.Log), handlers: h, room: newRoom(h), pace: newPace(),
		options: o, capacity: laneJobs, begins: true,
		waits: waits{looks: make(chan struct{}, 1), looked: make(chan struct{}, 1)},
	}
	e.observer = newObserver(o.Events, k, h)
	e.reviewer, _ = h.(Reviewer)
	if t := o.Tracer; t != nil {
		e.handlers, e.kind = t.Handlers(k.Name(), h), t.Kind(k)
	}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// Close ends the connection on which the engine waits for work, and waits for detached jobs, for as
// long as a turn's are waited for that was told to stop. The pool stays open.
func (e *Engine) Close() {
	e.end()
	e.reclaiming.Do(func() {})
	e.background.Wait()
	e.waker.Close()
}

// Kind names the kind of queue.
func (e *Engine) Kind() string { return e.kind.Name() }

// Grace is how long handlers may go on after the engine was told to stop.
func (e *Engine) Grace() time.Duration { return e.options.Grace }

// Handling counts the calls of handlers that have not returned, of all turns, also those that are
// not waited for any more.
func (e *Engine) Handling() int { return int(e.handling.Load()) }

// Interrupted counts, since the engine was made, the calls of handlers that were cut off because
// they went on after the grace period.
func (e *Engine) Interrupted() int { return int(e.interrupted.Load()) }

func (e *Engine) handles() (over func()) {
	e.handling.Add(1)
	return func() { e.handling.Add(-1) }
}

// Tracer wraps what an engine works with, to make spans of what it does.
type Tracer interface {
	// Handlers wraps the handlers of a kind.
	Handlers(kind string, h Handlers) Handlers
	// Kind wraps the statements of a kind.
	Kind(k Kind) Kind
}

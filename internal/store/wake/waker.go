// Package wake tells the waiters of one process that a queue may have work. A transaction that
// enqueues notifies only while a waiter waits, which it sees by an advisory lock; a waker holds
// that lock, listens, and has its waiters scan. A wake-up says "look", never what there is.
//
// waker.go has the waiters and the connection, lock.go what is known of the lock, and when
// notifications are given up, tell.go which waiter is told first.
package wake

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models/locks"
)

const (
	// lockTick is the pause between two tries for the exclusive lock that an open enqueuing
	// transaction holds off. Until the lock is held nothing notifies, so the waiters scan at each
	// tick.
	lockTick = 75 * time.Millisecond
	// otherTick is the pause between two tries while another process holds the lock. Enqueuers
	// notify all processes then, and a process that gives the lock up notifies the others; the tick
	// is for one that died.
	otherTick = 500 * time.Millisecond
	// lockLinger is how long the lock is kept after the last waiter left: the next one usually
	// comes within a hop.
	lockLinger = time.Second
	// leastPoll is the shortest pause between two scans that the waker asks for by itself.
	leastPoll = time.Millisecond
)

// Waker tells waiters of one process that there may be work. It holds one direct connection that
// listens for what the kind's wake function notifies, and the exclusive advisory lock that makes
// enqueuers notify. While it cannot have the lock, because an enqueuing transaction stays open, and
// while it has no connection, it tells the waiters to scan every lockTick: a wake-up becomes
// polling, and never waits for another transaction. Each waiter also scans again by itself after
// its poll interval.
//
// While notifications, which cost more than scans, come faster than the waiters scan, the waker
// gives the lock up and tells a waiter to scan every interval; when several scans in a row find
// nothing it takes the lock again (decision 2).
type Waker struct {
	queue    Queue
	interval time.Duration
	log      *slog.Logger

	mu      sync.Mutex
	subs    map[*Subscription]struct{}
	joined  int64         // counts the subscriptions so far
	changed chan struct{} // closed and replaced whenever subs changes
	started bool
	// checking: it is about to be seen whether the first waiter has taken its token. fresh: work
	// has come since the others were told. told is when that was.
	checking bool
	fresh    bool
	told     time.Time
	// reminding, passing: waiters are about to be told. telling is held while they are reminded.
	reminding, passing atomic.Bool
	telling            sync.Mutex
	// found: a waiter has found work since the waker last asked.
	found  atomic.Bool
	cancel context.CancelFunc
	done   chan struct{}
}

// Queue is what a waker has to know of its queue.
type Queue struct {
	// Name is the queue's in log lines.
	Name string
	// Address returns the channel on which its wake function notifies, and the key of the lock that
	// makes enqueuers notify.
	Address func() (channel string, key int)
	// Worker is the name of this process in its leases; empty: it takes none. The waker's connection
	// holds the worker's lock.
	Worker string
	// Connect opens the waker's connection.
	Connect func(ctx context.Context) (*pgx.Conn, error)
	// Wake notifies the waiters of all processes.
	Wake func(ctx context.Context)
}

// NewWaker returns a waker that connects when a waiter first waits. interval is the pause between
// two scans while the waiters find work all the time. Close it.
func NewWaker(queue Queue, interval time.Duration, log *slog.Logger) *Waker {
	return &Waker{
		queue: queue, interval: max(interval, leastPoll), log: log,
		subs: map[*Subscription]struct{}{}, changed: make(chan struct{}), done: make(chan struct{}),
	}
}

// Subscription is one waiter. C receives when the queue is worth a scan; tokens coalesce.
type Subscription struct {
	C chan struct{}
	// number grows from subscription to subscription.
	number int64
	waker  *Waker
	// vain: its last scan found nothing to do, now or soon, and it was not told since that began. It
	// belongs to the waker's mu.
	vain bool
}

// Subscribe starts waiting. Scan the queue once after Subscribe and after each token of C: work
// committed before the lock was held is found by that scan, later work sends a token.
func (w *Waker) Subscribe() *Subscription {
	s := &Subscription{C: make(chan struct{}, 1), waker: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.joined++
	s.number = w.joined
	w.subs[s] = struct{}{}
	w.notifyChanged()
	if !w.started {
		w.started = true
		ctx, cancel := context.WithCancel(context.Background())
		w.cancel = cancel
		go w.run(ctx)
	}
	return s
}

// Close stops waiting. Another waiter is told to scan, a moment later: this one may have taken a
// token and not scanned, or left work. One whose last scan was in vain leaves an idle process
// alone.
func (s *Subscription) Close() {
	s.waker.mu.Lock()
	defer s.waker.mu.Unlock()
	delete(s.waker.subs, s)
	s.waker.notifyChanged()
	if !s.vain {
		s.waker.Remind()
	}
}

// Found says that the waiter has found work.
func (s *Subscription) Found() { s.waker.found.Store(true) }

// Scanned says that the waiter has scanned. more: there is or will be work for another scan, which
// another waiter is to make if this one closes.
func (s *Subscription) Scanned(more bool) {
	s.waker.mu.Lock()
	defer s.waker.mu.Unlock()
	s.vain = !more && len(s.C) == 0
}

// signal is called with the waker's mu held.
func (s *Subscription) signal() {
	s.vain = false
	select {
	case s.C <- struct{}{}:
	default:
	}
}

// Close ends the waker and its connection. If waiters are about to be reminded, it does that first.
func (w *Waker) Close() {
	w.remind()
	w.reminding.Store(true) // Remind does nothing any more
	w.mu.Lock()
	w.started = true
	cancel := w.cancel
	w.mu.Unlock()
	if cancel != nil {
		cancel()
		<-w.done
	}
}

// notifyChanged is called with mu held.
func (w *Waker) notifyChanged() {
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *Waker) waiters() (int, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.subs), w.changed
}

// warnPause is the pause between two tries to connect from which a warning is due.
const warnPause = 100 * time.Millisecond

// run keeps the connection alive until ctx ends.
func (w *Waker) run(ctx context.Context) {
	defer close(w.done)
	warned := false
	for pause := lockTick; ctx.Err() == nil; pause = min(pause*2, 10*time.Second) {
		connected, err := w.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if connected {
			w.log.Debug("the wake-up connection ended; connecting anew", "error", err)
			pause, warned = lockTick, false
		} else if !warned && pause >= warnPause {
			w.log.Warn("no connection on which work is announced; the queue is polled until there is one", "queue",
				w.queue.Name, "error", err)
			warned = true
		}
		w.poll(ctx, pause)
	}
}

// poll has the waiters scan every lockTick, for d.
func (w *Waker) poll(ctx context.Context, d time.Duration) {
	for over := time.Now().Add(d); time.Now().Before(over) && pause(ctx, min(lockTick, time.Until(over)), nil) == nil; {
		w.broadcast()
	}
}

// listen serves waiters on one connection. It says whether there was one.
func (w *Waker) listen(ctx context.Context) (connected bool, err error) {
	connectCtx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := w.queue.Connect(connectCtx)
	if err != nil {
		return false, err
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = errors.Join(err, conn.Close(closeCtx))
	}()
	// The session idles by design, whatever limit the role or the database has.
	if _, err := conn.Exec(ctx, "SET idle_session_timeout = 0; LISTEN "+w.channel()); err != nil {
		return true, err
	}
	if err := w.showLife(ctx, conn); err != nil {
		return true, err
	}
	// While another process holds the lock, work is notified and heard from here on; what was
	// committed before is found by a scan after this moment.
	w.broadcast()
	for {
		for n, changed := w.waiters(); n == 0; n, changed = w.waiters() {
			if err := watch(ctx, conn, changed); err != nil {
				return true, err
			}
		}
		l := &lock{waker: w, conn: conn, state: lockOpen, pace: newPace(w.interval)}
		if err := l.serve(ctx); err != nil {
			return true, err
		}
	}
}

// showLife takes the lock by which others know that the process lives: when it is killed, PostgreSQL
// ends its sessions at once.
func (w *Waker) showLife(ctx context.Context, conn *pgx.Conn) error {
	if w.queue.Worker == "" {
		return nil
	}
	_, err := conn.Exec(ctx, `SELECT pg_advisory_lock_shared($1, hashtext($2))`, locks.Workers, w.queue.Worker)
	return err
}

// watch waits until changed is closed, or the connection has ended: without it the process would
// seem to be dead.
func watch(ctx context.Context, conn *pgx.Conn, changed <-chan struct{}) error {
	waitCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-changed:
			cancel()
		case <-waitCtx.Done():
		}
	}()
	for {
		_, err := conn.WaitForNotification(waitCtx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case waitCtx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

func (w *Waker) channel() string {
	channel, _ := w.queue.Address()
	return channel
}

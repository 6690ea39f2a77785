package wake

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/models/locks"
)

// lockState is what a waker knows of the exclusive lock.
type lockState string

const (
	// lockHeld: this waker has it. No enqueuing transaction is open, and each later one notifies.
	lockHeld lockState = "held"
	// lockElsewhere: another process waits and has it. Enqueuing transactions notify.
	lockElsewhere lockState = "elsewhere"
	// lockOpen: enqueuing transactions are open that did not notify.
	lockOpen lockState = "open"
	// lockLeft: this waker leaves it alone, and does not listen: its waiters scan every interval.
	lockLeft lockState = "left"
)

// freed is what a process notifies that gives the lock up, and no enqueuer.
const freed = "free"

// lock is a waker's connection, and what it knows of the lock. It belongs to the waker's goroutine.
type lock struct {
	waker *Waker
	conn  *pgx.Conn
	state lockState
	pace  pace
	// retry: another process had the lock, and may have it no longer.
	retry bool
}

// serve tells waiters of work for as long as there are any. Success at the lock means that no
// enqueuing transaction is open and each later one will notify; so every waiter scans once more
// after it.
//
// A process that ends tells the others that the lock is free.
func (l *lock) serve(ctx context.Context) (err error) {
	defer func() {
		if ctx.Err() != nil && l.state == lockHeld {
			own, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			err = errors.Join(err, l.unlock(own))
		}
	}()
	for {
		n, changed := l.waker.waiters()
		for left := time.Now(); n == 0; n, changed = l.waker.waiters() {
			if time.Since(left) >= lockLinger {
				return l.giveUp(ctx)
			}
			if err := pause(ctx, lockLinger, changed); err != nil {
				return err
			}
		}
		tick, err := l.scan(ctx)
		if err != nil {
			return err
		}
		if l.state == lockLeft {
			err = pause(ctx, tick, nil)
		} else {
			err = l.wait(ctx, tick)
		}
		if err != nil {
			return err
		}
	}
}

// giveUp ends the service when there has been no waiter for a while.
func (l *lock) giveUp(ctx context.Context) error {
	switch l.state {
	case lockHeld:
		return l.unlock(ctx)
	case lockLeft:
		return l.hear(ctx)
	case lockElsewhere, lockOpen:
	}
	return nil
}

// scan tells the waiters to scan while nothing notifies, and takes the lock when scans find
// nothing. It returns for how long to wait then.
func (l *lock) scan(ctx context.Context) (tick time.Duration, err error) {
	w := l.waker
	switch l.state {
	case lockHeld:
		return lockLinger, nil
	case lockElsewhere:
		if !l.retry {
			return otherTick, nil
		}
	case lockOpen, lockLeft:
		if !l.pace.scanned(w.found.Swap(false)) {
			w.broadcast()
			return l.pace.pause(), nil
		}
	}
	before := l.state
	if before == lockLeft {
		if err := l.hear(ctx); err != nil {
			return 0, err
		}
	}
	if l.state, err = l.tryLock(ctx); err != nil {
		return 0, err
	}
	l.retry = false
	switch l.state {
	case lockHeld:
		l.pace.held()
		w.found.Store(false)
		tick = lockLinger
	case lockElsewhere:
		tick = otherTick
	case lockOpen, lockLeft:
		tick = l.pace.pause()
	}
	if before != lockElsewhere || l.state != lockElsewhere {
		w.broadcast()
	}
	return tick, nil
}

// wait waits for a notification. When they come faster than the waiters scan, and the waiters find
// work, the lock is given up.
func (l *lock) wait(ctx context.Context, tick time.Duration) error {
	waitCtx, cancel := context.WithTimeout(ctx, tick)
	defer cancel()
	n, err := l.conn.WaitForNotification(waitCtx)
	switch {
	case err == nil:
		l.waker.broadcast()
		if l.retry = n.Payload == freed; l.pace.notified(time.Now()) && l.waker.found.Load() {
			return l.leave(ctx)
		}
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		l.retry = true
		return nil
	}
	return err
}

func pause(ctx context.Context, d time.Duration, changed <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
	case <-changed:
	}
	return nil
}

// tryLock tries for the exclusive lock. The shared one tells the two reasons apart for which it may
// not be had.
func (l *lock) tryLock(ctx context.Context) (lockState, error) {
	const try = `
SELECT CASE WHEN pg_try_advisory_lock($1, $2) THEN 'held'
            WHEN NOT pg_try_advisory_lock_shared($1, $2) THEN 'elsewhere'
            WHEN pg_advisory_unlock_shared($1, $2) THEN 'open' END`
	_, key := l.waker.queue.Address()
	var state lockState
	err := l.conn.QueryRow(ctx, try, locks.Wakers, key).Scan(&state)
	return state, err
}

// unlock gives the lock up. The notification has a process that waits on take it at once: until one
// has it, nothing else notifies.
func (l *lock) unlock(ctx context.Context) error {
	channel, key := l.waker.queue.Address()
	_, err := l.conn.Exec(ctx, `SELECT pg_advisory_unlock($1, $2), pg_notify($3, $4)`, locks.Wakers, key, channel, freed)
	return err
}

// leave gives the lock up while there are waiters, which scan every interval from now on, and hears
// nothing meanwhile: another process may take the lock, and be notified.
func (l *lock) leave(ctx context.Context) error {
	if l.state == lockHeld {
		if err := l.unlock(ctx); err != nil {
			return err
		}
	}
	l.state = lockLeft
	l.pace.left()
	_, err := l.conn.Exec(ctx, "UNLISTEN "+l.waker.channel())
	return err
}

// hear listens again. What notified meanwhile is found by a scan after it.
func (l *lock) hear(ctx context.Context) error {
	_, err := l.conn.Exec(ctx, "LISTEN "+l.waker.channel())
	return err
}

const (
	// busyAfter is how many notifications say how fast they come: so many within as many intervals
	// are as many as there would be scans without them.
	busyAfter = 8
	// quietAfter is how many scans in a row find nothing before notifications are wanted again.
	quietAfter = 4
)

// pace decides when a waker is notified of work, and when its waiters scan every interval instead.
// It knows no clock.
type pace struct {
	interval time.Duration
	// heard are the times of the last notifications; next is the oldest of them, which the next
	// notification replaces.
	heard [busyAfter]time.Time
	next  int
	// misses is how many scans in a row have found nothing.
	misses int
}

// newPace is the pace of a waker that wants to be notified.
func newPace(interval time.Duration) pace {
	return pace{interval: interval, misses: quietAfter}
}

// notified takes in a notification, and reports whether the last ones came faster than one an
// interval.
func (p *pace) notified(now time.Time) bool {
	oldest := p.heard[p.next]
	p.heard[p.next] = now
	p.next = (p.next + 1) % busyAfter
	return !oldest.IsZero() && now.Sub(oldest) < busyAfter*p.interval
}

// held forgets the notifications: those that come from now on count.
func (p *pace) held() { p.heard = [busyAfter]time.Time{} }

// left says that the waiters scan every interval from now on.
func (p *pace) left() { p.misses = 0 }

// scanned takes in whether scans have found work since it was last asked, and reports whether
// notifications are wanted.
func (p *pace) scanned(found bool) bool {
	if found {
		p.misses = 0
	} else {
		p.misses++
	}
	return p.misses >= quietAfter
}

// pause is until the next scan: the interval, and longer and longer, up to lockTick, while
// notifications are wanted and not to be had.
func (p *pace) pause() time.Duration {
	pause := p.interval
	for n := p.misses - quietAfter; n > 0 && pause < lockTick; n-- {
		pause *= 2
	}
	return max(min(pause, lockTick), p.interval)
}

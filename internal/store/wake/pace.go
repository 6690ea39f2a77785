package wake

import "time"

const (
	// busyAfter is how many notifications say how fast they come: so many within as many intervals
	// are as many as there would be scans without them.
	busyAfter = 8
	// quietAfter is how many scans in a row find nothing before notifications are wanted again.
	quietAfter = 4
)

// pace decides when a waker is notified of work, and when its waiters scan every interval instead:
// a notification costs the transaction that sends it, its commit and this process more than a scan
// costs that finds several jobs. It knows no clock.
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

package due

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// scanEvery is the pause between two scans while there is work. An organization that had no
	// work before may wait this long.
	scanEvery = 50 * time.Millisecond
	// costShare is how many times its own duration a scan is not repeated while there is work: the
	// recent scans and the full ones each take a fiftieth of a worker's time at most. idlecostShare
	// is the same between the parts of a full scan while the worker is idle.
	costShare     = 49
	idlecostShare = 19
	// fullScanAfter is for how long an idle worker may put the full scan off because its recent
	// scans find work. A worker that keeps up with a steady stream finds some each time.
	fullScanAfter = 500 * time.Millisecond
	// noRoomPause is the pause between two scans while all that is known to be due waits for room.
	noRoomPause = 10 * time.Millisecond
	// recentLag is how far a recent scan reaches back behind the one before it, to find what was
	// enqueued before that and committed after it. Every farEvery it reaches back by farLag. What
	// takes longer to commit is found by the full scan.
	recentLag = 250 * time.Millisecond
	farEvery  = 500 * time.Millisecond
	farLag    = 3 * time.Second
	// recentRows is how many rows a recent scan reads, the youngest; what is older is left to the
	// full scan. An idle worker reads as many as idleRows: without them it would make a full scan,
	// which costs more where a snapshot keeps dead rows.
	recentRows = 1000
	idleRows   = 5000
	// farthest is as far back as the first recent scan reaches.
	farthest = 24 * time.Hour
	// capTries is how many partitions of capped organizations are tried again after a scan.
	capTries = 200
	// Least is the least time that a scan is put off for the next due job. Jobs of paused
	// organizations fall due as well: without it an idle worker would scan again and again for
	// those.
	Least = 5 * time.Millisecond
)

// Reader reads a queue for scans.
type Reader struct {
	// Recent reads the jobs that have fallen due within since, the youngest of them, as many as
	// most. With next it says when the next job falls due.
	Recent func(ctx context.Context, since time.Duration, most int, next bool) (Recent, error)
	// Part reads the partitions behind one, in the order of their keys, with the first pending job
	// of each.
	Part func(ctx context.Context, after Key, partitions int) (Part, error)
}

// Recent is what a recent scan has read.
type Recent struct {
	// Found has the first job of each partition.
	Found []Found
	// More: there are older ones that were not read.
	More bool
	// NextDue is until the next job falls due; 0: none is known.
	NextDue time.Duration
}

// Part is what a part of the full scan has read.
type Part struct {
	// Keys are its partitions, in their order; Due the first jobs of those that have work for the
	// worker.
	Keys []Key
	Due  []Found
	// Left: jobs are due that the worker leaves to others.
	Left bool
	// NextDue is until the next job falls due in a partition that has no due one; 0: none is known.
	NextDue time.Duration
}

// Outlook is what a scan that found nothing to do says of the next one.
type Outlook struct {
	// Again is until another scan may find what this one could not afford to read; 0: it read
	// everything.
	Again time.Duration
	// Due is until the next job falls due; 0: none is known.
	Due time.Duration
	// Unread says that jobs may be due of which the scan does not know: it has not read all
	// partitions since it was called.
	Unread bool
}

// Wait is how long it is until another scan is worthwhile although no wake-up came; 0: none is.
func (o Outlook) Wait() time.Duration {
	if o.Again == 0 || o.Due > 0 && o.Due < o.Again {
		return o.Due
	}
	return o.Again
}

// Later is when to look for a job that falls due in so long: a little later, so that it is not
// asked for too early.
func Later(d time.Duration) time.Duration { return max(d+time.Millisecond, Least) }

// scans is what is known of the scans. The goroutine that holds mu scans, and owns the rest.
type scans struct {
	mu   sync.Mutex
	read Reader
	// recentAt and farAt are when the last recent scan, and the last that reached far back, began.
	recentAt, farAt time.Time
	// nextRecentAt is when the next recent scan is allowed, for the cost of the last one.
	nextRecentAt time.Time
}

// Scan looks for due jobs, in two ways, neither of which takes longer with more partitions: see the
// package's page.
//
// While there is work a scan is due every scanEvery; when there is none (idle), at once. After one
// that leaves nothing to do the outlook says how long to wait for the next part of the full scan.
func (p *Partitions) Scan(ctx context.Context, idle bool, room Room) (o Outlook, err error) {
	s := &p.scans
	if idle {
		s.mu.Lock()
	} else if !s.mu.TryLock() {
		return o, nil // another goroutine is scanning: that is enough
	}
	defer s.mu.Unlock()
	p.full.nothingLeft.Store(nil)
	defer func() {
		scanBy := slices.MinFunc([]time.Time{s.farAt.Add(farEvery), p.full.due()}, time.Time.Compare)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.recentPicks.scanBy = scanBy
	}()
	now := time.Now()
	if idle {
		if !p.Idle(room) {
			return o, nil // another goroutine has just scanned
		}
		if wait := time.Until(s.recentAt.Add(noRoomPause)); wait > 0 && p.LacksRoom(room) {
			return Outlook{Again: wait}, nil
		}
		p.full.noteWakeUp(now)
	} else if now.Before(s.recentAt.Add(scanEvery)) {
		return o, nil
	}
	more := false
	if idle || !now.Before(s.nextRecentAt) {
		if o.Due, more, err = p.scanRecent(ctx, now, idle, room); err != nil {
			return o, err
		}
		s.nextRecentAt = time.Now().Add(costShare * time.Since(now))
	}
	inVain := idle && p.Idle(room)
	if !idle || inVain || more || p.full.overdue() {
		again, err := p.scanFull(ctx, idle, idle && more, room)
		if err != nil {
			return o, err
		}
		if inVain && p.Idle(room) {
			o.Again, o.Unread = again, again > 0
		}
	}
	p.tryCapped(capTries)
	return o, nil
}

// scanRecent finds what has fallen due since the last recent scan. With next, for an idle worker,
// it returns how long it is until the next job falls due. more says that it has not read all.
func (p *Partitions) scanRecent(
	ctx context.Context, now time.Time, next bool, room Room,
) (nextDue time.Duration, more bool, err error) {
	s := &p.scans
	since := min(now.Sub(s.recentAt), farthest) + recentLag
	if far := min(now.Sub(s.farAt), farthest); far > farEvery {
		since = far + farLag
	}
	most := recentRows
	if next {
		most = idleRows
	}
	read, err := s.read.Recent(ctx, since, most, next)
	if err != nil {
		return 0, false, err
	}
	if s.recentAt = now; since > farLag {
		s.farAt = now
	}
	p.FoundDue(read.Found, room)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recentPicks.scanned(read, now)
	return read.NextDue, read.More, nil
}

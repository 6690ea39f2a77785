package due

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A full scan reads all partitions, in parts. A part has firstPart partitions at first, and
	// then as many as take about partFor, mostPart at most.
	firstPart = 256
	mostPart  = 4096
	partFor   = 10 * time.Millisecond
)

// fullScan is how far the full scan has come. One part of it runs at a time, in a goroutine of its
// own: where an old snapshot keeps dead rows a part can take seconds, and new jobs must not wait
// for it.
type fullScan struct {
	mu sync.Mutex
	// partRunning: a part runs, since partStarted. callerLeft: its caller did not wait for its end.
	partRunning, callerLeft bool
	partStarted             time.Time
	// partEnded is when the last part ended, or the first scan began.
	partEnded time.Time
	// nextPartAt is when the next part is allowed, for the cost of the last one. callerBackAt is
	// when callers were told to come back.
	nextPartAt, callerBackAt time.Time
	// inMiddle: the scan goes on behind the partition after; else it begins anew.
	inMiddle bool
	after    Key
	// partSize is how many partitions the next part reads.
	partSize int
	// readOnce: all partitions have been read before.
	readOnce bool
	// rescanWanted: a wake-up came during the scan, which is to be repeated.
	rescanWanted bool
	// lastPartSlow: the last part took long, or failed.
	lastPartSlow bool
	// nothingLeft is when a poll saw that nothing is due for other workers, unless there was a scan
	// since.
	nothingLeft atomic.Pointer[time.Time]
}

// noteWakeUp notes a scan that begins at now: one that comes before its time follows a wake-up.
func (f *fullScan) noteWakeUp(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rescanWanted = f.rescanWanted || (f.partRunning || f.inMiddle) && now.Before(f.callerBackAt)
}

// overdue reports whether the scan was put off for fullScanAfter or longer.
func (f *fullScan) overdue() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.partEnded.IsZero() {
		f.partEnded = time.Now()
	}
	return time.Since(f.partEnded) >= fullScanAfter
}

// ReadOn lets the next part of the full scan begin at once, whatever the last one has cost: for a
// caller that has to know whether anything is due.
func (p *Partitions) ReadOn() {
	p.full.mu.Lock()
	defer p.full.mu.Unlock()
	p.full.nextPartAt = time.Time{}
}

// due is when a scan that finds work is to read the next part as well.
func (f *fullScan) due() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch overdueAt := f.partEnded.Add(fullScanAfter); {
	case f.partRunning:
		return time.Now().Add(fullScanAfter)
	case overdueAt.Before(f.nextPartAt):
		return f.nextPartAt
	default:
		return overdueAt
	}
}

// scanFull begins the next part of the full scan, if no part runs and one is allowed now, or
// evenSo. It waits for the part's end for partFor, and without limit until all partitions have been
// read once. again is how long it is until more can be read; 0: everything is read.
func (p *Partitions) scanFull(ctx context.Context, idle, evenSo bool, room Room) (again time.Duration, err error) {
	f := &p.full
	f.mu.Lock()
	defer f.mu.Unlock()
	read := f.callerLeft && !f.partRunning
	f.callerLeft = f.callerLeft && f.partRunning
	if !f.partRunning && !read && (evenSo || !time.Now().Before(f.nextPartAt)) {
		slow := time.After(partFor)
		if !f.readOnce {
			slow = nil
		}
		ended := p.runPart(ctx, idle, room)
		f.mu.Unlock()
		select {
		case err = <-ended:
			read = true
		case <-slow:
		case <-ctx.Done():
			err = ctx.Err()
		}
		f.mu.Lock()
		f.callerLeft = !read
	}
	switch {
	case err != nil:
		return 0, err
	case f.partRunning:
		again = max(time.Since(f.partStarted), partFor)
	case !read || f.inMiddle || f.rescanWanted:
		again = max(time.Until(f.nextPartAt), time.Millisecond)
	}
	f.callerBackAt = time.Now().Add(again)
	return again, nil
}

// runPart begins the next part, and returns a channel for how it ends. The caller holds full.mu.
// The part goes on when its caller's context ends, so that scans that take longer than a fetch come
// to their end; after an error it is read again.
func (p *Partitions) runPart(ctx context.Context, idle bool, room Room) <-chan error {
	after, size := p.full.begin()
	ended := make(chan error, 1)
	go func() {
		began := p.changesSoFar()
		read, err := p.scans.read.Part(context.WithoutCancel(ctx), after, size)
		p.endPart(idle, room, &read, began, err)
		ended <- err
	}()
	return ended
}

// begin begins a part, and returns behind which partition it reads, and how many. It is called with
// mu held.
func (f *fullScan) begin() (after Key, size int) {
	if !f.inMiddle {
		f.rescanWanted, f.after = false, Key{}
	}
	if f.partSize == 0 {
		f.partSize = firstPart
	}
	f.partRunning, f.partStarted = true, time.Now()
	return f.after, f.partSize
}

// endPart takes in what a part has read, or that it has failed, and reports whether the scan has
// come to its end. began is the number of changes when the part began.
func (p *Partitions) endPart(idle bool, room Room, read *Part, began int, err error) (whole bool) {
	if err == nil {
		p.foundFirst(read.Due, room, began)
	}
	f := &p.full
	f.mu.Lock()
	defer f.mu.Unlock()
	f.partRunning = false
	if err != nil {
		f.rescanWanted, f.lastPartSlow = true, true // its caller may not wait any more: the next one comes back
		return false
	}
	f.partEnded = time.Now()
	took := f.partEnded.Sub(f.partStarted)
	pause := costShare * took
	if f.inMiddle = len(read.Keys) == f.partSize; f.inMiddle {
		f.after = read.Keys[len(read.Keys)-1]
		switch {
		case !f.readOnce:
			pause = took // what a worker finds when it starts
		case idle:
			pause = idlecostShare * took
		}
	} else {
		f.readOnce = true
		p.forget()
	}
	f.nextPartAt = f.partEnded.Add(pause)
	switch f.lastPartSlow = took > 2*partFor; {
	case f.lastPartSlow:
		f.partSize = max(firstPart/16, f.partSize/2)
	case took < partFor/2:
		f.partSize = min(mostPart, 2*f.partSize)
	}
	return !f.inMiddle
}

// ErrNotWorthwhile: a poll would not pay, because there is work, or more than a part to read, or
// the last part was slow.
var ErrNotWorthwhile = errors.New("a poll is not worthwhile")

// Poll makes a full scan of one part by a read of the caller's, for an idle worker whose last part
// was fast. whole says that it has read all partitions: then it stands for a recent scan as well.
func (p *Partitions) Poll(room Room, read func(after Key, partitions int) (Part, error)) (whole bool, err error) {
	s := &p.scans
	if !s.mu.TryLock() {
		return false, ErrNotWorthwhile
	}
	defer s.mu.Unlock()
	if !p.Idle(room) {
		return false, ErrNotWorthwhile
	}
	after, size := p.full.beginPoll()
	if size == 0 {
		return false, ErrNotWorthwhile
	}
	at, began := time.Now(), p.changesSoFar()
	part, err := read(after, size)
	whole = p.endPart(true, room, &part, began, err)
	if err != nil {
		return false, err
	}
	p.full.nothingLeft.Store(nil)
	if whole {
		s.recentAt, s.farAt = at, at
		p.tryCapped(capTries)
		if !part.Left {
			p.full.nothingLeft.Store(&at)
		}
	}
	return whole, nil
}

// beginPoll is begin for a poll; size 0: it is not worthwhile.
func (f *fullScan) beginPoll() (after Key, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.partRunning || f.inMiddle || f.lastPartSlow || !f.readOnce || time.Now().Before(f.nextPartAt) {
		return after, 0
	}
	return f.begin()
}

// NothingLeft reports whether a poll of the last so long has seen that nothing is due for other
// workers, and was the last scan.
func (p *Partitions) NothingLeft(within time.Duration) bool {
	at := p.full.nothingLeft.Load()
	return at != nil && time.Since(*at) < within
}

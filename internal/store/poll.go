package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// pollLimit bounds each statement of a poll: what takes longer is asked by itself, and others do not wait for it.
	pollLimit = `, set_config('statement_timeout', '100ms', true)`
	// pollTimeout bounds a whole poll.
	pollTimeout = time.Second
)

// Polled is what a poll found.
type Polled struct {
	// Fence is higher than every one drawn before.
	Fence int64
	// Looked: it was looked whether something is on record about jobs that wait (CheckWaits). Waits: something is.
	Looked, Waits bool
}

// polled is what is due, as a poll saw it that read all partitions: its cursors know.
type polled struct {
	fence int64
	at    time.Time
	next  time.Duration
}

// Poll implements engine.Transactions. While the worker is idle, and one part of the full scan reads all partitions in no time, it makes that scan in the round trip that
// draws the fence, and asks what else is asked as often: one transaction. The full scan finds what a recent one would, and says when the next job falls
// due. The first lease under the fence scans no more (takePolled).
//
// What fails in it is asked by itself, as if there had been no poll.
func (s *Store) Poll(ctx context.Context, room Room) (Polled, error) {
	if s.scanning.TryLock() {
		p, err := s.poll(ctx, room)
		s.scanning.Unlock()
		if err == nil {
			return p, nil
		}
	}
	fence, err := s.NextFence(ctx)
	return Polled{Fence: fence}, err
}

// errNotPolled: a poll would not pay, or has not read everything.
var errNotPolled = errors.New("not polled")

// poll is called with scanning held.
func (s *Store) poll(ctx context.Context, room Room) (p Polled, err error) {
	if _, err := s.ready(ctx); err != nil || !s.cursors.idle(room) {
		return p, errNotPolled
	}
	args := s.full.beginPoll()
	if args == nil {
		return p, errNotPolled
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	began, moves, beyond := time.Now(), s.cursors.moved(), s.decidedWaits.begin(time.Now())
	var read part
	var lowest int64
	batch := plannedBatch(s.pool, alongIndex+pollLimit)
	batch.Queue(nextFence).QueryRow(func(row pgx.Row) error { return row.Scan(&p.Fence) })
	batch.Queue(s.kind.sql(fullScanStmt), s.kind.able(args)).Query(func(rows pgx.Rows) error {
		_, err := pgx.CollectRows(rows, read.add)
		return err
	})
	batch.Queue(s.kind.waits.probe, beyond).QueryRow(func(row pgx.Row) error {
		if err := row.Scan(&lowest); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	err = sendAll(ctx, s.pool, batch)
	whole := s.endPart(true, room, &read, moves, err)
	if err != nil {
		return p, err
	}
	s.decidedWaits.looked(began, beyond, lowest, 0)
	p.Looked, p.Waits = true, lowest > 0
	s.noneLeft.Store(nil)
	if whole {
		s.scans.recent, s.scans.longAgo = began, began
		s.cursors.tryCapped(capTries)
		s.polled.Store(&polled{p.Fence, began, read.next})
		if !read.left && s.kind.abilities != nil {
			s.noneLeft.Store(&began)
		}
	}
	return p, nil
}

// beginPoll begins a part of the full scan for a poll, and returns the arguments of its statement; nil: it is not worth while, because there is more than a part to
// read, or the last one was slow.
func (f *fullScan) beginPoll() Args {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running || f.begun || f.slow || !f.completed || time.Now().Before(f.allowed) {
		return nil
	}
	return f.begin()
}

// takePolled returns what the poll that drew a fence says of the next scan, once.
func (s *Store) takePolled(fence int64) (o Outlook, ok bool) {
	p := s.polled.Load()
	if p == nil || p.fence != fence || !s.polled.CompareAndSwap(p, nil) {
		return o, false
	}
	if p.next > 0 {
		o.Due = max(p.next-time.Since(p.at), leastDue)
	}
	return o, true
}

package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/due"
)

const (
	// pollLimit bounds each statement of a poll: what takes longer is asked by itself, and others
	// do not wait for it.
	pollLimit = `, set_config('statement_timeout', '100ms', true)`
	// pollTimeout bounds a whole poll.
	pollTimeout = time.Second
	// waitsSoon is about the pause between two polls: what is to be decided by then is looked at.
	waitsSoon = 12 * time.Second
)

// Polled is what a poll found.
type Polled struct {
	// Fence is higher than every one drawn before.
	Fence int64
	// Looked: it was looked whether something is on record about jobs that wait (CheckWaits).
	// Waits: something is, or is to be decided soon.
	Looked, Waits bool
}

// polled is what a poll that read all partitions says to the first lease under its fence.
type polled struct {
	fence int64
	// nextDue is when the next job falls due; zero: none is known.
	nextDue time.Time
}

// Poll implements engine.Transactions. While the worker is idle, and one part of the full scan
// reads all partitions in no time, it makes that scan in the round trip that draws the fence, and
// asks what else is asked as often: one transaction. The full scan finds what a recent one would,
// and says when the next job falls due. The first lease under the fence scans no more (takePolled).
//
// What fails in it is asked by itself, as if there had been no poll.
func (s *Store) Poll(ctx context.Context, room Room) (Polled, error) {
	if p, err := s.poll(ctx, room); err == nil {
		return p, nil
	}
	fence, err := s.NextFence(ctx)
	return Polled{Fence: fence}, err
}

func (s *Store) poll(ctx context.Context, room Room) (p Polled, err error) {
	if _, err := s.ready(ctx); err != nil {
		return p, err
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	var nextDue time.Time
	whole, err := s.due.Poll(room, func(after due.Key, partitions int) (part due.Part, err error) {
		began := time.Now()
		p, err = s.sendPoll(ctx, s.partArgs(after, partitions), &part)
		if part.NextDue > 0 {
			nextDue = began.Add(part.NextDue)
		}
		return part, err
	})
	if err == nil && whole {
		s.polled.Store(&polled{p.Fence, nextDue})
	}
	return p, err
}

// sendPoll sends the statements of a poll.
func (s *Store) sendPoll(ctx context.Context, args Args, part *due.Part) (p Polled, err error) {
	began := time.Now()
	beyond, limits := s.decidedWaits.begin(began)
	var found probed
	batch := plannedBatch(s.pool, alongIndex+pollLimit)
	batch.Queue(nextFence).QueryRow(func(row pgx.Row) error { return row.Scan(&p.Fence) })
	batch.Queue(s.kind.sql(fullScanStmt), args).Query(func(rows pgx.Rows) error {
		_, err := pgx.CollectRows(rows, partRow(part))
		return err
	})
	batch.Queue(s.kind.waits.probe, beyond, limits).QueryRow(found.scan)
	if err := sendAll(ctx, s.pool, batch); err != nil {
		return p, err
	}
	s.decidedWaits.looked(began, found.lowest, 0, limits)
	p.Looked, p.Waits = true, found.due(waitsSoon)
	return p, nil
}

// takePolled returns what the poll that drew a fence says of the next scan, once.
func (s *Store) takePolled(fence int64) (o Outlook, ok bool) {
	p := s.polled.Load()
	if p == nil || p.fence != fence || !s.polled.CompareAndSwap(p, nil) {
		return o, false
	}
	if !p.nextDue.IsZero() {
		o.Due = max(time.Until(p.nextDue), due.Least)
	}
	return o, true
}

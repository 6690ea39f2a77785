package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

const (
	// warmSessions is how many sessions Warm opens at most: as many as a process uses that works a
	// few jobs at a time. warmLimit is how long it may take.
	warmSessions = 4
	warmLimit    = time.Second
)

// warming is held by Warm: two that each had a part of a small pool would wait for each other.
var warming = make(chan struct{}, 1)

// Warm opens sessions of the pool, half of what it may have at most, and has each plan the
// statements that find, lease and complete jobs, which changes nothing. In a new session the first
// lease takes ten times as long as the next one: without this the first jobs that a process works,
// which come at once, wait for several new sessions that plan beside each other.
func (s *Store) Warm(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, warmLimit)
	defer cancel()
	select {
	case warming <- struct{}{}:
		defer func() { <-warming }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var opening, planning errgroup.Group
	conns := make([]*pgxpool.Conn, min(warmSessions, s.pool.Config().MaxConns/2))
	for i := range conns {
		opening.Go(func() (err error) {
			conns[i], err = s.pool.Acquire(ctx)
			return err
		})
	}
	err := opening.Wait()
	for _, conn := range conns {
		if conn == nil {
			continue
		}
		defer conn.Release()
		if err == nil {
			planning.Go(func() error { return s.plan(ctx, conn) })
		}
	}
	if err == nil {
		err = planning.Wait()
	}
	return Wrap("warm sessions", err)
}

// plan has a session plan the statements of leases and completions, by calling them for no job. A
// plan is made under the settings of the moment: those of the scan come last.
func (s *Store) plan(ctx context.Context, conn *pgxpool.Conn) error {
	err := Begin(ctx, conn, func(tx pgx.Tx) error {
		batch := batchByKey(tx)
		s.queueLease(batch, Turn{}, nil, countedOrgs{locked: []string{}}, []string{})
		if err := sendAll(ctx, tx, batch); err != nil {
			return err
		}
		for _, picked := range []bool{false, true} {
			if _, err := s.kind.Complete(ctx, tx, Turn{}, nil, Access{Picked: picked}); err != nil {
				return err
			}
		}
		batch = plannedBatch(tx, alongIndex)
		batch.Queue(s.kind.sql(recentScanStmt), s.kind.able(Args{"since": 0.0, "most": 0, "next": false}))
		return cmp.Or(sendAll(ctx, tx, batch), errNothing)
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

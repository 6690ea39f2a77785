package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// CursorForTest is where a partition's cursor stands.
type CursorForTest struct {
	At time.Time
	ID string
}

// Cursors returns how many partitions the store remembers, and their cursors.
func (s *Store) Cursors() (int, []CursorForTest) {
	s.cursors.mu.Lock()
	defer s.cursors.mu.Unlock()
	var all []CursorForTest
	for _, at := range s.cursors.partitions {
		all = append(all, CursorForTest{At: at.cursor.at, ID: at.cursor.id})
	}
	return len(all), all
}

// ByKey is byKey on a pool.
func ByKey[T any](ctx context.Context, pool *pgxpool.Pool, scan pgx.RowToFunc[T], stmt string, args ...any) ([]T, error) {
	return byKey(ctx, pool, scan, stmt, args...)
}

// HurryFull bounds the next check that looks at everything.
func (r *Reclaimer) HurryFull(limit time.Duration) { r.fullLimit = limit }

// ReclaimPatience and SlowWatchPause are those of a Reclaimer.
const (
	ReclaimPatience = reclaimPatience
	SlowWatchPause  = slowWatchPause
)

// SQL returns a shared statement as it is for the kind.
func (k *Kind) SQL(stmt string) string { return k.sql(stmt) }

// Number returns a statement with numbers in the place of its arguments' names, and the names in the order of their numbers.
func Number(stmt string) (text string, names []string) {
	b := number(stmt)
	return b.text, b.names
}

// Shortened are the statements that are made of others, by their names.
var Shortened = map[string]string{"completePlainly": completePlainly, "completePlaced": completePlaced, "completeKeptByID": completeKeptByID}

// CompleteStmt is the statement with the most arguments.
const CompleteStmt = completeStmt

// Recently reports whether the pick is a recent one, and has it reach back so far.
func (p *Pick) Recently(since time.Duration) bool {
	if p.recent != nil {
		p.recent.since = since
	}
	return p.recent != nil
}

// Pick is PickTypes of every type.
func (s *Store) Pick(ctx context.Context, limit int, room Room) (*Pick, error) {
	return s.PickTypes(ctx, limit, func(string) bool { return true }, room)
}

// MostRecent is how many jobs a recent pick takes.
const MostRecent = mostRecent

// SQLOfQueues returns a shared statement as it is for the kind where jobs of named queues are asked for.
func (k *Kind) SQLOfQueues(stmt string) string { return k.sqlOfQueues(stmt) }

// Ask divides n leases among the partitions that are known, and returns of how many organizations there are some.
func (s *Store) Ask(n int, room Room) int { return len(s.cursors.ask(n, room)) }

// Scan scans until everything that is due is known.
func (s *Store) Scan(ctx context.Context, room Room) error {
	if _, _, err := s.scanRecent(ctx, time.Now(), false, room); err != nil {
		return err
	}
	for {
		again, err := s.scanFull(ctx, true, true, room)
		if err != nil || again == 0 {
			return err
		}
		time.Sleep(again)
	}
}

// AgeWaits has d pass for what is known of decided waits.
func (s *Store) AgeWaits(d time.Duration) {
	w := &s.decidedWaits
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.full = w.at.Add(-d), w.full.Add(-d)
}

// HurryPoll lets the next poll scan, whatever the last scan has cost, and as if all had been read before.
func (s *Store) HurryPoll() {
	s.full.mu.Lock()
	defer s.full.mu.Unlock()
	s.full.allowed, s.full.completed, s.full.slow = time.Time{}, true, false
}

package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store/due"
)

// Partitions are what the store knows of due jobs.
func (s *Store) Partitions() *due.Partitions { return s.due }

// ByKey is byKey on a pool.
func ByKey[T any](ctx context.Context, pool *pgxpool.Pool, scan pgx.RowToFunc[T], stmt string,
	args ...any,
) ([]T, error) {
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

// Number returns a statement with numbers in the place of its arguments' names, and the names in
// the order of their numbers.
func Number(stmt string) (text string, names []string) {
	b := number(stmt)
	return b.text, b.names
}

// Shortened are the statements that are made of others, by their names.
var Shortened = map[string]string{
	"completePlainly": completePlainly, "completePlaced": completePlaced,
	"completeKeptByID": completeKeptByID,
}

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

// SQLOfQueues returns a shared statement as it is for the kind where jobs of named queues are asked
// for.
func (k *Kind) SQLOfQueues(stmt string) string { return k.sqlOfQueues(stmt) }

// AgeWaits has d pass for what is known of decided waits.
func (s *Store) AgeWaits(d time.Duration) {
	w := &s.decidedWaits
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.full = w.at.Add(-d), w.full.Add(-d)
}

// Restarted has the Reclaimer see that PostgreSQL was started again.
func (r *Reclaimer) Restarted() { r.started = time.Time{} }

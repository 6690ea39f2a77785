package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// StaleAfter is how long after its last renewal a lease expires. Any worker may reclaim an expired lease.
	StaleAfter = 10 * time.Second
	// RenewEvery is the pause between two renewals of a lease.
	RenewEvery = 3 * time.Second
)

// LeaseGroup is what one turn holds.
type LeaseGroup struct {
	Queue  string `json:"queue"`
	Worker string `json:"worker"`
	Turn   string `json:"turn"`
	// Detached: no activity works the turn; its process alone holds the jobs, which last longer than a turn.
	Detached bool  `json:"detached"`
	Jobs     int64 `json:"jobs"`
	// Working counts those that are charged with an attempt when their lease ends.
	Working int64 `json:"working"`
	// Expired counts those that were not renewed for StaleAfter.
	Expired int64 `json:"expired"`
	// Renewed is when the oldest of the leases was taken or renewed.
	Renewed time.Time `json:"renewed_at"`
}

// leases implements operations.
func (k *Kind) leases(ctx context.Context, pool *pgxpool.Pool) ([]LeaseGroup, error) {
	const stmt = `
SELECT /* jobs */'jobs'/* accounting: 'accounting' */, coalesce(worker, ''), turn_id, detached, count(*), count(*) FILTER (WHERE working),
       count(*) FILTER (WHERE last_attempted_at < statement_timestamp() - make_interval(secs => $1)), min(last_attempted_at)
  FROM daybook.jobs
 WHERE state = 'leased'
 GROUP BY worker, turn_id, detached
 ORDER BY min(last_attempted_at), turn_id`
	groups, err := byKey(ctx, pool, pgx.RowToStructByPos[LeaseGroup], k.sql(stmt), StaleAfter.Seconds())
	return groups, Wrap("read leases", err)
}

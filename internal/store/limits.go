package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// KeyLimit bounds the background jobs of a type by key: the jobs of one organization and key.
type KeyLimit struct {
	Type string
	// By is what the key of a job is that was enqueued without one: "org_id" or "payload.member";
	// empty: such a job has no limit.
	By string
	// Parallel is how many jobs of a key run at a time, Rate how many attempts begin in RateSeconds;
	// 0: any number.
	Parallel    int
	Rate        int
	RateSeconds float64
	// Declared: the policy of the type's handler says it; otherwise a person does.
	Declared  bool
	UpdatedAt time.Time
}

// none reports that the limit bounds nothing.
func (l *KeyLimit) none() bool { return l.Parallel == 0 && l.Rate == 0 }

// SetKeyLimit sets a type's limit, or, when it bounds nothing, removes it. Of a declared one it leaves
// that of a person. It reports whether something changed. It returns ErrInvalid for a limit that
// cannot be.
func SetKeyLimit(ctx context.Context, q Querier, l KeyLimit) (changed bool, err error) {
	const stmt = `
SELECT daybook.set_job_limit(@type, @by, nullif(@parallel::integer, 0), nullif(@rate::integer, 0),
                             CASE WHEN @rate::integer <> 0 THEN nullif(@seconds::float8, 0) END, @declared)`
	return value[bool](ctx, q, "set the limit of "+l.Type, stmt, Args{
		"type": l.Type, "by": l.By, "parallel": l.Parallel, "rate": l.Rate, "seconds": l.RateSeconds,
		"declared": l.Declared,
	})
}

// NoteKeyLimits sets the limits that the policies of a worker's handlers say, and removes those that
// they said before.
func (s *Store) NoteKeyLimits(ctx context.Context, limits []KeyLimit) error {
	known, err := KeyLimits(ctx, s.pool)
	if err != nil {
		return err
	}
	on := make(map[string]bool, len(known))
	for _, l := range known {
		on[l.Type] = true
	}
	for _, l := range limits {
		if l.none() && !on[l.Type] {
			continue
		}
		l.Declared = true
		if _, err := SetKeyLimit(ctx, s.pool, l); err != nil {
			return err
		}
	}
	return nil
}

// KeyLimits returns the limits of all types, in the order of the types.
func KeyLimits(ctx context.Context, q Querier) ([]KeyLimit, error) {
	const stmt = `
SELECT type, by, coalesce(parallel, 0) AS parallel, coalesce(rate, 0) AS rate, coalesce(rate_seconds, 0) AS rate_seconds, declared, updated_at
  FROM daybook.job_limits
 ORDER BY type`
	limits, err := Collect(ctx, q, pgx.RowToStructByNameLax[KeyLimit], stmt)
	return limits, Wrap("read the limits by key", err)
}

// LimitedKey is a key of a limit that jobs wait for.
type LimitedKey struct {
	OrgID, Key string
	// Admitted counts its jobs that run, or are about to; Waiting those whose time has come and that
	// wait for others of the key, since OldestDue.
	Admitted, Waiting int
	OldestDue         time.Time
}

// LimitedKeys returns the keys of a type for which the most jobs wait, up to limit of them.
func LimitedKeys(ctx context.Context, q Querier, jobType string, limit int) ([]LimitedKey, error) {
	const stmt = `
SELECT j.org_id, j.limit_key, count(*) FILTER (WHERE j.fleet >= 0), count(*) FILTER (WHERE j.fleet = -2),
       min(j.ready_at) FILTER (WHERE j.fleet = -2)
  FROM daybook.jobs j
 WHERE j.type = $1 AND j.limit_key IS NOT NULL AND j.finished_at IS NULL
 GROUP BY j.org_id, j.limit_key
HAVING count(*) FILTER (WHERE j.fleet = -2) > 0
 ORDER BY 4 DESC, 5, 1, 2
 LIMIT $2`
	keys, err := Collect(ctx, q, pgx.RowToStructByPos[LimitedKey], stmt, jobType, limit)
	return keys, Wrap("read which keys jobs wait for", err)
}

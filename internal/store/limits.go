package store

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// LimitScope is what a limit by key is of: a type of background jobs, or a named queue. The other
// one is empty.
type LimitScope struct{ Type, Queue string }

// String is the scope as the database has it.
func (s LimitScope) String() string {
	if s.Queue != "" {
		return "queue/" + s.Queue
	}
	return s.Type
}

// ParseLimitScope is the scope that String has written.
func ParseLimitScope(text string) LimitScope {
	if queue, ok := strings.CutPrefix(text, "queue/"); ok {
		return LimitScope{Queue: queue}
	}
	return LimitScope{Type: text}
}

// KeyLimit bounds the background jobs of a type, or of a named queue, by key: the jobs of one
// organization and key.
type KeyLimit struct {
	LimitScope
	// By is what the key of a job is that was enqueued without one: "org_id" or "payload.member";
	// empty: such a job has none.
	By string
	// Parallel is how many jobs of a key run at a time, Rate how many attempts begin in RateSeconds;
	// 0: any number.
	Parallel    int
	Rate        int
	RateSeconds float64
	// Declared: the policy of the type's handler says it, or the program that declares the queue;
	// otherwise a person does.
	Declared  bool
	UpdatedAt time.Time
}

// none reports that the limit bounds nothing.
func (l *KeyLimit) none() bool { return l.Parallel == 0 && l.Rate == 0 }

// SetKeyLimit sets the limit of a type or a queue, or, when it bounds nothing, removes it. Of a
// declared one it leaves that of a person. It reports whether something changed. It returns ErrInvalid
// for a limit that cannot be, and ErrQueueNotFound.
func SetKeyLimit(ctx context.Context, q Querier, l KeyLimit) (changed bool, err error) {
	const stmt = `
SELECT daybook.set_job_limit(nullif(@type, ''), @by, nullif(@parallel::integer, 0), nullif(@rate::integer, 0),
                             CASE WHEN @rate::integer <> 0 THEN nullif(@seconds::float8, 0) END, @declared, nullif(@queue, ''))`
	changed, err = value[bool](ctx, q, "set the limit of "+l.String(), stmt, Args{
		"type": l.Type, "queue": l.Queue, "by": l.By, "parallel": l.Parallel, "rate": l.Rate, "seconds": l.RateSeconds,
		"declared": l.Declared,
	})
	return changed, ofNoQueue(l.Queue, err)
}

// NoteKeyLimits sets the limits that the policies of a worker's handlers say, and removes those that
// they said before.
func (s *Store) NoteKeyLimits(ctx context.Context, limits []KeyLimit) error {
	known, err := KeyLimits(ctx, s.pool)
	if err != nil {
		return err
	}
	on := make(map[LimitScope]bool, len(known))
	for _, l := range known {
		on[l.LimitScope] = true
	}
	for _, l := range limits {
		if l.none() && !on[l.LimitScope] {
			continue
		}
		l.Declared = true
		if _, err := SetKeyLimit(ctx, s.pool, l); err != nil {
			return err
		}
	}
	return nil
}

// KeyLimits returns the limits of all types, in the order of the types, and then those of all queues.
func KeyLimits(ctx context.Context, q Querier) ([]KeyLimit, error) {
	const stmt = `
SELECT CASE WHEN queue IS NULL THEN scope ELSE '' END AS type, coalesce(queue, '') AS queue, by, coalesce(parallel, 0) AS parallel, coalesce(rate, 0) AS rate, coalesce(rate_seconds, 0) AS rate_seconds, declared, updated_at
  FROM daybook.job_limits
 ORDER BY queue NULLS FIRST, scope`
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

// KeyLimitOf returns the limit of a type or a queue; the zero limit: it has none. It returns
// ErrQueueNotFound.
func KeyLimitOf(ctx context.Context, q Querier, of LimitScope) (KeyLimit, error) {
	limits, err := KeyLimits(ctx, q)
	if err != nil {
		return KeyLimit{}, err
	}
	for _, l := range limits {
		if l.LimitScope == of {
			return l, nil
		}
	}
	return KeyLimit{LimitScope: of}, checkQueue(ctx, q, of.Queue)
}

// checkQueue returns ErrQueueNotFound where there is no such queue; an empty name is none that is asked
// for.
func checkQueue(ctx context.Context, q Querier, name string) error {
	if name == "" {
		return nil
	}
	_, err := value[int](ctx, q, "look for the queue "+name, `SELECT daybook.queue_fleet($1)`, name)
	return ofNoQueue(name, err)
}

// LimitedKeys returns the keys of a type or a queue for which the most jobs wait, up to limit of them.
// It returns ErrQueueNotFound.
func LimitedKeys(ctx context.Context, q Querier, of LimitScope, limit int) ([]LimitedKey, error) {
	const stmt = `
SELECT j.org_id, j.limit_key, count(*) FILTER (WHERE j.fleet >= 0), count(*) FILTER (WHERE j.fleet = -2),
       min(j.ready_at) FILTER (WHERE j.fleet = -2)
  FROM daybook.jobs j
 WHERE j.limit_scope = $1 AND j.limit_key IS NOT NULL AND j.finished_at IS NULL
 GROUP BY j.org_id, j.limit_key
HAVING count(*) FILTER (WHERE j.fleet = -2) > 0
 ORDER BY 4 DESC, 5, 1, 2
 LIMIT $2`
	if err := checkQueue(ctx, q, of.Queue); err != nil {
		return nil, err
	}
	keys, err := Collect(ctx, q, pgx.RowToStructByPos[LimitedKey], stmt, of.String(), limit)
	return keys, Wrap("read which keys jobs wait for", err)
}

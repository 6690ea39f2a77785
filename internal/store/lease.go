package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Job is a leased job as a worker sees it.
type Job struct {
	ID         string
	OrgID      string
	DocumentID string
	Version    int64
	// Attempt is the number of the running attempt, from 1.
	Attempt   int
	StartedAt time.Time
	// Takeovers counts how often the lease was taken over since the last settlement.
	Takeovers int
	// NotReady counts the looks so far that found the document not ready.
	NotReady int
	// CancelRequested: the attempt is to commit nothing.
	CancelRequested bool
	// Epoch grows with each deliberate repost.
	Epoch int

	// Type, Payload, MaxAttempts (0: the handler's policy says), Key (the idempotency key, or "") and EnqueuedAt are a
	// background job's. What a settlement locks has none of them.
	Type        string
	Payload     []byte
	MaxAttempts int
	Key         string
	EnqueuedAt  time.Time
	// Waiting is a turn's own note: it has leased the job, and said by MarkWaiting that it is not being worked.
	Waiting bool
}

// Leased is what a lease led to.
type Leased struct {
	// Jobs are the turn's now.
	Jobs []Job
	// Outlook is of a lease without jobs.
	Outlook
	// Capped says that organizations were asked whose jobs in flight are counted: there may be more when some of those end.
	Capped bool
}

// Lease claims up to limit due jobs for the turn: high priorities first, the organizations in equal shares, the oldest of
// each first. Rows that anybody holds are skipped, so two callers never get the same one.
//
// Where each organization's due rows begin is remembered from lease to lease (ring), and looked up anew now and then
// (look). Paused organizations get nothing; those with a cap no more than is left of it.
func (s *Store) Lease(ctx context.Context, turn Turn, limit int) (Leased, error) {
	var got Leased
	looked, sawAll := false, false
	for len(got.Jobs) < limit {
		idle := s.ring.idle()
		if idle && (sawAll || len(got.Jobs) > 0) {
			break
		}
		if idle || !looked {
			var err error
			if got.Outlook, err = s.look(ctx, idle); err != nil {
				return got, err
			}
			looked, sawAll = true, idle
		}
		shares := s.ring.ask(limit - len(got.Jobs))
		if len(shares) == 0 {
			break
		}
		got.Capped = got.Capped || slices.ContainsFunc(shares, func(sh share) bool { return sh.capped })
		jobs, err := s.leaseShares(ctx, turn, shares)
		if err != nil {
			return got, wrap("lease", err)
		}
		got.Jobs = append(got.Jobs, jobs...)
	}
	if len(got.Jobs) > 0 {
		got.Outlook = Outlook{}
	}
	return got, nil
}

// leaseStmt picks from each place, from its mark on, and leases what it picked. The ids go through one array, so that the
// plan stays the same. What a place may give is bounded by its organization's cap where the caller holds that
// organization's lock ($9); without it a capped organization gives nothing.
const leaseStmt = `
WITH due AS MATERIALIZED (
    SELECT j.id
      FROM unnest($4::smallint[], $5::text[], $6::timestamptz[], $7::text[], $8::integer[], $9::boolean[])
           WITH ORDINALITY AS s (priority, org_id, at, id, quota, locked, n)
      LEFT JOIN daybook.organizations o ON o.id = s.org_id
     CROSS JOIN LATERAL (
           SELECT q.id
             FROM {queue} q
            WHERE q.state = 'pending' AND q.priority = s.priority AND q.org_id = s.org_id
              AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
            ORDER BY q.ready_at, q.id
            LIMIT CASE WHEN NOT ({workable}) THEN 0
                       WHEN o.max_in_flight IS NULL THEN s.quota
                       WHEN NOT s.locked THEN 0
                       ELSE greatest(0, least(s.quota, o.max_in_flight - (
                            SELECT count(*) FROM {queue} l
                             WHERE l.state = 'leased' AND l.capped AND l.org_id = s.org_id))) END
              FOR NO KEY UPDATE SKIP LOCKED) j
     ORDER BY s.n
)
UPDATE {queue} q
   SET state = 'leased', turn_id = $1, fence = $2, worker = $3, leased_generation = generation, run_count = run_count + 1,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = $11, capped = q.org_id = ANY ($10::text[])
 WHERE q.id = ANY (ARRAY(SELECT id FROM due))
RETURNING q.priority, q.ready_at, {columns}`

// leaseShares leases what each place is asked for.
func (s *Store) leaseShares(ctx context.Context, turn Turn, shares []share) ([]Job, error) {
	free, capped := splitCapped(shares)
	var jobs []Job
	if len(free) > 0 {
		batch := batchByKey(s.pool)
		s.queueLease(batch, turn, free, []string{})
		got, err := s.takeShares(ctx, s.pool, batch, free)
		if err != nil {
			return nil, err
		}
		jobs = got
	}
	if len(capped) > 0 {
		got, err := s.leaseCapped(ctx, turn, capped)
		if err != nil {
			// What was leased already is the turn's, and is found by its take-over.
			return nil, err
		}
		jobs = append(jobs, got...)
	}
	return jobs, nil
}

// splitCapped separates the places of organizations with a cap. Of each such organization one place a time is asked, so
// that its priorities do not each get the whole cap.
func splitCapped(shares []share) (free, capped []share) {
	asked := map[string]bool{}
	for _, s := range shares {
		switch {
		case !s.capped:
			free = append(free, s)
		case !asked[s.key.org]:
			asked[s.key.org] = true
			capped = append(capped, s)
		}
	}
	return free, capped
}

// leaseCapped counts what is in flight and leases what is left of each cap, one caller at a time for an organization. The
// lock is taken by a statement of its own, because what it protects must be read by a snapshot that is younger than it.
func (s *Store) leaseCapped(ctx context.Context, turn Turn, shares []share) ([]Job, error) {
	const lock = `SELECT o FROM unnest($1::text[]) AS o WHERE pg_try_advisory_xact_lock(1684109668, hashtext(o))`
	var jobs []Job
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		orgs := make([]string, len(shares))
		for i, sh := range shares {
			orgs[i] = sh.key.org
		}
		locked, err := byKey(ctx, tx, pgx.RowTo[string], lock, orgs)
		if err != nil {
			return err
		}
		if len(locked) == 0 {
			// Somebody else is leasing these: they are parked until the next look.
			s.ring.took(shares, make([]int, len(shares)), make([]mark, len(shares)))
			return nil
		}
		batch := &pgx.Batch{}
		s.queueLease(batch, turn, shares, locked)
		jobs, err = s.takeShares(ctx, tx, batch, shares)
		return err
	})
	return jobs, err
}

func (s *Store) queueLease(batch *pgx.Batch, turn Turn, shares []share, locked []string) {
	mine := make([]bool, len(shares))
	for i, sh := range shares {
		mine[i] = slices.Contains(locked, sh.key.org)
	}
	args := append([]any{turn.ID, turn.Fence, turn.Worker}, shareColumns(shares)...)
	batch.Queue(s.kind.sql(leaseStmt), append(args, mine, locked, turn.Begins)...)
}

// shareColumns are priority, organization, mark and quota of each share, as arrays.
func shareColumns(shares []share) []any {
	n := len(shares)
	prios, orgs, ats, ids, quotas := make([]int16, n), make([]string, n), make([]time.Time, n), make([]string, n), make([]int32, n)
	for i, sh := range shares {
		prios[i], orgs[i], ats[i], ids[i], quotas[i] = sh.key.priority, sh.key.org, sh.mark.at, sh.mark.id, int32(sh.quota)
	}
	return []any{prios, orgs, ats, ids, quotas}
}

// takeShares sends a batch whose last statement returns jobs of the shares, each after its priority and ready_at, and moves
// the marks behind them.
func (s *Store) takeShares(ctx context.Context, q batcher, batch *pgx.Batch, shares []share) ([]Job, error) {
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	index := make(map[placeKey]int, len(shares))
	for i, sh := range shares {
		index[sh.key] = i
	}
	counts, last := make([]int, len(shares)), make([]mark, len(shares))
	jobs, err := lastRows(ctx, q, batch, func(row pgx.CollectableRow) (Job, error) {
		var j Job
		var key placeKey
		var m mark
		err := row.Scan(append([]any{&key.priority, &m.at}, s.kind.fields(&j)...)...)
		if err != nil {
			return j, err
		}
		key.org, m.id = j.OrgID, j.ID
		i := index[key]
		counts[i]++
		if m.after(last[i]) {
			last[i] = m
		}
		return j, nil
	})
	if err != nil {
		return nil, err
	}
	s.ring.took(shares, counts, last)
	return jobs, nil
}

// Renew says that the turn still lives: its leases are young again, but for those of the ids that are overdue and those that are younger
// than young anyhow. It returns the ids that it still holds.
func (s *Store) Renew(ctx context.Context, turn Turn, overdue []string, young time.Duration) ([]string, error) {
	const stmt = `
WITH held AS (
    SELECT id FROM {queue}
     WHERE turn_id = $1 AND state = 'leased' AND fence = $2 AND id <> ALL ($3)
       AND last_attempted_at < statement_timestamp() - make_interval(secs => $4)
     ORDER BY {order}
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {queue} q
   SET last_attempted_at = clock_timestamp()
  FROM held
 WHERE q.id = held.id
RETURNING q.id`
	if _, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turn.ID, turn.Fence, overdue, young.Seconds()); err != nil {
		return nil, wrap("renew", err)
	}
	return s.Held(ctx, turn)
}

// Held returns the ids of the jobs that the turn holds under its fence.
func (s *Store) Held(ctx context.Context, turn Turn) ([]string, error) {
	const stmt = `SELECT id FROM {queue} WHERE turn_id = $1 AND state = 'leased' AND fence = $2`
	ids, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turn.ID, turn.Fence)
	return ids, wrap("read the turn's leases", err)
}

// TurnsWithLeases returns those of the named turns that still hold a lease under any fence.
func (s *Store) TurnsWithLeases(ctx context.Context, turns []string) ([]string, error) {
	const stmt = `SELECT DISTINCT turn_id FROM {queue} WHERE turn_id = ANY ($1) AND state = 'leased' ORDER BY turn_id`
	ids, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turns)
	return ids, wrap("read turns with leases", err)
}

// MarkWorking says that the turn works on these jobs now, one by one: should it end with its worker, they are charged.
// Only ids that it still holds are marked and returned.
func (s *Store) MarkWorking(ctx context.Context, turn Turn, ids []string) ([]string, error) {
	const stmt = `
UPDATE {queue} q
   SET working = true, last_attempted_at = clock_timestamp(), attempt_started_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM {queue}
                          WHERE id = ANY ($3) AND turn_id = $1 AND fence = $2
                          ORDER BY {order} FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id`
	held, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turn.ID, turn.Fence, ids)
	return held, wrap("mark working", err)
}

// givenBack is what every release of a lease sets, but for ready_at: the attempt is uncounted, and a request that came
// meanwhile counts anew.
const givenBack = `
       state = CASE WHEN q.cancel_requested THEN 'cancelled' ELSE 'pending' END::{state},
       finished_at = CASE WHEN q.cancel_requested THEN clock_timestamp() END,
       run_count = CASE WHEN q.generation <> q.leased_generation AND NOT q.cancel_requested THEN 0 ELSE greatest(q.run_count - 1, 0) END,
       first_ready_at = CASE WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,{given back}
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL`

// Release gives jobs back uncounted: they are pending again after delay, or cancelled where that was asked for. With
// nil ids it gives back everything that the turn holds. Rows that somebody holds locked stay leased.
func (s *Store) Release(ctx context.Context, turn Turn, ids []string, delay time.Duration) (int, error) {
	const stmt = `
WITH held AS (
    SELECT id FROM {queue}
     WHERE turn_id = $1 AND state = 'leased' AND fence <= $2 AND ($3::text[] IS NULL OR id = ANY ($3))
     ORDER BY {order}
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE {queue} q
   SET ` + givenBack + `,
       ready_at = CASE WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp())
                       ELSE clock_timestamp() + make_interval(secs => $4) END
  FROM held
 WHERE q.id = held.id
RETURNING q.id`
	released, err := byKey(ctx, s.pool, pgx.RowTo[string], s.kind.sql(stmt), turn.ID, turn.Fence, ids, delay.Seconds())
	return len(released), wrap("release", err)
}

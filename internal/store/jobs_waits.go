package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// CheckedWaits is what a call of CheckWaits decided.
type CheckedWaits struct {
	// Decided counts what was decided; Again what is to be tried again, because another transaction
	// has locked a row.
	Decided, Again int
}

// AwaitedJob is a job that another one has waited for, with any end.
type AwaitedJob struct {
	// EndedAs is completed, failed, cancelled or removed.
	ID, EndedAs string
}

// AwaitedJobs reads how the jobs ended that a job has waited for with any end.
func AwaitedJobs(ctx context.Context, q Querier, jobID string) ([]AwaitedJob, error) {
	const stmt = `SELECT awaits, ended_as FROM daybook.job_waits WHERE job_id = $1 AND ended_as IS NOT NULL ORDER BY awaits`
	return Collect(ctx, q, pgx.RowToStructByPos[AwaitedJob], stmt, jobID)
}

// waits are two statements: probe finds something only when there is something to decide, decide
// decides a bounded part of it, counts as CheckedWaits does, and says the highest id that it has
// taken off the record; 0: none. Both read behind an id.
type waits struct{ probe, decide string }

// waitsWindow is how far back a read of what is to be decided goes: what commits late is not
// overlooked.
const waitsWindow = time.Minute

// decidedWaits is up to where everything has been decided, as far as is known. What is decided is
// deleted, and beside an old snapshot its dead rows stay in the index: without this each read would
// walk all of them. What commits later than the window, and what another transaction had locked and
// left, is found by a read of everything, which is as rare as that of a Reclaimer.
type decidedWaits struct {
	mu sync.Mutex
	// beyond is where the next read begins. seen is the highest id that was decided: lower ones
	// were decided before, or are with another worker. next is what seen was at the time at, and
	// where reads begin when the window is over.
	beyond, next, seen int64
	at                 time.Time
	// full is when the next read may be one of everything.
	full time.Time
}

// begin returns behind which id to look now; 0: everything.
func (d *decidedWaits) begin(now time.Time) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Before(d.full) {
		return d.beyond
	}
	d.full = now.Add(fullEvery)
	return 0
}

// looked takes in what a read behind from that began at then has found: the lowest id that was on
// record, and the highest one that was decided; 0: none.
func (d *decidedWaits) looked(then time.Time, from, lowest, decided int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if from == 0 {
		d.full = now.Add(max(fullEvery, costShare*now.Sub(then)))
	}
	d.seen = max(d.seen, decided)
	switch {
	case lowest > 0 && lowest <= d.beyond:
		d.beyond, d.next, d.at = 0, 0, now // there may be more of it
	case now.Sub(d.at) >= waitsWindow:
		d.beyond, d.next, d.at = d.next, d.seen, now
	}
}

// CheckWaits decides a bounded part of what is on record about background jobs that wait for their
// turn, for other jobs or for a callback, or that are to move to their queue's fleet, and about
// failed accounting jobs that are to be pending again (ReturnFailed).
//
// A busy worker calls it every 50 ms, because a busy queue is not notified. So it first asks, in
// one round trip and without a transaction block, whether there is anything; by the primary key,
// because the table may have many dead rows.
func (s *Store) CheckWaits(ctx context.Context) (CheckedWaits, error) {
	var c CheckedWaits
	began, d := time.Now(), &s.decidedWaits
	beyond := d.begin(began)
	var lowest, decided int64
	err := s.pool.QueryRow(ctx, s.kind.waits.probe, beyond).Scan(&lowest)
	if err == nil {
		err = s.InTx(ctx, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, s.kind.waits.decide, beyond).Scan(&c.Decided, &c.Again, &decided)
		})
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return c, Wrap("look for jobs that need not wait any more", err)
	}
	d.looked(began, beyond, lowest, decided)
	return c, nil
}

// auditWaits finds jobs that wait for nothing. What is on record to be decided may be released at
// any moment; without a worker it waits for that.
const auditWaits = `
SELECT count(*) OVER (), j.org_id, NULL::text, NULL::bigint, format('job %s waits for nothing: retry it (daybook jobs retry %s), and a worker releases it', j.id, j.id)
  FROM daybook.jobs j
 WHERE j.state = 'pending' AND j.ready_at = '9999-12-31 00:00:00+00' AND ($1 = '' OR j.org_id = $1)
   AND NOT EXISTS (SELECT FROM daybook.job_waits w
                     LEFT JOIN daybook.jobs a ON a.id = w.awaits
                    WHERE w.job_id = j.id AND w.ended_as IS NULL
                      AND (a.state IN ('pending', 'leased') OR a.state = 'failed' AND NOT w.any_end OR EXISTS (SELECT FROM daybook.job_wait_checks c WHERE c.awaits = w.awaits)))
   AND NOT (j.sequence IS NOT NULL
            AND (EXISTS (SELECT FROM daybook.job_wait_checks c WHERE c.org_id = j.org_id AND c.sequence = j.sequence)
                 OR EXISTS (SELECT FROM daybook.job_sequences s
                              JOIN daybook.jobs h ON h.id = s.holder
                             WHERE s.org_id = j.org_id AND s.key = j.sequence AND s.holder <> j.id AND h.state IN ('pending', 'leased', 'failed'))))
   AND NOT EXISTS (SELECT FROM daybook.job_wait_checks c WHERE c.job_id = j.id)
   AND (j.sequence IS NOT NULL OR j.first_ready_at <> j.ready_at)
 ORDER BY j.org_id, j.id
 LIMIT $2`

package store

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// CheckedWaits is what a call of CheckWaits decided.
type CheckedWaits struct {
	// Decided counts what was decided; Again what is to be tried again, because another transaction
	// has locked a row.
	Decided, Again int
	// Next is in how long a job's limit is to be looked at, as far as that is known; 0: it is not.
	Next time.Duration
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

// waits are two statements. probe says the lowest id that is on record (0: none), and in how many
// seconds a limit is to be looked at (a day: or later). decide decides a bounded part of it, counts as
// CheckedWaits does, and says the highest id that it has taken off the record (0: none), and from
// when on jobs with a limit are left (null: none). Both read behind an id, and behind a time (null:
// a minute ago).
type waits struct{ probe, decide string }

// probeWaits is the probe of background jobs. Each part is read from one end of an index.
const probeWaits = `
SELECT coalesce((SELECT id FROM daybook.job_wait_checks WHERE id > $1 ORDER BY id LIMIT 1), 0),
       extract(epoch FROM least((SELECT j.ready_at
                                   FROM daybook.jobs j
                                  WHERE j.fleet = -1 AND num_nulls(nullif(j.state, 'pending')) = 1
                                    AND j.ready_at >= coalesce($2, statement_timestamp() - interval '1 minute')
                                  ORDER BY j.ready_at
                                  LIMIT 1),
                                (SELECT r.look_at
                                   FROM daybook.job_limit_rates r
                                  WHERE r.look_at >= coalesce($2, statement_timestamp() - interval '1 minute')
                                  ORDER BY r.look_at
                                  LIMIT 1),
                                statement_timestamp() + interval '1 day') - statement_timestamp())::float8`

// day is what a probe says where no limit is to be looked at sooner.
const day = 24 * time.Hour

// probed is what a probe has found.
type probed struct {
	lowest int64
	limits float64
}

func (p *probed) scan(row pgx.Row) error { return row.Scan(&p.lowest, &p.limits) }

// due reports that something may be to be decided within d.
func (p *probed) due(d time.Duration) bool {
	return p.lowest > 0 || seconds(p.limits) <= d
}

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
	// limits is from when on jobs with a limit, and keys with a rate, are read; nil: those of the last
	// minute.
	limits *time.Time
}

// begin returns behind which id and time to look now; 0 and the zero time: everything.
func (d *decidedWaits) begin(now time.Time) (beyond int64, limits *time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Before(d.full) {
		return d.beyond, d.limits
	}
	d.full = now.Add(fullEvery)
	return 0, &time.Time{}
}

// looked takes in what a read that began at then has found: the lowest id that was on record, and
// the highest one that was decided; 0: none. limits is from when on jobs with a limit are to be read
// next.
func (d *decidedWaits) looked(then time.Time, lowest, decided int64, limits *time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	// That it began at 0 says nothing of the jobs with a limit: it is so until something is decided.
	if d.full.Equal(then.Add(fullEvery)) {
		d.full = now.Add(max(fullEvery, costShare*now.Sub(then)))
	}
	d.seen, d.limits = max(d.seen, decided), limits
	switch {
	case lowest > 0 && lowest <= d.beyond:
		d.beyond, d.next, d.at = 0, 0, now // there may be more of it
	case now.Sub(d.at) >= waitsWindow:
		d.beyond, d.next, d.at = d.next, d.seen, now
	}
}

// CheckWaits decides a bounded part of what is on record about background jobs that wait for their
// turn, for other jobs, for a callback or for the limit of their key, or that are to move to their
// queue's fleet, and about failed accounting jobs that are to be pending again (ReturnFailed).
//
// A busy worker calls it every 50 ms, because a busy queue is not notified. So it first asks, in
// one round trip and without a transaction block, whether there is anything; by the primary key,
// because the table may have many dead rows.
func (s *Store) CheckWaits(ctx context.Context) (CheckedWaits, error) {
	var c CheckedWaits
	began, d := time.Now(), &s.decidedWaits
	beyond, limits := d.begin(began)
	var p probed
	var decided int64
	err := p.scan(s.pool.QueryRow(ctx, s.kind.waits.probe, beyond, limits))
	switch {
	case err != nil:
	case p.due(0):
		err = s.InTx(ctx, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, s.kind.waits.decide, beyond, limits).Scan(&c.Decided, &c.Again, &decided, &limits)
		})
	default:
		if limits = nil; seconds(p.limits) < day {
			c.Next = seconds(p.limits)
		}
	}
	if err != nil {
		return c, Wrap("look for jobs that need not wait any more", err)
	}
	d.looked(began, p.lowest, decided, limits)
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

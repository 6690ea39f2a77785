package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/due"
	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/models/locks"
)

// Reclaimed counts what became of leases whose holder did not renew them.
type Reclaimed struct {
	// Jobs counts the leases that ended, whatever became of their jobs.
	Jobs int
	// Lost counts the jobs that were being worked: their attempt is logged as lost.
	Lost int
	// Failed counts those of them that had no attempt left.
	Failed int
}

// Add adds what became of other leases.
func (r *Reclaimed) Add(o Reclaimed) {
	r.Jobs, r.Lost, r.Failed = r.Jobs+o.Jobs, r.Lost+o.Lost, r.Failed+o.Failed
}

// ReclaimExpired ends the leases that are older than StaleAfter, at once: their jobs are pending
// again. A job that was being worked is charged with the attempt, and fails when it has none left;
// the others are not charged, because they may never have been begun. Rows that another transaction
// holds locked are left alone. With an error it returns what was reclaimed before.
//
// It is for people who know that a worker has ended. Workers use a Reclaimer, which gives a holder
// time to renew.
func (s *Store) ReclaimExpired(ctx context.Context) (Reclaimed, error) {
	return reclaimAll(maxReclaimed, func() (Reclaimed, error) {
		of := suspicion{age: StaleAfter, gone: []uint32{}}
		got, _, err := s.reclaim(ctx, lockWaiting, of, func(suspect, time.Time) (ends, lives bool) { return true, false })
		return got, err
	})
}

// reclaimAll calls f, which ends most leases where there are as many, until it ends fewer.
func reclaimAll(most int, f func() (Reclaimed, error)) (all Reclaimed, err error) {
	for {
		got, err := f()
		all.Add(got)
		if err != nil || got.Jobs < most {
			return all, err
		}
	}
}

// reclaimLocking is the statement that takes the lock of a kind (locks.Reclaim), and says whether
// the transaction has it. Without the lock, two processes would take each other's looks for those
// of holders, which keep their leases.
type reclaimLocking string

const (
	lockWaiting reclaimLocking = `SELECT pg_advisory_xact_lock($1, $2) IS NOT NULL`
	lockAtOnce  reclaimLocking = `SELECT pg_try_advisory_xact_lock($1, $2)`
)

// errElsewhere: another process looks at the leases just now.
var errElsewhere = errors.New("another process looks at the leases")

// suspect is a lease that has not been renewed for a while.
type suspect struct {
	id string
	// renewed is when, in microseconds.
	renewed int64
	// worker is the key of the lock of who holds it.
	worker uint32
}

// suspicion says which leases a transaction looks at: from from on, those that are older than age,
// and those of the workers gone that were renewed before a time.
type suspicion struct {
	from   time.Time
	age    time.Duration
	gone   []uint32
	before time.Time
}

// livingReclaims bounds how often in a row a job is not charged whose lease ended while its worker
// lived: it may be the job that keeps its worker from running.
const livingReclaims = 3

// reclaim locks the leases that are suspicious, and ends those that end says. What a worker that
// lives was working is not charged: it did not run for a while. It returns the locked ones that it
// left alone. It returns errElsewhere where it did not get the lock.
func (s *Store) reclaim(ctx context.Context, lock reclaimLocking, of suspicion,
	end func(one suspect, renewed time.Time) (ends, lives bool),
) (Reclaimed, []suspect, error) {
	const find = `
SELECT id, last_attempted_at, working, org_id, /* jobs */type, ''/* accounting: '', document_id */, run_count, coalesce(worker, ''), coalesce(turn_id, ''),
       hashtext(coalesce(worker, ''))::oid, reclaims
  FROM daybook.jobs
 WHERE state = 'leased' AND last_attempted_at >= @from
   AND last_attempted_at < greatest(statement_timestamp() - make_interval(secs => @age), @before)
   AND (last_attempted_at < statement_timestamp() - make_interval(secs => @age) OR hashtext(worker)::oid = ANY (@gone))
 ORDER BY last_attempted_at
 LIMIT @most
   FOR NO KEY UPDATE SKIP LOCKED`
	var got Reclaimed
	var left []suspect
	var back []due.Found
	var changes []Change
	ctx, cancel := context.WithTimeout(ctx, statementLimit)
	defer cancel()
	var ending locked
	attempt := func(tx pgx.Tx) error {
		got, left, back, changes, ending = Reclaimed{}, nil, nil, nil, locked{}
		var mine bool
		if err := tx.QueryRow(ctx, string(lock), locks.Reclaim, s.kind.key).Scan(&mine); err != nil || !mine {
			return cmp.Or(err, errElsewhere)
		}
		var renewed time.Time
		var worker uint32
		var reclaims int
		var c Change
		fields := []any{
			&c.Job.ID, &renewed, &c.Counted, &c.Job.OrgID, &c.Job.Type, &c.Job.DocumentID, &c.Job.Attempt,
			&c.Worker, &c.Turn, &worker, &reclaims,
		}
		_, err := byKey(ctx, tx, eachRow(fields, func() {
			one := suspect{c.Job.ID, renewed.UnixMicro(), worker}
			if ends, lives := end(one, renewed); ends && len(ending.ids) < maxReclaimed {
				c.Counted = c.Counted && (!lives || reclaims >= livingReclaims)
				ending.add(c)
			} else {
				left = append(left, one)
			}
		}), s.kind.sql(find), Args{
			"from": of.from, "age": of.age.Seconds(), "before": of.before, "gone": of.gone, "most": maxSuspects,
		})
		if err == nil && len(ending.ids) == 0 {
			return errNothing // a rollback gives the locks back without waiting for the disk
		}
		if err != nil {
			return err
		}
		got, back, changes, err = s.endLeases(ctx, tx, ending, events.Reclaimed)
		return err
	}
	err := s.weeding(ctx, func() error { return s.InTx(ctx, attempt) }, func() { s.doubt(nil, ending.ids...) })
	if err != nil && !errors.Is(err, errNothing) {
		return Reclaimed{}, nil, Wrap("reclaim leases", err)
	}
	// The jobs have their old places in the order, which the cursors of this process have passed.
	s.due.FoundDue(back, nil)
	s.changed(changes)
	return got, left, nil
}

// errNothing rolls a transaction back that has nothing to commit.
var errNothing = errors.New("nothing to commit")

const (
	// maxSuspects bounds how many leases one transaction reads, and locks: those of a dozen workers
	// that died together. What is beyond it is watched later.
	maxSuspects = 20_000
	// maxReclaimed bounds how many leases one transaction ends: the next check ends more of those
	// that were watched as long.
	maxReclaimed = 5000
)

// locked are rows that the transaction holds locked. The attempts of those that are charged are
// lost.
type locked struct {
	ids     []string
	charged []bool
	// were are the rows as they were locked, by their ids. Those that are charged are counted.
	were map[string]Change
}

func (l *locked) add(was Change) {
	if l.were == nil {
		l.were = map[string]Change{}
	}
	l.ids, l.charged, l.were[was.Job.ID] = append(l.ids, was.Job.ID), append(l.charged, was.Counted), was
}

// lost are the changes of charged rows whose jobs go on.
func (l *locked) lost(code models.ErrorCode) (changes []Change) {
	for i, id := range l.ids {
		if l.charged[i] {
			changes = append(changes, l.were[id].ended(events.Reclaimed, "", code)...)
		}
	}
	return changes
}

// logLost logs the attempts of charged rows as lost, and returns how many there are.
func (s *Store) logLost(ctx context.Context, tx pgx.Tx, rows locked) (int, error) {
	const stmt = `
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, document_id, version, attempt, outcome, error_code, error, started_at,
                                 worker, turn_id, fence, workflow_run_id)
SELECT q.id, q.org_id, /* jobs */'jobs', q.type, NULL, NULL/* accounting: 'accounting', NULL, q.document_id, q.version_hint */,
       q.run_count, 'lost', @lost_code, 'the worker ended while it worked on this job', q.attempt_started_at,
       coalesce(q.worker, ''), q.turn_id, q.fence, split_part(q.turn_id, '/', 1)
  FROM unnest(@ids::text[], @charged::boolean[]) AS held (id, charged)
  JOIN daybook.jobs q ON q.id = held.id
 WHERE held.charged`
	tag, err := tx.Exec(ctx, s.kind.sql(stmt),
		Args{"ids": rows.ids, "charged": rows.charged, "lost_code": s.kind.lostCode})
	return int(tag.RowsAffected()), err
}

// endLeases makes locked rows pending, or what else is to become of them. A job keeps its place in
// the order. A document's reclaims all count, a background job's only those while it was worked: what
// was not begun cannot have ended its worker.
//
// It returns what there is to tell when the transaction is committed: what is the change of those
// that are not charged.
func (s *Store) endLeases(ctx context.Context, tx pgx.Tx, rows locked, what events.Name) (Reclaimed, []due.Found,
	[]Change, error,
) {
	const stmt = `
WITH held AS (
    SELECT q.id, h.charged, q.generation <> q.leased_generation AS again,
           q.generation = q.leased_generation AND NOT q.cancel_requested AND h.charged
           AND q.run_count >= /* jobs */coalesce(q.max_attempts, greatest(@max_attempts::integer, 1000))/* accounting: @max_attempts */ AS fails
      FROM unnest(@ids::text[], @charged::boolean[]) AS h (id, charged)
      JOIN daybook.jobs q ON q.id = h.id
)
UPDATE daybook.jobs q
   SET state = CASE WHEN q.cancel_requested THEN 'cancelled' WHEN held.fails THEN 'failed' ELSE 'pending' END::daybook.job_state,
       finished_at = CASE WHEN q.cancel_requested OR held.fails THEN clock_timestamp() END,
       run_count = CASE WHEN held.again AND NOT q.cancel_requested THEN 0
                        WHEN held.charged THEN q.run_count
                        ELSE greatest(q.run_count - 1, 0) END,
       -- It was due when it was leased, also where the clock was set back since.
       ready_at       = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE least(q.ready_at, clock_timestamp()) END,
       first_ready_at = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
       reclaims      = CASE WHEN held.again OR held.fails OR q.cancel_requested THEN 0
                             ELSE least(q.reclaims, 999999) + /* jobs */CASE WHEN q.working THEN 1 ELSE 0 END/* accounting: 1 */ END,
       last_error = CASE WHEN held.fails THEN 'the worker ended while it worked on this job, for the last time that it may be tried'
                         WHEN held.charged THEN 'the worker ended while it worked on this job'
                         ELSE q.last_error END,
       last_error_code = CASE WHEN held.charged THEN @lost_code ELSE q.last_error_code END,
       /* accounting: not_ready_count = CASE WHEN held.again THEN 0 ELSE q.not_ready_count END, */
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
  FROM held
 WHERE q.id = held.id
RETURNING q.state = 'pending' AND q.ready_at <= clock_timestamp(), q.state::text, q.priority, q.org_id, /* jobs */daybook.job_slot(q.type, q.queue, q.min_version)/* accounting: '' */,
          q.ready_at, q.id, EXISTS (SELECT 1 FROM daybook.organizations o WHERE o.id = q.org_id AND /* jobs */num_nonnulls(o.max_in_flight, o.rate) > 0/* accounting: o.max_in_flight IS NOT NULL */),
          /* jobs */q.queue IS NOT NULL AND EXISTS (SELECT 1 FROM daybook.queues u WHERE u.name = q.queue AND num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0)/* accounting: false */,
          /* jobs */q.fleet = @fleet/* accounting: true */`
	got := Reclaimed{Jobs: len(rows.ids)}
	var err error
	if got.Lost, err = s.logLost(ctx, tx, rows); err != nil {
		return got, nil, nil, err
	}
	var back []due.Found
	var changes []Change
	var ready, mine bool
	wakes := false
	var state string
	var at due.Found
	err = Each(ctx, tx, []any{
		&ready, &state, &at.Priority, &at.Org, &at.Slot,
		timeOrNever{&at.At},
		&at.ID, &at.Capped,
		&at.Counted, &mine,
	}, func() error {
		if state == string(models.JobFailed) {
			got.Failed++
		}
		changes = append(changes, rows.were[at.ID].ended(what, state, models.ErrorCode(s.kind.lostCode))...)
		if ready && mine {
			back = append(back, at)
		}
		wakes = wakes || ready // whatever its fleet: all that wait are told
		at.At = time.Time{}    // scanning an infinite time leaves it as it is
		return nil
	}, s.kind.sql(stmt), Args{
		"ids": rows.ids, "charged": rows.charged, "max_attempts": models.MaxAttempts,
		"lost_code": s.kind.lostCode, "fleet": s.kind.fleetID(),
	})
	if err != nil || !wakes {
		return got, nil, changes, err
	}
	_, err = tx.Exec(ctx, s.kind.sql(`SELECT daybook.wake_job_queue()`))
	return got, back, changes, err
}

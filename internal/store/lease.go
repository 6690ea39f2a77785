package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/internal/store/due"
)

// Job is a leased or picked job as a worker sees it.
type Job struct {
	ID         string
	OrgID      string
	DocumentID string
	Version    int64
	// Attempt is the number of the running attempt, from 1.
	Attempt   int
	StartedAt time.Time
	// Reclaims counts how often the lease was reclaimed since the last completion.
	Reclaims int
	// NotReady counts how often the document was read so far and was not ready.
	NotReady int
	// CancelRequested: the attempt is to commit nothing.
	CancelRequested bool
	// Generation counts the requests for the job: it is the one that the attempt is for. A job that
	// is asked for anew begins with attempt 1 again, so that the attempt alone does not say which
	// lease it is.
	Generation int64
	// Epoch grows with each deliberate repost.
	Epoch int

	// Type, Payload, MaxAttempts (0: the handler's policy says), Key (the idempotency key, or "")
	// and EnqueuedAt are a background job's. What a completion locks has none of them.
	Type        string
	Payload     []byte
	MaxAttempts int
	Key         string
	EnqueuedAt  time.Time
	// Priority is that of a job whose kind has priorities; what is only locked has none.
	Priority int16
	// Queue is the named queue of a background job, or "".
	Queue string
	// MinVersion is the lowest version of the type's handler that may work a background job; 0: any.
	MinVersion int
	// Awaited: a background job may have kept steps, among others.
	Awaited bool
	// TraceParent is the trace of the request, "" when it belonged to none. What a completion locks
	// has none.
	TraceParent string
	// ReadyHere is when the attempt was ready, by the clock of this process; zero: it is not known.
	ReadyHere time.Time
	// UpdatedAt and Dropped are a picked job's. UpdatedAt is when its row was last changed.
	// Dropped: the transaction that had it locked last did not commit, perhaps because the job has
	// ended its worker.
	UpdatedAt time.Time
	Dropped   bool
	// Place is where the row of a picked job is, for as long as its transaction has it locked and
	// has not changed it. A handler that has the transaction may change it: then the place is not
	// valid.
	Place pgtype.TID
	// Waiting is a turn's own note: it has leased the job, and said by MarkWaiting that it is not
	// being worked. Room is another one: room for it is reserved.
	Waiting, Room bool
	// Charged: the attempt before was lost with the turn that the job was reclaimed from.
	Charged bool
}

// Leased is the result of a lease.
type Leased struct {
	// Jobs are the turn's now.
	Jobs []Job
	// Outlook is of a lease without jobs.
	Outlook
	// Locked says that other transactions held all rows locked that were found.
	Locked bool
	// Passed says that jobs are due for which there was no room.
	Passed bool
	// Capped says that organizations were asked whose leases are counted, because of a cap or a rate:
	// there may be more when some of their jobs end.
	Capped bool
}

// Room says which jobs a worker can begin: what package due asks, and what is counted over all
// workers. It is safe for concurrent use.
type Room interface {
	due.Room
	// Everywhere is how many jobs of the type may be leased at a time, over all workers; 0: any
	// number.
	Everywhere(jobType string) int
	// Full says that so many are leased: the type is passed over for a while.
	Full(jobType string)
	// QueueFull says that no job of the named queue may be leased for wait, because its rate is
	// used up. wait 0: its limit of leased jobs is reached; try again when one ends, or after a
	// while.
	QueueFull(queue string, wait time.Duration)
}

// LeaseFor implements engine.Picker. Where each partition's due rows begin is remembered from lease
// to lease, and read anew now and then (package due).
func (s *Store) LeaseFor(ctx context.Context, turn Turn, limit int, room Room) (Leased, error) {
	var got Leased
	s.weed(ctx)
	s.due.ReleaseHeld()
	scanned, scannedAll, locked := false, false, false
	outlook, polled := s.takePolled(turn.Fence)
	for len(got.Jobs) < limit {
		idle := s.due.Idle(room)
		if idle && (scannedAll || len(got.Jobs) > 0) {
			break
		}
		if idle || !scanned {
			var err error
			if got.Outlook = outlook; !polled || scanned {
				got.Outlook, err = s.scan(ctx, idle, room)
			}
			if err != nil {
				return got, err
			}
			scanned, scannedAll = true, idle
		}
		wanted := limit - len(got.Jobs)
		shares := s.due.Divide(wanted, room)
		if len(shares) == 0 {
			break
		}
		jobs, err := s.leaseShares(ctx, turn, shares, room)
		returnUnused(room, shares, jobs)
		if err != nil {
			return got, Wrap("lease", err)
		}
		got.Jobs = append(got.Jobs, jobs...)
		capped := slices.ContainsFunc(shares, func(sh due.Share) bool { return sh.Capped })
		got.Capped = got.Capped || capped
		locked = locked || len(jobs) == 0 && !capped && scannedAll
		// What there was room for is leased: what has become free meanwhile is little, and is left
		// to the next lease.
		asked := quotas(shares)
		if got.Passed = asked < wanted && len(jobs) == asked; got.Passed {
			break
		}
	}
	got.Passed = got.Passed || s.due.LacksRoom(room)
	switch {
	case len(got.Jobs) > 0:
		got.Outlook = Outlook{}
	case locked:
		got.Locked, got.Unread = true, false
		if got.Wait() == 0 {
			got.Again = lockedPause
		}
	}
	if len(got.Jobs) == 0 {
		got.Outlook = s.due.AwaitHeld(got.Outlook)
	}
	return got, nil
}

func quotas(shares []due.Share) (n int) {
	for _, sh := range shares {
		n += sh.Quota
	}
	return n
}

// lockedPause is when rows are read again that a scan found and another transaction held locked.
const lockedPause = 250 * time.Millisecond

// returnUnused gives back the room that was reserved for shares which brought fewer jobs.
func returnUnused(room Room, shares []due.Share, jobs []Job) {
	unused := map[string]int{}
	for _, sh := range shares {
		unused[sh.Type()] += sh.Quota
	}
	for _, j := range jobs {
		unused[j.Type]--
	}
	for jobType, n := range unused {
		if n > 0 {
			room.Return(jobType, n)
		}
	}
}

// leaseStmt picks from each partition, from its cursor on, and leases what it picked. The ids go
// through one array, so that the plan stays the same. What a partition may give is bounded by its
// organization's cap where the caller holds that organization's lock (@locked); without it a capped
// organization gives nothing, and neither does one with a rate that the caller has not counted
// (@rated).
//
// A partition is bounded by the columns of its index one by one: a comparison of rows would not end
// where the partition does, but where the organization does, behind all that waits there for its
// time or in other slots. The index of all that is due (jobs_ready) answers another condition than
// this state, so the planner cannot take it instead.
const leaseStmt = `
WITH due AS MATERIALIZED (
    SELECT j.id
      FROM unnest(@priorities::smallint[], @orgs::text[], @slots::text[], @ats::timestamptz[], @ids::text[], @quotas::integer[], @locked::boolean[]/* queues: , @counts::boolean[] */)
           WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, locked/* queues: , counts */, n)
      LEFT JOIN daybook.organizations o ON o.id = s.org_id
      /* queues: LEFT JOIN daybook.queues u ON u.name = nullif(split_part(s.slot, '/', 2), '') */
     CROSS JOIN LATERAL (
           SELECT q.id
             FROM daybook.jobs q
            WHERE q.state = 'pending' AND /* jobs */q.fleet = @fleet AND /* accounting: */q.priority = s.priority AND q.org_id = s.org_id/* jobs */ AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot/* accounting: */
              AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
            ORDER BY q.org_id/* jobs */, daybook.job_slot(q.type, q.queue, q.min_version)/* accounting: */, q.ready_at, q.id
            LIMIT CASE WHEN o.paused_at IS NOT NULL THEN 0
                       /* queues: WHEN u.paused_at IS NOT NULL OR num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0 AND NOT s.counts THEN 0 */
                       /* accounting: WHEN NOT (coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY (@sources)
                                                AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ @hooks) THEN 0 */
                       WHEN o.max_in_flight IS NULL/* jobs */ AND o.rate IS NULL/* accounting: */ THEN s.quota
                       WHEN NOT s.locked/* jobs */ OR o.rate IS NOT NULL AND s.org_id <> ALL (@rated::text[])/* accounting: */ THEN 0
                       ELSE greatest(0, least(s.quota, o.max_in_flight - (
                            SELECT count(*) FROM daybook.jobs l
                             WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = s.org_id))) END
              FOR NO KEY UPDATE SKIP LOCKED) j
     ORDER BY s.n
)
UPDATE daybook.jobs q
   SET state = 'leased', turn_id = @turn, detached = @detached, fence = @fence, worker = @worker, leased_generation = generation, run_count = run_count + 1,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = @begins, capped = q.org_id = ANY (@capped::text[])/* jobs */, counted = q.type = ANY (@counted::text[])/* accounting: */
 WHERE q.id = ANY (ARRAY(SELECT id FROM due))
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation,
          /* jobs */q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          /* accounting: q.document_id, q.version_hint, q.not_ready_count, q.epoch */,
          coalesce(q.traceparent, '')/* jobs */, coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited/* accounting: */`

// HoldBack implements engine.Picker.
func (s *Store) HoldBack(org string) (pause time.Duration, begun bool) { return s.due.HoldBack(org) }

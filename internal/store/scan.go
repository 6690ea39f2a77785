package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// scanEvery is the pause between two scans while there is work. An organization that had no work before may wait this long.
	scanEvery = 50 * time.Millisecond
	// scanShare is how many times its own duration a scan is not repeated while there is work: the recent scans and the full ones
	// each take a fiftieth of a worker's time at most. partShare is the same between the parts of a full scan while the worker is
	// idle.
	scanShare = 49
	partShare = 19
	// fullOwed is for how long an idle worker may put the full scan off because its recent scans find work. A worker that keeps up
	// with a steady stream finds some each time.
	fullOwed = 500 * time.Millisecond
	// passedPause is the pause between two scans while all that is known to be due waits for room.
	passedPause = 10 * time.Millisecond
	// recentLag is how far a recent scan reaches back behind the one before it, to find what was enqueued before that and committed
	// after it. Every recentLong it reaches back by longLag. What takes longer to commit is found by the full scan.
	recentLag  = 250 * time.Millisecond
	recentLong = 500 * time.Millisecond
	longLag    = 3 * time.Second
	// recentRows is how many rows a recent scan reads, the youngest; what is older is left to the full scan. An idle worker reads as many as
	// idleRows: without them it would make a full scan, which costs more where a snapshot keeps dead rows.
	recentRows = 1000
	idleRows   = 5000
	// longest is as far back as the first recent scan reaches.
	longest = 24 * time.Hour
	// capTries is how many partitions of capped organizations are tried again after a scan.
	capTries = 200
)

// Outlook is what a scan that found nothing to do says of the next one.
type Outlook struct {
	// Again is until another scan may find what this one could not afford to read; 0: it read everything.
	Again time.Duration
	// Due is until the next job falls due; 0: none is known.
	Due time.Duration
	// Unread says that jobs may be due of which the scan does not know: it has not read all partitions since it was called.
	Unread bool
}

// Wait is how long it is until another scan is worthwhile although no wake-up came; 0: none is.
func (o Outlook) Wait() time.Duration {
	if o.Again == 0 || o.Due > 0 && o.Due < o.Again {
		return o.Due
	}
	return o.Again
}

// scans is what a store knows of its scans. The goroutine that holds Store.scanning owns it.
type scans struct {
	// recent and longAgo are when the last recent scan, and the last that reached far back, began.
	recent, longAgo time.Time
	// recentAllowed is when the next recent scan is allowed, for its cost.
	recentAllowed time.Time
}

// scan brings the cursors up to date, in two ways, neither of which takes longer with more partitions.
//
// The recent scan reads what has fallen due since the last one, in the order of time, youngest first. That finds nearly
// everything: jobs are due when they are enqueued, or when their time comes.
//
// The full scan goes from partition to partition, for rows of any age, and goes on in the next scan where it ended in this one. It
// finds what the recent scan could not: rows of transactions that took long to commit, of organizations that were paused, of leases that
// another worker gave back, and a backlog. A part of it that dead rows make slow runs on while jobs that are known already are worked.
//
// While there is work a scan is due every scanEvery; when there is none, at once. After one that leaves nothing to do
// the outlook says how long to wait for the next part of the full scan.
func (s *Store) scan(ctx context.Context, idle bool, room Room) (o Outlook, err error) {
	if !idle {
		// Another goroutine is scanning: that is enough.
		if !s.scanning.TryLock() {
			return o, nil
		}
	} else {
		s.scanning.Lock()
	}
	defer s.scanning.Unlock()
	s.noneLeft.Store(nil)
	l := &s.scans
	defer func() {
		s.recentPicks.scanBy(slices.MinFunc([]time.Time{l.longAgo.Add(recentLong), s.full.due()}, time.Time.Compare))
	}()
	now := time.Now()
	if idle {
		if !s.cursors.idle(room) {
			return o, nil // another goroutine has just scanned
		}
		if wait := time.Until(l.recent.Add(passedPause)); wait > 0 && s.cursors.passes(room) {
			return Outlook{Again: wait}, nil
		}
		s.full.woken(now)
	} else if now.Before(l.recent.Add(scanEvery)) {
		return o, nil
	}
	more := false
	if idle || !now.Before(l.recentAllowed) {
		if o.Due, more, err = s.scanRecent(ctx, now, idle, room); err != nil {
			return o, Wrap("scan for due jobs", err)
		}
		l.recentAllowed = time.Now().Add(scanShare * time.Since(now))
	}
	vain := idle && s.cursors.idle(room)
	if !idle || vain || more || s.full.owed() {
		again, err := s.scanFull(ctx, idle, idle && more, room)
		if err != nil {
			return o, Wrap("scan for due jobs", err)
		}
		if vain && s.cursors.idle(room) {
			o.Again, o.Unread = again, again > 0
		}
	}
	s.cursors.tryCapped(capTries)
	return o, nil
}

// recentScanStmt reads the rows that have fallen due within @since seconds, the youngest @most of them, as one row a partition. The row
// without a partition says whether there may be older ones, and, if @next asks for that, in how many seconds the next one falls due. It says
// "pending" in the words of the index on ready_at, which is the only one that can be used so.
const recentScanStmt = `
WITH recent AS MATERIALIZED (
    SELECT q.priority, q.org_id, /* jobs */daybook.job_slot(q.type, q.queue)/* accounting: ''::text */ AS slot, q.ready_at, q.id/* jobs */, q.queue/* accounting: */
      FROM daybook.jobs q
     WHERE /* jobs */q.fleet = @fleet AND /* accounting: */num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp() - make_interval(secs => @since) AND q.ready_at <= statement_timestamp()
     ORDER BY q.ready_at DESC
     LIMIT @most
), firsts AS MATERIALIZED (
    SELECT DISTINCT ON (r.priority, r.org_id, r.slot) r.*
      FROM recent r
     ORDER BY r.priority, r.org_id, r.slot, r.ready_at, r.id
)
SELECT f.priority, f.org_id, f.slot, f.ready_at, f.id, o.max_in_flight IS NOT NULL, /* jobs */num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0/* accounting: false */, 0::float8
  FROM firsts f
  LEFT JOIN daybook.organizations o ON o.id = f.org_id
  /* jobs */LEFT JOIN daybook.queues u ON u.name = f.queue/* accounting: */
 WHERE o.paused_at IS NULL/* jobs */ AND u.paused_at IS NULL/* accounting: */
   /* accounting: AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY (@sources)
                  AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ @hooks */
 UNION ALL
SELECT 0, '', '', '-infinity', '', (SELECT count(*) FROM recent) = @most, false,
       coalesce((SELECT extract(epoch FROM least(q.ready_at, statement_timestamp() + interval '1 day') - statement_timestamp())
                   FROM daybook.jobs q
                  WHERE @next AND /* jobs */q.fleet = @fleet AND /* accounting: */num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
                  ORDER BY q.ready_at
                  LIMIT 1), 0)::float8`

// leastDue is the least time that a scan is put off for the next due job. Jobs of paused organizations fall due as well: without it an
// idle worker would scan again and again for those.
const leastDue = 5 * time.Millisecond

// dueIn is when to look for a job that falls due in so many seconds: a little later, so that it is not asked for too early.
func dueIn(s float64) time.Duration { return max(seconds(s)+time.Millisecond, leastDue) }

// scanRecent finds what has fallen due since the last recent scan. With next, for an idle worker, it returns how long it is until the next job
// falls due. more says that it has not read all.
func (s *Store) scanRecent(ctx context.Context, now time.Time, next bool, room Room) (due time.Duration, more bool, err error) {
	l := &s.scans
	since := min(now.Sub(l.recent), longest) + recentLag
	if long := min(now.Sub(l.longAgo), longest); long > recentLong {
		since = long + longLag
	}
	most := recentRows
	if next {
		most = idleRows
	}
	var all []seen
	_, err = inOrder(ctx, s.pool, func(row pgx.CollectableRow) (struct{}, error) {
		var f seen
		var at time.Time
		var in float64
		err := row.Scan(&f.key.priority, &f.key.org, &f.key.slot, timeOrNever{&at}, &f.first.id, &f.capped, &f.counted, &in)
		if f.key.priority > 0 {
			f.first.at = at
			all = append(all, f)
			return struct{}{}, err
		}
		if more = f.capped; in > 0 {
			due = dueIn(in)
		}
		return struct{}{}, err
	}, s.kind.sql(recentScanStmt), s.kind.able(Args{"since": since.Seconds(), "most": most, "next": next}))
	if err != nil {
		return 0, false, err
	}
	if l.recent = now; since > longLag {
		l.longAgo = now
	}
	s.cursors.found(all, room)
	s.recentPicks.scanned(all, !more, now)
	return due, more, nil
}

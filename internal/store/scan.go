package store

import (
	"context"
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
	// recentRows is how many rows a recent scan reads, the youngest; what is older is left to the full scan.
	recentRows = 1000
	// longest is as far back as the first recent scan reaches.
	longest = 24 * time.Hour
	// A full scan reads all partitions, in parts. A part has firstPart partitions at first, and then as many as take about partFor,
	// mostPart at most.
	firstPart = 256
	mostPart  = 4096
	partFor   = 10 * time.Millisecond
	// capTries is how many partitions of capped organizations are tried again after a scan.
	capTries = 200
)

// Outlook is what a scan that found nothing to do says of the next one.
type Outlook struct {
	// Again is until another scan may find what this one could not afford to read; 0: it read everything.
	Again time.Duration
	// Due is until the next job falls due; 0: none is known.
	Due time.Duration
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
	// recentAllowed and partAllowed are when the next recent scan, and the next part of the full one, are allowed, for their cost.
	recentAllowed, partAllowed time.Time
	// part is when the last part of a full scan ended, or the first scan began.
	part time.Time
	// next is the partition behind which the full scan goes on; begun says that it is somewhere in the middle.
	next  partitionKey
	begun bool
	// partitions is how many the next part of the full scan reads.
	partitions int
	// completed: a full scan has gone through all partitions before. another: a wake-up came during the full scan, which is to be repeated.
	completed, another bool
}

// scan brings the cursors up to date, in two ways, neither of which takes longer with more partitions.
//
// The recent scan reads what has fallen due since the last one, in the order of time, youngest first. That finds nearly
// everything: jobs are due when they are enqueued, or when their time comes.
//
// The full scan goes from partition to partition, whatever their rows' age, and goes on in the next scan where it ended in this one. It
// finds what the recent scan could not: rows of transactions that took long to commit, of organizations that were paused, of leases that
// another worker gave back, and a backlog.
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
	l := &s.scans
	now := time.Now()
	if idle {
		if !s.cursors.idle(room) {
			return o, nil // another goroutine has just scanned
		}
		if wait := time.Until(l.recent.Add(passedPause)); wait > 0 && s.cursors.passes(room) {
			return Outlook{Again: wait}, nil
		}
		l.another = l.another || l.begun && now.Before(l.partAllowed)
	} else if now.Before(l.recent.Add(scanEvery)) {
		return o, nil
	}
	full := false
	if idle || !now.Before(l.recentAllowed) {
		if o.Due, full, err = s.scanRecent(ctx, now, idle, room); err != nil {
			return o, wrap("scan for due jobs", err)
		}
		l.recentAllowed = time.Now().Add(scanShare * time.Since(now))
	}
	if l.part.IsZero() {
		l.part = now
	}
	vain := idle && s.cursors.idle(room)
	if idle && !vain && !full && time.Since(l.part) < fullOwed {
		s.cursors.tryCapped(capTries)
		return Outlook{}, nil
	}
	if idle && full || !time.Now().Before(l.partAllowed) {
		if err = s.scanPart(ctx, idle, room); err != nil {
			return o, wrap("scan for due jobs", err)
		}
		if !l.begun && !l.another || !s.cursors.idle(room) {
			s.cursors.tryCapped(capTries)
			return o, nil
		}
	}
	s.cursors.tryCapped(capTries)
	if vain {
		o.Again = max(time.Until(l.partAllowed), time.Millisecond)
	}
	return o, nil
}

// recentScanStmt reads the rows that have fallen due within @since seconds, the youngest @most of them, as one row a partition. The row
// without a partition says whether there may be older ones, and, if @next asks for that, in how many seconds the next one falls due.
const recentScanStmt = `
WITH recent AS MATERIALIZED (
    SELECT q.priority, q.org_id, /* jobs */q.type/* accounting: ''::text AS type */, q.ready_at, q.id
      FROM daybook.jobs q
     WHERE q.state = 'pending' AND q.ready_at > statement_timestamp() - make_interval(secs => @since) AND q.ready_at <= statement_timestamp()
     ORDER BY q.ready_at DESC
     LIMIT @most
), firsts AS MATERIALIZED (
    SELECT DISTINCT ON (r.priority, r.org_id, r.type) r.*
      FROM recent r
     ORDER BY r.priority, r.org_id, r.type, r.ready_at, r.id
)
SELECT f.priority, f.org_id, f.type, f.ready_at, f.id, o.max_in_flight IS NOT NULL, 0::float8
  FROM firsts f
  LEFT JOIN daybook.organizations o ON o.id = f.org_id
 WHERE o.paused_at IS NULL
   /* accounting: AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY (@sources)
                  AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ @hooks */
 UNION ALL
SELECT 0, '', '', '-infinity', '', (SELECT count(*) FROM recent) = @most,
       coalesce((SELECT extract(epoch FROM least(q.ready_at, statement_timestamp() + interval '1 day') - statement_timestamp())
                   FROM daybook.jobs q
                  WHERE @next AND q.state = 'pending' AND q.ready_at > statement_timestamp()
                  ORDER BY q.ready_at
                  LIMIT 1), 0)::float8`

// leastDue is the least time that a scan is put off for the next due job. Jobs of paused organizations fall due as well: without it an
// idle worker would scan again and again for those.
const leastDue = 5 * time.Millisecond

// scanRecent finds what has fallen due since the last recent scan. With next it returns how long it is until the next job
// falls due. full says that it has not read all.
func (s *Store) scanRecent(ctx context.Context, now time.Time, next bool, room Room) (due time.Duration, full bool, err error) {
	l := &s.scans
	since := min(now.Sub(l.recent), longest) + recentLag
	if long := min(now.Sub(l.longAgo), longest); long > recentLong {
		since = long + longLag
	}
	var all []seen
	_, err = inOrder(ctx, s.pool, func(row pgx.CollectableRow) (struct{}, error) {
		var f seen
		var at time.Time
		var in float64
		err := row.Scan(&f.key.priority, &f.key.org, &f.key.jobType, timeOrNever{&at}, &f.first.id, &f.capped, &in)
		if f.key.priority > 0 {
			f.first.at = at
			all = append(all, f)
			return struct{}{}, err
		}
		if full = f.capped; in > 0 {
			// A little later, so that it is not asked for too early.
			due = max(time.Duration(in*float64(time.Second))+time.Millisecond, leastDue)
		}
		return struct{}{}, err
	}, s.kind.sql(recentScanStmt), s.kind.able(args{"since": since.Seconds(), "most": recentRows, "next": next}))
	if err != nil {
		return 0, false, err
	}
	if l.recent = now; since > longLag {
		l.longAgo = now
	}
	s.cursors.found(all, room)
	return due, full, nil
}

// fullScanStmt goes through @partitions partitions behind the one of @priority, @org and @type, with the first pending row of each. Each
// takes one descent of the index: the row after all rows of a partition is the first of the next one.
const fullScanStmt = `
WITH RECURSIVE parts AS (
    (SELECT q.priority, q.org_id, /* jobs */q.type/* accounting: ''::text AS type */, q.ready_at, q.id, 1 AS n
       FROM daybook.jobs q
      WHERE q.state = 'pending'
        AND (q.priority, q.org_id/* jobs */, q.type/* accounting: */) > (@priority::smallint, @org::text/* jobs */, @type::text/* accounting: */)
      ORDER BY q.priority, q.org_id/* jobs */, q.type/* accounting: */, q.ready_at, q.id
      LIMIT 1)
    UNION ALL
    SELECT next.*, parts.n + 1
      FROM parts
     CROSS JOIN LATERAL (
           SELECT q.priority, q.org_id, /* jobs */q.type/* accounting: ''::text AS type */, q.ready_at, q.id
             FROM daybook.jobs q
            WHERE q.state = 'pending'
              AND (q.priority, q.org_id/* jobs */, q.type/* accounting: */) > (parts.priority, parts.org_id/* jobs */, parts.type/* accounting: */)
            ORDER BY q.priority, q.org_id/* jobs */, q.type/* accounting: */, q.ready_at, q.id
            LIMIT 1) next
     WHERE parts.n < @partitions
)
SELECT p.priority, p.org_id, p.type, p.ready_at, p.id, o.max_in_flight IS NOT NULL,
       o.paused_at IS NULL AND p.ready_at <= statement_timestamp()
       /* accounting: AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY (@sources)
                      AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ @hooks */
  FROM parts p
  LEFT JOIN daybook.organizations o ON o.id = p.org_id
 ORDER BY p.n`

// scanPart reads the next partitions of the full scan.
func (s *Store) scanPart(ctx context.Context, idle bool, room Room) error {
	l := &s.scans
	if !l.begun {
		l.another, l.next = false, partitionKey{}
	}
	if l.partitions == 0 {
		l.partitions = firstPart
	}
	began := time.Now()
	var due []seen
	all, err := inOrder(ctx, s.pool, func(row pgx.CollectableRow) (partitionKey, error) {
		f := seen{begins: true}
		var now bool
		err := row.Scan(&f.key.priority, &f.key.org, &f.key.jobType, timeOrNever{&f.first.at}, &f.first.id, &f.capped, &now)
		if now {
			due = append(due, f)
		}
		return f.key, err
	}, s.kind.sql(fullScanStmt), s.kind.able(args{
		"priority": l.next.priority, "org": l.next.org, "type": l.next.jobType, "partitions": l.partitions,
	}))
	if err != nil {
		return err
	}
	took := time.Since(began)
	pause := scanShare * took
	if l.begun = len(all) == l.partitions; l.begun {
		l.next = all[len(all)-1]
		switch {
		case !l.completed:
			pause = took // what a worker finds when it starts
		case idle:
			pause = partShare * took
		}
	} else {
		l.completed = true
		s.cursors.forget()
	}
	l.part = time.Now()
	l.partAllowed = l.part.Add(pause)
	switch {
	case took > 2*partFor:
		l.partitions = max(firstPart/16, l.partitions/2)
	case took < partFor/2:
		l.partitions = min(mostPart, 2*l.partitions)
	}
	s.cursors.found(due, room)
	return nil
}

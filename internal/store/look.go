package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// lookEvery is the pause between two looks while there is work: so long may an organization wait that had none before.
	lookEvery = 50 * time.Millisecond
	// lookShare is how many times its own duration a look is not repeated while there is work: each of the two kinds of look
	// takes a fiftieth of a worker's time at most. roundShare is the same between the parts of a scan that an idle worker has
	// begun.
	lookShare  = 49
	roundShare = 19
	// scanOwed is how long looks that find something at once put a scan off: a worker that keeps up with a steady stream finds something
	// each time.
	scanOwed = 500 * time.Millisecond
	// passedPause is the pause between two looks while all that is known to be due waits for room.
	passedPause = 10 * time.Millisecond
	// glanceLag is how far a glance looks back behind the one before it, to find what was enqueued before that and committed
	// after it. Every glanceLong it looks back by longLag. What takes longer to commit is found by scans.
	glanceLag  = 250 * time.Millisecond
	glanceLong = 500 * time.Millisecond
	longLag    = 3 * time.Second
	// glanceRows is how many rows a glance reads, the youngest; what is older is left to scans.
	glanceRows = 1000
	// longest is as far back as the first glance looks.
	longest = 24 * time.Hour
	// A scan goes through all places, so many at a time that a part takes about scanFor.
	firstScan = 256
	mostScan  = 4096
	scanFor   = 10 * time.Millisecond
	// capTries is how many places of capped organizations are tried again after a look.
	capTries = 200
)

// Outlook is what a look that found nothing to do says of the next one.
type Outlook struct {
	// Again is until another look may find what this one could not afford to look for; 0: it saw everything.
	Again time.Duration
	// Due is until the next job falls due; 0: none is known.
	Due time.Duration
}

// Wait is until another look is worth while, though no wake-up comes; 0: it is not.
func (o Outlook) Wait() time.Duration {
	if o.Again == 0 || o.Due > 0 && o.Due < o.Again {
		return o.Due
	}
	return o.Again
}

// looks is what a store knows of its looks. The goroutine that holds Store.looking owns it.
type looks struct {
	// glanced and glancedLong are when the last glance, and the last that looked far back, began.
	glanced, glancedLong time.Time
	// glanceAllowed and scanAllowed are when the next is allowed, for its cost.
	glanceAllowed, scanAllowed time.Time
	// scanned is when the last part of a scan ended, or the first look began.
	scanned time.Time
	// cursor is where the scan goes on; begun says that it is somewhere in the middle.
	cursor placeKey
	begun  bool
	// places is how many the next part of the scan looks at.
	places int
	// completed: a scan has gone through all places before. another: a wake-up came during the scan, which is to be repeated.
	completed, another bool
}

// look brings the ring up to date, in two ways, neither of which takes longer with more places.
//
// A glance reads what has fallen due since the last one, in the order of time, youngest first. That finds nearly
// everything: jobs are due when they are enqueued, or when their time comes.
//
// A scan goes from place to place, whatever their rows' age, and goes on in the next look where it ended in this one. It finds
// what a glance could not: rows of transactions that took long to commit, of organizations that were paused, of leases that
// another worker gave back, and a backlog.
//
// While there is work a look is due every lookEvery; when there is none, at once. After one that leaves nothing to do
// the outlook says how long to wait for the next part of the scan.
func (s *Store) look(ctx context.Context, idle bool, room Room) (o Outlook, err error) {
	if !idle {
		// Another goroutine is looking: that is enough.
		if !s.looking.TryLock() {
			return o, nil
		}
	} else {
		s.looking.Lock()
	}
	defer s.looking.Unlock()
	l := &s.looks
	now := time.Now()
	if idle {
		if !s.ring.idle(room) {
			return o, nil // another goroutine has just looked
		}
		if wait := time.Until(l.glanced.Add(passedPause)); wait > 0 && s.ring.passes(room) {
			return Outlook{Again: wait}, nil
		}
		l.another = l.another || l.begun && now.Before(l.scanAllowed)
	} else if now.Before(l.glanced.Add(lookEvery)) {
		return o, nil
	}
	full := false
	if idle || !now.Before(l.glanceAllowed) {
		if o.Due, full, err = s.glance(ctx, now, idle, room); err != nil {
			return o, wrap("look for work", err)
		}
		l.glanceAllowed = time.Now().Add(lookShare * time.Since(now))
	}
	if l.scanned.IsZero() {
		l.scanned = now
	}
	vain := idle && s.ring.idle(room)
	if idle && !vain && !full && time.Since(l.scanned) < scanOwed {
		s.ring.tryCapped(capTries)
		return Outlook{}, nil
	}
	if idle && full || !time.Now().Before(l.scanAllowed) {
		if err = s.scan(ctx, idle, room); err != nil {
			return o, wrap("look for work", err)
		}
		if !l.begun && !l.another || !s.ring.idle(room) {
			s.ring.tryCapped(capTries)
			return o, nil
		}
	}
	s.ring.tryCapped(capTries)
	if vain {
		o.Again = max(time.Until(l.scanAllowed), time.Millisecond)
	}
	return o, nil
}

// glanceStmt reads the rows that have fallen due within @since seconds, the youngest @most of them, as one row a place. The row
// without a place says whether there may be older ones, and, if @next asks for that, in how many seconds the next one falls due.
const glanceStmt = `
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

// leastDue is the least time that a look is put off for the next due job: those of paused organizations fall due as well.
const leastDue = 5 * time.Millisecond

// glance looks for what has fallen due since the last one. If it is asked to, it returns how long it is until the next job
// falls due. full says that it has not read all.
func (s *Store) glance(ctx context.Context, now time.Time, next bool, room Room) (due time.Duration, full bool, err error) {
	l := &s.looks
	since := min(now.Sub(l.glanced), longest) + glanceLag
	if long := min(now.Sub(l.glancedLong), longest); long > glanceLong {
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
			// A little later, so that it is not looked for too early.
			due = max(time.Duration(in*float64(time.Second))+time.Millisecond, leastDue)
		}
		return struct{}{}, err
	}, s.kind.sql(glanceStmt), s.kind.able(args{"since": since.Seconds(), "most": glanceRows, "next": next}))
	if err != nil {
		return 0, false, err
	}
	if l.glanced = now; since > longLag {
		l.glancedLong = now
	}
	s.ring.found(all, room)
	return due, full, nil
}

// scanStmt goes through @places places behind the one of @priority, @org and @type, with the first pending row of each. There is one look at the
// index for each: the row after all rows of a place is the first of the next one.
const scanStmt = `
WITH RECURSIVE place AS (
    (SELECT q.priority, q.org_id, /* jobs */q.type/* accounting: ''::text AS type */, q.ready_at, q.id, 1 AS n
       FROM daybook.jobs q
      WHERE q.state = 'pending'
        AND (q.priority, q.org_id/* jobs */, q.type/* accounting: */) > (@priority::smallint, @org::text/* jobs */, @type::text/* accounting: */)
      ORDER BY q.priority, q.org_id/* jobs */, q.type/* accounting: */, q.ready_at, q.id
      LIMIT 1)
    UNION ALL
    SELECT next.*, place.n + 1
      FROM place
     CROSS JOIN LATERAL (
           SELECT q.priority, q.org_id, /* jobs */q.type/* accounting: ''::text AS type */, q.ready_at, q.id
             FROM daybook.jobs q
            WHERE q.state = 'pending'
              AND (q.priority, q.org_id/* jobs */, q.type/* accounting: */) > (place.priority, place.org_id/* jobs */, place.type/* accounting: */)
            ORDER BY q.priority, q.org_id/* jobs */, q.type/* accounting: */, q.ready_at, q.id
            LIMIT 1) next
     WHERE place.n < @places
)
SELECT p.priority, p.org_id, p.type, p.ready_at, p.id, o.max_in_flight IS NOT NULL,
       o.paused_at IS NULL AND p.ready_at <= statement_timestamp()
       /* accounting: AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY (@sources)
                      AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ @hooks */
  FROM place p
  LEFT JOIN daybook.organizations o ON o.id = p.org_id
 ORDER BY p.n`

// scan looks at the next places.
func (s *Store) scan(ctx context.Context, idle bool, room Room) error {
	l := &s.looks
	if !l.begun {
		l.another, l.cursor = false, placeKey{}
	}
	if l.places == 0 {
		l.places = firstScan
	}
	began := time.Now()
	var due []seen
	all, err := inOrder(ctx, s.pool, func(row pgx.CollectableRow) (placeKey, error) {
		f := seen{begins: true}
		var now bool
		err := row.Scan(&f.key.priority, &f.key.org, &f.key.jobType, timeOrNever{&f.first.at}, &f.first.id, &f.capped, &now)
		if now {
			due = append(due, f)
		}
		return f.key, err
	}, s.kind.sql(scanStmt), s.kind.able(args{
		"priority": l.cursor.priority, "org": l.cursor.org, "type": l.cursor.jobType, "places": l.places,
	}))
	if err != nil {
		return err
	}
	took := time.Since(began)
	pause := lookShare * took
	if l.begun = len(all) == l.places; l.begun {
		l.cursor = all[len(all)-1]
		switch {
		case !l.completed:
			pause = took // what a worker finds when it starts
		case idle:
			pause = roundShare * took
		}
	} else {
		l.completed = true
		s.ring.forget()
	}
	l.scanned = time.Now()
	l.scanAllowed = l.scanned.Add(pause)
	switch {
	case took > 2*scanFor:
		l.places = max(firstScan/16, l.places/2)
	case took < scanFor/2:
		l.places = min(mostScan, 2*l.places)
	}
	s.ring.found(due, room)
	return nil
}

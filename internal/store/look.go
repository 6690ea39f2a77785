package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// lookEvery is the pause between two looks while there is work: so long may an organization wait that had none before.
	lookEvery = 50 * time.Millisecond
	// lookShare is how many times its own duration a look is not repeated: each of the two kinds of look takes a fiftieth of a
	// worker's time at most.
	lookShare = 49
)

// Outlook is what a look that found nothing to do says of the next one.
type Outlook struct {
	// Again is until another look may find what this one could not afford to look for; 0: it saw everything.
	Again time.Duration
	// Due is until the next job falls due; 0: none is known.
	Due time.Duration
}

// Wait is until another look is worth while, though nobody calls; 0: it is not.
func (o Outlook) Wait() time.Duration {
	if o.Again == 0 || o.Due > 0 && o.Due < o.Again {
		return o.Due
	}
	return o.Again
}

// look brings the ring up to date. A sweep finds everything; what it costs grows with the dead rows that an old snapshot
// keeps in the index. When it was done a short while ago, for its cost, a glance looks from a little behind the known
// marks on, and between the known organizations for new ones.
//
// While there is work a look is due every lookEvery; when there is none, at once. After a glance that leaves nothing to do
// the outlook says how long to wait for a sweep, which may find more.
func (s *Store) look(ctx context.Context, idle bool) (o Outlook, err error) {
	if !idle {
		// Somebody else is looking: that is enough.
		if !s.looking.TryLock() {
			return o, nil
		}
	} else {
		s.looking.Lock()
	}
	defer s.looking.Unlock()
	if idle && !s.ring.idle() {
		return o, nil // somebody else has just looked
	}
	now := time.Now()
	switch {
	case !idle && now.Before(later(s.swept, s.glanced).Add(lookEvery)):
	case !now.Before(s.sweepAllowed):
		o.Due, err = s.sweep(ctx)
		s.swept, s.sweepAllowed = now, time.Now().Add(lookShare*time.Since(now))
	case idle || !now.Before(s.glanceAllowed):
		err = s.glance(ctx)
		s.glanced, s.glanceAllowed = now, time.Now().Add(lookShare*time.Since(now))
		o.Again = max(time.Until(s.sweepAllowed), time.Millisecond)
	}
	return o, wrap("look for work", err)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sweep finds every place that has a due row, whatever the marks say: it jumps from one organization to the next. It returns
// how long it is until another row falls due.
func (s *Store) sweep(ctx context.Context) (due time.Duration, err error) {
	const stmt = `
WITH RECURSIVE place AS (
    (SELECT q.priority, q.org_id
       FROM {queue} q
      WHERE q.state = 'pending'
      ORDER BY q.priority, q.org_id LIMIT 1)
    UNION ALL
    SELECT n.priority, n.org_id
      FROM place
     CROSS JOIN LATERAL (
           SELECT q.priority, q.org_id
             FROM {queue} q
            WHERE q.state = 'pending' AND (q.priority, q.org_id) > (place.priority, place.org_id)
            ORDER BY q.priority, q.org_id LIMIT 1) n
)
SELECT p.priority, p.org_id, f.ready_at, f.id, o.max_in_flight IS NOT NULL,
       CASE WHEN f.ready_at <= statement_timestamp() THEN 0
            ELSE extract(epoch FROM least(f.ready_at, statement_timestamp() + interval '1 day') - statement_timestamp())::float8 END
  FROM place p
  LEFT JOIN daybook.organizations o ON o.id = p.org_id
 CROSS JOIN LATERAL (
       SELECT q.ready_at, q.id
         FROM {queue} q
        WHERE q.state = 'pending' AND q.priority = p.priority AND q.org_id = p.org_id
        ORDER BY q.ready_at, q.id
        LIMIT 1) f
 WHERE {workable}`
	all, err := byKey(ctx, s.pool, func(row pgx.CollectableRow) (seen, error) {
		f := seen{due: true}
		var in float64
		err := row.Scan(&f.key.priority, &f.key.org, &f.first.at, &f.first.id, &f.capped, &in)
		if in > 0 {
			// A little later, so that it is not looked for too early.
			wait := time.Duration(in*float64(time.Second)) + time.Millisecond
			if f.due = false; due == 0 || wait < due {
				due = wait
			}
		}
		return f, err
	}, s.kind.sql(stmt))
	if err != nil {
		return 0, err
	}
	s.ring.found(all, true)
	return due, nil
}

// glance looks at the known places from a little behind their marks on, and for one new organization in each gap between
// them. It never walks the rows that were leased before.
func (s *Store) glance(ctx context.Context) error {
	const stmt = `
WITH p AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::timestamptz[], $4::text[]) WITH ORDINALITY AS p (priority, org_id, at, id, n)
)
SELECT p.priority, p.org_id, f.ready_at, f.id, o.max_in_flight IS NOT NULL
  FROM p
  LEFT JOIN daybook.organizations o ON o.id = p.org_id
 CROSS JOIN LATERAL (
       SELECT q.ready_at, q.id
         FROM {queue} q
        WHERE q.state = 'pending' AND q.priority = p.priority AND q.org_id = p.org_id AND q.ready_at <= statement_timestamp()
          AND (q.ready_at, q.id) >= (p.at, p.id)
        ORDER BY q.ready_at, q.id
        LIMIT 1) f
 WHERE {workable}
UNION ALL
SELECT f.priority, f.org_id, CASE WHEN f.ready_at <= statement_timestamp() AND {workable} THEN f.ready_at END, f.id, o.max_in_flight IS NOT NULL
  FROM unnest($5::smallint[], $6::text[], $7::smallint[], $8::text[]) AS gap (priority, org_id, next_priority, next_org_id)
 CROSS JOIN LATERAL (
       SELECT q.priority, q.org_id, q.ready_at, q.id
         FROM {queue} q
        WHERE q.state = 'pending' AND (q.priority, q.org_id) > (gap.priority, gap.org_id)
          AND (q.priority, q.org_id) < (gap.next_priority, gap.next_org_id)
        ORDER BY q.priority, q.org_id, q.ready_at, q.id
        LIMIT 1) f
  LEFT JOIN daybook.organizations o ON o.id = f.org_id`
	places := s.ring.remembered()
	n := len(places)
	prios, orgs, ats, ids := make([]int16, n), make([]string, n), make([]time.Time, n), make([]string, n)
	// Gaps: before the first place, between each two, after the last.
	from := []placeKey{{}}
	for i, k := range places {
		prios[i], orgs[i], ats[i], ids[i] = k.key.priority, k.key.org, k.from.at, k.from.id
		from = append(from, k.key)
	}
	gapPrios, gapOrgs, nextPrios, nextOrgs := make([]int16, n+1), make([]string, n+1), make([]int16, n+1), make([]string, n+1)
	for i, k := range from {
		next := placeKey{priority: priorities + 1}
		if i < n {
			next = places[i].key
		}
		gapPrios[i], gapOrgs[i], nextPrios[i], nextOrgs[i] = k.priority, k.org, next.priority, next.org
	}
	all, err := byKey(ctx, s.pool, scanSeen, s.kind.sql(stmt), prios, orgs, ats, ids, gapPrios, gapOrgs, nextPrios, nextOrgs)
	if err != nil {
		return err
	}
	s.ring.found(all, false)
	return nil
}

func scanSeen(row pgx.CollectableRow) (seen, error) {
	var f seen
	var at *time.Time
	err := row.Scan(&f.key.priority, &f.key.org, &at, &f.first.id, &f.capped)
	if at != nil {
		f.due, f.first.at = true, *at
	}
	return f, err
}

package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/daybook-dev/daybook/models/locks"
)

const (
	// reclaimPatience is for how long a Reclaimer watches a lease that is not renewed before it
	// ends it: after an outage, and when a transaction has held the row locked, its holder renews
	// it in that time.
	reclaimPatience = 5 * time.Second
	// suspectAfter is the age from which a lease is watched: so it ends when it has expired, and no
	// later.
	suspectAfter = StaleAfter - reclaimPatience
	// reclaimPause is the longest pause between two checks while anything is leased: then it is seen
	// in time that a worker has departed. watchPause is the one while leases are watched,
	// slowWatchPause the longest one while leases are watched by checks that are slow. maxGap is the
	// pause after which what was seen before counts no more.
	reclaimPause   = 2500 * time.Millisecond
	watchPause     = 500 * time.Millisecond
	slowWatchPause = time.Second
	maxGap         = 2 * time.Second
	// unleasedPause is the pause after a check that found nothing leased. What is leased right
	// after that check, by a holder that dies at once, is watched from the next one on, and ends
	// reclaimPatience and a slowWatchPause later: within maxRecovery, with a second for the check
	// itself and for those who lease it anew. The next check finds everything younger before it is
	// expired, as it does while anything is leased.
	unleasedPause = maxRecovery - reclaimPatience - slowWatchPause - time.Second
	// costShare is how many times its own duration a check is not repeated.
	costShare = 49
	// maxRecovery is after what time at most a job runs elsewhere whose worker was killed.
	maxRecovery = 15 * time.Second
	// leaseWindow is how far back a check looks, behind the oldest lease that there was: what
	// committed late is not overlooked, and the dead rows that an old snapshot keeps in the index
	// are not walked. fullEvery is the pause between two checks that look at everything.
	leaseWindow = time.Minute
	fullEvery   = time.Minute
)

// Reclaimer implements engine.Reclaimer: what it has itself seen counts, so that a holder that was
// cut off together with all others keeps what it holds.
type Reclaimer struct {
	store *Store
	// watched holds, for each lease that is not renewed, when that was first seen.
	watched map[suspect]time.Time
	// departed are the workers that have held their locks since the last error.
	departed departed
	// checked is when the last check ended, started when PostgreSQL was started.
	checked, started time.Time
	// from is where the next check begins to look; zero: a leaseWindow ago. full is when the next
	// one may look at everything, and fullLimit how long that may take.
	from, full time.Time
	fullLimit  time.Duration
}

// NewReclaimer returns a Reclaimer of the store's leases.
func (s *Store) NewReclaimer() *Reclaimer {
	return &Reclaimer{store: s, watched: map[suspect]time.Time{}, departed: departed{}, fullLimit: maxGap}
}

// Check implements engine.Reclaimer.
func (r *Reclaimer) Check(ctx context.Context) (got Reclaimed, pause time.Duration, err error) {
	began := time.Now()
	if began.Sub(r.checked) > maxGap {
		clear(r.watched)
	}
	full := !began.Before(r.full)
	got, pause, err = r.check(ctx, began, full)
	if errors.Is(err, errElsewhere) {
		return got, unevenly(watchPause), nil // what was seen counts on, for maxGap
	}
	now := time.Now()
	r.checked = now
	if err != nil {
		clear(r.watched)
		clear(r.departed) // the same outage may have ended the sessions of workers that live
		return got, watchPause, err
	}
	rest := costShare * now.Sub(began)
	switch {
	case full:
		rest = 0 // the next one that looks at everything comes later instead
	case len(r.watched) > 0:
		// A longer pause would forget what was seen: a check that is always slow would never end a
		// lease.
		rest = min(rest, slowWatchPause)
	}
	return got, max(pause, rest), nil
}

func (r *Reclaimer) check(ctx context.Context, began time.Time, full bool) (Reclaimed, time.Duration, error) {
	from, limit := &r.from, maxGap
	switch {
	case full:
		from, limit = &time.Time{}, r.fullLimit
	case r.from.IsZero():
		from = nil
	}
	o, err := r.store.oldestLease(ctx, from, limit)
	// Not done in time, because an old snapshot keeps many dead rows: what has expired just now is
	// not to wait for that.
	late := errors.Is(err, context.DeadlineExceeded)
	if full && (late || err == nil) {
		r.full = time.Now().Add(max(fullEvery, costShare*time.Since(began)))
		if r.fullLimit = maxGap; late {
			r.fullLimit = min(2*limit, statementLimit)
		}
	}
	if full && err == nil {
		err = r.store.setBack(ctx)
	}
	if err != nil {
		return Reclaimed{}, 0, err
	}
	if !o.started.Equal(r.started) {
		clear(r.watched)
		clear(r.departed)
		r.started = o.started
	}
	r.departed.look(o.now, o.workers)
	r.from = o.now.Add(-leaseWindow)
	if o.renewed == nil || o.renewed.After(o.now) { // claims by SQL are ahead for minutes
		clear(r.watched)
		if r.checked.IsZero() {
			return Reclaimed{}, reclaimPause, nil // to know the workers that start together with this one
		}
		return Reclaimed{}, unleasedPause, nil
	}
	if o.renewed.Before(r.from) {
		r.from = *o.renewed
	}
	gone, last := r.departed.gone()
	if age := o.now.Sub(*o.renewed); age < suspectAfter && !o.renewed.Before(last) {
		clear(r.watched)
		return Reclaimed{}, min(max(suspectAfter-age, watchPause), reclaimPause), nil
	}
	return r.watch(ctx, o, suspicion{from: r.from, age: suspectAfter, gone: gone, before: last})
}

// watch ends the leases that have been watched for long enough, and watches the others.
func (r *Reclaimer) watch(ctx context.Context, o oldest, of suspicion) (Reclaimed, time.Duration, error) {
	now := time.Now()
	expired := o.now.Add(-StaleAfter)
	got, left, err := r.store.reclaim(ctx, lockAtOnce, of, func(one suspect, renewed time.Time) (ends, lives bool) {
		since, known := r.watched[one]
		switch seen := now.Sub(since); {
		case !known:
			return false, false
		case seen >= departedPatience && r.departed.ends(one.worker, renewed, o.now):
			return true, false
		default:
			return seen >= reclaimPatience && !renewed.After(expired), slices.Contains(o.workers, one.worker)
		}
	})
	if err != nil {
		return got, 0, err
	}
	pause := unevenly(watchPause)
	if len(left) == 0 && o.now.Sub(*o.renewed) < suspectAfter {
		pause = reclaimPause
	}
	// What was renewed, or is locked, is not watched any more.
	watched := make(map[suspect]time.Time, len(left))
	for _, one := range left {
		since, known := r.watched[one]
		if !known {
			since = now
		}
		watched[one] = since
		if r.departed.held(one.worker, time.UnixMicro(one.renewed)) {
			pause = unevenly(departedPause)
		}
	}
	r.watched = watched
	return got, pause, nil
}

// unevenly is a pause, or up to a quarter more: processes that have begun to watch a lease together
// do not go on looking at the same moments.
func unevenly(pause time.Duration) time.Duration {
	return pause + rand.N(pause/4) //nolint:gosec // no secret
}

type oldest struct {
	now, started time.Time
	// renewed is nil where there is none.
	renewed *time.Time
	// workers are the keys of the locks that workers hold.
	workers []uint32
}

// oldestLease returns the lease that was taken or renewed first, from from on; nil: from a
// leaseWindow ago.
func (s *Store) oldestLease(ctx context.Context, from *time.Time, limit time.Duration) (oldest, error) {
	const stmt = `
SELECT statement_timestamp(), pg_postmaster_start_time(), (
       SELECT last_attempted_at FROM daybook.jobs
        WHERE state = 'leased' AND last_attempted_at >= coalesce(@from, statement_timestamp() - make_interval(secs => @window)) AND last_attempted_at < 'infinity'
        ORDER BY last_attempted_at LIMIT 1), (
       SELECT coalesce(array_agg(DISTINCT objid), '{}') FROM pg_locks
        WHERE locktype = 'advisory' AND classid = @workers::integer::oid AND objsubid = 2 AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var o oldest
	a := Args{"from": from, "window": leaseWindow.Seconds(), "workers": locks.Workers}
	err := s.pool.QueryRow(ctx, s.kind.sql(stmt), a).Scan(&o.now, &o.started, &o.renewed, &o.workers)
	return o, Wrap("scan for expired leases", err)
}

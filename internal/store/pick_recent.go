package store

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// mostRecent is how many jobs a recent pick takes at most.
	mostRecent = 64
	// recentSlots is of how many slots jobs may be that are picked so.
	recentSlots = 4
	// recentPause is for how long no recent pick is tried after one that met what it could not take.
	recentPause = time.Second
)

// recentPicks decides when a pick finds and locks in one statement what has just fallen due. Under a steady load the recent scan finds a few
// jobs each time, and the pick that follows takes all of them. When all are taken there is nothing to divide: one statement does both.
//
// A scan is due after recentLong all the same: it finds what a recent pick leaves out.
type recentPicks struct {
	mu sync.Mutex
	// slots are those of the jobs that the last scan found; nil: the next pick follows a scan.
	slots []string
	// at is when the last scan or recent pick began, until is when the next scan is due at the latest.
	at, until time.Time
	// paused is until when no recent pick is tried.
	paused time.Time
}

// scanned takes in what a scan that began at now has found. whole: that is all that has fallen due lately, and none of it is counted.
func (r *recentPicks) scanned(all []seen, whole bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots, r.at = nil, now
	for _, f := range all {
		if !slices.Contains(r.slots, f.key.slot) {
			r.slots = append(r.slots, f.key.slot)
		}
		whole = whole && !f.capped && !f.counted && f.key.slot != ""
	}
	if !whole || len(r.slots) > recentSlots || now.Before(r.paused) {
		r.slots = nil
	}
}

// scanBy says when a scan is due at the latest.
func (r *recentPicks) scanBy(until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = until
}

// begin returns of which slots jobs may be picked, and since when they fell due; none, if a scan is to come first.
func (r *recentPicks) begin(now time.Time) (slots []string, since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !now.Before(r.until) {
		return nil, 0
	}
	return r.slots, now.Sub(r.at) + recentLag
}

// ended takes in what became of a recent pick that began at now: how many jobs it took, and whether it met others.
func (r *recentPicks) ended(now time.Time, took int, others bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case others:
		r.slots, r.paused = nil, now.Add(recentPause)
	case took == 0:
		r.slots = nil
	case now.After(r.at):
		r.at = now
	}
}

// recent is what a pick knows that has not been preceded by a scan.
type recent struct {
	slots []string
	since time.Duration
	most  int
	began time.Time
}

// beginRecent reserves room for a recent pick, if this pick can be one.
func (p *Pick) beginRecent() bool {
	now := time.Now()
	slots, since := p.store.recentPicks.begin(now)
	if len(slots) == 0 || !p.store.cursors.idle(p.room) || !p.store.undisturbed() {
		return false
	}
	r := recent{slots: slots, since: since, most: min(p.limit, mostRecent), began: now}
	for _, slot := range slots {
		t := slotType(slot)
		if !p.may(t) || p.room.Everywhere(t) > 0 {
			r.most = 0
			break
		}
		n := p.room.Reserve(t, r.most)
		p.reserved = append(p.reserved, share{key: partitionKey{slot: slot}, quota: n})
		r.most = min(r.most, n)
	}
	if r.most == 0 {
		returnUnused(p.room, p.reserved, nil)
		p.reserved = nil
		return false
	}
	p.recent = &r
	return true
}

// undisturbed reports that no organization is held back, and none at its cap is to be tried again.
func (s *Store) undisturbed() bool {
	s.holds.mu.Lock()
	held := len(s.holds.orgs) > 0
	s.holds.mu.Unlock()
	s.cursors.mu.Lock()
	defer s.cursors.mu.Unlock()
	return !held && len(s.cursors.atCap) == 0
}

// recentPickStmt locks the jobs of @slots that have fallen due within @since seconds, unless there are more than @most jobs: then none. Each row
// says how many others there are that it leaves alone, which are to be leased.
//
// The state is compared as text, and so no partial index of it is used: a plan that was made while few jobs were pending would read all of them.
const recentPickStmt = `
SELECT q.priority, q.ready_at, q.id, q.org_id, q.run_count + 1, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
       q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at, coalesce(q.traceparent, ''), coalesce(q.queue, ''), q.updated_at,
       ` + droppedColumn + `,
       q.ctid, d.others
  FROM (SELECT array_agg(r.id) FILTER (WHERE r.fits) AS ids, count(*) FILTER (WHERE NOT r.fits) AS others, count(*) AS total
          FROM (SELECT i.id, CASE WHEN o.paused_at IS NOT NULL THEN NULL
                                    WHEN i.queue IS NULL THEN i.type = ANY (@slots::text[]) AND o.max_in_flight IS NULL
                                    WHEN daybook.queue_uncounted(i.queue) IS NOT NULL
                                    THEN daybook.queue_uncounted(i.queue) AND daybook.job_slot(i.type, i.queue) = ANY (@slots) AND o.max_in_flight IS NULL END AS fits
                  FROM (SELECT j.id, j.org_id, j.type, j.queue
                          FROM daybook.jobs j
                         WHERE j.fleet = @fleet AND num_nulls(nullif(j.state, 'pending')) = 1 AND j.ready_at > statement_timestamp() - make_interval(secs => @since)
                           AND j.ready_at <= statement_timestamp()
                         LIMIT @most + 1) i
                  LEFT JOIN daybook.organizations o ON o.id = i.org_id) r) d
 CROSS JOIN (SELECT pg_current_xact_id()::text::bigint) AS x (own)
  JOIN daybook.jobs q ON q.id = ANY (d.ids)
 WHERE d.total <= @most AND q.state::text = 'pending' AND q.ready_at <= statement_timestamp()
   FOR NO KEY UPDATE OF q SKIP LOCKED`

// lockRecent locks what has just fallen due, if that is all that is due.
func (p *Pick) lockRecent(ctx context.Context, tx pgx.Tx) ([]Job, error) {
	s, r := p.store, p.recent
	batch := &pgx.Batch{}
	queuePlan(tx, batch)
	batch.Queue(recentPickStmt, Args{"slots": r.slots, "fleet": s.kind.fleetID(), "since": r.since.Seconds(), "most": r.most})
	var rows []jobRow
	var others int
	unreadable, err := s.eachJob(ctx, tx, batch, func(r *jobRow) { rows = append(rows, *r) }, p.fields, &others)
	if err != nil {
		s.recentPicks.ended(r.began, 0, true)
		return nil, err
	}
	s.recentPicks.ended(r.began, len(rows), others > 0)
	inTurn(rows)
	p.shares = s.cursors.passed(rows)
	jobs := make([]Job, len(rows))
	for i := range rows {
		jobs[i] = rows[i].job
	}
	return s.readable(jobs, unreadable), nil
}

// inTurn puts rows in the order in which they begin: high priorities first, within one the organizations in turn, within an organization its
// types in turn, the oldest of each first.
func inTurn(rows []jobRow) {
	if len(rows) < 2 {
		return
	}
	slices.SortFunc(rows, func(a, b jobRow) int {
		return cmp.Or(cmp.Compare(a.key.priority, b.key.priority), a.at.at.Compare(b.at.at), cmp.Compare(a.at.id, b.at.id))
	})
	for _, of := range []func(k partitionKey) partitionKey{
		func(k partitionKey) partitionKey { return k },
		func(k partitionKey) partitionKey { return partitionKey{priority: k.priority, org: k.org} },
	} {
		turns := make(map[partitionKey]int, len(rows))
		for i := range rows {
			k := of(rows[i].key)
			rows[i].turn = turns[k]
			turns[k]++
		}
		slices.SortStableFunc(rows, func(a, b jobRow) int {
			return cmp.Or(cmp.Compare(a.key.priority, b.key.priority), cmp.Compare(a.turn, b.turn))
		})
	}
}

// passed moves the cursors behind rows that were locked, in any order, and returns shares by which that is taken back.
func (r *cursors) passed(rows []jobRow) []share {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var shares []share
	index := make(map[*partition]int, len(rows))
	for i := range rows {
		f := &rows[i]
		at := r.partitions[f.key]
		if at == nil {
			at = &partition{key: f.key}
			r.partitions[f.key] = at
		}
		at.used = now
		if f.at.after(at.cursor) {
			at.cursor = f.at
		}
		n, known := index[at]
		if !known {
			n = len(shares)
			index[at] = n
			shares = append(shares, share{partition: at, key: f.key, cursor: f.at, reset: at.reset})
		}
		if shares[n].quota++; shares[n].cursor.after(f.at) {
			shares[n].cursor = f.at
		}
	}
	return shares
}

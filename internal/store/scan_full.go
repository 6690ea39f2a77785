package store

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// A full scan reads all partitions, in parts. A part has firstPart partitions at first, and then as many as take about partFor,
	// mostPart at most.
	firstPart = 256
	mostPart  = 4096
	partFor   = 10 * time.Millisecond
)

// fullScan is how far the full scan has come. One part of it runs at a time, in a goroutine of its own: where an old snapshot keeps dead rows
// a part can take seconds, and new jobs must not wait for it.
type fullScan struct {
	mu sync.Mutex
	// running says that a part runs, and began when it began. left: its caller did not wait for its end.
	running, left bool
	began         time.Time
	// ended is when the last part ended, or the first scan began.
	ended time.Time
	// allowed is when the next part is allowed, for the cost of the last one. told is when callers were told to come back.
	allowed, told time.Time
	// next is the partition behind which the scan goes on; begun says that it is somewhere in the middle.
	next  partitionKey
	begun bool
	// partitions is how many the next part reads.
	partitions int
	// completed: all partitions have been read before. another: a wake-up came during the scan, which is to be repeated. slow: the last part was.
	completed, another, slow bool
}

// woken notes a scan that begins at now: one that comes before its time follows a wake-up.
func (f *fullScan) woken(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.another = f.another || (f.running || f.begun) && now.Before(f.told)
}

// owed reports whether the scan was put off for fullOwed or longer.
func (f *fullScan) owed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended.IsZero() {
		f.ended = time.Now()
	}
	return time.Since(f.ended) >= fullOwed
}

// ReadOn lets the next part of the full scan begin at once, whatever the last one has cost: for a caller that has to know whether anything is due.
func (s *Store) ReadOn() {
	s.full.mu.Lock()
	defer s.full.mu.Unlock()
	s.full.allowed = time.Time{}
}

// due is when a scan that finds work is to read the next part as well.
func (f *fullScan) due() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch owed := f.ended.Add(fullOwed); {
	case f.running:
		return time.Now().Add(fullOwed)
	case owed.Before(f.allowed):
		return f.allowed
	default:
		return owed
	}
}

// scanFull begins the next part of the full scan, if no part runs and one is allowed now, or evenSo. It waits for the part's end for partFor,
// and without limit until all partitions have been read once. again is how long it is until more can be read; 0: everything is read.
func (s *Store) scanFull(ctx context.Context, idle, evenSo bool, room Room) (again time.Duration, err error) {
	f := &s.full
	f.mu.Lock()
	defer f.mu.Unlock()
	read := f.left && !f.running
	f.left = f.left && f.running
	if !f.running && !read && (evenSo || !time.Now().Before(f.allowed)) {
		slow := time.After(partFor)
		if !f.completed {
			slow = nil
		}
		ended := s.beginPart(ctx, idle, room)
		f.mu.Unlock()
		select {
		case err = <-ended:
			read = true
		case <-slow:
		case <-ctx.Done():
			err = ctx.Err()
		}
		f.mu.Lock()
		f.left = !read
	}
	switch {
	case err != nil:
		return 0, err
	case f.running:
		again = max(time.Since(f.began), partFor)
	case !read || f.begun || f.another:
		again = max(time.Until(f.allowed), time.Millisecond)
	}
	f.told = time.Now().Add(again)
	return again, nil
}

// beginPart begins the next part, and returns a channel for how it ends. The caller holds full.mu. The part goes on when its caller's context
// ends, so that scans that take longer than a fetch come to their end; after an error it is read again.
func (s *Store) beginPart(ctx context.Context, idle bool, room Room) <-chan error {
	args := s.kind.able(s.full.begin())
	ended := make(chan error, 1)
	go func() {
		moves := s.cursors.moved()
		var p part
		_, err := inOrder(context.WithoutCancel(ctx), s.pool, p.add, s.kind.sql(fullScanStmt), args)
		s.endPart(idle, room, &p, moves, err)
		ended <- err
	}()
	return ended
}

// begin begins a part, and returns the arguments of its statement. It is called with mu held.
func (f *fullScan) begin() Args {
	if !f.begun {
		f.another, f.next = false, partitionKey{}
	}
	if f.partitions == 0 {
		f.partitions = firstPart
	}
	f.running, f.began = true, time.Now()
	return Args{"priority": f.next.priority, "org": f.next.org, "slot": f.next.slot, "partitions": f.partitions}
}

// endPart takes in what a part has read, or that it has failed, and reports whether the scan has come to its end. moves is the number of the cursors' moves when the
// part began.
func (s *Store) endPart(idle bool, room Room, p *part, moves int, err error) (whole bool) {
	if err == nil {
		s.cursors.foundFirst(p.due, room, moves)
	}
	f, all := &s.full, p.all
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = false
	if err != nil {
		f.another, f.slow = true, true // its caller may not wait any more: the next one comes back
		return false
	}
	f.ended = time.Now()
	took := f.ended.Sub(f.began)
	pause := scanShare * took
	if f.begun = len(all) == f.partitions; f.begun {
		f.next = all[len(all)-1]
		switch {
		case !f.completed:
			pause = took // what a worker finds when it starts
		case idle:
			pause = partShare * took
		}
	} else {
		f.completed = true
		s.cursors.forget()
	}
	f.allowed = f.ended.Add(pause)
	switch f.slow = took > 2*partFor; {
	case f.slow:
		f.partitions = max(firstPart/16, f.partitions/2)
	case took < partFor/2:
		f.partitions = min(mostPart, 2*f.partitions)
	}
	return !f.begun
}

// fullScanStmt goes through @partitions partitions behind the one of @priority, @org and @slot, with the first pending row of each. Each
// takes one descent of the index: the row after all rows of a partition is the first of the next one.
const fullScanStmt = `
WITH RECURSIVE parts AS (
    (SELECT q.priority, q.org_id, /* jobs */daybook.job_slot(q.type, q.queue)/* accounting: ''::text */ AS slot, q.ready_at, q.id/* jobs */, q.queue/* accounting: */, 1 AS n
       FROM daybook.jobs q
      WHERE q.state = 'pending'/* jobs */ AND q.fleet = @fleet/* accounting: */
        AND (q.priority, q.org_id/* jobs */, daybook.job_slot(q.type, q.queue)/* accounting: */) > (@priority::smallint, @org::text/* jobs */, @slot::text/* accounting: */)
      ORDER BY q.priority, q.org_id/* jobs */, daybook.job_slot(q.type, q.queue)/* accounting: */, q.ready_at, q.id
      LIMIT 1)
    UNION ALL
    SELECT next.*, parts.n + 1
      FROM parts
     CROSS JOIN LATERAL (
           SELECT q.priority, q.org_id, /* jobs */daybook.job_slot(q.type, q.queue)/* accounting: ''::text */ AS slot, q.ready_at, q.id/* jobs */, q.queue/* accounting: */
             FROM daybook.jobs q
            WHERE q.state = 'pending'/* jobs */ AND q.fleet = @fleet/* accounting: */
              AND (q.priority, q.org_id/* jobs */, daybook.job_slot(q.type, q.queue)/* accounting: */) > (parts.priority, parts.org_id/* jobs */, parts.slot/* accounting: */)
            ORDER BY q.priority, q.org_id/* jobs */, daybook.job_slot(q.type, q.queue)/* accounting: */, q.ready_at, q.id
            LIMIT 1) next
     WHERE parts.n < @partitions
)
SELECT p.priority, p.org_id, p.slot, p.ready_at, p.id, o.max_in_flight IS NOT NULL, /* jobs */num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0/* accounting: false */,
       o.paused_at IS NULL/* jobs */ AND u.paused_at IS NULL/* accounting: */,
       /* jobs */true/* accounting: coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY (@sources)
                                    AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ @hooks */,
       extract(epoch FROM greatest(least(p.ready_at, statement_timestamp() + interval '1 day'), statement_timestamp()) - statement_timestamp())::float8
  FROM parts p
  LEFT JOIN daybook.organizations o ON o.id = p.org_id
  /* jobs */LEFT JOIN daybook.queues u ON u.name = p.queue/* accounting: */
 ORDER BY p.n`

// part is what a part of the full scan has read.
type part struct {
	// all are its partitions, in their order; due the first rows of those that have work for the worker.
	all []partitionKey
	due []seen
	// left: jobs are due that the worker leaves to others. next is until the next job falls due in a partition that has no due one; 0: none is known.
	left bool
	next time.Duration
}

// add takes in a row of fullScanStmt.
func (p *part) add(row pgx.CollectableRow) (struct{}, error) {
	var f seen
	var free, able bool
	var in float64
	err := row.Scan(&f.key.priority, &f.key.org, &f.key.slot, timeOrNever{&f.first.at}, &f.first.id, &f.capped, &f.counted, &free, &able, &in)
	p.all = append(p.all, f.key)
	switch {
	case in > 0:
		if due := dueIn(in); p.next == 0 || due < p.next {
			p.next = due
		}
	case free && able:
		p.due = append(p.due, f)
	case free:
		p.left = true
	}
	return struct{}{}, err
}

package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/internal/store/due"
	"github.com/daybook-dev/daybook/models/locks"
)

func (s *Store) leaseShares(ctx context.Context, turn Turn, shares []due.Share, room Room) ([]Job, error) {
	free, counted, _ := splitCounted(shares, room)
	var jobs, more []Job
	if len(free) > 0 {
		if err := s.weeding(ctx, func() (err error) {
			batch := batchByKey(s.pool)
			s.queueLease(batch, turn, free, countedOrgs{locked: []string{}}, []string{})
			jobs, err = s.takeShares(ctx, s.pool, batch, free, s.kind.fields)
			return err
		}, func() { s.doubt(free) }); err != nil {
			return nil, err
		}
	}
	if len(counted) > 0 {
		if err := s.weeding(ctx, func() (err error) {
			more, err = s.leaseCounted(ctx, turn, slices.Clone(counted), room)
			return err
		}, func() { s.doubt(counted) }); err != nil {
			// What was leased already is the turn's, and the next reclaim of its leases finds it.
			return nil, err
		}
	}
	s.weed(ctx)
	return append(jobs, more...), nil
}

// splitCounted separates the partitions whose jobs in flight are counted: those of organizations
// with a cap or a rate, of types with a limit over all workers, and of named queues with a limit or a rate.
// Of each such organization and type one partition a time is asked, so that its partitions do not
// each get all that is left; rest are the others. Among the partitions of a queue what is left is
// divided (withinQueues).
func splitCounted(shares []due.Share, room Room) (free, counted, rest []due.Share) {
	orgs, types := map[string]bool{}, map[string]bool{}
	for _, s := range shares {
		jobType := s.Type()
		limited := room.Everywhere(jobType) > 0
		asked := s.Capped && orgs[s.Org] || limited && types[jobType]
		switch {
		case !s.Capped && !limited && !s.Counted:
			free = append(free, s)
		case asked:
			rest = append(rest, s)
		default:
			orgs[s.Org], types[jobType] = true, true
			counted = append(counted, s)
		}
	}
	return free, counted, rest
}

// leaseCounted counts what is in flight and leases what is left of each cap, limit and rate, one
// caller at a time for an organization or type. The locks are taken by a statement of its own, because
// what they protect must be read by a snapshot that is younger than they are.
func (s *Store) leaseCounted(ctx context.Context, turn Turn, shares []due.Share, room Room) ([]Job, error) {
	var jobs []Job
	var full []string
	var queues queueRooms
	var orgs countedOrgs
	err := s.InTx(ctx, func(tx pgx.Tx) (err error) {
		if shares, full, err = s.withinLimits(ctx, tx, shares, room); err != nil || len(shares) == 0 {
			return err
		}
		if shares, queues, err = s.withinQueues(ctx, tx, turn.Worker, shares); err != nil || len(shares) == 0 {
			return err
		}
		if shares, orgs, err = s.withinOrganizations(ctx, tx, shares); err != nil {
			return err
		}
		if len(shares) == 0 {
			return queues.take(ctx, tx, nil) // nothing is leased of them: they are not full
		}
		batch := &pgx.Batch{}
		s.queueLease(batch, turn, shares, orgs, limitedTypes(shares, room))
		if jobs, err = s.takeShares(ctx, tx, batch, shares, s.kind.fields); err != nil {
			return err
		}
		if err = orgs.take(ctx, tx, jobs); err != nil {
			return err
		}
		return queues.take(ctx, tx, jobs)
	})
	if err != nil {
		return nil, err
	}
	for _, jobType := range full {
		room.Full(jobType)
	}
	queues.close(room)
	orgs.hold(s.due)
	return jobs, nil
}

// tryLocks takes the advisory locks of a class, as far as no other transaction has them, and
// returns which it has: in one order, so that two callers do not each get some of what both want.
func tryLocks(ctx context.Context, tx pgx.Tx, class locks.Class, names []string) ([]string, error) {
	const stmt = `SELECT n FROM unnest($2::text[]) AS n WHERE pg_try_advisory_xact_lock($1, hashtext(n))`
	slices.Sort(names)
	return byKey(ctx, tx, pgx.RowTo[string], stmt, class, names)
}

func limitedTypes(shares []due.Share, room Room) []string {
	types := []string{}
	for _, sh := range shares {
		if jobType := sh.Type(); room.Everywhere(jobType) > 0 {
			types = append(types, jobType)
		}
	}
	return types
}

// withinLimits locks the types of the shares that have a limit over all workers, counts how many
// jobs of each are leased, and bounds the shares by what is left. It returns the types of which
// nothing is, or that another worker is leasing.
func (s *Store) withinLimits(ctx context.Context, tx pgx.Tx, shares []due.Share, room Room) (open []due.Share,
	full []string, err error,
) {
	const count = `
SELECT t.type, (SELECT count(*) FROM daybook.jobs q WHERE q.counted AND q.turn_id IS NOT NULL AND q.type = t.type)
  FROM unnest($1::text[]) AS t (type)`
	types := limitedTypes(shares, room)
	if len(types) == 0 {
		return shares, nil, nil
	}
	locked, err := tryLocks(ctx, tx, locks.TypeLeases, types)
	if err != nil {
		return nil, nil, err
	}
	left := map[string]int{}
	var jobType string
	var n int
	if _, err := byKey(ctx, tx, eachRow([]any{&jobType, &n}, func() { left[jobType] = room.Everywhere(jobType) - n }),
		count, locked); err != nil {
		return nil, nil, err
	}
	for _, sh := range shares {
		jobType := sh.Type()
		if room.Everywhere(jobType) == 0 {
			open = append(open, sh)
			continue
		}
		if left[jobType] <= 0 {
			full = append(full, jobType)
			continue
		}
		sh.Quota = min(sh.Quota, left[jobType])
		open = append(open, sh)
	}
	return open, full, nil
}

// queueLease adds the statement that leases shares to a batch. orgs are the organizations whose lock
// the caller holds, types those whose leases are counted.
func (s *Store) queueLease(batch *pgx.Batch, turn Turn, shares []due.Share, orgs countedOrgs, types []string) {
	mine := make([]bool, len(shares))
	for i, sh := range shares {
		mine[i] = slices.Contains(orgs.locked, sh.Org)
	}
	a := s.kind.able(shareColumns(shares))
	a["worker"], a["detached"], a["begins"] = turn.Worker, turn.Detached, turn.Begins
	a["locked"], a["capped"], a["rated"], a["counted"] = mine, orgs.locked, orgs.rated(), types
	text := s.kind.sql(leaseStmt)
	if inQueues(shares) {
		counts := make([]bool, len(shares))
		for i, sh := range shares {
			counts[i] = sh.Counted
		}
		a["counts"], text = counts, s.kind.sqlOfQueues(leaseStmt)
	}
	batch.Queue(text, turn.args(a))
}

// shareColumns are priority, organization, slot, cursor and quota of each share, as arrays.
func shareColumns(shares []due.Share) Args {
	n := len(shares)
	prios, orgs, slots, ats := make([]int16, n), make([]string, n), make([]string, n), make([]pgtype.Timestamptz, n)
	ids, quotas := make([]string, n), make([]int32, n)
	for i, sh := range shares {
		prios[i], orgs[i], slots[i] = sh.Priority, sh.Org, sh.Slot
		ats[i], ids[i], quotas[i] = pgtype.Timestamptz{Time: sh.At, Valid: true}, sh.ID, int32(sh.Quota)
		if sh.At.IsZero() {
			ats[i].InfinityModifier = pgtype.NegativeInfinity
		}
	}
	return Args{"priorities": prios, "orgs": orgs, "slots": slots, "ats": ats, "ids": ids, "quotas": quotas}
}

// takeShares sends a batch whose last statement returns the fields of jobs of the shares, as
// eachJob reads them, and moves the cursors behind them. Rows that cannot be read are not among the
// jobs; they are to be weeded when the transaction has ended.
func (s *Store) takeShares(ctx context.Context, q batcher, batch *pgx.Batch, shares []due.Share,
	fields func(j *Job) []any,
) ([]Job, error) {
	index := make(map[due.Key]int, len(shares))
	for i, sh := range shares {
		index[sh.Key] = i
	}
	got := make([]due.Got, len(shares))
	jobs := make([]Job, 0, quotas(shares))
	unreadable, err := s.eachJob(ctx, q, batch, func(r *jobRow) {
		of := &got[index[r.Key]]
		of.Jobs++
		if r.Cursor.After(of.Last) {
			of.Last = r.Cursor
		}
		jobs = append(jobs, r.job)
	}, fields)
	if err != nil {
		return nil, err
	}
	s.due.Took(shares, got)
	return s.readable(jobs, unreadable), nil
}

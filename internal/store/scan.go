package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/due"
)

// Outlook is what a scan that found nothing to do says of the next one.
type Outlook = due.Outlook

// ReadOn lets the next part of the full scan begin at once, whatever the last one has cost: for a
// caller that has to know whether anything is due.
func (s *Store) ReadOn() { s.due.ReadOn() }

// scan looks for due jobs: package due decides how, and what it means.
func (s *Store) scan(ctx context.Context, idle bool, room Room) (Outlook, error) {
	o, err := s.due.Scan(ctx, idle, room)
	return o, Wrap("scan for due jobs", err)
}

// recentScanStmt reads the rows that have fallen due within @since seconds, the youngest @most of
// them, as one row a partition. The row without a partition says whether there may be older ones,
// and, if @next asks for that, in how many seconds the next one falls due. It says "pending" in the
// words of the index on ready_at, which is the only one that can be used so.
const recentScanStmt = `
WITH recent AS MATERIALIZED (
    SELECT q.priority, q.org_id, /* jobs */daybook.job_slot(q.type, q.queue, q.min_version)/* accounting: ''::text */ AS slot, q.ready_at, q.id/* jobs */, q.queue/* accounting: */
      FROM daybook.jobs q
     WHERE /* jobs */q.fleet = @fleet AND /* accounting: */num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp() - make_interval(secs => @since) AND q.ready_at <= statement_timestamp()
     ORDER BY q.ready_at DESC
     LIMIT @most
), firsts AS MATERIALIZED (
    SELECT DISTINCT ON (r.priority, r.org_id, r.slot) r.*
      FROM recent r
     ORDER BY r.priority, r.org_id, r.slot, r.ready_at, r.id
)
SELECT f.priority, f.org_id, f.slot, f.ready_at, f.id, /* jobs */num_nonnulls(o.max_in_flight, o.rate) > 0/* accounting: o.max_in_flight IS NOT NULL */, /* jobs */num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0/* accounting: false */, 0::float8
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

// readRecent implements due.Reader.
func (s *Store) readRecent(ctx context.Context, since time.Duration, most int, next bool) (r due.Recent, err error) {
	_, err = inOrder(ctx, s.pool, func(row pgx.CollectableRow) (struct{}, error) {
		var f due.Found
		var in float64
		err := row.Scan(&f.Priority, &f.Org, &f.Slot, timeOrNever{&f.At}, &f.ID, &f.Capped, &f.Counted, &in)
		if f.Priority > 0 {
			r.Found = append(r.Found, f)
		} else if r.More = f.Capped; in > 0 {
			r.NextDue = due.Later(seconds(in))
		}
		return struct{}{}, err
	}, s.kind.sql(recentScanStmt), s.kind.able(Args{"since": since.Seconds(), "most": most, "next": next}))
	return r, err
}

// fullScanStmt goes through @partitions partitions behind the one of @priority, @org and @slot,
// with the first pending row of each. Each takes one descent of the index: the row after all rows
// of a partition is the first of the next one.
const fullScanStmt = `
WITH RECURSIVE parts AS (
    (SELECT q.priority, q.org_id, /* jobs */daybook.job_slot(q.type, q.queue, q.min_version)/* accounting: ''::text */ AS slot, q.ready_at, q.id/* jobs */, q.queue/* accounting: */, 1 AS n
       FROM daybook.jobs q
      WHERE q.state = 'pending'/* jobs */ AND q.fleet = @fleet/* accounting: */
        AND (q.priority, q.org_id/* jobs */, daybook.job_slot(q.type, q.queue, q.min_version)/* accounting: */) > (@priority::smallint, @org::text/* jobs */, @slot::text/* accounting: */)
      ORDER BY q.priority, q.org_id/* jobs */, daybook.job_slot(q.type, q.queue, q.min_version)/* accounting: */, q.ready_at, q.id
      LIMIT 1)
    UNION ALL
    SELECT next.*, parts.n + 1
      FROM parts
     CROSS JOIN LATERAL (
           SELECT q.priority, q.org_id, /* jobs */daybook.job_slot(q.type, q.queue, q.min_version)/* accounting: ''::text */ AS slot, q.ready_at, q.id/* jobs */, q.queue/* accounting: */
             FROM daybook.jobs q
            WHERE q.state = 'pending'/* jobs */ AND q.fleet = @fleet/* accounting: */
              AND (q.priority, q.org_id/* jobs */, daybook.job_slot(q.type, q.queue, q.min_version)/* accounting: */) > (parts.priority, parts.org_id/* jobs */, parts.slot/* accounting: */)
            ORDER BY q.priority, q.org_id/* jobs */, daybook.job_slot(q.type, q.queue, q.min_version)/* accounting: */, q.ready_at, q.id
            LIMIT 1) next
     WHERE parts.n < @partitions
)
SELECT p.priority, p.org_id, p.slot, p.ready_at, p.id, /* jobs */num_nonnulls(o.max_in_flight, o.rate) > 0/* accounting: o.max_in_flight IS NOT NULL */, /* jobs */num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0/* accounting: false */,
       o.paused_at IS NULL/* jobs */ AND u.paused_at IS NULL/* accounting: */,
       /* jobs */true/* accounting: coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY (@sources)
                                    AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ @hooks */,
       extract(epoch FROM greatest(least(p.ready_at, statement_timestamp() + interval '1 day'), statement_timestamp()) - statement_timestamp())::float8
  FROM parts p
  LEFT JOIN daybook.organizations o ON o.id = p.org_id
  /* jobs */LEFT JOIN daybook.queues u ON u.name = p.queue/* accounting: */
 ORDER BY p.n`

// partArgs are the arguments of fullScanStmt.
func (s *Store) partArgs(after due.Key, partitions int) Args {
	return s.kind.able(Args{"priority": after.Priority, "org": after.Org, "slot": after.Slot, "partitions": partitions})
}

// readPart implements due.Reader.
func (s *Store) readPart(ctx context.Context, after due.Key, partitions int) (part due.Part, err error) {
	_, err = inOrder(ctx, s.pool, partRow(&part), s.kind.sql(fullScanStmt), s.partArgs(after, partitions))
	return part, err
}

// partRow takes in a row of fullScanStmt.
func partRow(part *due.Part) pgx.RowToFunc[struct{}] {
	return func(row pgx.CollectableRow) (struct{}, error) {
		var f due.Found
		var free, able bool
		var in float64
		err := row.Scan(&f.Priority, &f.Org, &f.Slot, timeOrNever{&f.At}, &f.ID, &f.Capped, &f.Counted, &free, &able, &in)
		part.Keys = append(part.Keys, f.Key)
		switch {
		case in > 0:
			if next := due.Later(seconds(in)); part.NextDue == 0 || next < part.NextDue {
				part.NextDue = next
			}
		case free && able:
			part.Due = append(part.Due, f)
		case free:
			part.Left = true
		}
		return struct{}{}, err
	}
}

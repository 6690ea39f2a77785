-- $1 fleet
-- $2 since
-- $3 most
-- $4 next
WITH recent AS MATERIALIZED (
    SELECT q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version) AS slot, q.ready_at, q.id, q.queue
      FROM daybook.jobs q
     WHERE q.fleet = $1 AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp() - make_interval(secs => $2) AND q.ready_at <= statement_timestamp()
     ORDER BY q.ready_at DESC
     LIMIT $3
), firsts AS MATERIALIZED (
    SELECT DISTINCT ON (r.priority, r.org_id, r.slot) r.*
      FROM recent r
     ORDER BY r.priority, r.org_id, r.slot, r.ready_at, r.id
)
SELECT f.priority, f.org_id, f.slot, f.ready_at, f.id, num_nonnulls(o.max_in_flight, o.rate) > 0, num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0, 0::float8
  FROM firsts f
  LEFT JOIN daybook.organizations o ON o.id = f.org_id
  LEFT JOIN daybook.queues u ON u.name = f.queue
 WHERE o.paused_at IS NULL AND u.paused_at IS NULL
 UNION ALL
SELECT 0, '', '', '-infinity', '', (SELECT count(*) FROM recent) = $3, false,
       coalesce((SELECT extract(epoch FROM least(q.ready_at, statement_timestamp() + interval '1 day') - statement_timestamp())
                   FROM daybook.jobs q
                  WHERE $4 AND q.fleet = $1 AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
                  ORDER BY q.ready_at
                  LIMIT 1), 0)::float8

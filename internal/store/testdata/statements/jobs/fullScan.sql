-- $1 fleet
-- $2 priority
-- $3 org
-- $4 slot
-- $5 partitions
WITH RECURSIVE parts AS (
    (SELECT q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version) AS slot, q.ready_at, q.id, q.queue, 1 AS n
       FROM daybook.jobs q
      WHERE q.state = 'pending' AND q.fleet = $1
        AND (q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version)) > ($2::smallint, $3::text, $4::text)
      ORDER BY q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version), q.ready_at, q.id
      LIMIT 1)
    UNION ALL
    SELECT next.*, parts.n + 1
      FROM parts
     CROSS JOIN LATERAL (
           SELECT q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version) AS slot, q.ready_at, q.id, q.queue
             FROM daybook.jobs q
            WHERE q.state = 'pending' AND q.fleet = $1
              AND (q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version)) > (parts.priority, parts.org_id, parts.slot)
            ORDER BY q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version), q.ready_at, q.id
            LIMIT 1) next
     WHERE parts.n < $5
)
SELECT p.priority, p.org_id, p.slot, p.ready_at, p.id, num_nonnulls(o.max_in_flight, o.rate) > 0, num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0,
       o.paused_at IS NULL AND u.paused_at IS NULL,
       true,
       extract(epoch FROM greatest(least(p.ready_at, statement_timestamp() + interval '1 day'), statement_timestamp()) - statement_timestamp())::float8
  FROM parts p
  LEFT JOIN daybook.organizations o ON o.id = p.org_id
  LEFT JOIN daybook.queues u ON u.name = p.queue
 ORDER BY p.n

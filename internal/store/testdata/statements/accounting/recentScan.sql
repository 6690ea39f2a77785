-- $1 since
-- $2 most
-- $3 sources
-- $4 hooks
-- $5 next
WITH recent AS MATERIALIZED (
    SELECT q.priority, q.org_id,  ''::text  AS slot, q.ready_at, q.id
      FROM daybook.accounting_work_queue q
     WHERE  num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp() - make_interval(secs => $1) AND q.ready_at <= statement_timestamp()
     ORDER BY q.ready_at DESC
     LIMIT $2
), firsts AS MATERIALIZED (
    SELECT DISTINCT ON (r.priority, r.org_id, r.slot) r.*
      FROM recent r
     ORDER BY r.priority, r.org_id, r.slot, r.ready_at, r.id
)
SELECT f.priority, f.org_id, f.slot, f.ready_at, f.id,  o.max_in_flight IS NOT NULL ,  false , 0::float8
  FROM firsts f
  LEFT JOIN daybook.organizations o ON o.id = f.org_id
 WHERE o.paused_at IS NULL
    AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY ($3)
                  AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ $4
 UNION ALL
SELECT 0, '', '', '-infinity', '', (SELECT count(*) FROM recent) = $2, false,
       coalesce((SELECT extract(epoch FROM least(q.ready_at, statement_timestamp() + interval '1 day') - statement_timestamp())
                   FROM daybook.accounting_work_queue q
                  WHERE $5 AND  num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
                  ORDER BY q.ready_at
                  LIMIT 1), 0)::float8

-- $1 priority
-- $2 org
-- $3 partitions
-- $4 sources
-- $5 hooks
WITH RECURSIVE parts AS (
    (SELECT q.priority, q.org_id,  ''::text  AS slot, q.ready_at, q.id , 1 AS n
       FROM daybook.accounting_work_queue q
      WHERE q.state = 'pending'
        AND (q.priority, q.org_id ) > ($1::smallint, $2::text )
      ORDER BY q.priority, q.org_id , q.ready_at, q.id
      LIMIT 1)
    UNION ALL
    SELECT next.*, parts.n + 1
      FROM parts
     CROSS JOIN LATERAL (
           SELECT q.priority, q.org_id,  ''::text  AS slot, q.ready_at, q.id
             FROM daybook.accounting_work_queue q
            WHERE q.state = 'pending'
              AND (q.priority, q.org_id ) > (parts.priority, parts.org_id )
            ORDER BY q.priority, q.org_id , q.ready_at, q.id
            LIMIT 1) next
     WHERE parts.n < $3
)
SELECT p.priority, p.org_id, p.slot, p.ready_at, p.id,  o.max_in_flight IS NOT NULL ,  false ,
       o.paused_at IS NULL ,
        coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY ($4)
                                    AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ $5 ,
       extract(epoch FROM greatest(least(p.ready_at, statement_timestamp() + interval '1 day'), statement_timestamp()) - statement_timestamp())::float8
  FROM parts p
  LEFT JOIN daybook.organizations o ON o.id = p.org_id
 ORDER BY p.n

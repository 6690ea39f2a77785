-- $1 sources
-- $2 hooks
SELECT count(*) FILTER (WHERE q.ready_at <= clock_timestamp()), min(q.ready_at) - clock_timestamp()
  FROM daybook.accounting_work_queue q
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
 WHERE q.state = 'pending' AND q.ready_at < '9999-12-31 00:00:00+00' AND o.paused_at IS NULL
    AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY ($1)
                  AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ $2

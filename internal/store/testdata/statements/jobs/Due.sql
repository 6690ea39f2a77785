-- $1 fleet
SELECT count(*) FILTER (WHERE q.ready_at <= clock_timestamp()), min(q.ready_at) - clock_timestamp()
  FROM daybook.jobs q
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
  LEFT JOIN daybook.queues u ON u.name = q.queue
 WHERE q.state = 'pending' AND q.ready_at < '9999-12-31 00:00:00+00' AND o.paused_at IS NULL AND q.fleet = $1 AND u.paused_at IS NULL

SELECT count(*) OVER (), w.org_id, w.document_id, NULL::bigint, format('job %s is %s%s', w.id, w.state, w.what)
  FROM (SELECT q.id, q.org_id, NULL::text AS document_id, q.state,
               CASE WHEN q.state = 'leased' AND (q.turn_id IS NULL OR q.fence IS NULL OR q.last_attempted_at IS NULL) THEN ', and no turn holds it'
                    WHEN q.state <> 'leased' AND (q.turn_id IS NOT NULL OR q.fence IS NOT NULL) THEN ', and a turn holds it'
                    WHEN q.state <> 'leased' AND q.cancel_requested THEN ', and waits to be cancelled'
                    WHEN q.state IN ('completed', 'failed', 'cancelled') AND q.finished_at IS NULL THEN ', and has no time of its end'
                    WHEN q.state IN ('pending', 'leased') AND q.finished_at IS NOT NULL THEN ', and has a time of its end'
                    WHEN q.state = 'failed' AND (q.last_error_code IS NULL OR q.last_error IS NULL) THEN ', and nothing says why' END AS what
          FROM daybook.jobs q
         WHERE $1 = '' OR q.org_id = $1) w
 WHERE w.what IS NOT NULL
 ORDER BY w.org_id, w.id
 LIMIT $2

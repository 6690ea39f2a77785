WITH callbacks AS (
    UPDATE daybook.job_callbacks SET deadline = deadline - make_interval(secs => $1) WHERE called_at IS NULL
)
UPDATE daybook.jobs q
   SET ready_at = CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN greatest(q.ready_at - make_interval(secs => $1), clock_timestamp()) ELSE q.ready_at END,
       first_ready_at = CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN q.first_ready_at ELSE q.first_ready_at - make_interval(secs => $1) END
 WHERE q.state = 'pending' AND q.ready_at > clock_timestamp()

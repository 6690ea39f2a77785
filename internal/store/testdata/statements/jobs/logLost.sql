-- $1 lost_code
-- $2 ids
-- $3 charged
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, document_id, version, attempt, outcome, error_code, error, started_at,
                                 worker, turn_id, fence, workflow_run_id)
SELECT q.id, q.org_id, 'jobs', q.type, NULL, NULL,
       q.run_count, 'lost', $1, 'the worker ended while it worked on this job', q.attempt_started_at,
       coalesce(q.worker, ''), q.turn_id, q.fence, split_part(q.turn_id, '/', 1)
  FROM unnest($2::text[], $3::boolean[]) AS held (id, charged)
  JOIN daybook.jobs q ON q.id = held.id
 WHERE held.charged

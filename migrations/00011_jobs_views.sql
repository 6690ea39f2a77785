-- Chapter 11: views of jobs: by type and state, and under the names of a table async_operations.

-- +goose Up
-- +goose StatementBegin

CREATE VIEW daybook.job_status AS
SELECT j.type, j.state, count(*) AS count, min(j.created_at) AS oldest, max(j.created_at) AS newest,
    avg(j.run_count) AS average_attempts
  FROM daybook.jobs j
 GROUP BY j.type, j.state;
COMMENT ON VIEW daybook.job_status IS 'Background jobs by type and state';

-- For applications that come from a table async_operations: its columns, its states and its
-- function. workspace_id is the organization, the ids that a job is linked with are text.
CREATE VIEW daybook.async_operations AS
SELECT j.id,
       j.type AS operation_type,
       j.payload,
       (SELECT l.id FROM daybook.job_links l WHERE l.job_id = j.id AND l.kind = 'submission' ORDER BY l.id LIMIT 1) AS submission_id,
       (SELECT l.id FROM daybook.job_links l WHERE l.job_id = j.id AND l.kind = 'form' ORDER BY l.id LIMIT 1) AS form_id,
       (SELECT l.id FROM daybook.job_links l WHERE l.job_id = j.id AND l.kind = 'workspace' ORDER BY l.id LIMIT 1) AS workspace_id,
       CASE j.state
           WHEN 'pending' THEN CASE WHEN j.last_error_code IS NULL THEN 'pending' ELSE 'failed' END
           WHEN 'leased' THEN 'processing'
           WHEN 'failed' THEN 'dead'
           ELSE j.state::text END AS status,
       j.run_count AS attempts,
       j.max_attempts,
       -- A lease that a program claimed for minutes has last_attempted_at ahead of it.
       coalesce(j.attempt_started_at, j.last_attempted_at) AS last_attempt_at,
       CASE j.state WHEN 'pending' THEN j.ready_at END AS next_retry_at,
       CASE j.state WHEN 'completed' THEN j.finished_at END AS completed_at,
       j.last_error,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('error', a.error, 'error_code', a.error_code, 'timestamp', a.ended_at, 'attempt', a.attempt) ORDER BY a.id), '[]')
          FROM daybook.attempt_log a
         WHERE a.job_id = j.id AND a.outcome IN ('retried', 'failed', 'lost')) AS error_history,
       j.result,
       j.created_at,
       j.updated_at
  FROM daybook.jobs j;
COMMENT ON VIEW daybook.async_operations IS
    'daybook.jobs under other names: failed is a job that waits to be tried again, dead one that will not be';

CREATE VIEW daybook.async_operations_status AS
SELECT o.operation_type, o.status, count(*) AS count, min(o.created_at) AS oldest, max(o.created_at) AS newest,
    avg(o.attempts) AS avg_attempts
  FROM daybook.async_operations o
 GROUP BY o.operation_type, o.status;

CREATE FUNCTION daybook.enqueue_async_operation(
    p_operation_type text,
    p_payload        jsonb,
    p_submission_id  uuid DEFAULT NULL,
    p_form_id        uuid DEFAULT NULL,
    p_workspace_id   uuid DEFAULT NULL,
    p_max_attempts   integer DEFAULT 3
) RETURNS uuid
    LANGUAGE sql
AS $$
    SELECT e.job_id::uuid
      FROM daybook.enqueue_job(
        coalesce(p_workspace_id::text, 'default'), p_operation_type, p_payload, max_attempts => p_max_attempts,
        links => (SELECT jsonb_agg(jsonb_build_object('kind', l.kind, 'id', l.id))
                    FROM (VALUES ('submission', p_submission_id), ('form', p_form_id), ('workspace', p_workspace_id)) AS l (kind, id)
                   WHERE l.id IS NOT NULL)) e
$$;
COMMENT ON FUNCTION daybook.enqueue_async_operation IS
    'enqueue_job for applications that come from async_operations. The organization is the workspace, or "default"';

-- +goose StatementEnd

-- +goose Down
DROP FUNCTION daybook.enqueue_async_operation;
DROP VIEW daybook.async_operations_status, daybook.async_operations, daybook.job_status;

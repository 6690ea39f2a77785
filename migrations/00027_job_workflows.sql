-- Chapter 27: jobs that a Temporal workflow or activity works. A job that has ended in any way must
-- not leave its workflow running, also when no worker has the job at that moment: what is open in
-- Temporal is on record here, and a worker sees to its end.

-- +goose Up
-- +goose StatementBegin

-- The row is written before Temporal is asked to start the workflow, and goes when the workflow has
-- ended. It may stay when its job is removed. There are as many rows as workflows are open: workers
-- look at all of them every few seconds, instead of having each change of each job looked at by a
-- trigger.
CREATE TABLE daybook.job_workflows (
    job_id        text COLLATE "C" PRIMARY KEY CHECK (job_id <> '' AND octet_length(job_id) <= 255),
    namespace     text NOT NULL CHECK (octet_length(namespace) <= 1000),
    asked_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    grace_seconds double precision NOT NULL CHECK (grace_seconds >= 0),
    due_at        timestamptz,
    cancelled_at  timestamptz,
    CHECK (cancelled_at IS NULL OR due_at IS NOT NULL)
);
COMMENT ON TABLE daybook.job_workflows IS
    'Workflows of Temporal that work jobs and have not ended; the id of each is daybook-job/ and the job''s id';
COMMENT ON COLUMN daybook.job_workflows.namespace IS 'Temporal''s: workers of another one leave the row alone';
COMMENT ON COLUMN daybook.job_workflows.asked_at IS 'When the last attempt asked Temporal to start it';
COMMENT ON COLUMN daybook.job_workflows.grace_seconds IS
    'How long after the request to cancel it a workflow may run before it is terminated';
COMMENT ON COLUMN daybook.job_workflows.due_at IS
    'When a worker sees to its end again, because its job has ended; null: no worker has found that';
COMMENT ON COLUMN daybook.job_workflows.cancelled_at IS 'When Temporal was asked to cancel it';

-- +goose StatementEnd

-- +goose Down
DROP TABLE daybook.job_workflows;

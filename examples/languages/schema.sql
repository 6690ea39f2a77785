-- The application's own table. Each program writes an order into it, and in the same transaction a job and the order's invoice.
CREATE SCHEMA app;
CREATE TABLE app.orders (
    id       text PRIMARY KEY,
    org_id   text NOT NULL,
    customer text NOT NULL,
    net      bigint NOT NULL CHECK (net > 0),
    confirmed boolean NOT NULL DEFAULT false
);
-- What the handlers of worker_test.go write in the transaction that completes their job.
CREATE TABLE app.effects (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id text NOT NULL,
    note   text NOT NULL
);

-- The application's own table. Each program writes an order into it, and in the same transaction a job and the order's invoice.
CREATE SCHEMA app;
CREATE TABLE app.orders (
    id       text PRIMARY KEY,
    org_id   text NOT NULL,
    customer text NOT NULL,
    net      bigint NOT NULL CHECK (net > 0)
);

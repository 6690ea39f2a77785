-- +goose Up
CREATE SCHEMA app;

CREATE TABLE app.orders (
    id           bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id       text        NOT NULL,
    customer     text        NOT NULL,
    net_cents    bigint      NOT NULL CHECK (net_cents > 0),
    tax_cents    bigint      GENERATED ALWAYS AS ((net_cents * 19 + 50) / 100) STORED,
    placed_at    timestamptz NOT NULL DEFAULT now(),
    cancelled_at timestamptz,                        -- what is posted of the order is reversed
    version      bigint      NOT NULL DEFAULT 1,     -- grows with each change that the ledger must know
    posted       boolean     NOT NULL DEFAULT false  -- by the worker, in the transaction that posts
);

CREATE TABLE app.receipts (
    order_id bigint PRIMARY KEY REFERENCES app.orders,
    text     text   NOT NULL
);

-- +goose Down
DROP SCHEMA app CASCADE;

-- The shop's own tables. Daybook's are made by `daybook migrate up`, in the schema daybook of the same database.
CREATE SCHEMA IF NOT EXISTS shop;

CREATE TABLE IF NOT EXISTS shop.orders (
    id        text PRIMARY KEY,
    customer  text NOT NULL,
    net_cents bigint NOT NULL CHECK (net_cents > 0),
    tax_cents bigint NOT NULL CHECK (tax_cents >= 0),
    placed_at timestamptz NOT NULL,
    -- Set in the transaction that posts the order's invoice.
    booked_at timestamptz
);

CREATE TABLE IF NOT EXISTS shop.receipts (
    order_id text PRIMARY KEY REFERENCES shop.orders,
    text     text NOT NULL
);

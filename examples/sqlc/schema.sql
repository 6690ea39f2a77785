CREATE TABLE invoices (
    id         uuid        DEFAULT gen_random_uuid() PRIMARY KEY,
    org_id     text        NOT NULL,
    number     text        NOT NULL,
    customer   text        NOT NULL,
    issued_on  date        NOT NULL,
    version    bigint      NOT NULL DEFAULT 1, -- grows with each change
    ready_at   timestamptz,                    -- null: a draft
    deleted_at timestamptz,
    posted     boolean     NOT NULL DEFAULT false
);

CREATE TABLE lines (
    invoice_id uuid   NOT NULL REFERENCES invoices ON DELETE CASCADE,
    line_no    int    NOT NULL,
    text       text   NOT NULL,
    net_cents  bigint NOT NULL,
    PRIMARY KEY (invoice_id, line_no)
);

-- Billing in tables of its own, whatever writes them: triggers give each change of a document a
-- version, and enqueue it in the same transaction. Invoices have whole numbers as keys, payments
-- UUIDs. Their documents are invoice:42 and payment:0b7e1152-….
CREATE SCHEMA billing;

CREATE TABLE billing.invoices (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org_id     text        NOT NULL,
    number     text        NOT NULL,
    customer   text        NOT NULL,
    currency   text        NOT NULL DEFAULT 'EUR',
    issued_on  date        NOT NULL DEFAULT current_date,
    tax_rate   numeric     NOT NULL DEFAULT 19,   -- percent
    issued_at  timestamptz,                       -- null: a draft, which is not posted; an invoice that is reopened becomes one again
    voided_at  timestamptz,                       -- what is posted of it is reversed for good
    version    bigint      NOT NULL DEFAULT 1,    -- grows with each change, by the trigger
    posted     boolean     NOT NULL DEFAULT false -- by the worker, in the transaction that posts
);

CREATE TABLE billing.invoice_lines (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    invoice_id  bigint NOT NULL REFERENCES billing.invoices ON DELETE CASCADE,
    description text   NOT NULL,
    net_cents   bigint NOT NULL
);
CREATE INDEX ON billing.invoice_lines (invoice_id);

CREATE TABLE billing.payments (
    id           uuid        DEFAULT gen_random_uuid() PRIMARY KEY,
    org_id       text        NOT NULL,
    amount_cents bigint      NOT NULL,
    currency     text        NOT NULL DEFAULT 'EUR',
    received_on  date        NOT NULL DEFAULT current_date,
    created_at   timestamptz NOT NULL DEFAULT now(),
    deleted_at   timestamptz, -- the row stays
    version      bigint      NOT NULL DEFAULT 1
);

-- A change of an invoice, except the worker's mark, is a new version. The change locks the row, so
-- that the worker reads the document before it or after it.
CREATE FUNCTION billing.next_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.org_id <> OLD.org_id THEN
        RAISE EXCEPTION 'a document stays in its organization: write a new one there';
    END IF;
    NEW.version := OLD.version + 1;
    RETURN NEW;
END $$;

CREATE TRIGGER a_version BEFORE UPDATE OF org_id, number, customer, currency, issued_on, tax_rate, issued_at, voided_at, version ON billing.invoices
    FOR EACH ROW EXECUTE FUNCTION billing.next_version();
CREATE TRIGGER a_version BEFORE UPDATE ON billing.payments
    FOR EACH ROW EXECUTE FUNCTION billing.next_version();

-- Drafts that were never issued concern the ledger as little as what the worker marks.
CREATE FUNCTION billing.enqueue_invoice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.issued_at IS NOT NULL OR TG_OP = 'UPDATE' AND OLD.issued_at IS NOT NULL THEN
        PERFORM daybook.enqueue_accounting_job(NEW.org_id, 'invoice:' || NEW.id, NEW.version);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER enqueue AFTER INSERT OR UPDATE OF org_id, number, customer, currency, issued_on, tax_rate, issued_at, voided_at, version ON billing.invoices
    FOR EACH ROW EXECUTE FUNCTION billing.enqueue_invoice();

CREATE FUNCTION billing.enqueue_payment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM daybook.enqueue_accounting_job(NEW.org_id, 'payment:' || NEW.id, NEW.version);
    RETURN NULL;
END $$;

CREATE TRIGGER enqueue AFTER INSERT OR UPDATE ON billing.payments FOR EACH ROW EXECUTE FUNCTION billing.enqueue_payment();

-- Lines belong to their invoice: a change of one is a new version of the invoice, and locks its
-- row.
CREATE FUNCTION billing.touch_invoice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE billing.invoices SET version = version WHERE id IN (OLD.invoice_id, NEW.invoice_id);
    RETURN NULL;
END $$;

CREATE TRIGGER touch AFTER INSERT OR UPDATE OR DELETE ON billing.invoice_lines FOR EACH ROW EXECUTE FUNCTION billing.touch_invoice();

-- A row that is removed leaves its deletion on record beside its job. An invoice that was never
-- issued has none.
CREATE FUNCTION billing.delete_invoice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM daybook.accounting_work_queue WHERE org_id = OLD.org_id AND document_id = 'invoice:' || OLD.id) THEN
        PERFORM daybook.mark_document_deleted(OLD.org_id, 'invoice:' || OLD.id);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER deleted AFTER DELETE ON billing.invoices FOR EACH ROW EXECUTE FUNCTION billing.delete_invoice();

-- What the worker's source calls: package source says what it expects.
CREATE FUNCTION billing.lock_invoices(org_ids text[], ids bigint[]) RETURNS SETOF bigint LANGUAGE sql AS $$
    SELECT k.n
      FROM unnest(org_ids, ids) WITH ORDINALITY AS k (org_id, id, n)
      JOIN billing.invoices i ON i.org_id = k.org_id AND i.id = k.id
       FOR NO KEY UPDATE OF i SKIP LOCKED
$$;

CREATE FUNCTION billing.read_invoices(org_ids text[], ids bigint[])
RETURNS TABLE (n bigint, version bigint, ready_at timestamptz, deleted_at timestamptz, document jsonb) LANGUAGE sql STABLE AS $$
    SELECT k.n, i.version, i.issued_at, i.voided_at, jsonb_build_object(
               'type', 'invoice', 'direction', 'out', 'currency', i.currency, 'issue_date', i.issued_on,
               'content', jsonb_build_object(
                   'number', i.number, 'counterparty', i.customer, 'lines', l.lines,
                   'taxes', jsonb_build_array(jsonb_build_object('category', 'VAT', 'rate', i.tax_rate, 'base', l.net, 'amount', l.tax)),
                   'total', l.net + l.tax, 'payable', l.net + l.tax))
      FROM unnest(org_ids, ids) WITH ORDINALITY AS k (org_id, id, n)
      JOIN billing.invoices i ON i.org_id = k.org_id AND i.id = k.id
     CROSS JOIN LATERAL (
           SELECT coalesce(jsonb_agg(jsonb_build_object('kind', 'item', 'description', x.description, 'net', x.net_cents, 'rate', i.tax_rate, 'category', 'VAT') ORDER BY x.id), '[]') AS lines,
                  coalesce(sum(x.net_cents), 0)::bigint AS net, round(coalesce(sum(x.net_cents), 0) * i.tax_rate / 100)::bigint AS tax
             FROM billing.invoice_lines x
            WHERE x.invoice_id = i.id) l
$$;

CREATE FUNCTION billing.set_posted(org_ids text[], ids bigint[], live boolean[]) RETURNS void LANGUAGE sql AS $$
    UPDATE billing.invoices i
       SET posted = k.live
      FROM unnest(org_ids, ids, live) AS k (org_id, id, live)
     WHERE i.org_id = k.org_id AND i.id = k.id
$$;

CREATE FUNCTION billing.lock_payments(org_ids text[], ids uuid[]) RETURNS SETOF bigint LANGUAGE sql AS $$
    SELECT k.n
      FROM unnest(org_ids, ids) WITH ORDINALITY AS k (org_id, id, n)
      JOIN billing.payments p ON p.org_id = k.org_id AND p.id = k.id
       FOR NO KEY UPDATE OF p SKIP LOCKED
$$;

CREATE FUNCTION billing.read_payments(org_ids text[], ids uuid[])
RETURNS TABLE (n bigint, version bigint, ready_at timestamptz, deleted_at timestamptz, document jsonb) LANGUAGE sql STABLE AS $$
    SELECT k.n, p.version, p.created_at, p.deleted_at, jsonb_build_object(
               'type', 'payment', 'direction', 'in', 'currency', p.currency, 'issue_date', p.received_on,
               'content', jsonb_build_object('amount', p.amount_cents))
      FROM unnest(org_ids, ids) WITH ORDINALITY AS k (org_id, id, n)
      JOIN billing.payments p ON p.org_id = k.org_id AND p.id = k.id
$$;

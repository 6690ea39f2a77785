-- name: CreateInvoice :one
INSERT INTO invoices (org_id, number, customer, issued_on, ready_at) VALUES ($1, $2, $3, $4, $5) RETURNING id, version;

-- name: PutLine :exec
INSERT INTO lines (invoice_id, line_no, text, net_cents) VALUES ($1, $2, $3, $4)
    ON CONFLICT (invoice_id, line_no) DO UPDATE SET text = EXCLUDED.text, net_cents = EXCLUDED.net_cents;

-- name: NextVersion :one
-- It comes before what changes the invoice or its lines, because it locks the row.
UPDATE invoices SET version = version + 1 WHERE org_id = $1 AND id = $2 RETURNING version;

-- name: SetReady :exec
UPDATE invoices SET ready_at = $2 WHERE id = $1;

-- name: SetDeleted :exec
UPDATE invoices SET deleted_at = clock_timestamp() WHERE id = $1;

-- name: RemoveInvoice :exec
DELETE FROM invoices WHERE org_id = $1 AND id = $2;

-- name: LockInvoices :many
-- What the worker locks before it reads.
SELECT org_id, id FROM invoices WHERE id = ANY (@ids::uuid[]) FOR NO KEY UPDATE SKIP LOCKED;

-- name: ReadInvoices :many
SELECT * FROM invoices WHERE id = ANY (@ids::uuid[]);

-- name: ReadLines :many
SELECT * FROM lines WHERE invoice_id = ANY (@ids::uuid[]) ORDER BY invoice_id, line_no;

-- name: SetPosted :exec
UPDATE invoices SET posted = (id = ANY (@live::uuid[])) WHERE id = ANY (@ids::uuid[]);

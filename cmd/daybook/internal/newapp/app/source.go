package main

import (
	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/queue/source"
)

// sourceName is what the organization has on record as the place of its documents.
const sourceName = "orders"

// sources are where the worker reads what it posts: the table of orders. $1 are organizations, $2
// the ids of orders beside them.
func sources() (accounting.Sources, error) {
	orders, err := source.New(source.SQL[int64]{
		Namespace: "order",
		Lock: `
SELECT k.n
  FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS k (org_id, id, n)
  JOIN app.orders o ON o.org_id = k.org_id AND o.id = k.id
   FOR NO KEY UPDATE OF o SKIP LOCKED`,
		Read: `
SELECT k.n, o.version, o.placed_at AS ready_at, o.cancelled_at AS deleted_at,
       jsonb_build_object(
           'type', 'invoice', 'direction', 'out', 'currency', 'EUR', 'issue_date', o.placed_at::date,
           'content', jsonb_build_object(
               'number', o.id::text, 'counterparty', o.customer,
               'lines', jsonb_build_array(jsonb_build_object('kind', 'item', 'net', o.net_cents, 'rate', 19, 'category', 'VAT')),
               'taxes', jsonb_build_array(jsonb_build_object('category', 'VAT', 'rate', 19, 'base', o.net_cents, 'amount', o.tax_cents)),
               'total', o.net_cents + o.tax_cents, 'payable', o.net_cents + o.tax_cents)) AS document
  FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS k (org_id, id, n)
  JOIN app.orders o ON o.org_id = k.org_id AND o.id = k.id`,
		SetPosted: `
UPDATE app.orders o
   SET posted = k.live
  FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS k (org_id, id, live)
 WHERE o.org_id = k.org_id AND o.id = k.id`,
	})
	return accounting.Sources{sourceName: orders}, err
}

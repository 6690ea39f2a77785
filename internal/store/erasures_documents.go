package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// eraseDocuments replaces what is personal in documents by a mark. What the ledger needs stays:
// dates, currency, amounts, taxes, dimensions, the number, the numbers that it refers to, the
// entries of a journal, and for a document whose job is open the attributes that its rules may ask
// for. So does updated_at: for the audit, a later one is a change that was never posted. Errors that
// the accounting queue and its attempts have of it are erased as well.
const eraseDocuments = `
WITH looked AS MATERIALIZED (
    SELECT d.id, d.content,
           (SELECT q.state IN ('pending', 'leased', 'failed') FROM daybook.accounting_work_queue q WHERE q.org_id = d.org_id AND q.document_id = d.id) IS TRUE AS open
      FROM daybook.documents d
     WHERE d.org_id = @org AND d.id = ANY (@locked)
), clean AS MATERIALIZED (
    SELECT l.id, l.open,
           (SELECT coalesce(jsonb_object_agg(c.key, CASE c.key
                       WHEN 'counterparty' THEN to_jsonb('[erased]'::text)
                       WHEN 'lines' THEN (SELECT coalesce(jsonb_agg((SELECT coalesce(jsonb_object_agg(p.key, p.value), '{}')
                                                                       FROM jsonb_each(CASE jsonb_typeof(x.line) WHEN 'object' THEN x.line ELSE '{}' END) AS p
                                                                      WHERE p.key IN ('kind', 'code', 'net', 'cost', 'rate', 'rate_bp', 'category', 'tax_code', 'dimensions')) ORDER BY x.n), '[]')
                                            FROM jsonb_array_elements(CASE jsonb_typeof(c.value) WHEN 'array' THEN c.value ELSE '[]' END) WITH ORDINALITY AS x (line, n))
                       WHEN 'journal' THEN jsonb_strip_nulls(jsonb_build_object('reason', '[erased]', 'by', '[erased]', 'year_end', c.value -> 'year_end', 'entries',
                                               (SELECT coalesce(jsonb_agg((SELECT coalesce(jsonb_object_agg(p.key, p.value), '{}')
                                                                             FROM jsonb_each(CASE jsonb_typeof(x.entry) WHEN 'object' THEN x.entry ELSE '{}' END) AS p
                                                                            WHERE p.key IN ('account', 'amount', 'currency', 'dimensions')) ORDER BY x.n), '[]')
                                                  FROM jsonb_array_elements(CASE jsonb_typeof(c.value -> 'entries') WHEN 'array' THEN c.value -> 'entries' ELSE '[]' END) WITH ORDINALITY AS x (entry, n))))
                       ELSE c.value END), '{}')
              FROM jsonb_each(CASE jsonb_typeof(l.content) WHEN 'object' THEN l.content ELSE '{}' END) AS c
             WHERE c.key IN ('number', 'counterparty', 'country', 'lines', 'taxes', 'total', 'prepaid', 'payable', 'rounding', 'amount', 'fee', 'settled', 'zero', 'source',
                             'due_date', 'refers_to', 'dimensions')
                OR c.key = 'journal' AND jsonb_typeof(c.value) = 'object'
                OR c.key = 'attributes' AND l.open) AS content
      FROM looked l
), documents AS (
    UPDATE daybook.documents d SET content = c.content FROM clean c
     WHERE d.org_id = @org AND d.id = c.id AND d.content <> c.content
    RETURNING 1
)
SELECT (SELECT count(*) FROM looked), coalesce((SELECT max(id) FROM looked), @behind), (SELECT count(*) FROM clean WHERE open),
       jsonb_build_object('documents', (SELECT count(*) FROM documents))`

// ErasedDocuments is what a batch of documents came to.
type ErasedDocuments struct {
	Counts map[string]int64
	// Behind is where the next batch begins, Looked how many documents there were; 0: that was all.
	Behind string
	Looked int64
	// Open counts those whose attributes stay, because they are still to be posted.
	Open int64
}

// EraseDocuments erases what is personal in the next documents. They are locked first: a
// transaction that is waited for may ask for a document anew, which a statement that began before
// would not see.
func EraseDocuments(ctx context.Context, tx pgx.Tx, s EraseScope, behind string,
	batch int,
) (d ErasedDocuments, err error) {
	const lock = `
SELECT d.id FROM daybook.documents d
 WHERE d.org_id = @org AND (@document = '' OR d.id = @document) AND d.id > @behind
 ORDER BY d.id
 LIMIT @batch
   FOR NO KEY UPDATE`
	a := s.args(Args{"behind": behind, "batch": batch, "document": s.Document()})
	if a["locked"], err = Collect(ctx, tx, pgx.RowTo[string], lock, a); err != nil {
		return d, Wrap("lock the documents to erase", err)
	}
	err = queryRow(ctx, tx, eraseDocuments, a).Scan(&d.Looked, &d.Behind, &d.Open, &d.Counts)
	return d, Wrap("erase in documents", err)
}

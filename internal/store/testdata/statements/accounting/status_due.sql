SELECT q.id, q.org_id, q.first_ready_at, q.ready_at, extract(epoch FROM transaction_timestamp() - q.ready_at)::float8,
        q.document_id, NULL::text
  FROM daybook.accounting_work_queue q
 WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= transaction_timestamp()  AND ($1 = '' OR q.org_id = $1)
 ORDER BY q.ready_at, q.id
 LIMIT 1

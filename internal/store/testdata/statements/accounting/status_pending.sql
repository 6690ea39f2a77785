SELECT q.id, q.org_id, q.first_ready_at, CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN q.ready_at END, extract(epoch FROM transaction_timestamp() - q.first_ready_at)::float8,
        q.document_id, NULL::text
  FROM daybook.accounting_work_queue q
 WHERE q.state = 'pending' AND ($1 = '' OR q.org_id = $1)
 ORDER BY q.first_ready_at, q.id
 LIMIT 1

UPDATE daybook.accounting_work_queue q
   SET run_count = q.run_count + 1, updated_at = clock_timestamp()
 WHERE q.id = $1
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
           q.document_id, q.version_hint, q.not_ready_count, q.epoch ,
          coalesce(q.traceparent, '')

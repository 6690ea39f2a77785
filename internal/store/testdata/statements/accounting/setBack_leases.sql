UPDATE daybook.accounting_work_queue
   SET last_attempted_at = clock_timestamp()
 WHERE id = ANY (ARRAY(
       SELECT id FROM daybook.accounting_work_queue
        WHERE state = 'leased' AND last_attempted_at > statement_timestamp() + interval '10 seconds'
          FOR NO KEY UPDATE SKIP LOCKED))

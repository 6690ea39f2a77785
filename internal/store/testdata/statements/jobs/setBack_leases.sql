UPDATE daybook.jobs
   SET last_attempted_at = clock_timestamp() + CASE WHEN daybook.is_async_operation_claim(turn_id) THEN daybook.async_operation_lease() ELSE '0' END
 WHERE id = ANY (ARRAY(
       SELECT id FROM daybook.jobs
        WHERE state = 'leased' AND last_attempted_at > statement_timestamp() + interval '10 seconds'
          AND (last_attempted_at > statement_timestamp() + interval '10 seconds' + daybook.async_operation_lease() OR NOT daybook.is_async_operation_claim(turn_id))
          FOR NO KEY UPDATE SKIP LOCKED))

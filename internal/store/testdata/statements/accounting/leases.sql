SELECT  'accounting' , coalesce(worker, ''), turn_id, detached, count(*), count(*) FILTER (WHERE working),
       count(*) FILTER (WHERE last_attempted_at < statement_timestamp() - make_interval(secs => $1)), min(last_attempted_at)
  FROM daybook.accounting_work_queue
 WHERE state = 'leased'
 GROUP BY worker, turn_id, detached
 ORDER BY min(last_attempted_at), turn_id

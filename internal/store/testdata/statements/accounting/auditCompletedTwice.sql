SELECT count(*) OVER (), q.org_id,  q.document_id , NULL::bigint,
       format('job %s: completed attempts %s, requests %s', q.id, a.times, q.generation + 1)
  FROM (SELECT job_id, count(*) AS times
          FROM daybook.attempts
         WHERE outcome = 'completed' AND kind =  'accounting'  AND ($1 = '' OR org_id = $1)
         GROUP BY job_id
        HAVING count(*) > 1) a
  JOIN daybook.accounting_work_queue q ON q.id = a.job_id
 WHERE a.times > q.generation + 1
 ORDER BY q.org_id, q.id
 LIMIT $2

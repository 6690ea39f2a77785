SELECT 'pending', '', count(*), count(*) FILTER (WHERE ready_at <= transaction_timestamp() AND fleet <> -2),
       count(*) FILTER (WHERE ready_at = '9999-12-31 00:00:00+00' OR fleet = -2), 0
  FROM daybook.jobs WHERE num_nulls(nullif(state, 'pending')) = 1 AND ($2 = '' OR org_id = $2)
UNION ALL
SELECT 'leased', '', count(*), 0, 0, count(*) FILTER (WHERE last_attempted_at < transaction_timestamp() - make_interval(secs => $1))
  FROM daybook.jobs WHERE state = 'leased' AND ($2 = '' OR org_id = $2)
UNION ALL
SELECT 'failed', last_error_code, count(*), 0, 0, 0 FROM daybook.jobs WHERE state = 'failed' AND ($2 = '' OR org_id = $2) GROUP BY last_error_code
UNION ALL
SELECT state::text, '', (count(*) / share)::bigint, 0, 0, 0
  FROM (SELECT CASE $2 WHEN '' THEN least(1, 4096 * current_setting('block_size')::float8 / greatest(pg_relation_size('daybook.jobs'), 1)) ELSE 1 END AS share) s
 CROSS JOIN LATERAL (SELECT state FROM daybook.jobs TABLESAMPLE SYSTEM (100 * share) REPEATABLE (0) WHERE state IN ('completed', 'cancelled') AND ($2 = '' OR org_id = $2)) j
 GROUP BY state, share
UNION ALL
SELECT 'estimated', '', 0, 0, 0, 0 WHERE $2 = '' AND pg_relation_size('daybook.jobs') > 4096 * current_setting('block_size')::bigint

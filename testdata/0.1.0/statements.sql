DELETE FROM daybook.archives WHERE key = $1 AND erased_at IS NOT NULL
;
DELETE FROM daybook.bulk_operations
 WHERE id IN (SELECT id FROM daybook.bulk_operations WHERE finished_at < clock_timestamp() - interval '30 days' FOR UPDATE SKIP LOCKED)
;
DELETE FROM daybook.console_sessions WHERE expires_at < clock_timestamp()
;
DELETE FROM daybook.console_sessions WHERE hash = $1
;
DELETE FROM daybook.depths WHERE seconds = $1 AND at < statement_timestamp() - make_interval(secs => $2)
;
DELETE FROM daybook.history WHERE seconds = $1 AND at < statement_timestamp() - make_interval(secs => $2)
;
DELETE FROM daybook.job_workflows WHERE job_id = $1
;
DELETE FROM daybook.job_workflows WHERE job_id = $1 AND due_at = $2
;
INSERT INTO daybook.accounts AS a (org_id, code, name, type, currencies, role, section)
SELECT $1, n.code, n.name, n.type, n.currencies::text[],
       CASE n.role WHEN '' THEN coalesce(was.role, '') WHEN 'none' THEN '' ELSE n.role END,
       CASE n.section WHEN '' THEN coalesce(was.section, '') WHEN 'none' THEN '' ELSE n.section END
  FROM unnest($2::text[], $3::text[], $4::daybook.account_type[], $5::text[], $6::text[], $7::text[])
       AS n (code, name, type, currencies, role, section)
  LEFT JOIN daybook.accounts was ON was.org_id = $1 AND was.code = n.code
ON CONFLICT (org_id, code) DO UPDATE
   SET name = excluded.name, type = excluded.type, currencies = excluded.currencies, role = excluded.role, section = excluded.section
 WHERE (a.name, a.type, a.currencies, a.role, a.section)
       IS DISTINCT FROM (excluded.name, excluded.type, excluded.currencies, excluded.role, excluded.section)
;
INSERT INTO daybook.actions (via, action, token_id, actor, org_id, subject, details, outcome, code)
VALUES ($1, $2, $3, $4, NULLIF($5, ''), $6, $7, $8, $9)
RETURNING id
;
INSERT INTO daybook.api_tokens (id, org_id, name, scopes, hash, types, requests_per_minute, jobs_per_minute, run_by_get)
VALUES (daybook.new_id(), NULLIF($1, ''), $2, $3, $4, $5, NULLIF($6, 0), NULLIF($7, 0), $8)
RETURNING id, org_id, name, scopes, created_at, last_used_at, revoked_at, types, coalesce(requests_per_minute, 0), coalesce(jobs_per_minute, 0), run_by_get
;
INSERT INTO daybook.archives AS a (key, kind, counts, lines, bytes, sha256, org_ids, first_at, last_at)
VALUES ($1, $2, $3, $4, $5, decode($6::text, 'hex'), $7, $8, $9)
ON CONFLICT (key) DO NOTHING
;
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, document_id, version, attempt, outcome, error_code, error, started_at,
                                 worker, turn_id, fence, workflow_run_id)
SELECT q.id, q.org_id,  'accounting', NULL, q.document_id, q.version_hint ,
       q.run_count, 'lost', $1, 'the worker ended while it worked on this job', q.attempt_started_at,
       coalesce(q.worker, ''), q.turn_id, q.fence, split_part(q.turn_id, '/', 1)
  FROM unnest($2::text[], $3::boolean[]) AS held (id, charged)
  JOIN daybook.accounting_work_queue q ON q.id = held.id
 WHERE held.charged
;
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, document_id, version, attempt, outcome, error_code, error, started_at,
                                 worker, turn_id, fence, workflow_run_id)
SELECT q.id, q.org_id, 'jobs', q.type, NULL, NULL,
       q.run_count, 'lost', $1, 'the worker ended while it worked on this job', q.attempt_started_at,
       coalesce(q.worker, ''), q.turn_id, q.fence, split_part(q.turn_id, '/', 1)
  FROM unnest($2::text[], $3::boolean[]) AS held (id, charged)
  JOIN daybook.jobs q ON q.id = held.id
 WHERE held.charged
;
INSERT INTO daybook.bulk_batches (operation_id, n, job_ids, generations)
SELECT $1, j.n / 500, array_agg(j.id ORDER BY j.id), array_agg(j.generation ORDER BY j.id) FILTER (WHERE $2)
  FROM (SELECT c.id, c.generation, row_number() OVER (ORDER BY c.id) - 1 AS n FROM (SELECT id, generation FROM daybook.jobs) c) j
 GROUP BY 2
;
INSERT INTO daybook.bulk_operations (kind, org_id, action, mode, delay_seconds, states, patch, actor)
VALUES ($1, $2, $3, $4, $5, string_to_array($6, ' '), CAST(CAST($7 AS text) AS jsonb), $8)
RETURNING id, created_at, updated_at
;
INSERT INTO daybook.confirmations (impact_id, document_version, rule_set_version, job_id, attempt, workflow_run_id)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], $5::integer[], $6::text[])
;
INSERT INTO daybook.console_sessions (hash, token_id, expires_at)
VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3))
;
INSERT INTO daybook.depths AS d (seconds, at, kind, due, waiting, leased, failed, oldest_due_seconds)
SELECT s.seconds, date_bin(make_interval(secs => s.seconds), statement_timestamp(), '2000-01-01 00:00:00+00'), r.*
  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::float8[]) AS r (kind, due, waiting, leased, failed, oldest)
 CROSS JOIN (VALUES (60), (600), (3600)) AS s (seconds)
 ORDER BY s.seconds, r.kind
ON CONFLICT (seconds, at, kind) DO UPDATE
   SET due = greatest(d.due, excluded.due), waiting = greatest(d.waiting, excluded.waiting), leased = greatest(d.leased, excluded.leased),
       failed = greatest(d.failed, excluded.failed), oldest_due_seconds = greatest(d.oldest_due_seconds, excluded.oldest_due_seconds)
;
INSERT INTO daybook.erasures (actor, org_id, scope, link_kind, scope_salt, scope_hash, ground)
VALUES ($1, $2, CASE $3 WHEN '' THEN 'organization' ELSE 'link' END, nullif($3, ''), $4, $5, $6)
RETURNING id
;
INSERT INTO daybook.gauges AS g (kind, holder, due, waiting, leased, failed, estimated, oldest_due_at, stale_leases, unhandled, held_back, figures)
SELECT r.kind, $2, r.due, r.waiting, r.leased, r.failed, coalesce(r.estimated, '{}'), r.oldest_due_at, r.stale_leases, r.unhandled, r.held_back, r.figures
  FROM jsonb_to_recordset($1) AS r (kind text, due bigint, waiting bigint, leased bigint, failed bigint, estimated text[], oldest_due_at timestamptz,
                                    stale_leases bigint, unhandled bigint, held_back bigint, figures jsonb)
 ORDER BY r.kind
ON CONFLICT (kind) DO UPDATE
   SET sampled_at = excluded.sampled_at, holder = excluded.holder, due = excluded.due, waiting = excluded.waiting, leased = excluded.leased,
       failed = excluded.failed, estimated = excluded.estimated, oldest_due_at = excluded.oldest_due_at, stale_leases = excluded.stale_leases,
       unhandled = excluded.unhandled, held_back = excluded.held_back, figures = excluded.figures
;
INSERT INTO daybook.history AS h (seconds, at, kind, type, outcome, code, org_id, count, waited_seconds, took_seconds, waited, took)
SELECT s.seconds, date_bin(make_interval(secs => s.seconds), statement_timestamp(), '2000-01-01 00:00:00+00'), r.kind, r.type, r.outcome, r.code, r.org_id,
       r.count, r.waited_seconds, r.took_seconds, r.waited::bigint[], r.took::bigint[]
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[],
              $7::float8[], $8::float8[], $9::text[], $10::text[])
       AS r (kind, type, outcome, code, org_id, count, waited_seconds, took_seconds, waited, took)
 CROSS JOIN (VALUES (60), (600), (3600)) AS s (seconds)
 ORDER BY s.seconds, r.kind COLLATE "C", r.type COLLATE "C", r.outcome COLLATE "C", r.code COLLATE "C", r.org_id COLLATE "C"
ON CONFLICT (seconds, at, kind, type, outcome, code, org_id) DO UPDATE
   SET count = h.count + excluded.count, waited_seconds = h.waited_seconds + excluded.waited_seconds, took_seconds = h.took_seconds + excluded.took_seconds,
       waited = ARRAY(SELECT x.a + x.b FROM unnest(h.waited, excluded.waited) WITH ORDINALITY AS x (a, b, n) ORDER BY x.n),
       took = ARRAY(SELECT x.a + x.b FROM unnest(h.took, excluded.took) WITH ORDINALITY AS x (a, b, n) ORDER BY x.n)
;
INSERT INTO daybook.imports (org_id, format, files, actor) VALUES ($1, $2, $3, $4) RETURNING id
;
INSERT INTO daybook.job_deliveries AS d (job_id, channel, state, attempt, generation, error_code, error, ended_at)
VALUES ($1, $2, 'failed', $3, 0, 'DATABASE_ERROR', 'it was not asked: the database did not take in time that it is asked', clock_timestamp())
ON CONFLICT (job_id, channel) DO UPDATE
   SET state = excluded.state, reference = NULL, error_code = excluded.error_code, error = excluded.error, ended_at = excluded.ended_at
 WHERE d.state = 'sending' AND d.reference = $4
RETURNING d.channel
;
INSERT INTO daybook.job_deliveries AS d (job_id, channel, state, attempt, generation, reference)
SELECT $1, $2, 'sending', $3, coalesce((SELECT j.generation FROM daybook.jobs j WHERE j.id = $1), 0), $4
ON CONFLICT (job_id, channel) DO UPDATE
   SET state = 'sending', attempt = excluded.attempt, generation = excluded.generation, reference = excluded.reference, error_code = NULL, error = NULL,
       started_at = clock_timestamp(), ended_at = NULL
 WHERE d.state = 'failed'
    OR (d.state = 'refused' AND d.generation < excluded.generation)
    OR (d.state = 'unknown' AND d.generation < excluded.generation AND d.attempt >= excluded.attempt)
RETURNING d.channel
;
INSERT INTO daybook.job_wait_checks (queue)
SELECT u.name
  FROM daybook.queues u
 WHERE u.fleet = $1 AND u.updated_at > statement_timestamp() - interval '1 hour'
   AND EXISTS (SELECT FROM daybook.jobs j
                WHERE j.queue = u.name AND j.state IN ('pending', 'leased', 'failed') AND j.fleet = ANY (ARRAY(SELECT f.id FROM daybook.fleets f WHERE f.id <> $1)))
RETURNING daybook.wake_job_queue($1)::text
;
INSERT INTO daybook.organizations (id, name) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING
;
INSERT INTO daybook.periods (org_id, starts_on, ends_on)
SELECT $1, $2::date, $3::date
 WHERE NOT EXISTS (SELECT FROM daybook.periods WHERE org_id = $1 AND starts_on = $2::date AND ends_on = $3::date)
;
INSERT INTO daybook.queue_rates AS r (queue, starts, at)
SELECT * FROM unnest($1::text[], $2::float8[], $3::timestamptz[])
ON CONFLICT (queue) DO UPDATE SET starts = excluded.starts, at = excluded.at
;
INSERT INTO daybook.rule_sets (org_id, version, name, source, sha256)
SELECT $1, coalesce(max(version), 0) + 1, $2, $3, $4 FROM daybook.rule_sets WHERE org_id = $1
RETURNING version
;
INSERT INTO daybook.webhook_deliveries AS w (job_id, attempt, url, status, ok, error_code, duration_ms, sent_at, org_id)
VALUES ($1, $2, $3, nullif($4, 0), $5, nullif($6, ''), $7, $8, $9)
ON CONFLICT (job_id, attempt) DO UPDATE
   SET url = excluded.url, status = excluded.status, ok = excluded.ok, error_code = excluded.error_code,
       duration_ms = excluded.duration_ms, sent_at = excluded.sent_at
 WHERE NOT w.ok
RETURNING w.job_id
;
SELECT  'accounting' , coalesce(worker, ''), turn_id, detached, count(*), count(*) FILTER (WHERE working),
       count(*) FILTER (WHERE last_attempted_at < statement_timestamp() - make_interval(secs => $1)), min(last_attempted_at)
  FROM daybook.accounting_work_queue
 WHERE state = 'leased'
 GROUP BY worker, turn_id, detached
 ORDER BY min(last_attempted_at), turn_id
;
SELECT 'USAGE on schema ' || n.nspname, has_schema_privilege(n.oid, 'USAGE') FROM pg_namespace n WHERE n.nspname IN ('daybook', 'queues')
UNION ALL
SELECT r.name || ' on ' || n.nspname || '.' || c.relname, has_table_privilege(c.oid, r.name)
  FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace
 CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS r (name)
 WHERE n.nspname IN ('daybook', 'queues') AND c.relkind IN ('r', 'v', 'S')
UNION ALL
SELECT 'EXECUTE on ' || n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', has_function_privilege(p.oid, 'EXECUTE')
  FROM pg_proc p
  JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname IN ('daybook', 'queues')
;
SELECT 'jobs', coalesce(worker, ''), turn_id, detached, count(*), count(*) FILTER (WHERE working),
       count(*) FILTER (WHERE last_attempted_at < statement_timestamp() - make_interval(secs => $1)), min(last_attempted_at)
  FROM daybook.jobs
 WHERE state = 'leased'
 GROUP BY worker, turn_id, detached
 ORDER BY min(last_attempted_at), turn_id
;
SELECT 'pending', '', count(*), count(*) FILTER (WHERE ready_at <= transaction_timestamp() ),
       count(*) FILTER (WHERE ready_at = '9999-12-31 00:00:00+00' ), 0
  FROM daybook.accounting_work_queue WHERE num_nulls(nullif(state, 'pending')) = 1 AND ($2 = '' OR org_id = $2)
UNION ALL
SELECT 'leased', '', count(*), 0, 0, count(*) FILTER (WHERE last_attempted_at < transaction_timestamp() - make_interval(secs => $1))
  FROM daybook.accounting_work_queue WHERE state = 'leased' AND ($2 = '' OR org_id = $2)
UNION ALL
SELECT 'failed', last_error_code, count(*), 0, 0, 0 FROM daybook.accounting_work_queue WHERE state = 'failed' AND ($2 = '' OR org_id = $2) GROUP BY last_error_code
UNION ALL
SELECT state::text, '', (count(*) / share)::bigint, 0, 0, 0
  FROM (SELECT CASE $2 WHEN '' THEN least(1, 4096 * current_setting('block_size')::float8 / greatest(pg_relation_size('daybook.accounting_work_queue'), 1)) ELSE 1 END AS share) s
 CROSS JOIN LATERAL (SELECT state FROM daybook.accounting_work_queue TABLESAMPLE SYSTEM (100 * share) REPEATABLE (0) WHERE state IN ('completed', 'cancelled') AND ($2 = '' OR org_id = $2)) j
 GROUP BY state, share
UNION ALL
SELECT 'estimated', '', 0, 0, 0, 0 WHERE $2 = '' AND pg_relation_size('daybook.accounting_work_queue') > 4096 * current_setting('block_size')::bigint
;
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
;
SELECT 'session', a.pid::text, coalesce(a.usename::text, ''), coalesce(a.application_name, ''), coalesce(a.state, ''), left(coalesce(a.query, ''), 200), a.xact_start,
       greatest(age(a.backend_xmin), age(a.backend_xid))::bigint
  FROM pg_stat_activity a
 WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND num_nonnulls(a.backend_xmin, a.backend_xid) > 0
   AND a.backend_type <> 'autovacuum worker' AND a.xact_start < clock_timestamp() - make_interval(secs => $1)
UNION ALL
SELECT 'prepared transaction', p.gid, p.owner::text, '', 'prepared', '', p.prepared, age(p.transaction)::bigint
  FROM pg_prepared_xacts p
 WHERE p.database = current_database() AND p.prepared < clock_timestamp() - make_interval(secs => $1)
UNION ALL
SELECT 'replication slot', s.slot_name::text, '', coalesce(s.plugin::text, s.slot_type), CASE WHEN s.active THEN 'active' ELSE 'inactive' END, '', NULL,
       greatest(age(s.xmin), age(s.catalog_xmin))::bigint
  FROM pg_replication_slots s
 WHERE NOT s.active AND num_nonnulls(s.xmin, s.catalog_xmin) > 0 AND greatest(age(s.xmin), age(s.catalog_xmin)) > 10000
 ORDER BY 7 NULLS LAST
 LIMIT 20
;
SELECT 'tasks', coalesce(o.worker, ''), coalesce(o.turn_id, ''), o.detached, count(*), count(*) FILTER (WHERE o.working),
       count(*) FILTER (WHERE o.leased_until < statement_timestamp()), min(o.leased_until - interval '5 minutes')
  FROM queues.open_task o
 WHERE o.leased_until IS NOT NULL
 GROUP BY o.worker, o.turn_id, o.detached
 ORDER BY min(o.leased_until), o.turn_id
;
SELECT 'turn' AS what, s.holder AS id, coalesce(h.state::text, '') AS state, NULL::timestamptz AS until,
       '' AS queue, 0 AS at_work, 0 AS parallel, 0 AS ahead, 0 AS rate, 0 AS rate_seconds
  FROM daybook.job_sequences s
  LEFT JOIN daybook.jobs h ON h.id = s.holder
 WHERE s.org_id = $1 AND s.key = $2 AND s.holder <> $3
UNION ALL
SELECT 'job', w.awaits, coalesce(a.state::text, ''), NULL, '', 0, 0, 0, 0, 0
  FROM (SELECT awaits FROM daybook.job_waits WHERE job_id = $3 AND num_nulls(ended_as) = 1 ORDER BY awaits LIMIT 100) w
  LEFT JOIN daybook.jobs a ON a.id = w.awaits
UNION ALL
SELECT 'limit', j.limit_key, '', NULL, CASE WHEN j.limit_scope = 'queue/' || j.queue THEN j.queue ELSE '' END,
       (SELECT count(*) FROM (SELECT FROM daybook.jobs o
                               WHERE o.limit_scope = j.limit_scope AND o.org_id = j.org_id AND o.limit_key = j.limit_key AND o.finished_at IS NULL AND o.fleet >= 0
                               LIMIT $4) x),
       coalesce(l.parallel, 0),
       (SELECT count(*) FROM (SELECT FROM daybook.jobs o
                               WHERE o.limit_scope = j.limit_scope AND o.org_id = j.org_id AND o.limit_key = j.limit_key AND o.finished_at IS NULL AND o.fleet = -2
                                 AND (o.priority, o.ready_at, o.id) < (j.priority, j.ready_at, j.id)
                               LIMIT $4) x),
       coalesce(l.rate, 0), coalesce(l.rate_seconds, 0)
  FROM daybook.jobs j
  LEFT JOIN daybook.job_limits l ON l.scope = j.limit_scope
 WHERE j.id = $3 AND j.finished_at IS NULL AND j.fleet = -2
UNION ALL
SELECT 'callback', c.name, '', max(c.deadline), '', 0, 0, 0, 0, 0
  FROM daybook.job_callbacks c
 WHERE c.job_id = $3 AND c.called_at IS NULL AND c.deadline > clock_timestamp()
 GROUP BY c.name
 ORDER BY 1, 2
;
SELECT (EXISTS (SELECT 1 FROM daybook.defaults d WHERE NOT (d.source = ANY ($1) AND d.hooks <@ $2))
        OR EXISTS (
       SELECT 1
         FROM daybook.organizations o
        CROSS JOIN daybook.defaults d
        WHERE (o.source IS NOT NULL OR o.hooks IS NOT NULL)
          AND NOT (coalesce(o.source, d.source) = ANY ($1) AND coalesce(o.hooks, d.hooks) <@ $2)))
   AND EXISTS (
       SELECT 1
         FROM daybook.accounting_work_queue q
        CROSS JOIN daybook.defaults d
         LEFT JOIN daybook.organizations o ON o.id = q.org_id
        WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() AND o.paused_at IS NULL
          AND NOT (coalesce(o.source, d.source) = ANY ($1) AND coalesce(o.hooks, d.hooks) <@ $2))
;
SELECT (SELECT count(*) FROM daybook.jobs j WHERE $1 = '' AND j.org_id = $2)
     + (SELECT count(*) FROM daybook.job_links l JOIN daybook.jobs j ON j.id = l.job_id WHERE $1 <> '' AND l.kind = $1 AND l.id = $3 AND j.org_id = $2)
;
SELECT (SELECT greatest(reltuples, 0)::float8 FROM pg_catalog.pg_class WHERE oid = $1::regclass), (SELECT greatest(reltuples, 0)::float8 FROM pg_catalog.pg_class WHERE oid = $2::regclass),
       (SELECT greatest(reltuples, 0)::float8 FROM pg_catalog.pg_class WHERE oid = $3::regclass), pg_catalog.pg_relation_size($4::regclass)::float8 / current_setting('block_size')::float8
;
SELECT * FROM daybook.unreconcile($1, $2, $3)
;
SELECT * FROM queues.turns_with_tasks($1)
;
SELECT ARRAY(SELECT source FROM daybook.defaults UNION SELECT source FROM daybook.organizations WHERE source IS NOT NULL),
       ARRAY(SELECT unnest(hooks) FROM daybook.defaults UNION SELECT unnest(hooks) FROM daybook.organizations)
;
SELECT CASE WHEN n.nspname = 'queues' THEN 'tasks' WHEN c.relname = 'jobs' THEN 'jobs' WHEN c.relname = 'accounting_work_queue' THEN 'accounting' ELSE '' END AS kind,
       min(n.nspname || '.' || c.relname), count(DISTINCT c.oid), coalesce(l.pid, 0), coalesce(p.gid, ''), coalesce(min(a.usename::text), ''), coalesce(min(a.application_name), ''),
       coalesce(min(a.state), ''), coalesce(left(min(a.query), 200), ''), coalesce(min(a.xact_start), min(p.prepared), min(w.since)), coalesce(sum(w.waiting), 0)::bigint
  FROM pg_locks l
  JOIN pg_class c ON c.oid = l.relation AND c.relkind IN ('r', 'p')
  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname IN ('daybook', 'queues')
  LEFT JOIN pg_stat_activity a ON a.pid = l.pid
  LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND l.virtualtransaction = '-1/' || p.transaction
 CROSS JOIN LATERAL (SELECT count(*) AS waiting, min(b.waitstart) AS since
                       FROM pg_locks b
                      WHERE NOT b.granted AND b.locktype = 'relation' AND b.database = l.database AND b.relation = l.relation) w
 WHERE l.locktype = 'relation' AND l.granted AND l.mode = ANY ($2)
   AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
   AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
 GROUP BY 1, l.pid, p.gid
HAVING coalesce(min(a.xact_start), min(w.since)) < clock_timestamp() - make_interval(secs => $1) OR l.pid IS NULL
 ORDER BY 10, 1
 LIMIT 20
;
SELECT CASE WHEN pg_try_advisory_lock($1, $2) THEN 'held'
            WHEN NOT pg_try_advisory_lock_shared($1, $2) THEN 'elsewhere'
            WHEN pg_advisory_unlock_shared($1, $2) THEN 'open' END
;
SELECT CASE WHEN queue IS NULL THEN scope ELSE '' END AS type, coalesce(queue, '') AS queue, by, coalesce(parallel, 0) AS parallel, coalesce(rate, 0) AS rate, coalesce(rate_seconds, 0) AS rate_seconds, declared, updated_at
  FROM daybook.job_limits
 ORDER BY queue NULLS FIRST, scope
;
SELECT CASE k.contype WHEN 'c' THEN 'check constraint' ELSE 'key' END, c.relnamespace::regnamespace || '.' || c.relname, k.conname,
       CASE k.contype WHEN 'c' THEN '' ELSE pg_get_constraintdef(k.oid) END,
       CASE WHEN NOT k.convalidated THEN 'is not validated: rows that were there before may break it'
            WHEN EXISTS (SELECT FROM pg_trigger t WHERE t.tgconstraint = k.oid AND t.tgenabled NOT IN ('O', 'A')) THEN 'is disabled'
            WHEN EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = k.conindid AND k.contype IN ('p', 'u') AND NOT (i.indisvalid AND i.indisready)) THEN 'has an invalid index'
            ELSE '' END
  FROM pg_constraint k
  JOIN pg_class c ON c.oid = k.conrelid
 WHERE k.connamespace::regnamespace::text IN ('daybook', 'queues') AND k.contype IN ('c', 'p', 'u', 'f', 'x') AND c.relname <> 'schema_migrations'
UNION ALL
SELECT 'unique index', c.relnamespace::regnamespace || '.' || c.relname, x.relname, pg_get_indexdef(i.indexrelid), CASE WHEN i.indisvalid AND i.indisready THEN '' ELSE 'is invalid' END
  FROM pg_index i
  JOIN pg_class x ON x.oid = i.indexrelid
  JOIN pg_class c ON c.oid = i.indrelid
 WHERE x.relnamespace::regnamespace::text IN ('daybook', 'queues') AND i.indisunique AND c.relname <> 'schema_migrations'
   AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
UNION ALL
SELECT 'trigger', c.relnamespace::regnamespace || '.' || c.relname, t.tgname, pg_get_triggerdef(t.oid), CASE WHEN t.tgenabled IN ('O', 'A') THEN '' ELSE 'is disabled' END
  FROM pg_trigger t
  JOIN pg_class c ON c.oid = t.tgrelid
 WHERE c.relnamespace::regnamespace::text IN ('daybook', 'queues') AND NOT t.tgisinternal
;
SELECT DISTINCT coalesce(nullif((SELECT d.content ->> 'counterparty' FROM daybook.documents d WHERE d.org_id = i.org_id AND d.id = i.document_id), ''),
                         i.document_id) COLLATE "C" AS party
  FROM daybook.impacts i
 WHERE i.entry_count > 0 AND ($1 = '' OR i.org_id = $1)
   AND ($2::date IS NULL OR i.posting_date >= $2) AND ($3::date IS NULL OR i.posting_date <= $3)
 ORDER BY party
;
SELECT DISTINCT k.key COLLATE "C" AS key
  FROM daybook.entries e
  JOIN daybook.impacts i ON i.id = e.impact_id
 CROSS JOIN LATERAL jsonb_object_keys(e.dimensions) AS k (key)
 WHERE e.dimensions IS NOT NULL AND ($1 = '' OR i.org_id = $1)
   AND ($2::date IS NULL OR i.posting_date >= $2) AND ($3::date IS NULL OR i.posting_date <= $3)
 ORDER BY key
;
SELECT DISTINCT n.need
  FROM daybook.live_job_workers w
 CROSS JOIN LATERAL unnest(w.types) WITH ORDINALITY AS t (type, n)
  JOIN unnest($1::text[]) AS n (need) ON split_part(n.need, '/', 1) = t.type
 WHERE w.fleet = $2 AND w.id <> 'async-operations' AND NOT starts_with(w.id, '/sql/')
   AND coalesce(w.versions[t.n], 0) >= coalesce(nullif(split_part(n.need, '/', 3), '')::integer, 0)
;
SELECT DISTINCT org_id
  FROM (SELECT org_id FROM daybook.accounting_work_queue WHERE state = 'pending'
         UNION ALL
        SELECT org_id FROM daybook.accounting_work_queue WHERE state = 'leased'
         UNION ALL
        SELECT org_id FROM daybook.accounting_work_queue WHERE state = 'failed') open
 WHERE org_id > $1 AND ($2::text IS NULL OR org_id <= $2)
 ORDER BY org_id
 LIMIT $3
;
SELECT DISTINCT org_id
  FROM (SELECT org_id FROM daybook.jobs WHERE state = 'pending'
         UNION ALL
        SELECT org_id FROM daybook.jobs WHERE state = 'leased'
         UNION ALL
        SELECT org_id FROM daybook.jobs WHERE state = 'failed') open
 WHERE org_id > $1 AND ($2::text IS NULL OR org_id <= $2)
 ORDER BY org_id
 LIMIT $3
;
SELECT DISTINCT org_id FROM daybook.closings WHERE $1 = '' OR org_id = $1 ORDER BY org_id
;
SELECT DISTINCT task_id FROM queues.task_lease WHERE task_lease_id > $1 ORDER BY task_id
;
SELECT DISTINCT turn_id FROM daybook.accounting_work_queue WHERE turn_id = ANY ($1) AND num_nulls(nullif(state, 'leased')) = 1 ORDER BY turn_id
;
SELECT DISTINCT turn_id FROM daybook.jobs WHERE turn_id = ANY ($1) AND num_nulls(nullif(state, 'leased')) = 1 ORDER BY turn_id
;
SELECT EXISTS (
       SELECT 1
         FROM daybook.jobs q
        WHERE q.state = 'pending' AND q.fleet = $1 AND q.priority = p.priority AND q.org_id = p.org_id AND daybook.job_slot(q.type, q.queue, q.min_version) = p.slot
          AND (q.ready_at, q.id) >= (p.at, p.id) AND q.ready_at <= statement_timestamp())
   AND NOT EXISTS (SELECT 1 FROM daybook.organizations o WHERE o.id = p.org_id AND o.paused_at IS NOT NULL)
   AND NOT EXISTS (SELECT 1 FROM daybook.queues u WHERE u.name = split_part(p.slot, '/', 2) AND u.paused_at IS NOT NULL)
  FROM unnest($2::smallint[], $3::text[], $4::text[], $5::timestamptz[], $6::text[]) WITH ORDINALITY AS p (priority, org_id, slot, at, id, n)
 ORDER BY p.n
;
SELECT EXISTS (SELECT 1 FROM daybook.organizations WHERE id = $1), EXISTS (SELECT 1 FROM daybook.accounts WHERE org_id = $1 AND code = $2)
;
SELECT EXISTS (SELECT 1 FROM daybook.rule_sets WHERE org_id = $1 AND version = $2)
;
SELECT EXISTS (SELECT FROM daybook.accounting_work_queue q WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp())
    OR EXISTS (SELECT FROM daybook.accounting_work_queue q WHERE q.state = 'leased'),
       EXISTS (SELECT FROM daybook.accounting_work_queue)
;
SELECT EXISTS (SELECT FROM daybook.accounting_work_queue q WHERE q.state = 'leased' AND q.last_attempted_at > statement_timestamp() - interval '10 seconds')
;
SELECT EXISTS (SELECT FROM daybook.api_tokens t WHERE t.revoked_at IS NULL)
;
SELECT EXISTS (SELECT FROM daybook.entries e JOIN daybook.impacts i ON i.id = e.impact_id
                WHERE e.org_id = $1 AND e.account_code = $2 AND i.document_id NOT LIKE 'exchange:%')
;
SELECT EXISTS (SELECT FROM daybook.job_types t
                WHERE t.kind = 'tasks' AND t.type = $1 AND t.last_seen > clock_timestamp() - interval '5 minutes')
;
SELECT EXISTS (SELECT FROM daybook.jobs WHERE state = 'failed' AND last_error_code = 'HANDLER_MISSING' AND type = ANY ($1) AND fleet = $2)
;
SELECT EXISTS (SELECT FROM daybook.jobs q WHERE q.state = 'leased' AND q.last_attempted_at > statement_timestamp() - interval '10 seconds')
;
SELECT EXISTS (SELECT FROM daybook.live_job_workers w
                WHERE w.fleet = coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = $2), 0) AND $1 = ANY (w.types))
;
SELECT EXISTS (SELECT FROM daybook.periods WHERE org_id = $1 AND starts_on = $2)
;
SELECT EXISTS (SELECT FROM queues.open_task o WHERE o.leased_until > statement_timestamp())
;
SELECT EXISTS (SELECT FROM queues.open_task o WHERE o.leased_until IS NULL AND o.scheduled_at <= statement_timestamp())
    OR EXISTS (SELECT FROM queues.open_task o WHERE o.leased_until IS NOT NULL),
       EXISTS (SELECT FROM queues.task)
;
SELECT EXISTS (SELECT FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1}'::smallint[]) AS f (id) JOIN daybook.jobs q ON q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp())
    OR EXISTS (SELECT FROM daybook.jobs q WHERE q.state = 'leased'),
       EXISTS (SELECT FROM daybook.jobs)
;
SELECT FROM daybook.periods WHERE org_id = $1 AND starts_on = $2 FOR NO KEY UPDATE
;
SELECT FROM daybook.queues WHERE name = $1 FOR NO KEY UPDATE
;
SELECT NOT EXISTS (
       SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND classid = $1::integer::oid AND objsubid = 2 AND granted AND pid = ANY ($2::integer[])
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
;
SELECT NOT EXISTS (SELECT 1 FROM daybook.api_tokens x WHERE x.org_id = $1) AND NOT EXISTS (SELECT 1 FROM daybook.actions x WHERE x.org_id = $1 AND x.outcome = 'done')
   AND NOT EXISTS (SELECT 1 FROM daybook.archives x WHERE x.org_ids @> ARRAY[$1]) AND NOT EXISTS (SELECT 1 FROM daybook.erasures x WHERE x.org_id = $1)
;
SELECT NOT EXISTS (SELECT 1 FROM daybook.organizations) AND NOT EXISTS (SELECT 1 FROM daybook.documents)
;
SELECT NOT EXISTS (SELECT FROM daybook.jobs WHERE id = $1 AND NOT cancel_requested)
;
SELECT a.code, a.type, n.type, e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)::text
  FROM unnest($1::text[], $2::daybook.account_type[]) AS n (code, type)
  JOIN daybook.accounts a ON a.org_id = $3 AND a.code = n.code AND a.type <> n.type
  JOIN daybook.entries e ON e.org_id = $3 AND e.account_code = a.code
 GROUP BY a.code, a.type, n.type, e.currency
 ORDER BY a.code, e.currency
;
SELECT a.org_id, encode(sha256(convert_to(array_agg((a.code, a.currencies)::text ORDER BY a.code)::text, 'UTF8')), 'hex') FROM daybook.accounts a WHERE a.org_id = ANY ($1) GROUP BY a.org_id
;
SELECT active_rule_set FROM daybook.organizations WHERE id = $1
;
SELECT attempt, coalesce(status, 0) FROM daybook.webhook_deliveries WHERE job_id = $1 AND ok ORDER BY attempt LIMIT 1
;
SELECT attempt, outcome::text, coalesce(error_code, ''), coalesce(error, ''), started_at, ended_at, times
  FROM daybook.attempts WHERE job_id = $1 ORDER BY id DESC LIMIT 100
;
SELECT awaits, ended_as FROM daybook.job_waits WHERE job_id = $1 AND ended_as IS NOT NULL ORDER BY awaits
;
SELECT b.org_id, coalesce(daybook.count_organization_starts(b.org_id, b.began), 0)::float8 FROM unnest($1::text[], $2::integer[]) AS b (org_id, began)
;
SELECT c.kind, c.completed, c.looked = $2, c.last
  FROM (SELECT 'accounting' AS kind, count(*) AS looked, count(*) FILTER (WHERE $1 = '' OR q.org_id = $1) AS completed, max(q.finished_at) AS last
          FROM (SELECT d.org_id, d.finished_at FROM daybook.accounting_work_queue d WHERE d.state = 'completed' AND d.finished_at > statement_timestamp() - interval '1 minute' LIMIT $2) q
         UNION ALL
        SELECT 'jobs', count(*), count(*) FILTER (WHERE $1 = '' OR q.org_id = $1), max(q.finished_at)
          FROM (SELECT j.org_id, j.finished_at FROM daybook.jobs j
                 WHERE j.state IN ('completed', 'cancelled') AND j.finished_at > statement_timestamp() - interval '1 minute' AND j.completed_turn_id IS NOT NULL
                 ORDER BY j.finished_at DESC LIMIT $2) q
         UNION ALL
        SELECT 'tasks', count(*), count(*), max(q.completed_at)
          FROM (SELECT t.completed_at FROM queues.task_completed t WHERE $1 = '' AND t.completed_at > statement_timestamp() - interval '1 minute' LIMIT $2) q) c
;
SELECT c.org_id, c.hash, a.code, a.currencies
  FROM (SELECT a.org_id, encode(sha256(convert_to(array_agg((a.code, a.currencies)::text ORDER BY a.code)::text, 'UTF8')), 'hex') AS hash FROM daybook.accounts a WHERE a.org_id = ANY ($1) GROUP BY a.org_id) c
  JOIN daybook.accounts a ON a.org_id = c.org_id
 ORDER BY c.org_id, a.code
;
SELECT c.task_id, c.completed_at, c.task_id
  FROM queues.task_completed c
 WHERE (c.completed_at, c.task_id) < (coalesce($3::timestamptz, 'infinity'), $1)
 ORDER BY c.completed_at DESC, c.task_id DESC
OFFSET $2 LIMIT 1
;
SELECT changed, 0 FROM daybook.set_default_hooks($1)
;
SELECT changed, 0 FROM daybook.set_hooks($1, $2)
;
SELECT changed, paused_at, max_in_flight FROM queues.limit_tasks($1, $2, $3)
;
SELECT changed, returned FROM daybook.set_default_source($1)
;
SELECT changed, returned FROM daybook.set_source($1, nullif($2, ''))
;
SELECT clock_timestamp()
;
SELECT coalesce((SELECT active_rule_set FROM daybook.organizations WHERE id = $1), 0)
;
SELECT coalesce((SELECT closed_period_policy::text FROM daybook.organizations WHERE id = $1), 'fail')
;
SELECT coalesce((SELECT id FROM daybook.accounting_returns WHERE id > $1 ORDER BY id LIMIT 1), 0), 86400::float8 FROM (SELECT $2::timestamptz) AS since
;
SELECT coalesce((SELECT id FROM daybook.job_wait_checks WHERE id > $1 ORDER BY id LIMIT 1), 0),
       extract(epoch FROM least((SELECT j.ready_at
                                   FROM daybook.jobs j
                                  WHERE j.fleet = -1 AND num_nulls(nullif(j.state, 'pending')) = 1
                                    AND j.ready_at >= coalesce($2, statement_timestamp() - interval '1 minute')
                                  ORDER BY j.ready_at
                                  LIMIT 1),
                                (SELECT r.look_at
                                   FROM daybook.job_limit_rates r
                                  WHERE r.look_at >= coalesce($2, statement_timestamp() - interval '1 minute')
                                  ORDER BY r.look_at
                                  LIMIT 1),
                                statement_timestamp() + interval '1 day') - statement_timestamp())::float8
;
SELECT coalesce((SELECT name FROM daybook.organizations WHERE id = $1), '')
;
SELECT coalesce((SELECT o.source FROM daybook.organizations o WHERE o.id = $1), d.source) FROM daybook.defaults d
;
SELECT coalesce((SELECT secrets FROM daybook.job_types WHERE kind = 'jobs' AND type = $1), '{}')
;
SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM daybook.bulk_operations
 WHERE finished_at IS NULL AND updated_at NOT BETWEEN clock_timestamp() - make_interval(secs => $1) AND clock_timestamp() + make_interval(secs => $1)
;
SELECT coalesce(array_agg(o ORDER BY n), '{}')
  FROM unnest($1::text[]) WITH ORDINALITY AS u (o, n)
 WHERE NOT EXISTS (SELECT 1 FROM daybook.organizations x WHERE x.id = u.o)
   AND NOT EXISTS (SELECT 1 FROM daybook.documents x WHERE x.org_id = u.o)
;
SELECT coalesce(array_agg(pid), '{}') FROM pg_locks
 WHERE locktype = 'advisory' AND classid = $1::integer::oid AND objid = hashtext($2)::oid AND objsubid = 2 AND granted
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
;
SELECT coalesce(import_id, 0) FROM daybook.documents WHERE org_id = $1 AND id = $2
;
SELECT coalesce(max(number), 0) FROM daybook.closings WHERE org_id = $1
;
SELECT coalesce(max(task_lease_id), 0) FROM queues.task_lease
;
SELECT coalesce(min(currency), ''), coalesce((SELECT o.exchange_accounts FROM daybook.organizations o WHERE o.id = $1), '{}')
  FROM daybook.organizations WHERE id = $1
;
SELECT coalesce(o.id, k.id) AS org_id, o.id IS NOT NULL AS known, coalesce(o.name, '') AS name, o.active_rule_set, o.paused_at, o.max_in_flight, o.rate, o.rate_seconds,
       coalesce(o.source, (SELECT d.source FROM daybook.defaults d WHERE d.one)) AS source, coalesce(o.hooks, (SELECT d.hooks FROM daybook.defaults d WHERE d.one)) AS hooks
  FROM (SELECT * FROM daybook.organizations o WHERE o.id > $2 AND ($3::text IS NULL OR o.id <= $3)) o
  FULL JOIN (SELECT DISTINCT id FROM unnest($1::text[]) AS u (id)) k ON k.id = o.id
 ORDER BY 1
;
SELECT coalesce(o.source, d.source), coalesce(o.hooks, d.hooks), count(DISTINCT q.org_id), count(*)
  FROM daybook.accounting_work_queue q
 CROSS JOIN daybook.defaults d
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
 WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() AND o.paused_at IS NULL AND ($1 = '' OR q.org_id = $1)
   AND NOT (coalesce(o.source, d.source) = ANY ($2) AND coalesce(o.hooks, d.hooks) <@ $3)
 GROUP BY 1, 2
 ORDER BY 1, 2
;
SELECT coalesce(q.deleted_version = q.version_hint, false)
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
  LEFT JOIN daybook.accounting_work_queue q ON q.org_id = k.org_id AND q.document_id = k.id
 ORDER BY k.n
;
SELECT coalesce(sum(daybook.return_failed_jobs(f.org_id, ARRAY[$2])), 0)
  FROM (SELECT DISTINCT q.org_id
          FROM daybook.accounting_work_queue q
         CROSS JOIN daybook.defaults d
          LEFT JOIN daybook.organizations o ON o.id = q.org_id
         WHERE q.state = 'failed' AND q.last_error_code = $2 AND coalesce(o.source, d.source) = ANY ($1)) f
;
SELECT coalesce(sum(times), 0) FROM daybook.attempt_log
 WHERE job_id = $1 AND attempt = $2 AND outcome = 'rescheduled' AND error_code = 'DATABASE_ERROR'
;
SELECT coalesce(task_id::text, ''), coalesce(task_type, ''), payload, coalesce(enqueued_at, 'epoch'), coalesce(leased_at, 'epoch'), coalesce(attempt, 0), coalesce(reclaims, 0),
       due, "full", coalesce(ready_at, 'epoch'), ended, coalesce(traceparent, '')
  FROM queues.lease_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9)
;
SELECT code FROM daybook.accounts WHERE org_id = $1
;
SELECT code, name FROM daybook.accounts WHERE org_id = $1 AND code = ANY ($2)
;
SELECT code, name, type, created_at, currencies, role, section FROM daybook.accounts WHERE org_id = $1 ORDER BY code
;
SELECT code, required, count, coalesce(account, ''), coalesce(currency, ''), amount::text, examples, coalesce(what_to_do, '')
  FROM daybook.closing_list($1, $2, coalesce($3::text[], '{}'), coalesce($4::date[], '{}'))
;
SELECT concat_ws('|', (SELECT count(*) FROM pg_class WHERE pg_my_temp_schema() <> 0 AND relnamespace = pg_my_temp_schema()),
       (SELECT count(*) FROM pg_cursors), (
SELECT concat_ws('|', current_user, session_user, current_setting('search_path'), current_setting('row_security'), current_setting('session_replication_role'),
       current_setting('default_tablespace'), current_setting('temp_tablespaces'), current_setting('check_function_bodies'), current_setting('default_table_access_method'),
       current_setting('transaction_isolation'), current_setting('transaction_read_only'), current_setting('synchronous_commit'),
       current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'), current_setting('deadlock_timeout'),
       current_setting('transaction_timeout', true), -- PostgreSQL 17
       current_setting('TimeZone'), current_setting('DateStyle'), current_setting('IntervalStyle'), current_setting('lc_monetary'), current_setting('lc_numeric'),
       current_setting('lc_time'), current_setting('lc_messages'), current_setting('client_encoding'), current_setting('client_min_messages'),
       current_setting('bytea_output'), current_setting('extra_float_digits'), current_setting('xmloption'), current_setting('default_text_search_config'),
       current_setting('standard_conforming_strings'), current_setting('transform_null_equals'), current_setting('work_mem'), current_setting('temp_file_limit'),
       current_setting('enable_seqscan'), current_setting('enable_indexscan'), current_setting('enable_bitmapscan'), current_setting('enable_hashjoin'),
       current_setting('enable_mergejoin'), current_setting('enable_nestloop'), current_setting('enable_sort'), current_setting('jit'), current_setting('plan_cache_mode'))))
;
SELECT concat_ws('|', current_user, session_user, current_setting('search_path'), current_setting('row_security'), current_setting('session_replication_role'),
       current_setting('default_tablespace'), current_setting('temp_tablespaces'), current_setting('check_function_bodies'), current_setting('default_table_access_method'),
       current_setting('transaction_isolation'), current_setting('transaction_read_only'), current_setting('synchronous_commit'),
       current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'), current_setting('deadlock_timeout'),
       current_setting('transaction_timeout', true), -- PostgreSQL 17
       current_setting('TimeZone'), current_setting('DateStyle'), current_setting('IntervalStyle'), current_setting('lc_monetary'), current_setting('lc_numeric'),
       current_setting('lc_time'), current_setting('lc_messages'), current_setting('client_encoding'), current_setting('client_min_messages'),
       current_setting('bytea_output'), current_setting('extra_float_digits'), current_setting('xmloption'), current_setting('default_text_search_config'),
       current_setting('standard_conforming_strings'), current_setting('transform_null_equals'), current_setting('work_mem'), current_setting('temp_file_limit'),
       current_setting('enable_seqscan'), current_setting('enable_indexscan'), current_setting('enable_bitmapscan'), current_setting('enable_hashjoin'),
       current_setting('enable_mergejoin'), current_setting('enable_nestloop'), current_setting('enable_sort'), current_setting('jit'), current_setting('plan_cache_mode'))
;
SELECT count(*)
  FROM (SELECT 1 FROM daybook.accounting_work_queue
         WHERE org_id = $1 AND state = 'failed' AND last_error_code >= $2 AND last_error_code <= $2
         ORDER BY last_error_code
         LIMIT $3) counted
;
SELECT count(*) FILTER (WHERE leased_until IS NULL), count(*) FILTER (WHERE leased_until IS NOT NULL),
       (SELECT count(DISTINCT e.task_id) FROM queues.error e)
  FROM queues.open_task
;
SELECT count(*) FILTER (WHERE o.scheduled_at <= clock_timestamp()), min(o.scheduled_at) - clock_timestamp()
  FROM queues.open_task o
 WHERE o.leased_until IS NULL AND o.task_type = ANY ($1)
   AND NOT EXISTS (SELECT FROM queues.task_limit l WHERE l.task_type IN ('*', o.task_type) AND l.paused_at IS NOT NULL)
;
SELECT count(*) FILTER (WHERE o.scheduled_at <= statement_timestamp()), count(*) FROM queues.open_task o TABLESAMPLE SYSTEM ($1) WHERE o.leased_until IS NULL
;
SELECT count(*) FILTER (WHERE q.ready_at <= clock_timestamp()), min(q.ready_at) - clock_timestamp()
  FROM daybook.accounting_work_queue q
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
   
 WHERE q.state = 'pending' AND q.ready_at < '9999-12-31 00:00:00+00' AND o.paused_at IS NULL 
    AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY ($1)
                  AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ $2
;
SELECT count(*) FILTER (WHERE q.ready_at <= clock_timestamp()), min(q.ready_at) - clock_timestamp()
  FROM daybook.jobs q
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
  LEFT JOIN daybook.queues u ON u.name = q.queue
 WHERE q.state = 'pending' AND q.ready_at < '9999-12-31 00:00:00+00' AND o.paused_at IS NULL AND q.fleet = $1 AND u.paused_at IS NULL
;
SELECT count(*) FILTER (WHERE q.ready_at <= statement_timestamp() AND q.fleet <> -2), count(*) FROM daybook.jobs q TABLESAMPLE SYSTEM ($1) WHERE q.state = 'pending'
;
SELECT count(*) FILTER (WHERE q.ready_at <= statement_timestamp()), count(*)
  FROM daybook.accounting_work_queue q TABLESAMPLE SYSTEM ($1) WHERE q.state = 'pending'
;
SELECT count(*) FROM (SELECT FROM daybook.organizations o WHERE o.paused_at IS NOT NULL LIMIT 1000) p
;
SELECT count(*) OVER (), NULL::text, NULL::text, NULL::bigint, format('%s of task %s, which does not exist', f.what, f.task_id)
  FROM (SELECT 'a lease' AS what, l.task_id FROM queues.task_lease l
        UNION ALL
        SELECT 'an error', e.task_id FROM queues.error e
        UNION ALL
        SELECT 'the completion', c.task_id FROM queues.task_completed c) f
 WHERE $1 = '' AND NOT EXISTS (SELECT FROM queues.task t WHERE t.task_id = f.task_id)
 ORDER BY f.task_id, f.what
 LIMIT $2
;
SELECT count(*) OVER (), NULL::text, NULL::text, NULL::bigint, format('task %s %s', w.task_id, w.what)
  FROM (SELECT t.task_id, 'is not completed, and no dequeue finds it: call queues.rebuild_open_tasks()' AS what
          FROM queues.task t
         WHERE NOT EXISTS (SELECT FROM queues.open_task o WHERE o.task_id = t.task_id) AND NOT EXISTS (SELECT FROM queues.task_completed c WHERE c.task_id = t.task_id)
        UNION ALL
        SELECT o.task_id, CASE WHEN c.task_id IS NOT NULL THEN 'is completed, and open all the same: call queues.rebuild_open_tasks()'
                               WHEN t.task_id IS NULL THEN 'is open, and does not exist: call queues.rebuild_open_tasks()'
                               WHEN o.task_type <> t.task_type THEN format('is of the type %s, and open as %s: call queues.rebuild_open_tasks()', t.task_type, o.task_type)
                               WHEN o.scheduled_at < t.scheduled_at AND s.never THEN 'is open for an earlier time than it was scheduled for: call queues.rebuild_open_tasks()'
                               ELSE 'is leased, and its lease is not on record' END
          FROM queues.open_task o
          LEFT JOIN queues.task t ON t.task_id = o.task_id
          LEFT JOIN queues.task_completed c ON c.task_id = o.task_id
         CROSS JOIN LATERAL (SELECT NOT EXISTS (SELECT FROM queues.task_lease l WHERE l.task_id = o.task_id) AS never) s
         WHERE c.task_id IS NOT NULL OR t.task_id IS NULL OR o.task_type <> t.task_type OR o.scheduled_at < t.scheduled_at AND s.never
            OR o.task_lease_id IS NOT NULL AND NOT EXISTS (SELECT FROM queues.task_lease l WHERE l.task_lease_id = o.task_lease_id AND l.task_id = o.task_id)
        UNION ALL
        SELECT o.task_id, format('is ready, and the cursor %s of %s hides it: call queues.rebuild_open_tasks()', k.cursor_no, k.scope)
          FROM queues.task_cursor k
          JOIN queues.open_task o ON o.leased_until IS NULL AND (o.scheduled_at, o.task_id) <= (k.last_at, k.last_id)
         WHERE (k.scope IN ('*', o.task_type) OR k.scope LIKE '!%' AND k.scope NOT LIKE '!#%' AND o.task_type <> ALL (string_to_array(substr(k.scope, 2), ',')))
           AND k.server = (SELECT s.system_identifier FROM pg_control_system() s)
           AND o.arrived < k.seen_to AND o.arrived <> ALL (k.unseen) AND o.task_id <> ALL (k.passed)
        UNION ALL
        SELECT o.task_id, format('has a lease, and the cursor %s hides its end: call queues.rebuild_open_tasks()', k.cursor_no)
          FROM queues.task_cursor k
          JOIN queues.open_task o ON o.leased_until < k.last_at
         WHERE k.scope = '@' AND k.server = (SELECT s.system_identifier FROM pg_control_system() s)
           AND o.arrived < k.seen_to AND o.arrived <> ALL (k.unseen) AND o.task_id <> ALL (k.passed)) w
 WHERE $1 = ''
 ORDER BY w.task_id, w.what
 LIMIT $2
;
SELECT count(*) OVER (), NULL::text, NULL::text, NULL::bigint, format('task %s is completed, and was never leased', c.task_id)
  FROM queues.task_completed c
 WHERE $1 = '' AND NOT EXISTS (SELECT FROM queues.task_lease l WHERE l.task_id = c.task_id)
 ORDER BY c.task_id
 LIMIT $2
;
SELECT count(*) OVER (), coalesce(i.org_id, e.org_id), i.document_id, coalesce(i.id, e.impact_id),
       CASE WHEN i.id IS NULL THEN format('%s entries of an impact that does not exist', e.entries)
            WHEN e.org_id <> i.org_id OR e.last_org_id <> i.org_id THEN 'its entries are of another organization'
            ELSE format('%s entries announced, %s found, numbered up to %s', i.entry_count, coalesce(e.entries, 0), coalesce(e.last_line, 0)) END
  FROM (SELECT impact_id, count(*) AS entries, max(line_no) AS last_line, min(org_id) AS org_id, max(org_id) AS last_org_id
          FROM daybook.entries
         WHERE $1 = '' OR org_id = $1
         GROUP BY impact_id) e
  FULL JOIN (SELECT id, org_id, document_id, entry_count FROM daybook.impacts WHERE $1 = '' OR org_id = $1) i ON i.id = e.impact_id
 WHERE i.id IS NULL OR coalesce(e.entries, 0) <> i.entry_count OR e.last_line <> e.entries OR e.org_id <> i.org_id OR e.last_org_id <> i.org_id
 ORDER BY coalesce(i.id, e.impact_id)
 LIMIT $2
;
SELECT count(*) OVER (), coalesce(i.org_id, e.org_id), i.document_id, e.impact_id,
       format('debits exceed credits by %s minor units of %s', e.difference, e.currency)
  FROM (SELECT impact_id, currency, min(org_id) AS org_id, sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) AS difference
          FROM daybook.entries
         WHERE $1 = '' OR org_id = $1
         GROUP BY impact_id, currency
        HAVING sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) <> 0) e
  LEFT JOIN daybook.impacts i ON i.id = e.impact_id
 ORDER BY e.impact_id, e.currency
 LIMIT $2
;
SELECT count(*) OVER (), d.org_id, d.id, i.id,
       format('version %s is %s and version %s is posted; %s', d.accounting_ready_version,
              CASE WHEN d.deleted_at IS NULL THEN 'not ready' ELSE 'deleted' END, i.document_version,
              CASE WHEN j.id IS NULL THEN 'there is no job' ELSE format('its job for version %s is %s', j.version_hint, j.state) END)
  FROM daybook.documents d
  JOIN daybook.impacts i ON i.org_id = d.org_id AND i.document_id = d.id AND i.kind = 'post'
  LEFT JOIN daybook.accounting_work_queue j ON j.org_id = d.org_id AND j.document_id = d.id
  LEFT JOIN daybook.organizations o ON o.id = d.org_id
 WHERE (d.accounting_ready_at IS NULL OR d.deleted_at IS NOT NULL) AND ($1 = '' OR d.org_id = $1)
   AND coalesce(o.source, (SELECT s.source FROM daybook.defaults s)) = 'daybook'
   AND (j.state IN ('pending', 'leased')) IS NOT TRUE
   AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
   -- An impact of no rule set takes back what another system has posted.
   AND NOT (i.rule_set_version IS NULL AND EXISTS (SELECT 1 FROM daybook.posted_elsewhere p WHERE p.org_id = d.org_id AND p.document_id = d.id))
 ORDER BY d.org_id, d.id
 LIMIT $2
;
SELECT count(*) OVER (), d.org_id, d.type, d.direction, coalesce(d.content->>'counterparty', ''), d.content->>'number',
       (array_agg(d.id ORDER BY d.id))[1:10], count(*)
  FROM daybook.documents d
 WHERE d.org_id = ANY ($1) AND d.content->>'number' <> '' AND d.deleted_at IS NULL
 GROUP BY d.org_id, d.type, d.direction, coalesce(d.content->>'counterparty', ''), d.content->>'number'
HAVING count(*) > 1 AND max(d.updated_at) >= $2
 ORDER BY d.org_id, min(d.id)
 LIMIT $3
;
SELECT count(*) OVER (), d.org_id, min(d.id), NULL::bigint,
       format('%s %s of %s has the number %s, and so %s: %s', d.direction, d.type, coalesce(nullif(d.content->>'counterparty', ''), 'a counterparty without a name'),
              d.content->>'number', CASE WHEN count(*) = 2 THEN 'has 1 other' ELSE format('have %s others', count(*) - 1) END,
              array_to_string((array_agg(d.id ORDER BY d.id))[2:6], ', '))
  FROM daybook.documents d
 WHERE d.content->>'number' <> '' AND d.deleted_at IS NULL AND ($1 = '' OR d.org_id = $1)
 GROUP BY d.org_id, d.type, d.direction, d.content->>'number', nullif(d.content->>'counterparty', '')
HAVING count(*) > 1
 ORDER BY d.org_id, min(d.id)
 LIMIT $2
;
SELECT count(*) OVER (), d.organization, i.document_id, d.impact_id, d.detail
  FROM daybook.closing_differences($1) d
  LEFT JOIN daybook.impacts i ON i.id = d.impact_id
 ORDER BY d.organization, d.number, d.impact_id
 LIMIT $2
;
SELECT count(*) OVER (), e.org_id, NULL::text, e.impact_id,
       format('%s entries are to account %s, which the chart does not have; the first is in this impact', e.entries, e.account_code)
  FROM (SELECT org_id, account_code, count(*) AS entries, min(impact_id) AS impact_id
          FROM daybook.entries
         WHERE $1 = '' OR org_id = $1
         GROUP BY org_id, account_code) e
 WHERE NOT EXISTS (SELECT 1 FROM daybook.accounts a WHERE a.org_id = e.org_id AND a.code = e.account_code)
 ORDER BY e.org_id, e.account_code
 LIMIT $2
;
SELECT count(*) OVER (), i.org_id, NULL::text, i.id,
       format('%s impacts are of rule set version %s, which is not kept; the first is this one', i.impacts, i.rule_set_version)
  FROM (SELECT org_id, rule_set_version, count(*) AS impacts, min(id) AS id
          FROM daybook.impacts
         WHERE rule_set_version IS NOT NULL AND ($1 = '' OR org_id = $1)
         GROUP BY org_id, rule_set_version) i
 WHERE NOT EXISTS (SELECT 1 FROM daybook.rule_sets s WHERE s.org_id = i.org_id AND s.version = i.rule_set_version)
 ORDER BY i.org_id, i.rule_set_version
 LIMIT $2
;
SELECT count(*) OVER (), i.org_id, i.document_id, c.impact_id,
       CASE WHEN i.id IS NULL THEN format('version %s is confirmed by an impact that does not exist', c.document_version)
            WHEN i.kind <> 'post' THEN format('version %s is confirmed by a reversal', c.document_version)
            ELSE format('version %s is confirmed by an impact of version %s', c.document_version, i.document_version) END
  FROM daybook.confirmations c
  LEFT JOIN daybook.impacts i ON i.id = c.impact_id
 WHERE (i.id IS NULL OR i.kind <> 'post' OR c.document_version < i.document_version) AND ($1 = '' OR i.org_id IS NULL OR i.org_id = $1)
 ORDER BY c.impact_id, c.document_version
 LIMIT $2
;
SELECT count(*) OVER (), i.org_id, i.document_id, i.id,
       format('version %s is posted by rule %s without an entry, and the document states an amount: mend the rules or the document, then ' ||
              '`daybook accounting repost` posts it, or says why it cannot be posted', i.document_version, i.rule_id)
  FROM daybook.impacts i
  JOIN daybook.documents d ON d.org_id = i.org_id AND d.id = i.document_id
 WHERE i.kind = 'post' AND i.entry_count = 0 AND i.no_entries IN ('', 'zero') AND ($1 = '' OR i.org_id = $1)
   AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
   AND d.accounting_ready_at IS NOT NULL AND d.deleted_at IS NULL
   AND (d.accounting_ready_version = i.document_version
        OR EXISTS (SELECT 1 FROM daybook.confirmations c WHERE c.impact_id = i.id AND c.document_version = d.accounting_ready_version))
   AND NOT EXISTS (SELECT 1 FROM daybook.posted_elsewhere p WHERE p.org_id = i.org_id AND p.document_id = i.document_id)
   AND NOT EXISTS (SELECT 1 FROM daybook.accounting_work_queue q
                    WHERE q.org_id = i.org_id AND q.document_id = i.document_id AND q.state IN ('pending', 'leased', 'failed'))
   AND daybook.states_amount(d.content)
 ORDER BY i.org_id, i.document_id
 LIMIT $2
;
SELECT count(*) OVER (), i.org_id, i.document_id, i.id,
       format('version %s is posted, and daybook.documents has no such document; %s', i.document_version,
              CASE WHEN j.id IS NULL THEN 'there is no job' ELSE format('its job for version %s is %s', j.version_hint, j.state) END)
  FROM daybook.impacts i
  LEFT JOIN daybook.organizations o ON o.id = i.org_id
  LEFT JOIN daybook.accounting_work_queue j ON j.org_id = i.org_id AND j.document_id = i.document_id
 WHERE i.kind = 'post' AND ($1 = '' OR i.org_id = $1)
   AND coalesce(o.source, (SELECT s.source FROM daybook.defaults s)) = 'daybook'
   AND NOT EXISTS (SELECT 1 FROM daybook.documents d WHERE d.org_id = i.org_id AND d.id = i.document_id)
   AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
   AND (j.state IN ('pending', 'leased')) IS NOT TRUE
   AND NOT (i.rule_set_version IS NULL AND EXISTS (SELECT 1 FROM daybook.posted_elsewhere p WHERE p.org_id = i.org_id AND p.document_id = i.document_id))
 ORDER BY i.org_id, i.document_id
 LIMIT $2
;
SELECT count(*) OVER (), j.org_id, NULL::text, NULL::bigint, format('job %s waits for nothing: retry it (daybook jobs retry %s), and a worker releases it', j.id, j.id)
  FROM daybook.jobs j
 WHERE j.state = 'pending' AND j.ready_at = '9999-12-31 00:00:00+00' AND ($1 = '' OR j.org_id = $1)
   AND NOT EXISTS (SELECT FROM daybook.job_waits w
                     LEFT JOIN daybook.jobs a ON a.id = w.awaits
                    WHERE w.job_id = j.id AND w.ended_as IS NULL
                      AND (a.state IN ('pending', 'leased') OR a.state = 'failed' AND NOT w.any_end OR EXISTS (SELECT FROM daybook.job_wait_checks c WHERE c.awaits = w.awaits)))
   AND NOT (j.sequence IS NOT NULL
            AND (EXISTS (SELECT FROM daybook.job_wait_checks c WHERE c.org_id = j.org_id AND c.sequence = j.sequence)
                 OR EXISTS (SELECT FROM daybook.job_sequences s
                              JOIN daybook.jobs h ON h.id = s.holder
                             WHERE s.org_id = j.org_id AND s.key = j.sequence AND s.holder <> j.id AND h.state IN ('pending', 'leased', 'failed'))))
   AND NOT EXISTS (SELECT FROM daybook.job_wait_checks c WHERE c.job_id = j.id)
   AND (j.sequence IS NOT NULL OR j.first_ready_at <> j.ready_at)
 ORDER BY j.org_id, j.id
 LIMIT $2
;
SELECT count(*) OVER (), org_id, NULL::text, NULL::bigint,
       format('debits exceed credits by %s minor units of %s',
              sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END), currency)
  FROM daybook.entries
 WHERE $1 = '' OR org_id = $1
 GROUP BY org_id, currency
HAVING sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END) <> 0
 ORDER BY org_id, currency
 LIMIT $2
;
SELECT count(*) OVER (), org_id, document_id, max(id),
       'the chain is ' || string_agg(format('%s %s', seq, kind), ', ' ORDER BY seq)
  FROM daybook.impacts
 WHERE $1 = '' OR org_id = $1
 GROUP BY org_id, document_id
HAVING min(seq) <> 1 OR max(seq) <> count(*) OR bool_or((kind = 'post') <> (seq % 2 = 1))
 ORDER BY org_id, document_id
 LIMIT $2
;
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
;
SELECT count(*) OVER (), q.org_id, NULL::text, NULL::bigint,
       format('job %s: completed attempts %s, requests %s', q.id, a.times, q.generation + 1)
  FROM (SELECT job_id, count(*) AS times
          FROM daybook.attempts
         WHERE outcome = 'completed' AND kind = 'jobs' AND ($1 = '' OR org_id = $1)
         GROUP BY job_id
        HAVING count(*) > 1) a
  JOIN daybook.jobs q ON q.id = a.job_id
 WHERE a.times > q.generation + 1
 ORDER BY q.org_id, q.id
 LIMIT $2
;
SELECT count(*) OVER (), w.org_id, w.document_id, NULL::bigint, format('job %s is %s%s', w.id, w.state, w.what)
  FROM (SELECT q.id, q.org_id,  q.document_id  AS document_id, q.state,
               CASE WHEN q.state = 'leased' AND (q.turn_id IS NULL OR q.fence IS NULL OR q.last_attempted_at IS NULL) THEN ', and no turn holds it'
                    WHEN q.state <> 'leased' AND (q.turn_id IS NOT NULL OR q.fence IS NOT NULL) THEN ', and a turn holds it'
                    WHEN q.state <> 'leased' AND q.cancel_requested THEN ', and waits to be cancelled'
                    WHEN q.state IN ('completed', 'failed', 'cancelled') AND q.finished_at IS NULL THEN ', and has no time of its end'
                    WHEN q.state IN ('pending', 'leased') AND q.finished_at IS NOT NULL THEN ', and has a time of its end'
                    WHEN q.state = 'failed' AND (q.last_error_code IS NULL OR q.last_error IS NULL) THEN ', and nothing says why' END AS what
          FROM daybook.accounting_work_queue q
         WHERE $1 = '' OR q.org_id = $1) w
 WHERE w.what IS NOT NULL
 ORDER BY w.org_id, w.id
 LIMIT $2
;
SELECT count(*) OVER (), w.org_id, w.document_id, NULL::bigint, format('job %s is %s%s', w.id, w.state, w.what)
  FROM (SELECT q.id, q.org_id, NULL::text AS document_id, q.state,
               CASE WHEN q.state = 'leased' AND (q.turn_id IS NULL OR q.fence IS NULL OR q.last_attempted_at IS NULL) THEN ', and no turn holds it'
                    WHEN q.state <> 'leased' AND (q.turn_id IS NOT NULL OR q.fence IS NOT NULL) THEN ', and a turn holds it'
                    WHEN q.state <> 'leased' AND q.cancel_requested THEN ', and waits to be cancelled'
                    WHEN q.state IN ('completed', 'failed', 'cancelled') AND q.finished_at IS NULL THEN ', and has no time of its end'
                    WHEN q.state IN ('pending', 'leased') AND q.finished_at IS NOT NULL THEN ', and has a time of its end'
                    WHEN q.state = 'failed' AND (q.last_error_code IS NULL OR q.last_error IS NULL) THEN ', and nothing says why' END AS what
          FROM daybook.jobs q
         WHERE $1 = '' OR q.org_id = $1) w
 WHERE w.what IS NOT NULL
 ORDER BY w.org_id, w.id
 LIMIT $2
;
SELECT count(*), coalesce(max(a.at), 'epoch')
  FROM ((SELECT o.leased_until - interval '5 minutes' AS at
           FROM queues.open_task o
          WHERE o.leased_until > statement_timestamp() + interval '310 seconds'
          ORDER BY o.leased_until
          LIMIT $2)
        UNION ALL
        (SELECT t.enqueued_at
           FROM (SELECT o.task_id
                   FROM queues.open_task o
                  WHERE o.leased_until IS NULL AND o.scheduled_at > statement_timestamp()
                  ORDER BY o.scheduled_at, o.task_id
                  LIMIT $2) w
           JOIN queues.task t ON t.task_id = w.task_id)) a
 WHERE $1 = '' AND a.at > statement_timestamp() + interval '10 seconds'
;
SELECT count(*), coalesce(max(a.at), 'epoch')
  FROM ((SELECT q.last_attempted_at - CASE WHEN daybook.is_async_operation_claim(q.turn_id) THEN daybook.async_operation_lease() ELSE '0' END AS at
           FROM daybook.jobs q
          WHERE q.state = 'leased' AND q.last_attempted_at > statement_timestamp() + interval '10 seconds'
          ORDER BY q.last_attempted_at
          LIMIT $2)
        UNION ALL
        (SELECT one.at
           FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1}'::smallint[]) AS f (id)
          CROSS JOIN LATERAL (
                SELECT q.updated_at AS at
                  FROM daybook.jobs q
                 WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
                 ORDER BY q.ready_at
                 LIMIT $2) one
          LIMIT $2)) a
 WHERE $1 = '' AND a.at > statement_timestamp() + interval '10 seconds'
;
SELECT count(*), coalesce(max(a.at), 'epoch')
  FROM ((SELECT q.last_attempted_at AS at
           FROM daybook.accounting_work_queue q
          WHERE q.state = 'leased' AND q.last_attempted_at > statement_timestamp() + interval '10 seconds'
          ORDER BY q.last_attempted_at
          LIMIT $2)
        UNION ALL
        (SELECT q.updated_at
           FROM daybook.accounting_work_queue q
          WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
          ORDER BY q.ready_at
          LIMIT $2)) a
 WHERE $1 = '' AND a.at > statement_timestamp() + interval '10 seconds'
;
SELECT count(*), coalesce(min(l.expired), 'epoch'), coalesce((array_agg(l.worker ORDER BY l.expired))[1], '')
  FROM (SELECT q.last_attempted_at + interval '10 seconds' AS expired, q.worker
          FROM daybook.accounting_work_queue q
         WHERE q.state = 'leased' AND q.last_attempted_at < statement_timestamp() - make_interval(secs => $1 + 10) AND ($3 = '' OR q.org_id = $3)
         ORDER BY q.last_attempted_at
         LIMIT $2) l
;
SELECT count(*), coalesce(min(l.expired), 'epoch'), coalesce((array_agg(l.worker ORDER BY l.expired))[1], '')
  FROM (SELECT q.last_attempted_at + interval '10 seconds' AS expired, q.worker
          FROM daybook.jobs q
         WHERE q.state = 'leased' AND q.last_attempted_at < statement_timestamp() - make_interval(secs => $1 + 10) AND ($3 = '' OR q.org_id = $3)
         ORDER BY q.last_attempted_at
         LIMIT $2) l
;
SELECT count(*), coalesce(min(l.leased_until), 'epoch'), coalesce((array_agg(l.worker ORDER BY l.leased_until))[1], '')
  FROM (SELECT o.leased_until, o.worker
          FROM queues.open_task o
         WHERE o.leased_until < statement_timestamp() - make_interval(secs => $1) AND $3 = ''
         ORDER BY o.leased_until
         LIMIT $2) l
;
SELECT count(*), coalesce(sum(entry_count), 0)::bigint FROM daybook.impacts WHERE org_id = $1 AND ($2 = '' OR document_id = $2)
;
SELECT counterparty, account_code, role, currency, items, open_amount::text, not_due::text, due_30::text, due_60::text, due_90::text, due_longer::text
  FROM daybook.ageing($1, $2)
 ORDER BY counterparty COLLATE "C", account_code COLLATE "C", currency COLLATE "C"
;
SELECT currency, account_code, name, opening::text, paid_in::text, paid_out::text, closing::text FROM daybook.cash_statement($1, $2, $3)
;
SELECT currency, count(*),
       coalesce(sum(amount_minor) FILTER (WHERE side = 'debit'), 0)::text,
       coalesce(sum(amount_minor) FILTER (WHERE side = 'credit'), 0)::text
  FROM daybook.entries
 WHERE $1 = '' OR org_id = $1
 GROUP BY currency
 ORDER BY currency
;
SELECT currency, valid_on, trim_scale(rate)::text, source, actor
  FROM daybook.rates
 WHERE org_id = $1 AND ($2 = '' OR currency = $2)
   AND ($3::date IS NULL OR valid_on < $3 OR valid_on = $3 AND currency > $4)
 ORDER BY valid_on DESC, currency
 LIMIT $5
;
SELECT current_database(), extract(epoch FROM pg_postmaster_start_time())::text
;
SELECT current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean
;
SELECT current_setting('session_replication_role'), pg_backend_pid()
;
SELECT current_setting('transaction_read_only')::boolean, EXISTS (
    SELECT FROM pg_locks WHERE relation = to_regclass($1) AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND granted AND mode = ANY ($2))
;
SELECT d.id FROM daybook.documents d
 WHERE d.org_id = $1 AND ($2 = '' OR d.id = $2) AND d.id > $3
 ORDER BY d.id
 LIMIT $4
   FOR NO KEY UPDATE
;
SELECT d.id IS NOT NULL
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
  LEFT JOIN daybook.documents d ON d.org_id = k.org_id AND d.id = k.id
 ORDER BY k.n
;
SELECT d.id, d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content::text, d.accounting_ready_at, d.accounting_ready_version, d.deleted_at
  FROM unnest($2::text[]) AS k (id)
 CROSS JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = $1 AND x.id = k.id LIMIT 1) d
;
SELECT d.org_id, count(*), min(d.ready_at)
  FROM (SELECT one.org_id, one.ready_at
          FROM (SELECT f.id FROM daybook.fleets f UNION ALL SELECT -1) f
         CROSS JOIN LATERAL (
               SELECT q.org_id, q.ready_at FROM daybook.jobs q
                WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() ORDER BY q.ready_at LIMIT $1) one
         ORDER BY one.ready_at LIMIT $1) d
 GROUP BY d.org_id ORDER BY 2 DESC, 1 LIMIT $2
;
SELECT d.org_id, count(*), min(d.ready_at)
  FROM (SELECT q.org_id, q.ready_at FROM daybook.accounting_work_queue q
         WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() ORDER BY q.ready_at LIMIT $1) d
 GROUP BY d.org_id ORDER BY 2 DESC, 1 LIMIT $2
;
SELECT d.org_id, d.id, d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content::text, d.accounting_ready_at, d.accounting_ready_version,
       d.accounting_impact_created_at, d.deleted_at, d.import_id, d.created_at, d.updated_at
  FROM daybook.documents d
 WHERE d.org_id = $1 AND d.id >= $2 AND d.id < $3 AND jsonb_typeof(d.content -> 'journal') = 'object'
 ORDER BY d.id DESC
 LIMIT $4
;
SELECT date_bin(make_interval(secs => $1), at, $2) AS begins, kind, CASE WHEN $3 THEN type ELSE '' END, outcome, CASE WHEN $4 THEN code ELSE '' END,
       count, waited_seconds, took_seconds, waited, took
  FROM daybook.history
 WHERE seconds = $5 AND at >= $2 AND at < $6 AND ($7 = '' OR kind = $7) AND ($8 = '' OR type = $8)
   AND ($9 = '' OR outcome = $9) AND ($10 = '' OR org_id = $10)
;
SELECT date_bin(make_interval(secs => $1), at, $2) AS begins, kind, max(due), max(waiting), max(leased), max(failed), max(oldest_due_seconds)
  FROM daybook.depths
 WHERE seconds = $3 AND at >= $2 AND at < $4 AND ($5 = '' OR kind = $5)
 GROUP BY 1, 2
 ORDER BY 1, 2
;
SELECT daybook.closed_days($1)::text
;
SELECT daybook.delete_queue($1) IS NULL
;
SELECT daybook.exchange_booked($1, $2, $3)::text, (
           SELECT coalesce(max(substr(x.id, length($4) + 1)::numeric), 0) + 1
             FROM (SELECT d.id FROM daybook.documents d WHERE d.org_id = $1 AND d.id > $4 AND d.id < $5
                    UNION ALL
                   SELECT i.document_id FROM daybook.impacts i WHERE i.org_id = $1 AND i.document_id > $4 AND i.document_id < $5) x
            WHERE substr(x.id, length($4) + 1) ~ '^[0-9]+$')::text
;
SELECT daybook.fleet_of($1)
;
SELECT daybook.lock_configuration($1)
;
SELECT daybook.note_job_types($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)::text
;
SELECT daybook.open_item_of($1, $2)
;
SELECT daybook.patch_json('{}', $1::text::jsonb)
;
SELECT daybook.pause_queue($1, $2)
;
SELECT daybook.queue_fleet($1)
;
SELECT daybook.reconcile($1, $2, $3, 'hand', $4)
;
SELECT daybook.release_queue($1)
;
SELECT daybook.return_failed_jobs($1, $2)
;
SELECT daybook.return_more_jobs(), 0, 0::bigint, NULL::timestamptz FROM (SELECT $1::bigint, $2::timestamptz) AS behind
;
SELECT daybook.set_job_limit(nullif($1, ''), $2, nullif($3::integer, 0), nullif($4::integer, 0),
                             CASE WHEN $4::integer <> 0 THEN nullif($5::float8, 0) END, $6, nullif($7, ''))
;
SELECT daybook.set_queue($1, nullif($2, ''), nullif($3::integer, 0), nullif($4::integer, 0), nullif($5::float8, 0),
                         nullif($6::integer, 0), $7, nullif($8::integer, 0), nullif($9, ''))
;
SELECT daybook.stand_for_documents($1, $2, $3)
;
SELECT daybook.try_use_configurations($1)
;
SELECT daybook.use_configuration($1)
;
SELECT daybook.wake_accounting_queue()
;
SELECT daybook.wake_accounting_queue()::text
;
SELECT daybook.wake_job_queue()
;
SELECT daybook.wake_job_queue()::text
;
SELECT daybook.work_bulk_batch($1)
;
SELECT decided, again, last, left_from FROM daybook.check_waits(beyond => $1, since => $2)
;
SELECT document_id FROM daybook.accounting_work_queue WHERE org_id = $1 AND state IN ('pending', 'leased', 'failed')
;
SELECT document_id FROM daybook.impacts WHERE org_id = $1 ORDER BY posting_date DESC, id DESC LIMIT $2
;
SELECT document_id, account_code, currency, role, type, direction, number, counterparty, issue_date, due_date, amount::text, open_amount::text,
       coalesce(group_id, 0)
  FROM daybook.items_of_document($1, $2)
 ORDER BY issue_date, document_id COLLATE "C", account_code COLLATE "C", currency COLLATE "C"
;
SELECT document_id, account_code, currency, role, type, direction, number, counterparty, issue_date, due_date, amount::text, open_amount::text,
       coalesce(group_id, 0)
  FROM daybook.open_items($1, $2::date)
 WHERE ($3::text IS NULL OR counterparty = $3) AND ($4 = '' OR account_code = $4)
   AND ($5 = '' OR currency = $5)
   AND ($6::date IS NULL OR (counterparty COLLATE "C", account_code COLLATE "C", currency COLLATE "C", issue_date, document_id COLLATE "C")
                              > ($7, $8, $9, $6, $10))
 ORDER BY counterparty COLLATE "C", account_code COLLATE "C", currency COLLATE "C", issue_date, document_id COLLATE "C"
 LIMIT $11
;
SELECT document_id, group_id, matched_by, reason, actor, created_at
  FROM daybook.reconciled
 WHERE org_id = $1
   AND group_id = CASE WHEN $2::bigint > 0 THEN $2::bigint ELSE (SELECT r.group_id FROM daybook.reconciled r WHERE r.org_id = $1 AND r.document_id = daybook.open_item_of($1, $3)) END
 ORDER BY created_at, document_id
;
SELECT document_id, other_id, matched_by, group_id, account_code, currency, amount::text FROM daybook.match_open_items($1, $2, $3)
;
SELECT document_id, result, coalesce(code, ''), coalesce(other_import, 0) FROM daybook.undo_import($1, $2, $3, $4)
;
SELECT document_id, version_hint, last_error_code, coalesce(last_error, ''), updated_at
  FROM daybook.accounting_work_queue
 WHERE org_id = $1 AND state = 'failed' AND last_error_code >= $2 AND last_error_code <= $2
 ORDER BY last_error_code, updated_at DESC, id
 LIMIT $3
;
SELECT e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)::text
  FROM daybook.entries e
  JOIN daybook.impacts i ON i.id = e.impact_id
 WHERE e.org_id = $1 AND e.account_code = $2 AND ($3 = '' OR e.currency = $3)
   AND (i.posting_date < $4) IS NOT TRUE AND (i.posting_date > $5) IS NOT TRUE
   AND (i.posting_date, e.impact_id, e.line_no) <= ($6::date, $7, $8)
 GROUP BY e.currency
;
SELECT e.impact_id, e.line_no, e.side, e.amount_minor, e.currency, e.rule_line_id, e.document_line, e.dimensions,
       i.document_id, i.document_version, i.kind, i.document_date, i.posting_date, i.rule_set_version, i.rule_id, i.epoch,
       i.job_id, i.attempt, i.workflow_run_id
  FROM daybook.entries e
  JOIN daybook.impacts i ON i.id = e.impact_id
 WHERE e.org_id = $1 AND i.org_id = $1 AND e.account_code = $2 AND ($3 = '' OR e.currency = $3)
   AND ($4::date IS NULL OR i.posting_date >= $4) AND ($5::date IS NULL OR i.posting_date <= $5)
   AND ($6::date IS NULL OR i.posting_date >= $6 AND (i.posting_date, i.id, e.line_no) > ($6::date, $7, $8))
 ORDER BY i.posting_date, i.id, e.line_no
 LIMIT $9
;
SELECT e.org_id, e.account_code, e.currency, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)::text
  FROM daybook.entries e
  JOIN daybook.impacts i ON i.id = e.impact_id
 WHERE ($1 = '' OR i.org_id = $1)
   AND ($2::date IS NULL OR i.posting_date >= $2) AND ($3::date IS NULL OR i.posting_date <= $3)
 GROUP BY e.org_id, e.account_code, e.currency
 ORDER BY e.org_id, e.account_code, e.currency COLLATE "C"
;
SELECT e.task_id, e.created_at, e.error_id FROM queues.error e WHERE e.error_id < $1 ORDER BY e.error_id DESC OFFSET $2 LIMIT 1
;
SELECT f.name FROM daybook.fleets f ORDER BY f.name
;
SELECT g.task_type, '', g.reason, g.count, g.first, g.last, g.newest::text, '', '',
       coalesce((SELECT e.error_message FROM queues.error e WHERE e.task_id = g.newest ORDER BY e.error_id DESC LIMIT 1), '')
  FROM (SELECT s.task_type, s.reason, count(*) AS count, min(s.scheduled_at) AS first, max(s.scheduled_at) AS last, max(s.task_id) AS newest
          FROM queues.stuck_tasks s
         WHERE s.task_id <= coalesce((SELECT o.task_id FROM queues.open_task o ORDER BY o.task_id OFFSET $1 LIMIT 1), 9223372036854775807)
         GROUP BY s.task_type, s.reason
         ORDER BY count(*) DESC, 1, 2
         LIMIT $2) g
;
SELECT g.type, g.code, '', g.count, g.first, n.finished_at, n.id, n.org_id, '', n.last_error
  FROM (SELECT j.type, j.last_error_code AS code, count(*) AS count, min(j.finished_at) AS first, (array_agg(j.id ORDER BY j.finished_at DESC, j.id))[1] AS newest
          FROM (SELECT j.id, j.type, j.last_error_code, j.finished_at FROM daybook.jobs j
                 WHERE j.state = 'failed' AND j.org_id = $1 ORDER BY j.finished_at DESC, j.id LIMIT $2) j
         GROUP BY j.type, j.last_error_code
         ORDER BY count(*) DESC, 1, 2
         LIMIT $3) g
  JOIN daybook.jobs n ON n.id = g.newest
;
SELECT greatest(i.document_version, (SELECT max(c.document_version) FROM daybook.confirmations c WHERE c.impact_id = i.id))
  FROM daybook.impacts i
 WHERE i.id = $1
;
SELECT group_id, account_code, currency, debit_document, credit_document, debit_day, credit_day, amount::text,
       coalesce(trim_scale(debit_rate)::text, ''), coalesce(trim_scale(credit_rate)::text, ''), difference::text
  FROM daybook.exchange_differences($1, $2)
 ORDER BY group_id, account_code, currency, debit_day, credit_day, debit_document, credit_document
;
SELECT h.holder, h.xmin::text, h.since, statement_timestamp()
  FROM (SELECT 'session ' || a.pid || coalesce(' of ' || a.usename, '') || coalesce(' (' || nullif(a.application_name, '') || ')', '') AS holder,
               coalesce(a.backend_xmin, a.backend_xid) AS xmin, a.xact_start AS since
          FROM pg_catalog.pg_stat_activity a
         WHERE a.pid <> pg_backend_pid() AND (a.datname = current_database() OR a.backend_type = 'walsender')
           AND a.backend_type IN ('client backend', 'background worker', 'walsender')
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_stat_progress_vacuum v WHERE v.pid = a.pid)
        UNION ALL
        SELECT 'prepared transaction ' || p.gid, p.transaction, p.prepared FROM pg_catalog.pg_prepared_xacts p WHERE p.database = current_database()
        UNION ALL
        SELECT 'replication slot ' || s.slot_name, s.xmin, NULL FROM pg_catalog.pg_replication_slots s) h
 WHERE h.xmin IS NOT NULL
 ORDER BY age(h.xmin) DESC, h.since
 LIMIT 1
;
SELECT i.*, coalesce(s.name, '') AS rule_set_name, coalesce(s.sha256, '') AS rule_set_sha256
  FROM daybook.impacts i
  LEFT JOIN daybook.rule_sets s ON s.org_id = i.org_id AND s.version = i.rule_set_version
 WHERE i.org_id = $1 AND i.document_id = $2
 ORDER BY i.seq DESC
 LIMIT $3
;
SELECT i.id, i.org_id, i.document_id, i.document_version, i.seq, i.kind, i.rule_set_version, i.rule_id, i.document_date, i.posting_date,
       i.entry_count, i.epoch,
       coalesce((SELECT d.content ->> 'counterparty' FROM daybook.documents d WHERE d.org_id = i.org_id AND d.id = i.document_id), ''),
       CASE i.kind WHEN 'reverse' THEN
           (SELECT o.id FROM daybook.impacts o WHERE o.org_id = i.org_id AND o.document_id = i.document_id AND o.seq = i.previous_seq) END,
       e.lines, e.accounts, e.sides, e.amounts, e.currencies, e.rule_lines, e.document_lines, e.dimensions
  FROM daybook.impacts i
 CROSS JOIN LATERAL (
        SELECT array_agg(x.line_no) AS lines, array_agg(x.account_code) AS accounts, array_agg(x.side::text) AS sides,
               array_agg(x.amount_minor) AS amounts, array_agg(x.currency) AS currencies, array_agg(x.rule_line_id) AS rule_lines,
               array_agg(x.document_line) AS document_lines,
               CASE WHEN count(x.dimensions) > 0 THEN array_agg(x.dimensions) END AS dimensions
          FROM (SELECT * FROM daybook.entries WHERE impact_id = i.id ORDER BY line_no) x) e
 WHERE ($1 = '' OR i.org_id = $1)
   AND ($2::date IS NULL OR i.posting_date >= $2) AND ($3::date IS NULL OR i.posting_date <= $3)
 ORDER BY i.posting_date, i.id
;
SELECT i.org_id, count(*)
  FROM daybook.impacts i
 WHERE i.kind = 'post'
   AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.seq = i.seq + 1)
 GROUP BY i.org_id
;
SELECT id
  FROM daybook.accounting_work_queue
 WHERE state = $1::daybook.job_state AND updated_at < $2 AND ($3 = '' OR org_id = $3) AND ($4 = '' OR last_error_code = $4)
 ORDER BY org_id, document_id
;
SELECT id FROM daybook.accounting_work_queue WHERE id = ANY ($1) AND state IN ('pending', 'leased') ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
;
SELECT id FROM daybook.accounting_work_queue WHERE id = ANY ($1) AND turn_id = $2 AND fence = $3 AND NOT working
;
SELECT id FROM daybook.accounting_work_queue WHERE turn_id = $1 AND num_nulls(nullif(state, 'leased')) = 1 AND fence = $2
;
SELECT id FROM daybook.imports WHERE id = ANY ($1::bigint[]) AND undo_started_at IS NULL ORDER BY id FOR SHARE
;
SELECT id FROM daybook.jobs WHERE id = ANY ($1) AND state IN ('pending', 'leased') ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
;
SELECT id FROM daybook.jobs WHERE id = ANY ($1) AND turn_id = $2 AND fence = $3 AND NOT working
;
SELECT id FROM daybook.jobs WHERE turn_id = $1 AND num_nulls(nullif(state, 'leased')) = 1 AND fence = $2
;
SELECT id, at, via, action, token_id, actor, db_role, org_id, subject, details, outcome, code
  FROM daybook.actions
 WHERE ($1 = '' OR org_id = $1) AND ($2 = '' OR via = $2) AND ($3 = '' OR action = $3) AND ($4 = '' OR actor = $4)
   AND ($5 = '' OR token_id = $5) AND ($6 = '' OR subject = $6) AND ($7 = '' OR outcome = $7)
   AND ($8::timestamptz IS NULL OR at >= $8) AND ($9::timestamptz IS NULL OR at < $9) AND ($10::bigint = 0 OR id < $10::bigint)
 ORDER BY id DESC
 LIMIT $11
;
SELECT id, id <> ALL ($1) AND last_attempted_at < statement_timestamp() - 2 * make_interval(secs => $2), cancel_requested
  FROM daybook.accounting_work_queue WHERE turn_id = $3 AND num_nulls(nullif(state, 'leased')) = 1 AND fence = $4
;
SELECT id, id <> ALL ($1) AND last_attempted_at < statement_timestamp() - 2 * make_interval(secs => $2), cancel_requested
  FROM daybook.jobs WHERE turn_id = $3 AND num_nulls(nullif(state, 'leased')) = 1 AND fence = $4
;
SELECT id, last_attempted_at, working, org_id,  '', document_id , run_count, coalesce(worker, ''), coalesce(turn_id, ''),
       hashtext(coalesce(worker, ''))::oid, reclaims
  FROM daybook.accounting_work_queue
 WHERE state = 'leased' AND last_attempted_at >= $1
   AND last_attempted_at < greatest(statement_timestamp() - make_interval(secs => $2), $3)
   AND (last_attempted_at < statement_timestamp() - make_interval(secs => $2) OR hashtext(worker)::oid = ANY ($4))
 ORDER BY last_attempted_at
 LIMIT $5
   FOR NO KEY UPDATE SKIP LOCKED
;
SELECT id, last_attempted_at, working, org_id, type, '', run_count, coalesce(worker, ''), coalesce(turn_id, ''),
       hashtext(coalesce(worker, ''))::oid, reclaims
  FROM daybook.jobs
 WHERE state = 'leased' AND last_attempted_at >= $1
   AND last_attempted_at < greatest(statement_timestamp() - make_interval(secs => $2), $3)
   AND (last_attempted_at < statement_timestamp() - make_interval(secs => $2) OR hashtext(worker)::oid = ANY ($4))
 ORDER BY last_attempted_at
 LIMIT $5
   FOR NO KEY UPDATE SKIP LOCKED
;
SELECT id, org_id, format, files, actor, started_at, ended_at, inserted, changed, unchanged, undo_started_at, undo_ended_at, undo_actor,
       removed, reversed, restored, kept
  FROM daybook.imports
 WHERE ($1 = '' OR org_id = $1) AND ($2::bigint = 0 OR id = $2) AND ($3::bigint = 0 OR id < $3)
 ORDER BY id DESC
 LIMIT $4
;
SELECT id, org_id, name, scopes, created_at, last_used_at, revoked_at, types, coalesce(requests_per_minute, 0), coalesce(jobs_per_minute, 0), run_by_get
  FROM daybook.api_tokens
 WHERE $1 = '' OR org_id = $1
 ORDER BY created_at DESC, id
;
SELECT id, org_id, name, scopes, created_at, last_used_at, revoked_at, types, coalesce(requests_per_minute, 0), coalesce(jobs_per_minute, 0), run_by_get,
       hash, last_used_at > clock_timestamp() - make_interval(secs => $2)
  FROM daybook.api_tokens
 WHERE hash = $1
;
SELECT id, org_id, type, state::text, run_count, CASE WHEN ready_at < '9999-12-31 00:00:00+00' THEN ready_at ELSE first_ready_at END, coalesce(last_error_code, ''), coalesce(last_error, ''), finished_at,
       result::text, progress::text,
       pg_current_xact_id_if_assigned() IS NOT NULL
  FROM daybook.jobs
 WHERE id = $1
;
SELECT id, paused_at FROM daybook.organizations WHERE paused_at IS NOT NULL AND ($1 = '' OR id = $1) ORDER BY id
;
SELECT id, started_at, finished_at, actor, db_role, org_id, scope, link_kind, encode(scope_salt, 'hex'), encode(scope_hash, 'hex'), ground, counts, kept, open_jobs::bigint
  FROM daybook.erasures
 WHERE ($1 = '' OR id = $1) AND ($2 = '' OR org_id = $2)
 ORDER BY started_at DESC, id DESC
;
SELECT id::text FROM queues.tasks_of_turn($1, $2) AS id
;
SELECT impact_id, document_id, kind, reason, document_date, posting_date, created_at, coalesce(currency, ''), amount::text
  FROM daybook.closing_adjustments($1, $2, $3, $4)
;
SELECT impact_id, line_no, account_code, side, amount_minor, currency FROM daybook.entries WHERE impact_id = ANY ($1) ORDER BY impact_id, line_no
;
SELECT internal.run_function($1, $2)
;
SELECT j.*
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[])
       WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, n)
 CROSS JOIN (SELECT pg_current_xact_id()::text::bigint) AS x (own)
  LEFT JOIN daybook.organizations o ON o.id = s.org_id
  
 CROSS JOIN LATERAL (
       SELECT q.priority, q.ready_at, q.id, q.org_id, q.run_count + 1, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
               q.document_id, q.version_hint, q.not_ready_count, q.epoch ,
              coalesce(q.traceparent, '') ,
              q.updated_at,
              CASE WHEN q.xmax = '0'::xid THEN false
                   WHEN (x.own - q.xmax::text::bigint) & 4294967295 NOT BETWEEN 1 AND least(x.own - 3, 2147483647) THEN false
                   ELSE coalesce(pg_xact_status((x.own - ((x.own - q.xmax::text::bigint) & 4294967295))::text::xid8) = 'aborted', false) END,
              q.ctid
         FROM daybook.accounting_work_queue q
        WHERE q.state = 'pending' AND  q.priority = s.priority AND q.org_id = s.org_id 
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.org_id , q.ready_at, q.id
        LIMIT CASE WHEN o.paused_at IS NULL AND o.max_in_flight IS NULL 
                   
                    AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY ($7)
                                  AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ $8  THEN s.quota ELSE 0 END
          FOR NO KEY UPDATE SKIP LOCKED) j
;
SELECT j.*
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[])
       WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, n)
 CROSS JOIN (SELECT pg_current_xact_id()::text::bigint) AS x (own)
  LEFT JOIN daybook.organizations o ON o.id = s.org_id
  
 CROSS JOIN LATERAL (
       SELECT q.priority, q.ready_at, q.id, q.org_id, q.run_count + 1, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
              q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
              ,
              coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited,
              q.updated_at,
              CASE WHEN q.xmax = '0'::xid THEN false
                   WHEN (x.own - q.xmax::text::bigint) & 4294967295 NOT BETWEEN 1 AND least(x.own - 3, 2147483647) THEN false
                   ELSE coalesce(pg_xact_status((x.own - ((x.own - q.xmax::text::bigint) & 4294967295))::text::xid8) = 'aborted', false) END,
              q.ctid
         FROM daybook.jobs q
        WHERE q.state = 'pending' AND q.fleet = $7 AND q.priority = s.priority AND q.org_id = s.org_id AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.org_id, daybook.job_slot(q.type, q.queue, q.min_version), q.ready_at, q.id
        LIMIT CASE WHEN o.paused_at IS NULL AND o.max_in_flight IS NULL AND o.rate IS NULL
                   
                    THEN s.quota ELSE 0 END
          FOR NO KEY UPDATE SKIP LOCKED) j
;
SELECT j.*
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[])
       WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, n)
 CROSS JOIN (SELECT pg_current_xact_id()::text::bigint) AS x (own)
  LEFT JOIN daybook.organizations o ON o.id = s.org_id
   LEFT JOIN daybook.queues u ON u.name = nullif(split_part(s.slot, '/', 2), '') 
 CROSS JOIN LATERAL (
       SELECT q.priority, q.ready_at, q.id, q.org_id, q.run_count + 1, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
              q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
              ,
              coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited,
              q.updated_at,
              CASE WHEN q.xmax = '0'::xid THEN false
                   WHEN (x.own - q.xmax::text::bigint) & 4294967295 NOT BETWEEN 1 AND least(x.own - 3, 2147483647) THEN false
                   ELSE coalesce(pg_xact_status((x.own - ((x.own - q.xmax::text::bigint) & 4294967295))::text::xid8) = 'aborted', false) END,
              q.ctid
         FROM daybook.jobs q
        WHERE q.state = 'pending' AND q.fleet = $7 AND q.priority = s.priority AND q.org_id = s.org_id AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.org_id, daybook.job_slot(q.type, q.queue, q.min_version), q.ready_at, q.id
        LIMIT CASE WHEN o.paused_at IS NULL AND o.max_in_flight IS NULL AND o.rate IS NULL
                    AND u.paused_at IS NULL AND num_nonnulls(u.max_parallel, u.rate, u.per_process) = 0 
                    THEN s.quota ELSE 0 END
          FOR NO KEY UPDATE SKIP LOCKED) j
;
SELECT j.finished_at FROM daybook.jobs j WHERE j.state = 'failed' AND j.org_id = $1 ORDER BY j.finished_at DESC, j.id OFFSET $2 LIMIT 1
;
SELECT j.id
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[])
       AS s (priority, org_id, slot, at, id, quota)
 CROSS JOIN LATERAL (
       SELECT q.id
         FROM daybook.accounting_work_queue q
        WHERE q.state = 'pending' AND  q.priority = s.priority AND q.org_id = s.org_id
           
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.ready_at, q.id
        LIMIT s.quota
          FOR NO KEY UPDATE SKIP LOCKED) j
;
SELECT j.id
  FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[])
       AS s (priority, org_id, slot, at, id, quota)
 CROSS JOIN LATERAL (
       SELECT q.id
         FROM daybook.jobs q
        WHERE q.state = 'pending' AND q.fleet = $7 AND q.priority = s.priority AND q.org_id = s.org_id
          AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot
          AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
        ORDER BY q.ready_at, q.id
        LIMIT s.quota
          FOR NO KEY UPDATE SKIP LOCKED) j
;
SELECT j.id, j.org_id, j.document_id, j.version_hint, j.state::text AS state, j.run_count, j.ready_at, j.last_error_code, j.last_error
  FROM daybook.accounting_work_queue j
 WHERE j.completed_turn_id = $1 OR EXISTS (SELECT FROM daybook.attempt_log a WHERE a.job_id = j.id AND a.turn_id = $1)
 ORDER BY j.org_id, j.document_id
;
SELECT j.id, j.org_id, j.type, j.payload::text, coalesce(j.idempotency_key, ''), j.priority::integer, j.state::text, j.ready_at, j.run_count,
       coalesce(j.max_attempts, 0), coalesce(j.last_error_code, ''), coalesce(j.last_error, ''), coalesce(j.result::text, ''),
       coalesce((SELECT jsonb_agg(jsonb_build_object('kind', l.kind, 'id', l.id) ORDER BY l.kind, l.id)
                   FROM daybook.job_links l WHERE l.job_id = j.id)::text, '[]'),
       j.unique_hash = j.input_hash IS TRUE
  FROM daybook.jobs j
 WHERE ($1::text = '' OR j.type = $1::text)
   AND ($2::text = '' OR j.completed_turn_id = $2::text OR EXISTS (SELECT FROM daybook.attempt_log a WHERE a.job_id = j.id AND a.turn_id = $2::text)
        OR j.state = 'failed' AND j.last_error_code = 'HANDLER_MISSING')
 ORDER BY j.created_at, j.id
;
SELECT j.id, j.state::text, j.version_hint, j.run_count, j.ready_at, coalesce(j.last_error_code, ''), coalesce(j.last_error, ''), j.finished_at,
       live.id,
       greatest(live.document_version, (SELECT max(c.document_version) FROM daybook.confirmations c WHERE c.impact_id = live.id)),
       pg_current_xact_id_if_assigned() IS NOT NULL
  FROM daybook.accounting_work_queue j
  LEFT JOIN LATERAL (
        SELECT i.id, i.kind, i.document_version
          FROM daybook.impacts i
         WHERE i.org_id = j.org_id AND i.document_id = j.document_id
         ORDER BY i.seq DESC LIMIT 1) live ON live.kind = 'post'
 WHERE j.org_id = $1 AND j.document_id = $2
;
SELECT j.org_id FROM daybook.jobs j WHERE j.id = $1
;
SELECT j.org_id, j.limit_key, count(*) FILTER (WHERE j.fleet >= 0), count(*) FILTER (WHERE j.fleet = -2),
       min(j.ready_at) FILTER (WHERE j.fleet = -2)
  FROM daybook.jobs j
 WHERE j.limit_scope = $1 AND j.limit_key IS NOT NULL AND j.finished_at IS NULL
 GROUP BY j.org_id, j.limit_key
HAVING count(*) FILTER (WHERE j.fleet = -2) > 0
 ORDER BY 4 DESC, 5, 1, 2
 LIMIT $2
;
SELECT job_id, duplicate, result
  FROM daybook.debounce_job($1, $2, $3::text::jsonb, $4::text::jsonb, NULLIF($5::integer, 0), NULLIF($6::integer, 0),
                            $7::text::jsonb, NULLIF($8::text, ''), NULLIF($9::text, ''))
;
SELECT job_id, duplicate, result
  FROM daybook.enqueue_job($1, $2, $3::text::jsonb, NULLIF($4::text, ''), $5, NULLIF($6::integer, 0),
                           NULLIF($7::integer, 0), $8::text::jsonb, $9, NULLIF($10::text, ''), NULLIF($11::text, ''),
                           $12::text[], $13, NULLIF($14::text, ''),
                           NULLIF($15::integer, 0), NULL, NULLIF($16::text, ''))
;
SELECT job_id, duplicate, result FROM daybook.enqueue_job($1, $2, $3::text::jsonb)
;
SELECT job_id, duplicate, result, coalesce(token, '')
  FROM daybook.enqueue_job_with_callback($1, $2, $3::text::jsonb, $4, make_interval(secs => $5), NULLIF($6::text, ''),
                                         NULLIF($7::integer, 0), NULLIF($8::integer, 0), $9::text::jsonb, NULLIF($10::text, ''),
                                         NULLIF($11::integer, 0), NULLIF($12::text, ''))
;
SELECT job_id, kind, id FROM daybook.job_links WHERE job_id = $1 ORDER BY kind, id
;
SELECT job_id, result FROM daybook.complete_callback($1, $2::text::jsonb)
;
SELECT job_id, result FROM daybook.enqueue_accounting_job($1, $2, $3, $4, NULLIF($5::integer, 0))
;
SELECT job_id, result, coalesce(reason, '')
  FROM daybook.edit_job($1, $2::text::jsonb, $3, NULLIF($4::text, ''), $5, $6)
;
SELECT k.id, coalesce(o.source, d.source), coalesce(o.hooks, d.hooks)
  FROM daybook.defaults d
 CROSS JOIN unnest($1::text[]) AS k (id)
  LEFT JOIN daybook.organizations o ON o.id = k.id
;
SELECT k.n, i.id, i.seq, i.kind, i.document_version, i.rule_set_version, i.rule_id, i.document_date, i.posting_date, i.entry_count, i.epoch,
       i.content_hash,
       ARRAY(SELECT c.rule_set_version FROM daybook.confirmations c WHERE c.impact_id = i.id AND c.document_version = k.version),
       (SELECT max(x.epoch) FROM daybook.impacts x
         WHERE x.org_id = k.org_id AND x.document_id = k.id AND x.document_version = k.version AND x.rule_set_version = k.rule_set AND x.kind = 'post'),
       CASE WHEN i.seq > 1 THEN
           (SELECT max(r.posting_date) FROM daybook.impacts r
              JOIN daybook.impacts o ON o.org_id = r.org_id AND o.document_id = r.document_id AND o.seq = r.previous_seq AND o.posting_date < r.posting_date
             WHERE r.org_id = k.org_id AND r.document_id = k.id AND r.kind = 'reverse') END,
       EXISTS (SELECT FROM daybook.replaced_taxes t JOIN daybook.documents d ON d.org_id = i.org_id AND d.id = i.document_id
                WHERE t.impact_id = i.id AND t.confirmations = (SELECT count(*) FROM daybook.confirmations c WHERE c.impact_id = i.id)
                  AND (t.type, t.direction, t.currency, t.country, t.taxes)
                      IS DISTINCT FROM (d.type, d.direction, d.currency, coalesce(d.content ->> 'country', ''), daybook.stated_taxes(d.content)))
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY AS k (org_id, id, version, rule_set, n)
 CROSS JOIN LATERAL (
        SELECT * FROM daybook.impacts x
         WHERE x.org_id = k.org_id AND x.document_id = k.id
         ORDER BY x.seq DESC LIMIT 1) i
;
SELECT k.n, i.no_entries
  FROM jsonb_to_recordset($1::jsonb) AS k (n integer, org text, document text)
 CROSS JOIN LATERAL (
        SELECT x.kind, x.no_entries FROM daybook.impacts x
         WHERE x.org_id = k.org AND x.document_id = k.document ORDER BY x.seq DESC LIMIT 1) i
 WHERE i.kind = 'post' AND i.no_entries <> ''
;
SELECT k.n, p.document_version, p.next, p.entries, p.posted_on, p.system, p.left_version
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
  JOIN daybook.posted_elsewhere p ON p.org_id = k.org_id AND p.document_id = k.id
;
SELECT k.org_id
  FROM (SELECT org_id FROM daybook.accounting_work_queue WHERE $2 = '' OR org_id = $2
         UNION
        SELECT org_id FROM daybook.impacts WHERE $2 = '' OR org_id = $2) k
  LEFT JOIN daybook.organizations o ON o.id = k.org_id
 WHERE coalesce(o.source, (SELECT d.source FROM daybook.defaults d WHERE d.one)) = $1
 ORDER BY k.org_id
;
SELECT key, kind, counts, lines, bytes, encode(sha256, 'hex'), org_ids, first_at, last_at, archived_at, restored_at, erased_at
  FROM daybook.archives
 WHERE ($1 = '' OR org_ids @> ARRAY[$1]) AND (archived_at, key) > ($2, $3)
 ORDER BY archived_at, key
 LIMIT nullif($4::integer, 0)
;
SELECT kind, currency, direction, country, category, code, coalesce(rate::text, ''), account_code, name, coalesce(documents, 0), coalesce(base, 0)::text, tax::text,
       document_id, coalesce(posted, 0)::text
  FROM daybook.vat_report($1, $2, $3, $4)
;
SELECT kind, sampled_at, extract(epoch FROM clock_timestamp() - sampled_at)::float8, holder, due, waiting, leased, failed, estimated, oldest_due_at, stale_leases, unhandled, figures
  FROM daybook.gauges
;
SELECT kind, type, alias_of, owner, max_attempts, make_interval(secs => timeout_seconds) AS timeout, parallel, bulk, worker, first_seen, last_seen
  FROM daybook.job_types
 ORDER BY kind, type
;
SELECT live.id, live.document_version, (SELECT max(c.document_version) FROM daybook.confirmations c WHERE c.impact_id = live.id),
       coalesce(j.state::text, ''), coalesce(j.version_hint, 0), p.document_version, p.document_version IS NOT NULL AND live.id IS NOT NULL AND live.rule_set_version IS NULL,
       live.id IS NOT NULL AND live.entry_count = 0 AND live.no_entries IN ('', 'zero') AND p.document_version IS NULL
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
  LEFT JOIN daybook.accounting_work_queue j ON j.org_id = k.org_id AND j.document_id = k.id
  LEFT JOIN LATERAL (
        SELECT i.id, i.kind, i.document_version, i.rule_set_version, i.entry_count, i.no_entries FROM daybook.impacts i
         WHERE i.org_id = k.org_id AND i.document_id = k.id
         ORDER BY i.seq DESC LIMIT 1) live ON live.kind = 'post'
  LEFT JOIN daybook.posted_elsewhere p ON p.org_id = k.org_id AND p.document_id = k.id AND p.next <> 'full'
 ORDER BY k.n
;
SELECT max(version_id) FROM daybook.schema_migrations WHERE is_applied
;
SELECT min(posting_date), max(posting_date)
  FROM daybook.impacts
 WHERE entry_count > 0 AND ($1 = '' OR org_id = $1)
   AND ($2::date IS NULL OR posting_date >= $2) AND ($3::date IS NULL OR posting_date <= $3)
;
SELECT min(x.ready_at) FROM (
    SELECT one.ready_at
      FROM (SELECT f.id FROM daybook.fleets f UNION ALL SELECT -1) f
     CROSS JOIN LATERAL (
           SELECT q.ready_at FROM daybook.jobs q
            WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
              AND q.org_id <> ALL (ARRAY(SELECT o.id FROM daybook.organizations o WHERE o.paused_at IS NOT NULL))
              AND (q.queue IS NULL OR q.queue <> ALL (ARRAY(SELECT u.name FROM daybook.queues u WHERE u.paused_at IS NOT NULL)))
            ORDER BY q.ready_at LIMIT 1) one) x
;
SELECT min(x.ready_at) FROM (
    SELECT q.ready_at FROM daybook.accounting_work_queue q
     WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
       AND q.org_id <> ALL (ARRAY(SELECT o.id FROM daybook.organizations o WHERE o.paused_at IS NOT NULL))
     ORDER BY q.ready_at LIMIT 1) x
;
SELECT min(x.scheduled_at) FROM (
    SELECT o.scheduled_at FROM queues.open_task o
     WHERE o.leased_until IS NULL AND o.scheduled_at <= statement_timestamp()
       AND NOT EXISTS (SELECT FROM queues.task_limit l WHERE l.task_type IN ('*', o.task_type) AND l.paused_at IS NOT NULL)
     ORDER BY o.scheduled_at, o.task_id LIMIT 1) x
;
SELECT n FROM unnest($2::text[]) AS n WHERE pg_try_advisory_xact_lock($1, hashtext(n))
;
SELECT n, got, place, type, direction, currency, issue_date, value_date, CASE WHEN NOT later THEN content::text END,
       accounting_ready_at, version, accounting_impact_created_at, deleted_at, later
  FROM (SELECT *, got AND sum(size) OVER before > $3 AND sum(size) OVER before > size AS later
          FROM (SELECT k.n, d.org_id IS NOT NULL AS got, d.place, coalesce(d.type, '') AS type, coalesce(d.direction, '') AS direction,
                       coalesce(d.currency, '') AS currency, d.issue_date, d.value_date, d.content,
                       pg_column_size(d.content) * CASE WHEN pg_column_size(d.content) > 2000 THEN 6 ELSE 1 END AS size,
                       d.accounting_ready_at, coalesce(d.accounting_ready_version, 0) AS version, d.accounting_impact_created_at, d.deleted_at
                  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n)
                  LEFT JOIN LATERAL (
                        SELECT *, ctid AS place FROM daybook.documents x
                         WHERE x.org_id = k.org_id AND x.id = k.id
                           FOR NO KEY UPDATE SKIP LOCKED) d ON true) locked
        WINDOW before AS (ROWS UNBOUNDED PRECEDING)) sized
;
SELECT n, pg_try_advisory_xact_lock($1, hashtext(n)),  false 
  FROM unnest($2::text[]) AS n
;
SELECT n, pg_try_advisory_xact_lock($1, hashtext(n)), EXISTS (SELECT FROM daybook.organizations o WHERE o.id = n AND o.rate IS NOT NULL)
  FROM unnest($2::text[]) AS n
;
SELECT n.names, n.names <> '' AND current_setting('synchronous_commit') NOT IN ('off', 'local')
         AND NOT EXISTS (SELECT FROM pg_stat_replication r WHERE coalesce(r.sync_state, 'sync') IN ('sync', 'quorum')),
       w.waiting, w.since,
       EXISTS (SELECT FROM pg_stat_activity WHERE application_name LIKE 'Patroni%'),
       ARRAY(SELECT name FROM pg_settings WHERE name IN ('synchronous_commit', 'synchronous_standby_names') AND sourcefile LIKE '%/postgresql.auto.conf')
  FROM (SELECT current_setting('synchronous_standby_names') AS names) n
 CROSS JOIN (SELECT count(*) AS waiting, min(a.query_start) AS since
               FROM pg_stat_activity a
              WHERE a.datname = current_database() AND a.wait_event = 'SyncRep' AND a.query_start < clock_timestamp() - make_interval(secs => $1)) w
;
SELECT name, position, attempt, result, done, times, started_at, kept_at
  FROM daybook.job_steps WHERE job_id = $1 ORDER BY started_at, position
;
SELECT nextval('daybook.fence_seq')
;
SELECT nextval('daybook.impact_id_seq') FROM generate_series(1, $1)
;
SELECT number, action, starts_on, ends_on,
       (SELECT '{' || coalesce(string_agg(format('[%s,%s)', to_char(lower(d), 'YYYY-MM-DD'), to_char(upper(d), 'YYYY-MM-DD')), ',' ORDER BY d), '') || '}'
          FROM unnest(days) AS d),
       (SELECT '{' || coalesce(string_agg(format('[%s,%s)', to_char(lower(d), 'YYYY-MM-DD'), to_char(upper(d), 'YYYY-MM-DD')), ',' ORDER BY d), '') || '}'
          FROM unnest(closed_days) AS d),
       closed_by, db_role, created_at, impacts, entries, last_impact_id,
       encode(impacts_hash, 'hex'), coalesce(encode(previous_hash, 'hex'), ''), encode(hash, 'hex'), list, signature, coalesce(key_id, '')
  FROM daybook.closings WHERE org_id = $1 AND number > $2 ORDER BY number LIMIT nullif($3, 0)
;
SELECT o FROM unnest($1::text[]) AS u (o) WHERE EXISTS (SELECT 1 FROM daybook.accounting_work_queue x WHERE x.org_id = u.o)
;
SELECT o FROM unnest($1::text[]) AS u (o) WHERE EXISTS (SELECT 1 FROM daybook.jobs x WHERE x.org_id = u.o)
;
SELECT o.id AS org_id, $1 AS id
  FROM (SELECT o.id FROM daybook.organizations o WHERE $2 = '' OR o.id = $2 ORDER BY o.id LIMIT 20000) o
 CROSS JOIN LATERAL (
       SELECT FROM (
              (SELECT FROM daybook.impacts i WHERE i.org_id = o.id AND i.document_id = $1 LIMIT 1)
               UNION ALL
              (SELECT FROM daybook.documents d WHERE d.org_id = o.id AND d.id = $1 LIMIT 1)) x
        LIMIT 1) x
 ORDER BY o.id
 LIMIT $3
;
SELECT o.id FROM daybook.organizations o WHERE o.id > $1 ORDER BY o.id LIMIT $2
;
SELECT o.id, coalesce(o.name, ''), o.active_rule_set, o.paused_at, o.max_in_flight, o.rate, o.rate_seconds, coalesce(o.source, d.source), coalesce(o.hooks, d.hooks), o.source IS NOT NULL, o.hooks IS NOT NULL
  FROM daybook.organizations o
 CROSS JOIN (SELECT source, hooks FROM daybook.defaults WHERE one) d
 WHERE ($1 = '' OR o.id = $1) AND ($2 = '' OR starts_with(o.id, $2)) AND o.id > $3
   AND (NOT $4::boolean OR o.paused_at IS NOT NULL OR o.max_in_flight IS NOT NULL OR o.rate IS NOT NULL)
 ORDER BY o.id
 LIMIT $5
;
SELECT o.id, floor(x.starts)::integer, ((1 - x.starts) * o.rate_seconds / o.rate)::float8
  FROM daybook.organizations o
 CROSS JOIN LATERAL (SELECT daybook.organization_starts(o) AS starts OFFSET 0) x
 WHERE o.id = ANY ($1) AND o.rate IS NOT NULL
;
SELECT o.id, o.active_rule_set, coalesce(r.sha256, ''), o.config_version, o.closed_period_policy,
       EXISTS (SELECT FROM daybook.posted_elsewhere p WHERE p.org_id = o.id)
  FROM daybook.organizations o
  LEFT JOIN daybook.rule_sets r ON r.org_id = o.id AND r.version = o.active_rule_set
 WHERE o.id = ANY ($1)
;
SELECT o.id, s.starts_on, s.ends_on, s.in_period
  FROM (SELECT DISTINCT org_id AS id FROM daybook.periods WHERE org_id = ANY ($1) AND state = 'closed') o
 CROSS JOIN LATERAL daybook.closed_spans(o.id) s
 ORDER BY o.id, s.starts_on
;
SELECT o.pending, o.due, o.leased, o.stale, c.n - f.n, f.n
  FROM (SELECT count(*) FILTER (WHERE leased_until IS NULL) AS pending,
               count(*) FILTER (WHERE leased_until IS NULL AND scheduled_at <= transaction_timestamp()) AS due,
               count(*) FILTER (WHERE leased_until IS NOT NULL) AS leased,
               count(*) FILTER (WHERE leased_until <= transaction_timestamp()) AS stale
          FROM queues.open_task) o,
       (SELECT count(*) AS n FROM queues.task_completed) c,
       (SELECT count(*) AS n FROM (SELECT DISTINCT e.task_id FROM queues.error e) e JOIN queues.task_completed c USING (task_id)) f
;
SELECT o.task_id::text, '', t.scheduled_at, o.scheduled_at, extract(epoch FROM transaction_timestamp() - o.scheduled_at)::float8, NULL::text, o.task_type
  FROM queues.open_task o JOIN queues.task t USING (task_id)
 WHERE $1 = '' AND o.leased_until IS NULL AND o.scheduled_at <= transaction_timestamp()
 ORDER BY o.scheduled_at, o.task_id
 LIMIT 1
;
SELECT o.task_id::text, '', t.scheduled_at, o.scheduled_at, extract(epoch FROM transaction_timestamp() - t.scheduled_at)::float8, NULL::text, o.task_type
  FROM queues.open_task o JOIN queues.task t USING (task_id)
 WHERE $1 = '' AND o.leased_until IS NULL
 ORDER BY o.scheduled_at, o.task_id
 LIMIT 1
;
SELECT ordinal, job_id, duplicate, result
  FROM daybook.enqueue_jobs($1, $2, $3::text[]::jsonb[], $4, $5, $6, $7, $8::text[]::jsonb[], $9,
                            $10, $11, $12::text[]::jsonb[], $13, $14, $15::text[]::jsonb[], $16)
;
SELECT ordinal, job_id, result FROM daybook.enqueue_accounting_jobs($1, $2, $3, $4, $5)
;
SELECT org_id, code, name, type FROM daybook.accounts WHERE $1 = '' OR org_id = $1 ORDER BY org_id, code
;
SELECT org_id, sum(pending)::bigint, sum(leased)::bigint, sum(failed)::bigint
  FROM (SELECT org_id, count(*) AS pending, 0 AS leased, 0 AS failed FROM daybook.accounting_work_queue WHERE state = 'pending' GROUP BY org_id
         UNION ALL
        SELECT org_id, 0, count(*), 0 FROM daybook.accounting_work_queue WHERE state = 'leased' GROUP BY org_id
         UNION ALL
        SELECT org_id, 0, 0, count(*) FROM daybook.accounting_work_queue WHERE state = 'failed' GROUP BY org_id) counted
 WHERE org_id > $1 AND ($2::text IS NULL OR org_id <= $2)
 GROUP BY org_id
;
SELECT org_id, sum(pending)::bigint, sum(leased)::bigint, sum(failed)::bigint
  FROM (SELECT org_id, count(*) AS pending, 0 AS leased, 0 AS failed FROM daybook.jobs WHERE state = 'pending' GROUP BY org_id
         UNION ALL
        SELECT org_id, 0, count(*), 0 FROM daybook.jobs WHERE state = 'leased' GROUP BY org_id
         UNION ALL
        SELECT org_id, 0, 0, count(*) FROM daybook.jobs WHERE state = 'failed' GROUP BY org_id) counted
 WHERE org_id > $1 AND ($2::text IS NULL OR org_id <= $2)
 GROUP BY org_id
;
SELECT paused_at, max_in_flight, rate, rate_seconds FROM daybook.organizations WHERE id = $1
;
SELECT pg_advisory_lock_shared($1, hashtext($2))
;
SELECT pg_advisory_unlock($1, $2), pg_notify($3, $4)
;
SELECT pg_advisory_xact_lock($1)
;
SELECT pg_advisory_xact_lock($1, $2) IS NOT NULL
;
SELECT pg_advisory_xact_lock_shared($1)
;
SELECT pg_backend_pid()
;
SELECT pg_catalog.pg_current_xact_id()::text
;
SELECT pg_catalog.pg_xact_status($1::text::xid8)
;
SELECT pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
;
SELECT pg_is_in_recovery()
;
SELECT pg_is_in_recovery(), (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
       CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())::bigint ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END
;
SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p
;
SELECT pg_notify($3, '')::text
 WHERE NOT pg_try_advisory_xact_lock_shared($1, $2) AND current_setting('daybook.notify', true) IS DISTINCT FROM 'off'
;
SELECT pg_try_advisory_xact_lock($1, $2)
;
SELECT place, kind, currency, type, section, account_code, name, value, amount::text
  FROM daybook.balance_sheet($1, $2, nullif($3, ''), nullif($4, ''), $5)
;
SELECT place, kind, currency, type, section, account_code, name, value, amount::text
  FROM daybook.income_statement($1, $2, $3, nullif($4, ''), nullif($5, ''), $6)
;
SELECT posting_date, coalesce(impact_id, 0), coalesce(document_id, ''), coalesce(type, ''), coalesce(number, ''), issue_date, due_date, account_code,
       currency, amount::text, balance::text, open_amount::text
  FROM daybook.counterparty_statement($1, $2, $3, $4)
;
SELECT proretset, prorettype = 'void'::regtype FROM pg_catalog.pg_proc WHERE oid = to_regprocedure($1)
;
SELECT q.document_id, q.org_id, '', coalesce(q.worker, ''), coalesce(q.attempt_started_at, q.last_attempted_at)
  FROM daybook.accounting_work_queue q
 WHERE q.state = 'leased' AND ($1 = '' OR q.org_id = $1) AND $2 = '' AND $3 = ''
 ORDER BY 5, 1
 LIMIT 1
;
SELECT q.id
  FROM (SELECT o.id FROM daybook.organizations o ORDER BY o.id LIMIT 20000) o
 CROSS JOIN LATERAL (SELECT q.id FROM daybook.accounting_work_queue q WHERE q.org_id = o.id AND q.document_id = $1 OFFSET 0) q
;
SELECT q.id
  FROM daybook.accounting_work_queue q
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
 WHERE q.turn_id = $1 AND q.fence = $2 AND num_nulls(nullif(q.state, 'leased')) = 1
   AND NOT (coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY ($3)
            AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ $4)
;
SELECT q.id, c.charged,
       q.generation <> q.leased_generation
       OR c.charged AND q.run_count >=  $1  AS ends,
       q.org_id,  '', q.document_id , q.run_count, coalesce(q.worker, ''), coalesce(q.turn_id, '')
  FROM daybook.accounting_work_queue q
 CROSS JOIN LATERAL (SELECT q.working AND $2 AND q.fence < $3) AS c (charged)
 WHERE q.turn_id = ANY ($4) AND num_nulls(nullif(q.state, 'leased')) = 1 AND q.fence < $5
 ORDER BY q.org_id, q.id
   FOR NO KEY UPDATE OF q SKIP LOCKED
;
SELECT q.id, c.charged,
       q.generation <> q.leased_generation
       OR c.charged AND q.run_count >= coalesce(q.max_attempts, greatest($1::integer, 1000)) AS ends,
       q.org_id, q.type, '', q.run_count, coalesce(q.worker, ''), coalesce(q.turn_id, '')
  FROM daybook.jobs q
 CROSS JOIN LATERAL (SELECT q.working AND $2 AND q.fence < $3) AS c (charged)
 WHERE q.turn_id = ANY ($4) AND num_nulls(nullif(q.state, 'leased')) = 1 AND q.fence < $5
 ORDER BY q.org_id, q.id
   FOR NO KEY UPDATE OF q SKIP LOCKED
;
SELECT q.id, q.org_id, q.first_ready_at, CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN q.ready_at END, extract(epoch FROM transaction_timestamp() - q.first_ready_at)::float8,
        q.document_id, NULL::text 
  FROM daybook.accounting_work_queue q
 WHERE q.state = 'pending' AND ($1 = '' OR q.org_id = $1)
 ORDER BY q.first_ready_at, q.id
 LIMIT 1
;
SELECT q.id, q.org_id, q.first_ready_at, CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN q.ready_at END, extract(epoch FROM transaction_timestamp() - q.first_ready_at)::float8,
       NULL::text, q.type
  FROM daybook.jobs q
 WHERE q.state = 'pending' AND ($1 = '' OR q.org_id = $1)
 ORDER BY q.first_ready_at, q.id
 LIMIT 1
;
SELECT q.id, q.org_id, q.first_ready_at, q.ready_at, extract(epoch FROM transaction_timestamp() - q.ready_at)::float8,
        q.document_id, NULL::text 
  FROM daybook.accounting_work_queue q
 WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= transaction_timestamp()  AND ($1 = '' OR q.org_id = $1)
 ORDER BY q.ready_at, q.id
 LIMIT 1
;
SELECT q.id, q.org_id, q.first_ready_at, q.ready_at, extract(epoch FROM transaction_timestamp() - q.ready_at)::float8,
       NULL::text, q.type
  FROM daybook.jobs q
 WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= transaction_timestamp() AND q.fleet <> -2 AND ($1 = '' OR q.org_id = $1)
 ORDER BY q.ready_at, q.id
 LIMIT 1
;
SELECT q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation
       
  FROM daybook.jobs q
 WHERE q.id = ANY ($1) AND q.turn_id = $2 AND q.fence = $3
 ORDER BY q.org_id, q.id
   FOR NO KEY UPDATE SKIP LOCKED
;
SELECT q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation
        , q.document_id, q.version_hint, q.not_ready_count, q.epoch 
  FROM daybook.accounting_work_queue q
 WHERE q.id = ANY ($1) AND q.turn_id = $2 AND q.fence = $3
 ORDER BY q.org_id, q.id
   FOR NO KEY UPDATE SKIP LOCKED
;
SELECT q.id, q.org_id, q.type, coalesce(q.worker, ''), coalesce(q.attempt_started_at, q.last_attempted_at)
  FROM daybook.jobs q
 WHERE q.state = 'leased' AND ($1 = '' OR q.org_id = $1) AND ($2 = '' OR q.queue = $2) AND $3 = ''
 ORDER BY 5, 1
 LIMIT 1
;
SELECT q.org_id, q.document_id
  FROM (SELECT org_id, document_id FROM daybook.accounting_work_queue LIMIT 1000) q
 CROSS JOIN daybook.defaults d
  LEFT JOIN daybook.organizations o ON o.id = q.org_id
 WHERE coalesce(o.source, d.source) = $1
 LIMIT 1
;
SELECT q.priority, q.ready_at, q.id, q.org_id, q.run_count + 1, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
       q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at, coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited, q.updated_at,
       CASE WHEN q.xmax = '0'::xid THEN false
                   WHEN (x.own - q.xmax::text::bigint) & 4294967295 NOT BETWEEN 1 AND least(x.own - 3, 2147483647) THEN false
                   ELSE coalesce(pg_xact_status((x.own - ((x.own - q.xmax::text::bigint) & 4294967295))::text::xid8) = 'aborted', false) END,
       q.ctid, d.others
  FROM (SELECT array_agg(r.id) FILTER (WHERE r.fits) AS ids, count(*) FILTER (WHERE NOT r.fits) AS others, count(*) AS total
          FROM (SELECT i.id, CASE WHEN o.paused_at IS NOT NULL THEN NULL
                                    WHEN i.queue IS NULL THEN daybook.job_slot(i.type, NULL, i.min_version) = ANY ($1::text[]) AND num_nonnulls(o.max_in_flight, o.rate) = 0
                                    WHEN daybook.queue_uncounted(i.queue) IS NOT NULL
                                    THEN daybook.queue_uncounted(i.queue) AND daybook.job_slot(i.type, i.queue, i.min_version) = ANY ($1) AND num_nonnulls(o.max_in_flight, o.rate) = 0 END AS fits
                  FROM (SELECT j.id, j.org_id, j.type, j.queue, j.min_version
                          FROM daybook.jobs j
                         WHERE j.fleet = $2 AND num_nulls(nullif(j.state, 'pending')) = 1 AND j.ready_at > statement_timestamp() - make_interval(secs => $3)
                           AND j.ready_at <= statement_timestamp()
                         LIMIT $4 + 1) i
                  LEFT JOIN daybook.organizations o ON o.id = i.org_id) r) d
 CROSS JOIN (SELECT pg_current_xact_id()::text::bigint) AS x (own)
  JOIN daybook.jobs q ON q.id = ANY (d.ids)
 WHERE d.total <= $4 AND q.state::text = 'pending' AND q.fleet = $2 AND q.ready_at <= statement_timestamp()
   FOR NO KEY UPDATE OF q SKIP LOCKED
;
SELECT queues.end_tasks($1, $2, $3, $4, $5, $6, $7, $8)
;
SELECT queues.fail_task($1, $2)
;
SELECT queues.hand_tasks_over($1, $2, $3, $4, $5)
;
SELECT queues.has_other_tasks($1)
;
SELECT queues.mark_tasks_waiting($1, $2, $3)
;
SELECT queues.next_fence()
;
SELECT queues.note_task_types($1, $2, $3, $4, $5)::text
;
SELECT queues.task_put_off($1, $2)
;
SELECT queues.turns_with_tasks('{}')
;
SELECT r.reason, n.live
  FROM unnest($3::text[]) AS r (reason)
 CROSS JOIN LATERAL (
        SELECT count(*) AS live
          FROM (SELECT i.org_id, i.document_id, i.seq FROM daybook.impacts i
                 WHERE i.kind = 'post' AND i.entry_count = 0 AND i.no_entries = r.reason AND ($1 = '' OR i.org_id = $1)
                 LIMIT $2) i
         WHERE NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.seq = i.seq + 1)) n
 WHERE n.live > 0
;
SELECT r.source
  FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS k (org_id, version, n)
  JOIN daybook.rule_sets r ON r.org_id = k.org_id AND r.version = k.version
 ORDER BY k.n
;
SELECT r.version, r.name, r.source, r.sha256, r.created_at
  FROM daybook.organizations o
  JOIN daybook.rule_sets r ON r.org_id = o.id AND r.version = o.active_rule_set
 WHERE o.id = $1
;
SELECT r.version, r.version IS NOT DISTINCT FROM o.active_rule_set
  FROM daybook.organizations o
  JOIN daybook.rule_sets r ON r.org_id = o.id
 WHERE o.id = $1 AND r.sha256 = $2
   AND (r.version = o.active_rule_set OR r.version = (SELECT max(version) FROM daybook.rule_sets WHERE org_id = $1))
 ORDER BY 2 DESC
 LIMIT 1
;
SELECT result, coalesce(undone_by, '') FROM internal.run_functions($1, $2, $3, $4)
;
SELECT result::text FROM daybook.job_steps WHERE job_id = $1 AND name = $2 AND times = $3 AND attempt = $4
;
SELECT s.pending, s.processing, s.completed, s.failed, s.todays_sent
  FROM daybook.notification_stats(nullif($1, ''), $2) s
;
SELECT s.schemaname || '.' || s.relname, s.n_live_tup, s.n_dead_tup, greatest(s.last_vacuum, s.last_autovacuum)
  FROM pg_catalog.pg_stat_user_tables s
 WHERE s.relid = ANY (ARRAY['daybook.accounting_work_queue', 'daybook.jobs', 'daybook.documents', 'queues.open_task', 'queues.task_cursor']::regclass[])
 ORDER BY 1
;
SELECT s.schemaname || '.' || s.relname, s.n_live_tup, s.n_dead_tup, greatest(s.last_vacuum, s.last_autovacuum),
       NOT coalesce((SELECT o.option_value::boolean FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'autovacuum_enabled'), true),
       coalesce((SELECT o.option_value::float8 FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'autovacuum_vacuum_threshold'),
                current_setting('autovacuum_vacuum_threshold')::float8)
       + coalesce((SELECT o.option_value::float8 FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'autovacuum_vacuum_scale_factor'),
                  current_setting('autovacuum_vacuum_scale_factor')::float8) * greatest(c.reltuples, 0),
       age(c.relfrozenxid)::bigint
  FROM pg_stat_user_tables s
  JOIN pg_class c ON c.oid = s.relid
 WHERE s.schemaname IN ('daybook', 'queues')
 ORDER BY s.n_dead_tup DESC, s.relname
;
SELECT set_config('daybook.actor', $1, true), set_config('daybook.computed_dates', $2, true)
;
SELECT set_config('daybook.org_id', $1, true), set_config('daybook.job_id', $2, true), set_config('daybook.traceparent', $3, true)
;
SELECT set_config('daybook.traceparent', $1, true)
;
SELECT set_config('enable_hashjoin', $1, true), set_config('enable_mergejoin', $1, true), set_config('enable_seqscan', $1, true), set_config('jit', $1, true),
       set_config('plan_cache_mode', $1, true)
;
SELECT set_config('enable_hashjoin', $1, true), set_config('enable_mergejoin', $1, true), set_config('enable_seqscan', $1, true), set_config('jit', $1, true),
       set_config('plan_cache_mode', $1, true), set_config('statement_timeout', $2, true)
;
SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)
;
SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true), set_config('lock_timeout', $1, true)
;
SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true), set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true), CASE WHEN current_setting('transaction_timeout', true) <> '0' THEN set_config('transaction_timeout', '0', true) END
;
SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)
;
SELECT set_config('lock_timeout', $1, true)
;
SELECT set_config('statement_timeout', $1, true)
;
SELECT set_config('statement_timeout', $1, true), set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)
;
SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', '0', true), CASE WHEN current_setting('transaction_timeout', true) <> '0' THEN set_config('transaction_timeout', '0', true) END
;
SELECT set_config('statement_timeout', '0', true)
;
SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', '10s', true), CASE WHEN current_setting('transaction_timeout', true) <> '0' THEN set_config('transaction_timeout', '0', true) END
;
SELECT setting FROM pg_catalog.pg_config WHERE name = 'BINDIR'
;
SELECT starts_on, ends_on, state, closed_at, created_at, updated_at FROM daybook.periods WHERE org_id = $1 ORDER BY starts_on
;
SELECT statement_timestamp(), pg_postmaster_start_time(), (
       SELECT last_attempted_at FROM daybook.accounting_work_queue
        WHERE state = 'leased' AND last_attempted_at >= coalesce($1, statement_timestamp() - make_interval(secs => $2)) AND last_attempted_at < 'infinity'
        ORDER BY last_attempted_at LIMIT 1), (
       SELECT coalesce(array_agg(DISTINCT objid), '{}') FROM pg_locks
        WHERE locktype = 'advisory' AND classid = $3::integer::oid AND objsubid = 2 AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
;
SELECT statement_timestamp(), pg_postmaster_start_time(), (
       SELECT last_attempted_at FROM daybook.jobs
        WHERE state = 'leased' AND last_attempted_at >= coalesce($1, statement_timestamp() - make_interval(secs => $2)) AND last_attempted_at < 'infinity'
        ORDER BY last_attempted_at LIMIT 1), (
       SELECT coalesce(array_agg(DISTINCT objid), '{}') FROM pg_locks
        WHERE locktype = 'advisory' AND classid = $3::integer::oid AND objsubid = 2 AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
;
SELECT t.id, t.org_id, t.name, t.scopes, t.created_at, t.last_used_at, t.revoked_at, t.types, coalesce(t.requests_per_minute, 0), coalesce(t.jobs_per_minute, 0), t.run_by_get,
       t.last_used_at > clock_timestamp() - make_interval(secs => $2)
  FROM daybook.console_sessions s
  JOIN daybook.api_tokens t ON t.id = s.token_id
 WHERE s.hash = $1 AND s.expires_at > clock_timestamp()
;
SELECT t.objects
  FROM daybook.schema_texts t
 WHERE t.version > nullif($1, 0) AND t.objects IS NOT NULL
   AND EXISTS (SELECT FROM daybook.schema_migrations m WHERE m.version_id = t.version AND m.is_applied)
 ORDER BY t.version DESC
 LIMIT 1
;
SELECT t.payload, (SELECT count(*) FROM queues.error e WHERE e.task_id = t.task_id), coalesce(o.worker, ''), coalesce(s.reason, ''), coalesce(t.traceparent, '')
  FROM queues.task t
  LEFT JOIN queues.open_task o ON o.task_id = t.task_id
  LEFT JOIN queues.stuck_tasks s ON s.task_id = t.task_id
 WHERE t.task_id = $1
;
SELECT t.task_id, 'epoch'::timestamptz, t.task_id
  FROM queues.task t
 WHERE t.task_id < $1 AND t.task_id >= $2 AND ($3 = '' OR t.task_type = $3) AND ($4::timestamptz IS NULL OR t.enqueued_at >= $4) AND ($5::timestamptz IS NULL OR t.enqueued_at < $5)
 ORDER BY t.task_id DESC
 LIMIT $6
;
SELECT t.task_id, t.task_type, t.enqueued_at, t.scheduled_at,
       CASE WHEN c.task_id IS NOT NULL THEN 'completed' WHEN o.task_id IS NULL THEN 'unreachable' WHEN o.leased_until > clock_timestamp() THEN 'leased'
            WHEN o.scheduled_at > clock_timestamp() THEN 'waiting' ELSE 'ready' END,
       CASE WHEN c.task_id IS NULL THEN coalesce(o.leases, 0) ELSE (SELECT count(*) FROM queues.task_lease l WHERE l.task_id = t.task_id AND l.renews IS NULL)::integer END,
       CASE WHEN o.leased_until > clock_timestamp() THEN o.leased_until END, c.completed_at,
       coalesce((SELECT e.error_message FROM queues.error e WHERE e.task_id = t.task_id ORDER BY e.error_id DESC LIMIT 1), '')
  FROM unnest($1::bigint[]) WITH ORDINALITY AS x (id, n)
  JOIN queues.task t ON t.task_id = x.id
  LEFT JOIN queues.open_task o ON o.task_id = x.id
  LEFT JOIN queues.task_completed c ON c.task_id = x.id
 ORDER BY x.n
;
SELECT t.task_id, t.task_type, t.payload::text, t.enqueued_at, t.scheduled_at,
       CASE WHEN c.task_id IS NOT NULL THEN 'completed' WHEN o.task_id IS NULL THEN 'unreachable' WHEN o.leased_until > clock_timestamp() THEN 'leased'
            WHEN o.scheduled_at > clock_timestamp() THEN 'waiting' ELSE 'ready' END,
       (SELECT count(*) FROM queues.task_lease l WHERE l.task_id = t.task_id AND l.renews IS NULL)::integer,
       coalesce((SELECT jsonb_agg(e.error_message ORDER BY e.error_id) FROM queues.error e WHERE e.task_id = t.task_id)::text, '[]')
  FROM queues.task t
  LEFT JOIN queues.open_task o ON o.task_id = t.task_id
  LEFT JOIN queues.task_completed c ON c.task_id = t.task_id
 WHERE ($1::text = '' OR t.task_type = $1::text) AND ($2::bigint[] IS NULL OR t.task_id = ANY ($2))
 ORDER BY t.task_id
;
SELECT t.type, (SELECT count(*) FROM daybook.jobs q WHERE q.counted AND q.turn_id IS NOT NULL AND q.type = t.type)
  FROM unnest($1::text[]) AS t (type)
;
SELECT task_id FROM queues.enqueue_tasks($1, $2::text[]::jsonb[], $3) ORDER BY ordinal
;
SELECT task_id, facts FROM queues.remove_completed_tasks($1, $2) ORDER BY task_id
;
SELECT task_id::text, attempt FROM queues.lock_tasks($1, $2, $3)
;
SELECT task_id::text, begun FROM queues.begin_tasks($1, $2, $3)
;
SELECT task_id::text, coalesce(task_type, ''), payload, coalesce(enqueued_at, 'epoch'), leased_at, attempt, reclaims, lost, failed,
       coalesce(ready_at, 'epoch'), coalesce(was_worker, ''), coalesce(was_turn, ''), coalesce(traceparent, '')
  FROM queues.reclaim_tasks_of_turns($1, $2, $3, $4, $5, $6, $7)
;
SELECT task_id::text, missed FROM queues.renew_tasks_of_turn($1, $2, $3)
;
SELECT task_id::text, task_type, attempt FROM queues.give_tasks_of_turn_back($1, $2, $3, $4)
;
SELECT task_type, paused_at, max_in_flight, updated_at FROM queues.task_limit WHERE paused_at IS NOT NULL OR max_in_flight IS NOT NULL ORDER BY task_type
;
SELECT tasks, lost, failed, ended FROM queues.reclaim_expired_tasks($1)
;
SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYYMMDD"T"HH24MISSMS') || '-' || substr(replace(gen_random_uuid()::text, '-', ''), 1, 8)
;
SELECT to_regclass($1::text)::oid
;
SELECT to_regclass('daybook.accounting_work_queue') IS NOT NULL
;
SELECT transaction_timestamp()
;
SELECT transaction_timestamp(),
       (SELECT count(*) FROM daybook.organizations WHERE $1 = '' OR id = $1),
       d.all, d.ready, i.all, i.posts - i.reversals, i.reversals,
       (SELECT count(*) FROM daybook.confirmations c JOIN daybook.impacts i ON i.id = c.impact_id WHERE $1 = '' OR i.org_id = $1)
  FROM (SELECT count(*) AS all, count(*) FILTER (WHERE accounting_ready_at IS NOT NULL AND deleted_at IS NULL) AS ready
          FROM daybook.documents WHERE $1 = '' OR org_id = $1) d,
       (SELECT count(*) AS all, count(*) FILTER (WHERE kind = 'post') AS posts, count(*) FILTER (WHERE kind = 'reverse') AS reversals
          FROM daybook.impacts WHERE $1 = '' OR org_id = $1) i
;
SELECT true, coalesce(jsonb_typeof(d.content -> 'journal') = 'object', false), d.deleted_at IS NOT NULL,
       coalesce(d.content #> '{journal,year_end}' = 'true', false), d.issue_date
  FROM daybook.documents d
 WHERE d.org_id = $1 AND d.id = $2
   FOR NO KEY UPDATE
;
SELECT type, owner FROM daybook.job_types WHERE kind = $1 AND type = ANY ($2) AND owner <> ''
;
SELECT type, state, sum(weight)::bigint, min(created_at), max(created_at), avg(run_count)::float8, bool_or(weight > 1)
  FROM (SELECT type, state, created_at, run_count, 1 AS weight FROM daybook.jobs WHERE num_nulls(nullif(state, 'pending')) = 1 AND ($1 = '' OR org_id = $1)
        UNION ALL
        SELECT type, state, created_at, run_count, 1 FROM daybook.jobs WHERE state = 'leased' AND ($1 = '' OR org_id = $1)
        UNION ALL
        SELECT type, state, created_at, run_count, 1 FROM daybook.jobs WHERE state = 'failed' AND ($1 = '' OR org_id = $1)
        UNION ALL
        SELECT type, state, created_at, run_count, 1 / share
          FROM (SELECT CASE $1 WHEN '' THEN least(1, 4096 * current_setting('block_size')::float8 / greatest(pg_relation_size('daybook.jobs'), 1)) ELSE 1 END AS share) s
         CROSS JOIN LATERAL (SELECT * FROM daybook.jobs TABLESAMPLE SYSTEM (100 * share) REPEATABLE (0) WHERE state IN ('completed', 'cancelled') AND ($1 = '' OR org_id = $1)) ended) j
 GROUP BY type, state
 ORDER BY type, state
;
SELECT u.key, min(u.value), count(*), min(w.name)
  FROM daybook.live_job_workers w
 CROSS JOIN LATERAL jsonb_each_text(w.unshared) u
 GROUP BY u.key
 ORDER BY u.key
 LIMIT $1
;
SELECT u.name, f.name FROM daybook.queues u JOIN daybook.fleets f ON f.id = u.fleet WHERE u.name = ANY ($1) AND u.fleet <> 0
;
SELECT u.name, least(coalesce(u.max_parallel - (SELECT count(*) FROM daybook.jobs q WHERE q.queue = u.name AND q.state = 'leased'), 1000000),
                     coalesce(u.per_process - (SELECT count(*) FROM daybook.jobs q WHERE q.queue = u.name AND q.state = 'leased' AND q.worker = $2), 1000000),
                     CASE WHEN u.rate IS NOT NULL THEN floor(x.starts) ELSE 1000000 END)::integer,
       u.rate IS NOT NULL, coalesce(x.starts, 0)::float8, x.at, coalesce(u.rate_seconds / u.rate, 0)::float8
  FROM daybook.queues u
  LEFT JOIN daybook.queue_rates r ON r.queue = u.name
 CROSS JOIN LATERAL (
       SELECT n.at, least(b.most, coalesce(r.starts + greatest(extract(epoch FROM n.at - r.at), 0)::float8 * u.rate / u.rate_seconds, b.most)) AS starts
         FROM (SELECT clock_timestamp() AS at) n
        CROSS JOIN (SELECT coalesce(u.rate_burst, greatest(1, ceil(u.rate * 0.05 / u.rate_seconds)))::float8 AS most) b) x
 WHERE u.name = ANY ($1)
;
SELECT u.name, u.fleet_name, coalesce(u.max_parallel, 0), coalesce(u.per_process, 0), coalesce(u.rate, 0), coalesce(u.rate_seconds, 0), coalesce(u.rate_burst, 0), u.owner, coalesce(u.set_by, ''), u.set_at, u.paused_at,
       c.pending, c.due, c.leased, c.failed, c.oldest,
       (SELECT count(DISTINCT w.name) FROM daybook.live_job_workers w WHERE w.fleet = u.fleet AND w.id <> 'async-operations')
  FROM (SELECT u.*, f.name AS fleet_name
          FROM daybook.queues u
          JOIN daybook.fleets f ON f.id = u.fleet
         WHERE ($1 = '' OR u.name = $1) AND u.name > $2 AND ($3::text IS NULL OR f.name = $3)
         ORDER BY u.name
         LIMIT nullif($4::integer, 0)) u
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE j.state = 'pending') AS pending,
              count(*) FILTER (WHERE j.state = 'pending' AND j.fleet <> -2 AND j.ready_at <= statement_timestamp()) AS due,
              count(*) FILTER (WHERE j.state = 'leased') AS leased, count(*) FILTER (WHERE j.state = 'failed') AS failed,
              min(j.ready_at) FILTER (WHERE j.state = 'pending' AND j.fleet <> -2 AND j.ready_at <= statement_timestamp()) AS oldest
         FROM daybook.jobs j
        WHERE j.queue = u.name AND j.state IN ('pending', 'leased', 'failed')) c
 ORDER BY u.name
;
SELECT undo_started_at IS NOT NULL FROM daybook.imports WHERE id = $1 AND org_id = $2 FOR UPDATE
;
SELECT version, name, '' AS source, sha256, created_at FROM daybook.rule_sets WHERE org_id = $1 ORDER BY version DESC
;
SELECT version, name, source, sha256, created_at FROM daybook.rule_sets WHERE org_id = $1 AND version = $2
;
SELECT x.at, x.event, x.rank, x.id, x.expires_at, coalesce(x.message, '')
  FROM (SELECT t.enqueued_at AS at, 'enqueued' AS event, 0 AS rank, t.task_id AS id, NULL::timestamptz AS expires_at, NULL::text AS message FROM queues.task t WHERE t.task_id = $1
        UNION ALL
        SELECT l.leased_at, CASE WHEN l.renews IS NULL THEN 'leased' ELSE 'renewed' END, 1, l.task_lease_id, l.expires_at, NULL FROM queues.task_lease l WHERE l.task_id = $1
        UNION ALL
        SELECT e.created_at, 'failed', 2, e.error_id, NULL, e.error_message FROM queues.error e WHERE e.task_id = $1
        UNION ALL
        SELECT c.completed_at, 'completed', 3, c.task_id, NULL, NULL FROM queues.task_completed c WHERE c.task_id = $1) x
 WHERE $2::timestamptz IS NULL OR (x.at, x.rank, x.id) < ($2, $3, $4)
 ORDER BY x.at DESC, x.rank DESC, x.id DESC
 LIMIT $5
;
SELECT x.id, (SELECT t.enqueued_at FROM queues.task t WHERE t.task_id = x.id), x.id
  FROM (SELECT o.task_id AS id FROM queues.open_task o WHERE o.task_id < $1 ORDER BY o.task_id DESC OFFSET $2 LIMIT 1) x
;
SELECT x.id, (SELECT t.enqueued_at FROM queues.task t WHERE t.task_id = x.id), x.id
  FROM (SELECT t.task_id AS id FROM queues.task t WHERE t.task_id < $1 ORDER BY t.task_id DESC OFFSET $2 LIMIT 1) x
;
SELECT y.document_id, coalesce(y.version, 0), y.result, m.currency, m.amount
  FROM daybook.close_year($1, $2, $3, $4, $5) y LEFT JOIN LATERAL jsonb_to_recordset(y.moved) AS m (currency text, amount text) ON true
;
UPDATE daybook.accounting_work_queue
   SET last_attempted_at = clock_timestamp() 
 WHERE id = ANY (ARRAY(
       SELECT id FROM daybook.accounting_work_queue
        WHERE state = 'leased' AND last_attempted_at > statement_timestamp() + interval '10 seconds' 
          FOR NO KEY UPDATE SKIP LOCKED))
;
UPDATE daybook.accounting_work_queue q
   SET ready_at = CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN greatest(q.ready_at - make_interval(secs => $1), clock_timestamp()) ELSE q.ready_at END,
       first_ready_at = CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN q.first_ready_at ELSE q.first_ready_at - make_interval(secs => $1) END
 WHERE q.state = 'pending' AND q.ready_at > clock_timestamp()
;
UPDATE daybook.accounting_work_queue q
   SET run_count = q.run_count + 1, updated_at = clock_timestamp()
 WHERE q.id = $1
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
           q.document_id, q.version_hint, q.not_ready_count, q.epoch ,
          coalesce(q.traceparent, '')
;
UPDATE daybook.accounting_work_queue q
   SET state = 'failed', last_error_code = 'ROW_UNREADABLE', last_error = $1,
       run_count = CASE WHEN q.run_count NOT BETWEEN 0 AND 999999 THEN 0
                        WHEN q.state = 'leased' THEN greatest(q.run_count - 1, 0)
                        ELSE q.run_count END,
       reclaims = 0,  not_ready_count = 0, 
       created_at     = CASE WHEN q.created_at BETWEEN $2 AND $3 THEN q.created_at ELSE clock_timestamp() END,
       ready_at       = CASE WHEN q.ready_at BETWEEN $2 AND $3 THEN q.ready_at ELSE clock_timestamp() END,
       first_ready_at = CASE WHEN q.first_ready_at BETWEEN $2 AND $3 THEN q.first_ready_at ELSE clock_timestamp() END,
       last_attempted_at = CASE WHEN q.last_attempted_at BETWEEN $2 AND $3 THEN q.last_attempted_at END,
       finished_at = clock_timestamp(), updated_at = clock_timestamp(), cancel_requested = false, working = false,
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
 WHERE q.id = $4
RETURNING q.org_id,  '', q.document_id , q.run_count
;
UPDATE daybook.accounting_work_queue q
   SET state = 'leased', turn_id = $1, detached = $2, fence = $3, worker = $4, leased_generation = generation,
       run_count = v.attempt, attempt_started_at = v.started_at, last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = NOT v.waiting, capped = false 
  FROM unnest($5::text[], $6::integer[], $7::timestamptz[], $8::timestamptz[], $9::boolean[])
       AS v (id, attempt, started_at, updated_at, waiting)
 WHERE q.id = v.id AND q.state::text = 'pending' AND q.run_count = v.attempt - 1 AND ($10 OR q.updated_at = v.updated_at )
RETURNING q.id
;
UPDATE daybook.accounting_work_queue q
   SET turn_id = $1, detached = $2, fence = $3, worker = $4,
       run_count = q.run_count + CASE WHEN held.charged THEN 1 ELSE 0 END, working =  false ,
       reclaims = least(q.reclaims, 999999) + CASE WHEN $5 THEN 1 ELSE 0 END,
       last_error      = CASE WHEN held.charged THEN 'the worker ended while it worked on this job' ELSE q.last_error END,
       last_error_code = CASE WHEN held.charged THEN $6 ELSE q.last_error_code END,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp()
  FROM unnest($7::text[], $8::boolean[]) AS held (id, charged)
 WHERE q.id = held.id
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation,
           q.document_id, q.version_hint, q.not_ready_count, q.epoch ,
          coalesce(q.traceparent, '')
;
UPDATE daybook.accounting_work_queue q
   SET working = false
 WHERE q.id = ANY (ARRAY(SELECT id FROM daybook.accounting_work_queue
                          WHERE id = ANY ($1) AND turn_id = $2 AND fence = $3
                          ORDER BY org_id, id FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id
;
UPDATE daybook.accounting_work_queue q
   SET working = true, last_attempted_at = clock_timestamp(), attempt_started_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM daybook.accounting_work_queue
                          WHERE id = ANY ($1) AND turn_id = $2 AND fence = $3 AND NOT cancel_requested
                          ORDER BY org_id, id FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id, q.attempt_started_at
;
UPDATE daybook.api_tokens
   SET last_used_at = clock_timestamp()
 WHERE id = $1 AND (last_used_at > clock_timestamp() - make_interval(secs => $2)) IS NOT TRUE
;
UPDATE daybook.api_tokens t
   SET revoked_at = coalesce(b.revoked_at, clock_timestamp())
  FROM (SELECT b.id, b.revoked_at FROM daybook.api_tokens b WHERE b.id = $1 FOR NO KEY UPDATE) b
 WHERE t.id = b.id
RETURNING t.id, t.org_id, t.name, t.scopes, t.created_at, t.last_used_at, t.revoked_at, t.types, coalesce(t.requests_per_minute, 0),
          coalesce(t.jobs_per_minute, 0), t.run_by_get, b.revoked_at IS NULL
;
UPDATE daybook.archives SET erased_at = clock_timestamp(), org_ids = '{}' WHERE key = $1 AND erased_at IS NULL
;
UPDATE daybook.archives SET restored_at = clock_timestamp() WHERE key = $1
;
UPDATE daybook.bulk_operations o
   SET matched = (SELECT coalesce(sum(cardinality(b.job_ids)), 0) FROM daybook.bulk_batches b WHERE b.operation_id = o.id)
 WHERE o.id = $1
RETURNING matched
;
UPDATE daybook.closings SET signature = $3, key_id = $4 WHERE org_id = $1 AND number = $2
;
UPDATE daybook.documents d
   SET accounting_impact_created_at = CASE WHEN k.live THEN clock_timestamp() END
  FROM (SELECT unnest($1::text[]) AS org_id, unnest($2::text[]) AS id, unnest($3::boolean[]) AS live, unnest($4::tid[]) AS place) k
 WHERE d.ctid = k.place AND d.org_id = k.org_id AND d.id = k.id
;
UPDATE daybook.documents d
   SET accounting_impact_created_at = CASE WHEN k.live THEN clock_timestamp() END
  FROM unnest($1::text[], $2::text[], $3::boolean[]) AS k (org_id, id, live)
 WHERE d.org_id = k.org_id AND d.id = k.id
;
UPDATE daybook.erasures SET finished_at = clock_timestamp(), kept = $2, open_jobs = $3 WHERE id = $1
;
UPDATE daybook.erasures e
   SET counts = (SELECT coalesce(jsonb_object_agg(x.key, x.total), '{}')
                   FROM (SELECT key, sum(value::bigint) AS total
                           FROM (SELECT * FROM jsonb_each_text(e.counts) UNION ALL SELECT * FROM jsonb_each_text($2)) AS both_of (key, value)
                          GROUP BY key HAVING sum(value::bigint) > 0) x)
 WHERE e.id = $1
;
UPDATE daybook.gauges SET holder = '' WHERE holder = $1
;
UPDATE daybook.imports SET ended_at = clock_timestamp(), inserted = inserted + $2, changed = changed + $3, unchanged = unchanged + $4
 WHERE id = $1 RETURNING id
;
UPDATE daybook.job_deliveries
   SET state = $1, reference = nullif($2, ''), error_code = nullif($3, ''), error = nullif($4, ''), ended_at = clock_timestamp()
 WHERE job_id = $5 AND channel = $6 AND attempt = $7 AND state IN ('sending', 'unknown')
RETURNING channel
;
UPDATE daybook.job_limit_rates
   SET look_at = clock_timestamp()
 WHERE (scope, org_id, limit_key) IN (
       SELECT r.scope, r.org_id, r.limit_key
         FROM daybook.job_limits l
         JOIN daybook.job_limit_rates r ON r.scope = l.scope
        WHERE r.look_at > statement_timestamp() + interval '10 seconds' + make_interval(secs => l.rate_seconds / l.rate)
          FOR NO KEY UPDATE OF r SKIP LOCKED)
;
UPDATE daybook.job_workers
   SET first_seen = least(first_seen, clock_timestamp()), last_seen = least(last_seen, clock_timestamp())
 WHERE id = ANY (ARRAY(
       SELECT id FROM daybook.job_workers WHERE greatest(first_seen, last_seen) > statement_timestamp() + interval '10 seconds' FOR NO KEY UPDATE SKIP LOCKED))
;
UPDATE daybook.job_workers SET stopped_at = clock_timestamp() WHERE id = $1 RETURNING id
;
UPDATE daybook.job_workflows
   SET asked_at = least(asked_at, clock_timestamp()), cancelled_at = CASE WHEN cancelled_at IS NOT NULL THEN least(cancelled_at, clock_timestamp()) END,
       due_at = CASE WHEN due_at IS NOT NULL THEN clock_timestamp() END
 WHERE job_id = ANY (ARRAY(
       SELECT job_id FROM daybook.job_workflows
        WHERE greatest(asked_at, cancelled_at, due_at - make_interval(secs => 60 + grace_seconds)) > statement_timestamp() + interval '10 seconds'
          FOR NO KEY UPDATE SKIP LOCKED))
;
UPDATE daybook.job_workflows
   SET due_at = clock_timestamp() + make_interval(secs => $3), cancelled_at = CASE WHEN $4 THEN clock_timestamp() ELSE cancelled_at END
 WHERE job_id = $1 AND due_at = $2
;
UPDATE daybook.job_workflows SET due_at = NULL, cancelled_at = NULL WHERE job_id = $1 AND due_at = $2
;
UPDATE daybook.jobs
   SET last_attempted_at = clock_timestamp() + CASE WHEN daybook.is_async_operation_claim(turn_id) THEN daybook.async_operation_lease() ELSE '0' END
 WHERE id = ANY (ARRAY(
       SELECT id FROM daybook.jobs
        WHERE state = 'leased' AND last_attempted_at > statement_timestamp() + interval '10 seconds'
          AND (last_attempted_at > statement_timestamp() + interval '10 seconds' + daybook.async_operation_lease() OR NOT daybook.is_async_operation_claim(turn_id))
          FOR NO KEY UPDATE SKIP LOCKED))
;
UPDATE daybook.jobs SET progress = $1::text::jsonb, updated_at = clock_timestamp()
 WHERE id = $2 AND turn_id = $3 AND fence = $4 AND run_count = $5 AND leased_generation = $6
       AND attempt_started_at = $7
RETURNING id
;
UPDATE daybook.jobs q
   SET run_count = q.run_count + 1, updated_at = clock_timestamp()
 WHERE q.id = $1
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, clock_timestamp(), q.reclaims, q.cancel_requested, q.generation,
          q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          ,
          coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited
;
UPDATE daybook.jobs q
   SET state = 'failed', last_error_code = 'ROW_UNREADABLE', last_error = $1,
       run_count = CASE WHEN q.run_count NOT BETWEEN 0 AND 999999 THEN 0
                        WHEN q.state = 'leased' THEN greatest(q.run_count - 1, 0)
                        ELSE q.run_count END,
       reclaims = 0, 
       created_at     = CASE WHEN q.created_at BETWEEN $2 AND $3 THEN q.created_at ELSE clock_timestamp() END,
       ready_at       = CASE WHEN q.ready_at BETWEEN $2 AND $3 THEN q.ready_at ELSE clock_timestamp() END,
       first_ready_at = CASE WHEN q.first_ready_at BETWEEN $2 AND $3 THEN q.first_ready_at ELSE clock_timestamp() END,
       last_attempted_at = CASE WHEN q.last_attempted_at BETWEEN $2 AND $3 THEN q.last_attempted_at END,
       finished_at = clock_timestamp(), updated_at = clock_timestamp(), cancel_requested = false, working = false,
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
 WHERE q.id = $4
RETURNING q.org_id, q.type, '', q.run_count
;
UPDATE daybook.jobs q
   SET state = 'leased', turn_id = $1, detached = $2, fence = $3, worker = $4, leased_generation = generation,
       run_count = v.attempt, attempt_started_at = v.started_at, last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = NOT v.waiting, capped = false, counted = false
  FROM unnest($5::text[], $6::integer[], $7::timestamptz[], $8::timestamptz[], $9::boolean[])
       AS v (id, attempt, started_at, updated_at, waiting)
 WHERE q.id = v.id AND q.state::text = 'pending' AND q.run_count = v.attempt - 1 AND ($10 OR q.updated_at = v.updated_at AND q.unique_hash IS NULL)
RETURNING q.id
;
UPDATE daybook.jobs q
   SET turn_id = $1, detached = $2, fence = $3, worker = $4,
       run_count = q.run_count + CASE WHEN held.charged THEN 1 ELSE 0 END, working = true,
       reclaims = least(q.reclaims, 999999) + CASE WHEN $5 THEN 1 ELSE 0 END,
       last_error      = CASE WHEN held.charged THEN 'the worker ended while it worked on this job' ELSE q.last_error END,
       last_error_code = CASE WHEN held.charged THEN $6 ELSE q.last_error_code END,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp()
  FROM unnest($7::text[], $8::boolean[]) AS held (id, charged)
 WHERE q.id = held.id
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation,
          q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          ,
          coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited
;
UPDATE daybook.jobs q
   SET working = false
 WHERE q.id = ANY (ARRAY(SELECT id FROM daybook.jobs
                          WHERE id = ANY ($1) AND turn_id = $2 AND fence = $3
                          ORDER BY org_id, id FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id
;
UPDATE daybook.jobs q
   SET working = true, last_attempted_at = clock_timestamp(), attempt_started_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM daybook.jobs
                          WHERE id = ANY ($1) AND turn_id = $2 AND fence = $3 AND NOT cancel_requested
                          ORDER BY org_id, id FOR NO KEY UPDATE SKIP LOCKED))
RETURNING q.id, q.attempt_started_at
;
UPDATE daybook.organization_rates
   SET at = clock_timestamp()
 WHERE org_id = ANY (ARRAY(SELECT org_id FROM daybook.organization_rates WHERE at > statement_timestamp() + interval '10 seconds' FOR NO KEY UPDATE SKIP LOCKED))
;
UPDATE daybook.organizations SET active_rule_set = $2, config_version = config_version + 1, updated_at = clock_timestamp() WHERE id = $1
;
UPDATE daybook.organizations SET closed_period_policy = $2 WHERE id = $1 AND closed_period_policy <> $2
;
UPDATE daybook.organizations SET config_version = config_version + 1, updated_at = clock_timestamp() WHERE id = $1
;
UPDATE daybook.organizations SET exchange_accounts = $2, updated_at = clock_timestamp() WHERE id = $1 RETURNING id
;
UPDATE daybook.organizations SET max_in_flight = $2, updated_at = clock_timestamp() WHERE id = $1 AND max_in_flight IS DISTINCT FROM $2
;
UPDATE daybook.organizations SET name = $2, updated_at = clock_timestamp() WHERE id = $1 AND $2 <> '' AND name <> $2
;
UPDATE daybook.organizations SET paused_at = NULL, updated_at = clock_timestamp() WHERE id = $1 AND paused_at IS NOT NULL
;
UPDATE daybook.organizations SET paused_at = clock_timestamp(), updated_at = clock_timestamp() WHERE id = $1 AND paused_at IS NULL
;
UPDATE daybook.organizations SET rate = nullif($2::integer, 0), rate_seconds = nullif($3::float8, 0), updated_at = clock_timestamp()
 WHERE id = $1 AND (rate, rate_seconds) IS DISTINCT FROM (nullif($2::integer, 0), nullif($3::float8, 0))
;
UPDATE daybook.periods SET state = 'closed', closed_at = clock_timestamp(), updated_at = clock_timestamp()
 WHERE org_id = $1 AND starts_on = $2 AND state <> 'closed'
;
UPDATE daybook.periods SET state = 'open', closed_at = NULL, updated_at = clock_timestamp()
 WHERE org_id = $1 AND starts_on = $2 AND state <> 'open'
;
UPDATE daybook.queue_rates
   SET at = clock_timestamp()
 WHERE queue = ANY (ARRAY(SELECT queue FROM daybook.queue_rates WHERE at > statement_timestamp() + interval '10 seconds' FOR NO KEY UPDATE SKIP LOCKED))
;
UPDATE queues.open_task o
   SET scheduled_at = greatest(o.scheduled_at - make_interval(secs => $1), clock_timestamp()), arrived = pg_current_xact_id()
 WHERE o.leased_until IS NULL AND o.scheduled_at > clock_timestamp()
;
WITH RECURSIVE causes AS (
    (SELECT j.last_error_code AS code, j.type FROM daybook.jobs j WHERE j.state = 'failed' ORDER BY j.last_error_code, j.type LIMIT 1)
    UNION ALL
    SELECT n.code, n.type
      FROM causes c
     CROSS JOIN LATERAL (SELECT j.last_error_code AS code, j.type FROM daybook.jobs j
                          WHERE j.state = 'failed' AND (j.last_error_code, j.type) > (c.code, c.type)
                          ORDER BY j.last_error_code, j.type LIMIT 1) n
)
SELECT c.type, c.code, '',
       (SELECT count(*) FROM (SELECT FROM daybook.jobs j WHERE j.state = 'failed' AND j.last_error_code = c.code AND j.type = c.type LIMIT $1) x),
       (SELECT j.finished_at FROM daybook.jobs j WHERE j.state = 'failed' AND j.last_error_code = c.code AND j.type = c.type ORDER BY j.finished_at LIMIT 1),
       n.finished_at, n.id, n.org_id, '', n.last_error
  FROM (SELECT code, type FROM causes LIMIT $2) c
 CROSS JOIN LATERAL (SELECT j.finished_at, j.id, j.org_id, j.last_error FROM daybook.jobs j
                      WHERE j.state = 'failed' AND j.last_error_code = c.code AND j.type = c.type ORDER BY j.finished_at DESC, j.id LIMIT 1) n
;
WITH RECURSIVE causes AS (
    (SELECT q.last_error_code AS code FROM daybook.accounting_work_queue q WHERE q.state = 'failed' AND q.org_id = $1 ORDER BY q.last_error_code LIMIT 1)
    UNION ALL
    SELECT n.code
      FROM causes c
     CROSS JOIN LATERAL (SELECT q.last_error_code AS code FROM daybook.accounting_work_queue q
                          WHERE q.state = 'failed' AND q.org_id = $1 AND q.last_error_code > c.code ORDER BY q.last_error_code LIMIT 1) n
)
SELECT '', c.code, '',
       (SELECT count(*) FROM (SELECT FROM daybook.accounting_work_queue q
                               WHERE q.state = 'failed' AND q.org_id = $1 AND q.last_error_code = c.code LIMIT $2) x),
       (SELECT q.updated_at FROM daybook.accounting_work_queue q
         WHERE q.state = 'failed' AND q.org_id = $1 AND q.last_error_code = c.code ORDER BY q.updated_at LIMIT 1),
       n.updated_at, n.id, n.org_id, n.document_id, n.last_error
  FROM (SELECT code FROM causes LIMIT $3) c
 CROSS JOIN LATERAL (SELECT q.updated_at, q.id, q.org_id, q.document_id, q.last_error FROM daybook.accounting_work_queue q
                      WHERE q.state = 'failed' AND q.org_id = $1 AND q.last_error_code = c.code ORDER BY q.updated_at DESC, q.id LIMIT 1) n
;
WITH RECURSIVE causes AS (
    (SELECT q.last_error_code AS code FROM daybook.accounting_work_queue q WHERE q.state = 'failed' ORDER BY q.last_error_code LIMIT 1)
    UNION ALL
    SELECT n.code
      FROM causes c
     CROSS JOIN LATERAL (SELECT q.last_error_code AS code FROM daybook.accounting_work_queue q
                          WHERE q.state = 'failed' AND q.last_error_code > c.code ORDER BY q.last_error_code LIMIT 1) n
)
SELECT '', c.code, '',
       (SELECT count(*) FROM (SELECT FROM daybook.accounting_work_queue q WHERE q.state = 'failed' AND q.last_error_code = c.code LIMIT $1) x),
       (SELECT q.updated_at FROM daybook.accounting_work_queue q WHERE q.state = 'failed' AND q.last_error_code = c.code ORDER BY q.updated_at LIMIT 1),
       n.updated_at, n.id, n.org_id, n.document_id, n.last_error
  FROM (SELECT code FROM causes LIMIT $2) c
 CROSS JOIN LATERAL (SELECT q.updated_at, q.id, q.org_id, q.document_id, q.last_error FROM daybook.accounting_work_queue q
                      WHERE q.state = 'failed' AND q.last_error_code = c.code ORDER BY q.updated_at DESC, q.id LIMIT 1) n
;
WITH RECURSIVE held AS (
    SELECT o.task_id, o.task_type, o.worker, l.leased_at, l.renews
      FROM queues.open_task o
      JOIN queues.task_lease l USING (task_lease_id)
     WHERE o.leased_until IS NOT NULL AND $1 = '' AND $2 = '' AND ($3 = '' OR o.task_type = $3)
    UNION ALL
    SELECT h.task_id, h.task_type, h.worker, l.leased_at, l.renews
      FROM held h
      JOIN queues.task_lease l ON l.task_lease_id = h.renews
)
SELECT h.task_id::text, '', h.task_type, coalesce(h.worker, ''), h.leased_at
  FROM held h
 WHERE h.renews IS NULL
 ORDER BY 5, 1
 LIMIT 1
;
WITH RECURSIVE kinds AS (
    SELECT min(l.kind) AS kind FROM daybook.job_links l
    UNION ALL
    SELECT (SELECT min(l.kind) FROM daybook.job_links l WHERE l.kind > k.kind) FROM kinds k WHERE k.kind IS NOT NULL
)
SELECT l.job_id FROM kinds k JOIN daybook.job_links l ON l.kind = k.kind AND l.id = $1
;
WITH RECURSIVE names (name) AS (
    SELECT min(action) FROM daybook.actions
     UNION ALL
    SELECT (SELECT min(a.action) FROM daybook.actions a WHERE a.action > n.name) FROM names n WHERE n.name IS NOT NULL
)
SELECT name FROM names WHERE name IS NOT NULL ORDER BY name
;
WITH RECURSIVE parts AS (
    (SELECT q.priority, q.org_id,  ''::text  AS slot, q.ready_at, q.id , 1 AS n
       FROM daybook.accounting_work_queue q
      WHERE q.state = 'pending' 
        AND (q.priority, q.org_id ) > ($1::smallint, $2::text )
      ORDER BY q.priority, q.org_id , q.ready_at, q.id
      LIMIT 1)
    UNION ALL
    SELECT next.*, parts.n + 1
      FROM parts
     CROSS JOIN LATERAL (
           SELECT q.priority, q.org_id,  ''::text  AS slot, q.ready_at, q.id 
             FROM daybook.accounting_work_queue q
            WHERE q.state = 'pending' 
              AND (q.priority, q.org_id ) > (parts.priority, parts.org_id )
            ORDER BY q.priority, q.org_id , q.ready_at, q.id
            LIMIT 1) next
     WHERE parts.n < $3
)
SELECT p.priority, p.org_id, p.slot, p.ready_at, p.id,  o.max_in_flight IS NOT NULL ,  false ,
       o.paused_at IS NULL ,
        coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY ($4)
                                    AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ $5 ,
       extract(epoch FROM greatest(least(p.ready_at, statement_timestamp() + interval '1 day'), statement_timestamp()) - statement_timestamp())::float8
  FROM parts p
  LEFT JOIN daybook.organizations o ON o.id = p.org_id
   
 ORDER BY p.n
;
WITH RECURSIVE parts AS (
    (SELECT q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version) AS slot, q.ready_at, q.id, q.queue, 1 AS n
       FROM daybook.jobs q
      WHERE q.state = 'pending' AND q.fleet = $1
        AND (q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version)) > ($2::smallint, $3::text, $4::text)
      ORDER BY q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version), q.ready_at, q.id
      LIMIT 1)
    UNION ALL
    SELECT next.*, parts.n + 1
      FROM parts
     CROSS JOIN LATERAL (
           SELECT q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version) AS slot, q.ready_at, q.id, q.queue
             FROM daybook.jobs q
            WHERE q.state = 'pending' AND q.fleet = $1
              AND (q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version)) > (parts.priority, parts.org_id, parts.slot)
            ORDER BY q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version), q.ready_at, q.id
            LIMIT 1) next
     WHERE parts.n < $5
)
SELECT p.priority, p.org_id, p.slot, p.ready_at, p.id, num_nonnulls(o.max_in_flight, o.rate) > 0, num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0,
       o.paused_at IS NULL AND u.paused_at IS NULL,
       true,
       extract(epoch FROM greatest(least(p.ready_at, statement_timestamp() + interval '1 day'), statement_timestamp()) - statement_timestamp())::float8
  FROM parts p
  LEFT JOIN daybook.organizations o ON o.id = p.org_id
  LEFT JOIN daybook.queues u ON u.name = p.queue
 ORDER BY p.n
;
WITH again AS (
    SELECT w.job_id
      FROM daybook.job_workflows w
     WHERE w.namespace = $1 AND w.due_at <= clock_timestamp()
     ORDER BY w.due_at
     LIMIT 25
       FOR NO KEY UPDATE SKIP LOCKED
), ended AS (
    SELECT w.job_id
      FROM daybook.job_workflows w
      -- The limit keeps this a lookup by key for each.
      LEFT JOIN LATERAL (SELECT j.id FROM daybook.jobs j WHERE j.id = w.job_id AND j.state IN ('pending', 'leased') AND NOT j.cancel_requested LIMIT 1) open ON true
     WHERE w.namespace = $1 AND w.due_at IS NULL AND open.id IS NULL AND w.asked_at < statement_timestamp() - interval '1 second'
     ORDER BY w.asked_at
     LIMIT 25
       FOR NO KEY UPDATE OF w SKIP LOCKED
), due AS (
    SELECT job_id FROM again UNION ALL SELECT job_id FROM ended
)
UPDATE daybook.job_workflows w
   SET due_at = clock_timestamp() + interval '30 seconds'
  FROM due
 WHERE w.job_id = due.job_id
RETURNING w.job_id, w.due_at,
          NOT EXISTS (SELECT FROM daybook.jobs j WHERE j.id = w.job_id AND j.state IN ('pending', 'leased') AND NOT j.cancel_requested),
          clock_timestamp() - w.asked_at, clock_timestamp() - w.cancelled_at, make_interval(secs => w.grace_seconds)
;
WITH attempts AS (DELETE FROM daybook.attempt_log WHERE job_id = ANY ($1) RETURNING 1),
     links AS (SELECT FROM daybook.job_links WHERE job_id = ANY ($1)), -- they go with their jobs
     receipts AS (DELETE FROM daybook.webhook_deliveries WHERE job_id = ANY ($1) RETURNING 1),
     deliveries AS (DELETE FROM daybook.job_deliveries WHERE job_id = ANY ($1) RETURNING 1),
     steps AS (SELECT FROM daybook.job_steps WHERE job_id = ANY ($1)), -- as links
     jobs AS (DELETE FROM daybook.jobs WHERE id = ANY ($1) RETURNING 1)
SELECT ARRAY[(SELECT count(*) FROM jobs), (SELECT count(*) FROM attempts), (SELECT count(*) FROM links), (SELECT count(*) FROM receipts), (SELECT count(*) FROM deliveries), (SELECT count(*) FROM steps)]
;
WITH bare AS MATERIALIZED (
    SELECT i.org_id, i.document_id, i.seq, i.document_version, i.created_at
      FROM daybook.impacts i
     WHERE i.kind = 'post' AND i.entry_count = 0 AND i.no_entries = '' AND ($1 = '' OR i.org_id = $1)
     ORDER BY i.org_id, i.id
     LIMIT $2
), wrong AS MATERIALIZED (
    SELECT b.*
      FROM bare b
     CROSS JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = b.org_id AND x.id = b.document_id LIMIT 1) d
     WHERE d.accounting_ready_at IS NOT NULL AND d.deleted_at IS NULL AND d.accounting_ready_version = b.document_version AND daybook.states_amount(d.content)
       AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = b.org_id AND x.document_id = b.document_id AND x.seq = b.seq + 1)
       AND NOT EXISTS (SELECT 1 FROM daybook.accounting_work_queue q
                        WHERE q.org_id = b.org_id AND q.document_id = b.document_id AND q.state IN ('pending', 'leased', 'failed'))
       AND NOT EXISTS (SELECT 1 FROM daybook.posted_elsewhere p WHERE p.org_id = b.org_id AND p.document_id = b.document_id)
)
SELECT count(*), min(created_at), coalesce((array_agg(org_id ORDER BY created_at))[1], ''), coalesce((array_agg(document_id ORDER BY created_at))[1], '')
  FROM wrong
;
WITH callbacks AS (
    UPDATE daybook.job_callbacks SET deadline = deadline - make_interval(secs => $1) WHERE called_at IS NULL
)
UPDATE daybook.jobs q
   SET ready_at = CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN greatest(q.ready_at - make_interval(secs => $1), clock_timestamp()) ELSE q.ready_at END,
       first_ready_at = CASE WHEN q.ready_at < '9999-12-31 00:00:00+00' THEN q.first_ready_at ELSE q.first_ready_at - make_interval(secs => $1) END
 WHERE q.state = 'pending' AND q.ready_at > clock_timestamp()
;
WITH closed AS (
    DELETE FROM daybook.job_callbacks
     WHERE called_at IS NULL
       AND token_hash IN (SELECT token_hash FROM daybook.job_callbacks WHERE job_id = $1 AND name = $2 AND called_at IS NULL
                           ORDER BY deadline > clock_timestamp() DESC, created_at DESC OFFSET $3 FOR NO KEY UPDATE SKIP LOCKED)
)
INSERT INTO daybook.job_callbacks (token_hash, job_id, name, deadline)
SELECT $4, j.id, $2, clock_timestamp() + make_interval(secs => $5)
  FROM daybook.jobs j
 WHERE j.id = $1
   FOR KEY SHARE
RETURNING job_id
;
WITH counted AS (
    SELECT id AS org_id, 0 AS documents, 0 AS open, 0 AS failed, 0 AS impacts, 0 AS live FROM daybook.organizations WHERE $1 = '' OR id = $1
     UNION ALL
    SELECT org_id, count(*), 0, 0, 0, 0 FROM daybook.documents WHERE $1 = '' OR org_id = $1 GROUP BY org_id
     UNION ALL
    SELECT org_id, 0, count(*) FILTER (WHERE state IN ('pending', 'leased')), count(*) FILTER (WHERE state = 'failed'), 0, 0
      FROM daybook.accounting_work_queue WHERE $1 = '' OR org_id = $1 GROUP BY org_id
     UNION ALL
    SELECT org_id, 0, 0, 0, count(*), count(*) FILTER (WHERE kind = 'post') - count(*) FILTER (WHERE kind = 'reverse')
      FROM daybook.impacts WHERE $1 = '' OR org_id = $1 GROUP BY org_id
)
SELECT coalesce(o.source, (SELECT d.source FROM daybook.defaults d WHERE d.one)), count(DISTINCT c.org_id),
       sum(c.documents)::bigint, sum(c.open)::bigint, sum(c.failed)::bigint, sum(c.impacts)::bigint, sum(c.live)::bigint
  FROM counted c
  LEFT JOIN daybook.organizations o ON o.id = c.org_id
 GROUP BY 1
 ORDER BY 1
;
WITH days AS (
    SELECT DISTINCT i.org_id, i.posting_date FROM daybook.impacts i WHERE $1 = '' OR i.org_id = $1
), kept_days AS (
    SELECT d.org_id, d.posting_date, k.starts_on, k.ends_on, k.tax_accounts
      FROM daybook.closed_sum_spans k JOIN days d ON d.org_id = k.org_id AND d.posting_date BETWEEN k.starts_on AND k.ends_on
), posted AS MATERIALIZED (
    SELECT k.org_id, k.starts_on, e.account_code, e.currency, e.rule_line_id = 'year-end' AS year_end, e.dimensions,
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'debit'), 0) AS debit, coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'credit'), 0) AS credit
      FROM kept_days k
      JOIN daybook.impacts i ON i.org_id = k.org_id AND i.posting_date = k.posting_date
      JOIN daybook.entries e ON e.impact_id = i.id
     GROUP BY 1, 2, 3, 4, 5, 6
), sums AS (
    SELECT p.org_id, p.starts_on, p.account_code, p.currency, p.year_end, '{}'::jsonb AS dimensions, sum(p.debit) AS debit, sum(p.credit) AS credit
      FROM posted p GROUP BY 1, 2, 3, 4, 5
     UNION ALL
    SELECT p.org_id, p.starts_on, p.account_code, p.currency, p.year_end, p.dimensions, p.debit, p.credit FROM posted p WHERE p.dimensions IS NOT NULL
), kept AS (
    SELECT k.org_id, k.starts_on, k.account_code, k.currency, k.year_end, '{}'::jsonb AS dimensions, k.debit, k.credit
      FROM daybook.closed_sums k WHERE $1 = '' OR k.org_id = $1
     UNION ALL
    SELECT k.org_id, k.starts_on, k.account_code, k.currency, k.year_end, k.dimensions, k.debit, k.credit
      FROM daybook.closed_dimension_sums k WHERE $1 = '' OR k.org_id = $1
), impacts AS MATERIALIZED (
    SELECT k.org_id, k.starts_on, k.tax_accounts, i.id, i.document_id, i.document_version, i.seq, i.kind, i.entry_count, i.created_at
      FROM kept_days k JOIN daybook.impacts i ON i.org_id = k.org_id AND i.posting_date = k.posting_date
), stated AS MATERIALIZED (
    SELECT i.org_id, i.starts_on, i.document_id, t.currency, t.direction, t.country, t.category, t.code, t.rate, 1 AS documents, t.base, t.tax
      FROM impacts i JOIN daybook.closed_taxes t ON t.impact_id = i.id
     UNION ALL
    SELECT r.org_id, r.starts_on, r.document_id, t.currency, t.direction, t.country, t.category, t.code, t.rate, -1, -t.base, -t.tax
      FROM impacts r
      JOIN daybook.impacts p ON p.org_id = r.org_id AND p.document_id = r.document_id AND p.seq = r.seq - 1
      JOIN daybook.closed_taxes t ON t.impact_id = p.id
     WHERE r.kind = 'reverse'
), tax_sums AS (
    SELECT x.org_id, x.starts_on, x.currency, sum(x.tax) AS difference
      FROM (SELECT s.org_id, s.starts_on, s.currency, s.direction, s.country, s.category, s.code, s.rate, s.documents, s.base, s.tax FROM stated s
             UNION ALL
            SELECT k.org_id, k.starts_on, k.currency, k.direction, k.country, k.category, k.code, k.rate, -k.documents, -k.base, -k.tax
              FROM daybook.closed_tax_sums k WHERE $1 = '' OR k.org_id = $1) x
     GROUP BY x.org_id, x.starts_on, x.currency, x.direction, x.country, x.category, x.code, x.rate
    HAVING sum(x.documents) <> 0 OR sum(x.base) <> 0 OR sum(x.tax) <> 0
), differing AS (
    SELECT x.org_id, x.starts_on, x.document_id, x.currency, sum(x.stated) AS stated, sum(x.posted) AS posted
      FROM (SELECT s.org_id, s.starts_on, s.document_id, s.currency, CASE s.direction WHEN 'out' THEN s.tax ELSE -s.tax END AS stated, 0 AS posted FROM stated s
             UNION ALL
            SELECT i.org_id, i.starts_on, i.document_id, e.currency, 0, CASE e.side WHEN 'credit' THEN e.amount_minor ELSE -e.amount_minor END
              FROM impacts i JOIN daybook.entries e ON e.impact_id = i.id
             WHERE e.account_code = ANY (i.tax_accounts)) x
     GROUP BY 1, 2, 3, 4
    HAVING sum(x.stated) <> sum(x.posted)
), unchanged AS MATERIALIZED (
    SELECT i.org_id, i.starts_on, i.id, i.document_id, d.currency, d.type, d.direction, d.content -> 'taxes' AS taxes
      FROM impacts i JOIN daybook.documents d ON d.org_id = i.org_id AND d.id = i.document_id
     WHERE i.kind = 'post' AND i.entry_count > 0 AND d.accounting_ready_version = i.document_version AND greatest(d.created_at, d.updated_at) <= i.created_at
       AND NOT EXISTS (SELECT FROM daybook.posted_elsewhere p JOIN daybook.entries e ON e.impact_id = i.id AND e.rule_line_id = 'posted-elsewhere'
                        WHERE p.org_id = i.org_id AND p.document_id = i.document_id)
       AND NOT EXISTS (SELECT FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
       AND NOT EXISTS (SELECT FROM daybook.replaced_taxes k
                        WHERE k.impact_id = i.id AND k.confirmations = (SELECT count(*) FROM daybook.confirmations c WHERE c.impact_id = i.id))
), changed AS (
    SELECT x.org_id, x.starts_on, x.document_id
      FROM (SELECT u.org_id, u.starts_on, u.document_id, u.currency, u.type <> 'payment' AND u.direction = 'out' OR u.type = 'payment' AND u.direction <> 'out' AS sales,
                   coalesce(daybook.stated_number(t.value ->> 'base'), 0) * s.sign AS base,
                   coalesce(daybook.stated_number(t.value ->> 'amount'), 0) * s.sign AS tax
              FROM unchanged u
             CROSS JOIN LATERAL (SELECT CASE WHEN u.type IN ('credit_note', 'refund') THEN -1 ELSE 1 END) AS s (sign)
             CROSS JOIN LATERAL jsonb_array_elements(CASE jsonb_typeof(u.taxes) WHEN 'array' THEN u.taxes END) t
             UNION ALL
            SELECT u.org_id, u.starts_on, u.document_id, t.currency, t.direction = 'out', -t.base, -t.tax
              FROM unchanged u JOIN daybook.closed_taxes t ON t.impact_id = u.id) x
     GROUP BY x.org_id, x.starts_on, x.document_id, x.currency, x.sales
    HAVING sum(x.base) <> 0 OR sum(x.tax) <> 0
), wrong AS (
    SELECT coalesce(k.org_id, s.org_id) AS org_id, coalesce(k.starts_on, s.starts_on) AS starts_on, coalesce(k.account_code, s.account_code) AS account_code,
           format('of the closed days from %s on, %s of account %s in %s (%s) are kept and %s are posted: open their period and close it again',
                  coalesce(k.starts_on, s.starts_on), coalesce(k.debit - k.credit, 0), coalesce(k.account_code, s.account_code), coalesce(k.currency, s.currency),
                  coalesce(k.dimensions, s.dimensions), coalesce(s.debit - s.credit, 0)) AS detail
      FROM kept k
      FULL JOIN sums s ON s.org_id = k.org_id AND s.starts_on = k.starts_on AND s.account_code = k.account_code AND s.currency = k.currency
                      AND s.year_end = k.year_end AND s.dimensions = k.dimensions
     WHERE (k.debit, k.credit) IS DISTINCT FROM (s.debit, s.credit)
     UNION ALL
    SELECT k.org_id, k.starts_on, '', format('sums are kept of the days from %s to %s, which are not closed', k.starts_on, k.ends_on)
      FROM daybook.closed_sum_spans k
     WHERE ($1 = '' OR k.org_id = $1)
       AND NOT EXISTS (SELECT FROM daybook.closed_spans(k.org_id) c WHERE c.starts_on = k.starts_on AND c.ends_on = k.ends_on)
     UNION ALL
    SELECT t.org_id, t.starts_on, '', format('of the closed days from %s on, taxes in %s are kept that differ by %s from those of their documents: %s',
                  t.starts_on, t.currency, t.difference, 'open their period and close it again')
      FROM tax_sums t
     UNION ALL
    SELECT coalesce(k.org_id, d.org_id), coalesce(k.starts_on, d.starts_on), '',
           format('of the closed days from %s on, it is kept that document %s states %s more tax in %s than is posted, and it is %s: open their period and close it again',
                  coalesce(k.starts_on, d.starts_on), coalesce(k.document_id, d.document_id), coalesce(k.stated - k.posted, 0),
                  coalesce(k.currency, d.currency), coalesce(d.stated - d.posted, 0))
      FROM (SELECT * FROM daybook.closed_tax_differences x WHERE $1 = '' OR x.org_id = $1) k
      FULL JOIN differing d ON d.org_id = k.org_id AND d.starts_on = k.starts_on AND d.document_id = k.document_id AND d.currency = k.currency
     WHERE (k.stated, k.posted) IS DISTINCT FROM (d.stated, d.posted)
     UNION ALL
    SELECT DISTINCT c.org_id, c.starts_on, '', format('of the closed days from %s on, the taxes that are kept of document %s are not those that it states: %s',
                  c.starts_on, c.document_id, 'open their period and close it again')
      FROM changed c
)
SELECT count(*) OVER (), w.org_id, NULL::text, NULL::bigint, w.detail FROM wrong w ORDER BY w.org_id, w.starts_on, w.account_code LIMIT $2
;
WITH document AS MATERIALIZED (
    SELECT d.org_id, d.id FROM daybook.documents d WHERE d.org_id = $1 AND d.id = $2 FOR NO KEY UPDATE
), job AS MATERIALIZED (
    SELECT q.org_id, q.document_id AS id
      FROM daybook.accounting_work_queue q
     WHERE q.org_id = $1 AND q.document_id = $2 AND NOT EXISTS (SELECT FROM document)
       FOR NO KEY UPDATE
), found AS (
    SELECT d.org_id, d.id FROM document d UNION ALL SELECT j.org_id, j.id FROM job j
)
SELECT m.version, m.job_id, m.result FROM found f CROSS JOIN LATERAL daybook.mark_document_deleted(f.org_id, f.id) m
UNION ALL
SELECT 0, '', 'absent' WHERE NOT EXISTS (SELECT FROM found)
;
WITH due AS MATERIALIZED (
    (SELECT one.id, one.org_id, one.type, one.queue, one.fleet, one.min_version, one.ready_at
       FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1}'::smallint[]) AS f (id)
      CROSS JOIN LATERAL (
            SELECT q.id, q.org_id, q.type, q.queue, q.fleet, q.min_version, q.ready_at
              FROM daybook.jobs q
             WHERE $1 = '' AND q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
             ORDER BY q.ready_at
             LIMIT $2) one
      ORDER BY one.ready_at
      LIMIT $2)
    UNION ALL
    SELECT one.id, one.org_id, one.type, one.queue, one.fleet, one.min_version, one.ready_at
      FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1}'::smallint[]) AS f (id)
     CROSS JOIN generate_series(1, 3) AS p (priority)
     CROSS JOIN LATERAL (
           SELECT q.id, q.org_id, q.type, q.queue, q.fleet, q.min_version, q.ready_at
             FROM daybook.jobs q
            WHERE $1 <> '' AND q.state = 'pending' AND q.fleet = f.id AND q.priority = p.priority AND q.org_id = $1 AND q.ready_at <= statement_timestamp()
            LIMIT $2 / 3) one
), orgs AS MATERIALIZED (
    SELECT d.org_id, o.paused_at,
           CASE WHEN o.max_in_flight <= (SELECT count(*) FROM daybook.jobs l WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = o.id)
                THEN o.max_in_flight END AS cap,
           EXISTS (SELECT FROM daybook.organization_rates r
                    WHERE r.org_id = o.id AND r.starts < 1 AND r.at > statement_timestamp() - make_interval(secs => 10 + 2 * o.rate_seconds / o.rate)) AS spent
      FROM (SELECT DISTINCT due.org_id FROM due) d
      LEFT JOIN daybook.organizations o ON o.id = d.org_id
), handled AS MATERIALIZED (
    SELECT w.fleet, array_agg(t.type) AS types
      FROM daybook.live_job_workers w
     CROSS JOIN LATERAL unnest(w.types) AS t (type)
     GROUP BY w.fleet
), named AS MATERIALIZED (
    SELECT u.name, f.name AS fleet, u.paused_at, w.live = 0 AS unworked,
           CASE WHEN b.most <= (SELECT count(*) FROM daybook.jobs l WHERE l.state = 'leased' AND l.queue = u.name) THEN b.most END AS cap,
           EXISTS (SELECT FROM daybook.queue_rates r
                    WHERE r.queue = u.name AND r.starts < 1 AND r.at > statement_timestamp() - make_interval(secs => 10 + 2 * u.rate_seconds / u.rate)) AS spent
      FROM daybook.queues u JOIN daybook.fleets f ON f.id = u.fleet
     CROSS JOIN LATERAL (SELECT count(DISTINCT w.name) AS live FROM daybook.live_job_workers w
                          WHERE w.fleet = u.fleet AND w.id <> 'async-operations') w
     CROSS JOIN LATERAL (SELECT least(u.max_parallel, u.per_process * w.live) AS most) b
     WHERE u.name IN (SELECT due.queue FROM due)
), held AS (
    SELECT d.id, d.org_id, d.type, d.min_version, d.ready_at, coalesce(o.paused_at, n.paused_at) AS paused_at, n.name, n.fleet,
           CASE WHEN o.paused_at IS NOT NULL THEN 'paused' WHEN n.paused_at IS NOT NULL THEN 'queue paused' WHEN n.unworked THEN 'queue unworked'
                WHEN d.type <> ALL (h.types) THEN 'unhandled'
                WHEN d.min_version > 0 AND NOT EXISTS (
                     SELECT FROM daybook.live_job_workers w
                      WHERE w.fleet = CASE WHEN d.fleet < 0 THEN coalesce(u.fleet, 0) ELSE d.fleet END AND d.type = ANY (w.types) AND coalesce(w.versions[array_position(w.types, d.type)], 0) >= d.min_version) THEN 'version'
                WHEN o.cap IS NOT NULL OR o.spent THEN 'capped' WHEN n.cap IS NOT NULL OR n.spent THEN 'queue limited' ELSE 'free' END AS reason,
           CASE WHEN o.cap IS NOT NULL OR o.spent THEN o.cap ELSE n.cap END AS cap
      FROM due d JOIN orgs o USING (org_id)
      LEFT JOIN daybook.queues u ON u.name = d.queue AND d.fleet < 0
      LEFT JOIN handled h ON h.fleet = CASE WHEN d.fleet < 0 THEN coalesce(u.fleet, 0) ELSE d.fleet END
      LEFT JOIN named n ON n.name = d.queue
)
SELECT CASE WHEN h.reason IN ('unhandled', 'version', 'free') THEN h.type ELSE '' END, h.reason, CASE WHEN h.reason IN ('paused', 'capped') THEN h.org_id ELSE '' END,
       CASE WHEN h.reason LIKE 'queue %' THEN h.name WHEN h.reason = 'version' THEN h.min_version::text ELSE '' END, CASE WHEN h.reason = 'queue unworked' THEN h.fleet ELSE '' END, count(*), min(h.ready_at),
       (array_agg(h.id ORDER BY h.ready_at))[1], (array_agg(h.org_id ORDER BY h.ready_at))[1], coalesce(max(h.cap), 0), max(h.paused_at)
  FROM held h
 GROUP BY 1, 2, 3, 4, 5
 ORDER BY 7
;
WITH due AS MATERIALIZED (
    (SELECT q.document_id AS id, q.org_id, q.ready_at
       FROM daybook.accounting_work_queue q
      WHERE $1 = '' AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
      ORDER BY q.ready_at
      LIMIT $2)
    UNION ALL
    SELECT one.id, one.org_id, one.ready_at
      FROM generate_series(1, 3) AS p (priority)
     CROSS JOIN LATERAL (
           SELECT q.document_id AS id, q.org_id, q.ready_at
             FROM daybook.accounting_work_queue q
            WHERE $1 <> '' AND q.state = 'pending' AND q.priority = p.priority AND q.org_id = $1 AND q.ready_at <= statement_timestamp()
            ORDER BY q.ready_at
            LIMIT $2 / 3) one
), orgs AS MATERIALIZED (
    SELECT d.org_id, o.paused_at, coalesce(o.source, s.source) AS source, coalesce(o.hooks, s.hooks) AS hooks,
           CASE WHEN o.max_in_flight <= (SELECT count(*) FROM daybook.accounting_work_queue l WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = o.id)
                THEN o.max_in_flight END AS cap
      FROM (SELECT DISTINCT due.org_id FROM due) d
     CROSS JOIN daybook.defaults s
      LEFT JOIN daybook.organizations o ON o.id = d.org_id
), held AS (
    SELECT d.id, d.org_id, d.ready_at, o.paused_at, o.cap,
           CASE WHEN o.paused_at IS NOT NULL THEN 'paused' WHEN o.source <> 'daybook' OR o.hooks <> '{}' THEN 'source'
                WHEN o.cap IS NOT NULL THEN 'capped' ELSE 'free' END AS reason,
           CASE WHEN o.paused_at IS NULL THEN concat_ws(', ', 'source ' || nullif(o.source, 'daybook'), 'hooks ' || nullif(array_to_string(o.hooks, ' '), '')) END AS needs
      FROM due d JOIN orgs o USING (org_id)
)
SELECT '', h.reason, CASE WHEN h.reason IN ('paused', 'capped') THEN h.org_id ELSE '' END, coalesce(CASE WHEN h.reason = 'source' THEN h.needs END, ''), '', count(*), min(h.ready_at),
       (array_agg(h.id ORDER BY h.ready_at))[1], (array_agg(h.org_id ORDER BY h.ready_at))[1], coalesce(max(h.cap), 0), max(h.paused_at)
  FROM held h
 GROUP BY 1, 2, 3, 4
 ORDER BY 7
;
WITH due AS MATERIALIZED (
    SELECT j.id
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[], $7::boolean[] , $8::boolean[] )
           WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, locked , counts , n)
      LEFT JOIN daybook.organizations o ON o.id = s.org_id
       LEFT JOIN daybook.queues u ON u.name = nullif(split_part(s.slot, '/', 2), '') 
     CROSS JOIN LATERAL (
           SELECT q.id
             FROM daybook.jobs q
            WHERE q.state = 'pending' AND q.fleet = $9 AND q.priority = s.priority AND q.org_id = s.org_id AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot
              AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
            ORDER BY q.org_id, daybook.job_slot(q.type, q.queue, q.min_version), q.ready_at, q.id
            LIMIT CASE WHEN o.paused_at IS NOT NULL THEN 0
                        WHEN u.paused_at IS NOT NULL OR num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0 AND NOT s.counts THEN 0 
                       
                       WHEN o.max_in_flight IS NULL AND o.rate IS NULL THEN s.quota
                       WHEN NOT s.locked OR o.rate IS NOT NULL AND s.org_id <> ALL ($10::text[]) THEN 0
                       ELSE greatest(0, least(s.quota, o.max_in_flight - (
                            SELECT count(*) FROM daybook.jobs l
                             WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = s.org_id))) END
              FOR NO KEY UPDATE SKIP LOCKED) j
     ORDER BY s.n
)
UPDATE daybook.jobs q
   SET state = 'leased', turn_id = $11, detached = $12, fence = $13, worker = $14, leased_generation = generation, run_count = run_count + 1,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = $15, capped = q.org_id = ANY ($16::text[]), counted = q.type = ANY ($17::text[])
 WHERE q.id = ANY (ARRAY(SELECT id FROM due))
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation,
          q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          ,
          coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited
;
WITH due AS MATERIALIZED (
    SELECT j.id
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[], $7::boolean[])
           WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, locked, n)
      LEFT JOIN daybook.organizations o ON o.id = s.org_id
      
     CROSS JOIN LATERAL (
           SELECT q.id
             FROM daybook.accounting_work_queue q
            WHERE q.state = 'pending' AND  q.priority = s.priority AND q.org_id = s.org_id 
              AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
            ORDER BY q.org_id , q.ready_at, q.id
            LIMIT CASE WHEN o.paused_at IS NOT NULL THEN 0
                       
                        WHEN NOT (coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY ($8)
                                                AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ $9) THEN 0 
                       WHEN o.max_in_flight IS NULL  THEN s.quota
                       WHEN NOT s.locked  THEN 0
                       ELSE greatest(0, least(s.quota, o.max_in_flight - (
                            SELECT count(*) FROM daybook.accounting_work_queue l
                             WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = s.org_id))) END
              FOR NO KEY UPDATE SKIP LOCKED) j
     ORDER BY s.n
)
UPDATE daybook.accounting_work_queue q
   SET state = 'leased', turn_id = $10, detached = $11, fence = $12, worker = $13, leased_generation = generation, run_count = run_count + 1,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = $14, capped = q.org_id = ANY ($15::text[]) 
 WHERE q.id = ANY (ARRAY(SELECT id FROM due))
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation,
           q.document_id, q.version_hint, q.not_ready_count, q.epoch ,
          coalesce(q.traceparent, '')
;
WITH due AS MATERIALIZED (
    SELECT j.id
      FROM unnest($1::smallint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[], $7::boolean[])
           WITH ORDINALITY AS s (priority, org_id, slot, at, id, quota, locked, n)
      LEFT JOIN daybook.organizations o ON o.id = s.org_id
      
     CROSS JOIN LATERAL (
           SELECT q.id
             FROM daybook.jobs q
            WHERE q.state = 'pending' AND q.fleet = $8 AND q.priority = s.priority AND q.org_id = s.org_id AND daybook.job_slot(q.type, q.queue, q.min_version) = s.slot
              AND (q.ready_at, q.id) >= (s.at, s.id) AND q.ready_at <= statement_timestamp()
            ORDER BY q.org_id, daybook.job_slot(q.type, q.queue, q.min_version), q.ready_at, q.id
            LIMIT CASE WHEN o.paused_at IS NOT NULL THEN 0
                       
                       
                       WHEN o.max_in_flight IS NULL AND o.rate IS NULL THEN s.quota
                       WHEN NOT s.locked OR o.rate IS NOT NULL AND s.org_id <> ALL ($9::text[]) THEN 0
                       ELSE greatest(0, least(s.quota, o.max_in_flight - (
                            SELECT count(*) FROM daybook.jobs l
                             WHERE l.capped AND l.turn_id IS NOT NULL AND l.org_id = s.org_id))) END
              FOR NO KEY UPDATE SKIP LOCKED) j
     ORDER BY s.n
)
UPDATE daybook.jobs q
   SET state = 'leased', turn_id = $10, detached = $11, fence = $12, worker = $13, leased_generation = generation, run_count = run_count + 1,
       attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), updated_at = clock_timestamp(),
       working = $14, capped = q.org_id = ANY ($15::text[]), counted = q.type = ANY ($16::text[])
 WHERE q.id = ANY (ARRAY(SELECT id FROM due))
RETURNING q.priority, q.ready_at, q.id, q.org_id, q.run_count, q.attempt_started_at, q.reclaims, q.cancel_requested, q.leased_generation,
          q.type, q.payload, coalesce(q.max_attempts, 0), coalesce(q.idempotency_key, ''), q.created_at
          ,
          coalesce(q.traceparent, ''), coalesce(q.queue, ''), coalesce(q.min_version, 0), q.awaited
;
WITH due AS MATERIALIZED (
    SELECT o.task_id, o.task_type, o.scheduled_at
      FROM queues.open_task o
     WHERE $1 = '' AND o.leased_until IS NULL AND o.scheduled_at <= statement_timestamp()
     ORDER BY o.scheduled_at, o.task_id
     LIMIT $2
), types AS MATERIALIZED (
    SELECT d.task_type, least(own.paused_at, everything.paused_at) AS paused_at,
           CASE WHEN everything.paused_at IS NULL THEN 'type' WHEN own.paused_at IS NULL THEN 'all' ELSE 'both' END AS paused_by,
           CASE WHEN own.max_in_flight <= (SELECT count(*) FROM queues.open_task l WHERE l.task_type = d.task_type AND l.leased_until IS NOT NULL) THEN 'type' ELSE 'all' END AS capped_by,
           CASE WHEN own.max_in_flight <= (SELECT count(*) FROM queues.open_task l WHERE l.task_type = d.task_type AND l.leased_until IS NOT NULL) THEN own.max_in_flight
                WHEN everything.max_in_flight <= (SELECT count(*) FROM queues.open_task l WHERE l.leased_until IS NOT NULL) THEN everything.max_in_flight END AS cap
      FROM (SELECT DISTINCT due.task_type FROM due) d
      LEFT JOIN queues.task_limit own ON own.task_type = d.task_type
      LEFT JOIN queues.task_limit everything ON everything.task_type = '*'
), handled AS MATERIALIZED (
    SELECT array_agg(t.type) AS types FROM daybook.job_types t WHERE t.kind = 'tasks' AND t.last_seen > statement_timestamp() - interval '5 minutes'
), held AS (
    SELECT d.task_id, d.task_type, d.scheduled_at, t.paused_at, t.cap, t.paused_by, t.capped_by,
           CASE WHEN t.paused_at IS NOT NULL THEN 'paused' WHEN d.task_type <> ALL (h.types) THEN 'unhandled' WHEN t.cap IS NOT NULL THEN 'capped' ELSE 'free' END AS reason
      FROM due d JOIN types t USING (task_type) CROSS JOIN handled h
)
SELECT h.task_type, h.reason, '', coalesce(CASE h.reason WHEN 'paused' THEN h.paused_by WHEN 'capped' THEN h.capped_by END, ''), '', count(*), min(h.scheduled_at), (array_agg(h.task_id::text ORDER BY h.scheduled_at, h.task_id))[1], '', coalesce(max(h.cap), 0), max(h.paused_at)
  FROM held h
 GROUP BY 1, 2, 4
 ORDER BY 7
;
WITH due AS MATERIALIZED (
    SELECT o.task_type AS type, o.scheduled_at FROM queues.open_task o
     WHERE o.leased_until IS NULL AND o.scheduled_at <= statement_timestamp() ORDER BY o.scheduled_at, o.task_id LIMIT $1 + 1
), waiting AS MATERIALIZED (
    SELECT o.task_type AS type FROM queues.open_task o
     WHERE o.leased_until IS NULL AND o.scheduled_at > statement_timestamp() ORDER BY o.scheduled_at, o.task_id LIMIT $1 + 1
), leased AS MATERIALIZED (
    SELECT o.task_type AS type, o.leased_until FROM queues.open_task o WHERE o.leased_until IS NOT NULL ORDER BY o.leased_until LIMIT $1 + 1
), errors AS MATERIALIZED (
    SELECT DISTINCT e.task_id FROM (SELECT x.task_id FROM queues.error x ORDER BY x.error_id DESC LIMIT $1 + 1) e
), failed AS MATERIALIZED (
    SELECT t.task_type AS type FROM errors e JOIN queues.task_completed c USING (task_id) JOIN queues.task t USING (task_id)
)
SELECT 'due', d.type, '', d.n, CASE WHEN NOT EXISTS (SELECT FROM queues.task_limit l WHERE l.task_type IN ('*', d.type) AND l.paused_at IS NOT NULL) THEN d.first END
  FROM (SELECT x.type, count(*) AS n, min(x.scheduled_at) AS first FROM due x GROUP BY x.type) d
UNION ALL
SELECT 'waiting', w.type, '', count(*), NULL FROM waiting w GROUP BY w.type
UNION ALL
SELECT 'leased', l.type, '', count(*), NULL FROM leased l GROUP BY l.type
UNION ALL
SELECT 'stale', '', '', count(*), NULL FROM leased l WHERE l.leased_until < statement_timestamp()
UNION ALL
SELECT 'failed', f.type, '', count(*), NULL FROM failed f GROUP BY f.type
UNION ALL
SELECT 'handled', t.type, '', 0, NULL FROM daybook.job_types t WHERE t.kind = 'tasks' AND t.last_seen > statement_timestamp() - interval '5 minutes'
;
WITH due AS MATERIALIZED (
    SELECT one.org_id, one.type, one.queue, one.ready_at
      FROM (SELECT f.id FROM daybook.fleets f UNION ALL SELECT -1) f
     CROSS JOIN LATERAL (
           SELECT q.org_id, q.type, q.queue, q.ready_at FROM daybook.jobs q
            WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() ORDER BY q.ready_at LIMIT $1 + 1) one
     ORDER BY one.ready_at LIMIT $1 + 1
), waiting AS MATERIALIZED (
    SELECT one.type
      FROM (SELECT f.id, statement_timestamp() AS beyond FROM daybook.fleets f UNION ALL VALUES (-1, statement_timestamp()), (-2, '-infinity')) f
     CROSS JOIN LATERAL (
           SELECT q.type, q.ready_at FROM daybook.jobs q
            WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > f.beyond ORDER BY q.ready_at LIMIT $1 + 1) one
     ORDER BY one.ready_at LIMIT $1 + 1
), leased AS MATERIALIZED (
    SELECT q.type, q.last_attempted_at FROM daybook.jobs q WHERE q.state = 'leased' ORDER BY q.last_attempted_at LIMIT $1 + 1
), failed AS MATERIALIZED (
    SELECT q.type, q.last_error_code FROM daybook.jobs q WHERE q.state = 'failed' ORDER BY q.finished_at DESC, q.id LIMIT $1 + 1
)
SELECT 'due', d.type, '', count(*), min(d.ready_at) FILTER (WHERE d.org_id <> ALL (ARRAY(SELECT o.id FROM daybook.organizations o WHERE o.paused_at IS NOT NULL))
       AND (d.queue IS NULL OR d.queue <> ALL (ARRAY(SELECT u.name FROM daybook.queues u WHERE u.paused_at IS NOT NULL)))) FROM due d GROUP BY d.type
UNION ALL
SELECT 'waiting', w.type, '', count(*), NULL FROM waiting w GROUP BY w.type
UNION ALL
SELECT 'leased', l.type, '', count(*), NULL FROM leased l GROUP BY l.type
UNION ALL
SELECT 'stale', '', '', count(*), NULL FROM leased l WHERE l.last_attempted_at < statement_timestamp() - make_interval(secs => $2)
UNION ALL
SELECT 'failed', f.type, f.last_error_code, count(*), NULL FROM failed f GROUP BY f.type, f.last_error_code
UNION ALL
SELECT DISTINCT 'handled', t.type, '', 0, NULL::timestamptz FROM daybook.live_job_workers w CROSS JOIN LATERAL unnest(w.types) AS t (type)
;
WITH due AS MATERIALIZED (
    SELECT q.org_id, q.ready_at FROM daybook.accounting_work_queue q
     WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp() ORDER BY q.ready_at LIMIT $1 + 1
), waiting AS MATERIALIZED (
    SELECT FROM daybook.accounting_work_queue q
     WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp() ORDER BY q.ready_at LIMIT $1 + 1
), leased AS MATERIALIZED (
    SELECT q.last_attempted_at FROM daybook.accounting_work_queue q WHERE q.state = 'leased' ORDER BY q.last_attempted_at LIMIT $1 + 1
), failed AS MATERIALIZED (
    SELECT q.last_error_code FROM daybook.accounting_work_queue q WHERE q.state = 'failed' ORDER BY q.updated_at DESC LIMIT $1 + 1
)
SELECT 'due', '', '', count(*), min(d.ready_at) FILTER (WHERE d.org_id <> ALL (ARRAY(SELECT o.id FROM daybook.organizations o WHERE o.paused_at IS NOT NULL))) FROM due d
UNION ALL
SELECT 'waiting', '', '', count(*), NULL FROM waiting w
UNION ALL
SELECT 'leased', '', '', count(*), NULL FROM leased l
UNION ALL
SELECT 'stale', '', '', count(*), NULL FROM leased l WHERE l.last_attempted_at < statement_timestamp() - make_interval(secs => $2)
UNION ALL
SELECT 'failed', '', f.last_error_code, count(*), NULL FROM failed f GROUP BY f.last_error_code
;
WITH ended AS MATERIALIZED (
    SELECT a.*
      FROM daybook.attempt_log a
      JOIN daybook.accounting_work_queue q ON q.id = a.job_id AND q.state IN ('completed', 'cancelled')
     WHERE a.kind = 'accounting' AND a.ended_at < $1 AND ($2 = '' OR a.org_id = $2) AND (a.job_id, a.id) > ($3, $4)
     ORDER BY a.job_id, a.id
     LIMIT $5
       FOR UPDATE OF a SKIP LOCKED
)
SELECT e.job_id, e.org_id, e.ended_at, e.id,
       jsonb_build_object('kind', 'attempts', 'org_id', e.org_id, 'jobs', '[]'::jsonb, 'attempts', jsonb_build_array(to_jsonb(e)), 'links', '[]'::jsonb, 'receipts', '[]'::jsonb, 'deliveries', '[]'::jsonb, 'steps', '[]'::jsonb),
       ARRAY[0, 1, 0, 0, 0, 0]::bigint[]
  FROM ended e
 ORDER BY e.job_id, e.id
;
WITH ended AS MATERIALIZED (
    SELECT j.*
      FROM daybook.jobs j
     WHERE j.state IN ('completed', 'cancelled') AND j.finished_at < $1 AND ($2 = '' OR j.org_id = $2) AND j.id <> $3
       AND (j.finished_at, j.id) > ($4, $5)
     ORDER BY j.finished_at, j.id
     LIMIT $6
       FOR UPDATE OF j SKIP LOCKED
)
SELECT e.id, e.org_id, e.finished_at, 0::bigint,
       jsonb_build_object('kind', 'jobs', 'org_id', e.org_id, 'jobs', jsonb_build_array(to_jsonb(e)), 'attempts', a.rows, 'links', l.rows, 'receipts', w.rows, 'deliveries', d.rows, 'steps', s.rows),
       ARRAY[1, jsonb_array_length(a.rows), jsonb_array_length(l.rows), jsonb_array_length(w.rows), jsonb_array_length(d.rows), jsonb_array_length(s.rows)]::bigint[]
  FROM ended e
 CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.id), '[]') AS rows FROM daybook.attempt_log x WHERE x.job_id = e.id) a
 CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.kind, x.id), '[]') AS rows FROM daybook.job_links x WHERE x.job_id = e.id) l
 CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.attempt), '[]') AS rows FROM daybook.webhook_deliveries x WHERE x.job_id = e.id) w
 CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.channel), '[]') AS rows FROM daybook.job_deliveries x WHERE x.job_id = e.id) d
 CROSS JOIN LATERAL (SELECT coalesce(jsonb_agg(to_jsonb(x) ORDER BY x.name), '[]') AS rows FROM daybook.job_steps x WHERE x.job_id = e.id AND e.awaited) s
 ORDER BY e.finished_at, e.id
;
WITH f AS MATERIALIZED (
    SELECT id FROM daybook.jobs
     WHERE state = 'failed' AND last_error_code = 'HANDLER_MISSING' AND type = ANY ($1) AND fleet = $3 AND id > $2
       AND (queue IS NULL OR EXISTS (SELECT FROM daybook.queues u WHERE u.name = queue))
     ORDER BY id
     LIMIT 1000
       FOR NO KEY UPDATE SKIP LOCKED)
SELECT f.id, r.result
  FROM f
 CROSS JOIN LATERAL daybook.retry_job(f.id, 'now') r
 ORDER BY f.id
;
WITH found AS MATERIALIZED (
    SELECT d.org_id, d.id FROM daybook.documents d WHERE d.org_id = $1 AND d.id = $2 FOR NO KEY UPDATE
)
SELECT m.version, m.job_id, m.result FROM found f CROSS JOIN LATERAL daybook.mark_document_not_ready(f.org_id, f.id) m
UNION ALL
SELECT 0, '', 'absent' WHERE NOT EXISTS (SELECT FROM found)
;
WITH found AS MATERIALIZED (
    SELECT d.org_id, d.id, d.deleted_at IS NOT NULL AS deleted FROM daybook.documents d WHERE d.org_id = $1 AND d.id = $2 FOR NO KEY UPDATE
)
SELECT m.version, m.job_id, m.result FROM found f CROSS JOIN LATERAL daybook.mark_document_ready(f.org_id, f.id, NULLIF($3::integer, 0)) m WHERE NOT f.deleted
UNION ALL
SELECT 0, '', 'deleted' FROM found f WHERE f.deleted
UNION ALL
SELECT 0, '', 'absent' WHERE NOT EXISTS (SELECT FROM found)
;
WITH found AS MATERIALIZED (
    SELECT k.n, k.import_id, d.org_id, d.id,
           CASE WHEN d.deleted_at IS NOT NULL THEN NOT daybook.is_undone(d)
                ELSE (d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content)
                     IS NOT DISTINCT FROM (k.type, k.direction, k.currency, k.issue_date, k.value_date, k.content::jsonb) END AS same
      FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::date[], $7::date[],
                  $8::text[], $9::bigint[]) WITH ORDINALITY AS k (org_id, id, type, direction, currency, issue_date, value_date, content, import_id, n)
     CROSS JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = k.org_id AND x.id = k.id OFFSET 0) d
     ORDER BY k.n
), former AS (
    INSERT INTO daybook.import_documents AS m (import_id, document_id, created, version, written_at, former)
    SELECT f.import_id, f.id, x.deleted_at IS NOT NULL, x.accounting_ready_version, x.updated_at,
           CASE WHEN x.deleted_at IS NULL
                THEN jsonb_build_object('type', x.type, 'direction', x.direction, 'currency', x.currency, 'issue_date', x.issue_date, 'value_date', x.value_date,
                         'content', x.content, 'ready', x.accounting_ready_at IS NOT NULL, 'version', x.accounting_ready_version, 'import_id', x.import_id) END
      FROM found f
     CROSS JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = f.org_id AND x.id = f.id FOR NO KEY UPDATE) x
     WHERE NOT f.same
    -- What a document was before the import, not before a later part of it, unless it was changed otherwise between the two.
    ON CONFLICT (import_id, document_id) DO UPDATE SET created = excluded.created, former = excluded.former
     WHERE (m.version, m.written_at) IS DISTINCT FROM (excluded.version, excluded.written_at)
    RETURNING import_id, document_id, created
)
SELECT f.n, f.same, coalesce(p.created, false) FROM found f LEFT JOIN former p ON p.import_id = f.import_id AND p.document_id = f.id
;
WITH found AS MATERIALIZED (
    SELECT q.org_id, q.document_id FROM daybook.accounting_work_queue q WHERE q.org_id = $1 AND q.document_id = $2 FOR NO KEY UPDATE
)
SELECT m.job_id, m.result FROM found f CROSS JOIN LATERAL daybook.mark_accounting_job_pending(f.org_id, f.document_id, $3, $4) m
UNION ALL
SELECT '', 'absent' WHERE NOT EXISTS (SELECT FROM found)
;
WITH found AS MATERIALIZED (
    SELECT q.org_id, q.document_id FROM daybook.accounting_work_queue q WHERE q.org_id = $1 AND q.document_id = $2 FOR NO KEY UPDATE
)
SELECT m.job_id, m.result FROM found f CROSS JOIN LATERAL daybook.repost_accounting_job(f.org_id, f.document_id) m
UNION ALL
SELECT '', 'absent' WHERE NOT EXISTS (SELECT FROM found)
;
WITH found AS MATERIALIZED (
    SELECT q.org_id, q.document_id, q.state = 'completed' AS completed
      FROM daybook.accounting_work_queue q
     WHERE q.org_id = $1 AND q.document_id = $2
       FOR NO KEY UPDATE
)
SELECT c.job_id, c.result FROM found f CROSS JOIN LATERAL daybook.cancel_accounting_job(f.org_id, f.document_id) c WHERE NOT f.completed
UNION ALL
SELECT '', 'completed' FROM found f WHERE f.completed
UNION ALL
SELECT '', 'absent' WHERE NOT EXISTS (SELECT FROM found)
;
WITH found AS MATERIALIZED (SELECT j.id, j.state = 'completed' AS completed FROM daybook.jobs j WHERE j.id = $1 FOR NO KEY UPDATE)
SELECT c.job_id, c.result, coalesce(c.reason, '') FROM found f CROSS JOIN LATERAL daybook.cancel_job(f.id) c WHERE NOT f.completed
UNION ALL
SELECT f.id, 'completed', '' FROM found f WHERE f.completed
UNION ALL
SELECT $1, 'absent', '' WHERE NOT EXISTS (SELECT FROM found)
;
WITH found AS MATERIALIZED (SELECT j.id, j.state = 'completed' AS completed FROM daybook.jobs j WHERE j.id = $1 FOR NO KEY UPDATE)
SELECT r.job_id, r.result, coalesce(r.reason, '') FROM found f CROSS JOIN LATERAL daybook.retry_job(f.id, $2, NULLIF($3::float8, 0)) r WHERE NOT f.completed
UNION ALL
SELECT f.id, 'completed', '' FROM found f WHERE f.completed
UNION ALL
SELECT $1, 'absent', '' WHERE NOT EXISTS (SELECT FROM found)
;
WITH free AS MATERIALIZED (
    SELECT starts_on FROM daybook.periods WHERE org_id = $1 FOR NO KEY UPDATE SKIP LOCKED
)
SELECT min(p.starts_on) FROM daybook.periods p
 WHERE p.org_id = $1 AND p.starts_on <> ALL (coalesce((SELECT array_agg(f.starts_on) FROM free f), '{}'))
;
WITH gone AS (
    DELETE FROM daybook.job_workers WHERE last_seen < clock_timestamp() - interval '1 day' AND id <> $1
)
INSERT INTO daybook.job_workers AS w (id, name, types, fleet, versions, unshared)
VALUES ($1, $2, coalesce($3::text[], '{}'), $4, coalesce($5::integer[], '{}'), coalesce($6::jsonb, '{}'))
ON CONFLICT (id) DO UPDATE SET name = excluded.name, fleet = excluded.fleet, types = excluded.types, versions = excluded.versions, unshared = excluded.unshared, last_seen = clock_timestamp(), stopped_at = NULL
RETURNING CASE WHEN w.xmax = 0 THEN daybook.wake_job_queue($4::integer)::text ELSE '' END
;
WITH gone AS (DELETE FROM daybook.attempt_log a USING unnest($1::text[], $2::bigint[]) AS x (job, n) WHERE a.job_id = x.job AND a.id = x.n RETURNING 1)
SELECT ARRAY[0, (SELECT count(*) FROM gone), 0, 0, 0, 0]
;
WITH gone AS (DELETE FROM daybook.job_callbacks WHERE token_hash = $1 AND job_id = $2 AND called_at IS NULL RETURNING 1)
SELECT count(*) FROM gone
;
WITH gone AS MATERIALIZED (
    SELECT j.id
      FROM unnest($1::smallint[], $2::text[], $3::text[]) AS p (priority, org_id, slot)
     CROSS JOIN LATERAL (
           SELECT q.id
             FROM daybook.jobs q
            WHERE q.state = 'pending' AND q.fleet = $4 AND q.priority = p.priority AND q.org_id = p.org_id AND daybook.job_slot(q.type, q.queue, q.min_version) = p.slot
              AND q.ready_at <= statement_timestamp() - make_interval(secs => $5)
            ORDER BY q.ready_at, q.id
            LIMIT $6
              FOR NO KEY UPDATE SKIP LOCKED) j
     WHERE $5 = 0
        OR EXISTS (SELECT 1 FROM daybook.job_workers w WHERE w.id = $7 AND w.first_seen <= statement_timestamp() - make_interval(secs => $5))
       AND NOT EXISTS (SELECT 1 FROM daybook.job_workers w WHERE w.last_seen > statement_timestamp() - make_interval(secs => $5)
                           AND w.fleet = $4 AND split_part(p.slot, '/', 1) = ANY (w.types))
)
UPDATE daybook.jobs q
   SET state = 'failed', last_error_code = 'HANDLER_MISSING',
       last_error = 'no worker' || coalesce(' of the fleet ' || (SELECT f.name FROM daybook.fleets f WHERE f.id = $4 AND f.id > 0), '') ||
                    ' has a handler for jobs of type ' || q.type || ': they come back when a worker starts that has one',
       finished_at = clock_timestamp(), updated_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT gone.id FROM gone))
RETURNING q.id, q.org_id, q.type, q.run_count, q.last_error
;
WITH held AS (
    SELECT id FROM daybook.accounting_work_queue
     WHERE turn_id = $1 AND num_nulls(nullif(state, 'leased')) = 1 AND fence = $2 AND id <> ALL ($3)
       AND last_attempted_at < statement_timestamp() - make_interval(secs => $4)
     ORDER BY org_id, id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.accounting_work_queue q
   SET last_attempted_at = clock_timestamp()
  FROM held
 WHERE q.id = held.id
RETURNING q.id
;
WITH held AS (
    SELECT id FROM daybook.jobs
     WHERE turn_id = $1 AND num_nulls(nullif(state, 'leased')) = 1 AND fence = $2 AND id <> ALL ($3)
       AND last_attempted_at < statement_timestamp() - make_interval(secs => $4)
     ORDER BY org_id, id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.jobs q
   SET last_attempted_at = clock_timestamp()
  FROM held
 WHERE q.id = held.id
RETURNING q.id
;
WITH held AS (
    SELECT id, generation <> leased_generation AS again, run_count
      FROM daybook.accounting_work_queue
     WHERE turn_id = $1 AND num_nulls(nullif(state, 'leased')) = 1 AND fence <= $2 AND ($3::text[] IS NULL OR id = ANY ($3))
       AND (NOT $4 OR cancel_requested)
     ORDER BY org_id, id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.accounting_work_queue q
   SET state = CASE WHEN q.cancel_requested THEN 'cancelled' ELSE 'pending' END::daybook.job_state,
       finished_at = CASE WHEN q.cancel_requested THEN clock_timestamp() END,
       run_count = CASE WHEN held.again AND NOT q.cancel_requested THEN 0 ELSE greatest(q.run_count - 1, 0) END,
       ready_at       = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE clock_timestamp() + make_interval(secs => $5) END,
       first_ready_at = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
        not_ready_count = CASE WHEN held.again THEN 0 ELSE q.not_ready_count END, 
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
  FROM held
 WHERE q.id = held.id
RETURNING q.id, q.org_id,  '', q.document_id , held.run_count, q.state = 'cancelled'
;
WITH held AS (
    SELECT id, generation <> leased_generation AS again, run_count
      FROM daybook.jobs
     WHERE turn_id = $1 AND num_nulls(nullif(state, 'leased')) = 1 AND fence <= $2 AND ($3::text[] IS NULL OR id = ANY ($3))
       AND (NOT $4 OR cancel_requested)
     ORDER BY org_id, id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.jobs q
   SET state = CASE WHEN q.cancel_requested THEN 'cancelled' ELSE 'pending' END::daybook.job_state,
       finished_at = CASE WHEN q.cancel_requested THEN clock_timestamp() END,
       run_count = CASE WHEN held.again AND NOT q.cancel_requested THEN 0 ELSE greatest(q.run_count - 1, 0) END,
       ready_at       = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE clock_timestamp() + make_interval(secs => $5) END,
       first_ready_at = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
       
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
  FROM held
 WHERE q.id = held.id
RETURNING q.id, q.org_id, q.type, '', held.run_count, q.state = 'cancelled'
;
WITH held AS (
    SELECT q.id, h.charged, q.generation <> q.leased_generation AS again,
           q.generation = q.leased_generation AND NOT q.cancel_requested AND h.charged
           AND q.run_count >=  $1  AS fails
      FROM unnest($2::text[], $3::boolean[]) AS h (id, charged)
      JOIN daybook.accounting_work_queue q ON q.id = h.id
)
UPDATE daybook.accounting_work_queue q
   SET state = CASE WHEN q.cancel_requested THEN 'cancelled' WHEN held.fails THEN 'failed' ELSE 'pending' END::daybook.job_state,
       finished_at = CASE WHEN q.cancel_requested OR held.fails THEN clock_timestamp() END,
       run_count = CASE WHEN held.again AND NOT q.cancel_requested THEN 0
                        WHEN held.charged THEN q.run_count
                        ELSE greatest(q.run_count - 1, 0) END,
       -- It was due when it was leased, also where the clock was set back since.
       ready_at       = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE least(q.ready_at, clock_timestamp()) END,
       first_ready_at = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
       reclaims      = CASE WHEN held.again OR held.fails OR q.cancel_requested THEN 0
                             ELSE least(q.reclaims, 999999) +  1  END,
       last_error = CASE WHEN held.fails THEN 'the worker ended while it worked on this job, for the last time that it may be tried'
                         WHEN held.charged THEN 'the worker ended while it worked on this job'
                         ELSE q.last_error END,
       last_error_code = CASE WHEN held.charged THEN $4 ELSE q.last_error_code END,
        not_ready_count = CASE WHEN held.again THEN 0 ELSE q.not_ready_count END, 
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
  FROM held
 WHERE q.id = held.id
RETURNING q.state = 'pending' AND q.ready_at <= clock_timestamp(), q.state::text, q.priority, q.org_id,  '' ,
          q.ready_at, q.id, EXISTS (SELECT 1 FROM daybook.organizations o WHERE o.id = q.org_id AND  o.max_in_flight IS NOT NULL ),
           false ,
           true
;
WITH held AS (
    SELECT q.id, h.charged, q.generation <> q.leased_generation AS again,
           q.generation = q.leased_generation AND NOT q.cancel_requested AND h.charged
           AND q.run_count >= coalesce(q.max_attempts, greatest($1::integer, 1000)) AS fails
      FROM unnest($2::text[], $3::boolean[]) AS h (id, charged)
      JOIN daybook.jobs q ON q.id = h.id
)
UPDATE daybook.jobs q
   SET state = CASE WHEN q.cancel_requested THEN 'cancelled' WHEN held.fails THEN 'failed' ELSE 'pending' END::daybook.job_state,
       finished_at = CASE WHEN q.cancel_requested OR held.fails THEN clock_timestamp() END,
       run_count = CASE WHEN held.again AND NOT q.cancel_requested THEN 0
                        WHEN held.charged THEN q.run_count
                        ELSE greatest(q.run_count - 1, 0) END,
       -- It was due when it was leased, also where the clock was set back since.
       ready_at       = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE least(q.ready_at, clock_timestamp()) END,
       first_ready_at = CASE WHEN held.again THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
       reclaims      = CASE WHEN held.again OR held.fails OR q.cancel_requested THEN 0
                             ELSE least(q.reclaims, 999999) + CASE WHEN q.working THEN 1 ELSE 0 END END,
       last_error = CASE WHEN held.fails THEN 'the worker ended while it worked on this job, for the last time that it may be tried'
                         WHEN held.charged THEN 'the worker ended while it worked on this job'
                         ELSE q.last_error END,
       last_error_code = CASE WHEN held.charged THEN $4 ELSE q.last_error_code END,
       
       cancel_requested = false, working = false, updated_at = clock_timestamp(),
       turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL
  FROM held
 WHERE q.id = held.id
RETURNING q.state = 'pending' AND q.ready_at <= clock_timestamp(), q.state::text, q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version),
          q.ready_at, q.id, EXISTS (SELECT 1 FROM daybook.organizations o WHERE o.id = q.org_id AND num_nonnulls(o.max_in_flight, o.rate) > 0),
          q.queue IS NOT NULL AND EXISTS (SELECT 1 FROM daybook.queues u WHERE u.name = q.queue AND num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0),
          q.fleet = $5
;
WITH held AS MATERIALIZED (
    SELECT id, awaited FROM daybook.jobs
     WHERE id = $1 AND turn_id = $2 AND fence = $3 AND run_count = $4 AND leased_generation = $5
       AND attempt_started_at = $6
       FOR NO KEY UPDATE
), kept AS MATERIALIZED (
    SELECT daybook.put_step(h.id, h.awaited, $7, $8, $4, $9::text::jsonb, $10, $11, $12, $13) AS kept FROM held h
)
SELECT CASE WHEN (SELECT kept FROM kept) THEN 1 ELSE daybook.lease_lost(1, 0) END
;
WITH inserted AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, rule_set_version, rule_id, document_date, posting_date,
                                 entry_count, job_id, attempt, workflow_run_id, epoch, content_hash, no_entries)
    SELECT unnest($1::bigint[]), unnest($2::text[]), unnest($3::text[]), unnest($4::bigint[]), unnest($5::integer[]), unnest($6::daybook.impact_kind[]),
           unnest($7::bigint[]), unnest($8::text[]), unnest($9::date[]), unnest($10::date[]), unnest($11::integer[]),
           unnest($12::text[]), unnest($13::integer[]), unnest($14::text[]), unnest($15::integer[]), unnest($16::bytea[]), unnest($17::text[])
)
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id, document_line, dimensions)
SELECT unnest($18::bigint[]), unnest($19::integer[]), unnest($20::text[]), unnest($21::text[]), unnest($22::daybook.entry_side[]),
       unnest($23::bigint[]), unnest($24::text[]), unnest($25::text[]), unnest($26::integer[]),
       unnest($27::jsonb[])
UNION ALL
SELECT r.id, e.line_no, e.org_id, e.account_code, CASE e.side WHEN 'debit' THEN 'credit' ELSE 'debit' END::daybook.entry_side,
       e.amount_minor, e.currency, e.rule_line_id, e.document_line, e.dimensions
  FROM unnest($28::bigint[], $29::bigint[]) AS r (id, mirrored)
  JOIN daybook.entries e ON e.impact_id = r.mirrored
;
WITH job AS (
    SELECT id FROM daybook.jobs WHERE id = $1 AND state IN ('pending', 'leased') AND NOT cancel_requested
), opened AS (
    INSERT INTO daybook.job_workflows (job_id, namespace, grace_seconds)
    SELECT job.id, $2, $3 FROM job
    ON CONFLICT (job_id) DO UPDATE
       SET namespace = excluded.namespace, grace_seconds = excluded.grace_seconds, asked_at = clock_timestamp(), due_at = NULL, cancelled_at = NULL
    RETURNING job_id
)
SELECT EXISTS (SELECT FROM opened)
;
WITH job AS MATERIALIZED (
    SELECT q.org_id, q.document_id FROM daybook.accounting_work_queue q WHERE q.org_id = $1 AND q.document_id = $2 FOR NO KEY UPDATE
), known AS MATERIALIZED (
    SELECT j.org_id, j.document_id
      FROM job j JOIN daybook.posted_elsewhere p ON p.org_id = j.org_id AND p.document_id = j.document_id
)
SELECT d.job_id, d.result FROM known k CROSS JOIN LATERAL daybook.decide_posted_elsewhere(k.org_id, k.document_id, $3) d
UNION ALL
SELECT '', 'no job' WHERE NOT EXISTS (SELECT FROM job)
UNION ALL
SELECT '', 'not elsewhere' WHERE EXISTS (SELECT FROM job) AND NOT EXISTS (SELECT FROM known)
;
WITH jobs AS MATERIALIZED (
    SELECT u.* FROM daybook.unposted_documents($1, daybook.closed_days($1) - $2::text::datemultirange,
                                               coalesce($3::text[], '{}'), coalesce($4::date[], '{}')) u
), named AS (
    SELECT document_id, date, state, code FROM jobs WHERE inside
     ORDER BY state = 'failed' DESC, date, document_id LIMIT $5
)
SELECT count(*) FILTER (WHERE inside AND state = 'failed'), count(*) FILTER (WHERE inside AND state <> 'failed'),
       count(*) FILTER (WHERE inside IS NULL), (SELECT coalesce(json_agg(n), '[]') FROM named n)::text
  FROM jobs
;
WITH kept_days AS (
    SELECT k.org_id, a.code, k.last_day, lag(k.last_day) OVER w AS day_before, lead(k.last_day) OVER w AS day_after
      FROM daybook.closed_item_days k CROSS JOIN LATERAL unnest(k.accounts) AS a (code)
     WHERE $1 = '' OR k.org_id = $1
    WINDOW w AS (PARTITION BY k.org_id, a.code ORDER BY k.last_day)
), days AS (
    SELECT DISTINCT i.org_id, i.posting_date FROM daybook.impacts i WHERE $1 = '' OR i.org_id = $1
), posting_days AS (
    SELECT k.org_id, k.code, k.last_day, d.posting_date
      FROM kept_days k JOIN days d ON d.org_id = k.org_id AND d.posting_date <= k.last_day AND d.posting_date > coalesce(k.day_before, '-infinity')
), amounts AS (
    SELECT k.org_id, k.last_day, k.document_id, k.account_code, k.currency, k.amount AS kept, 0 AS posted
      FROM daybook.closed_items k WHERE $1 = '' OR k.org_id = $1
     UNION ALL
    SELECT k.org_id, d.day_after, k.document_id, k.account_code, k.currency, -k.amount, 0
      FROM kept_days d JOIN daybook.closed_items k ON k.org_id = d.org_id AND k.last_day = d.last_day AND k.account_code = d.code
     WHERE d.day_after IS NOT NULL
     UNION ALL
    SELECT d.org_id, d.last_day, i.document_id, e.account_code, e.currency, 0, CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END
      FROM posting_days d
      JOIN daybook.impacts i ON i.org_id = d.org_id AND i.posting_date = d.posting_date
      JOIN daybook.entries e ON e.impact_id = i.id AND e.account_code = d.code
), wrong AS (
    SELECT a.org_id, a.last_day, min(a.document_id) AS document_id, a.account_code,
           format('what is kept as open on %s of document %s and its group on account %s in %s is %s more than what is kept of the day before, and %s is posted: %s',
                  a.last_day, min(a.document_id), a.account_code, a.currency, sum(a.kept), sum(a.posted), 'open the last closed period and close it again') AS detail
      FROM amounts a
      LEFT JOIN daybook.reconciled r ON r.org_id = a.org_id AND r.document_id = a.document_id
     GROUP BY a.org_id, a.last_day, r.group_id, CASE WHEN r.group_id IS NULL THEN a.document_id END, a.account_code, a.currency
    HAVING sum(a.kept) <> sum(a.posted)
     UNION ALL
    SELECT k.org_id, k.last_day, NULL, '', format('it is kept what is open on %s, and not all days until then are closed', k.last_day)
      FROM daybook.closed_item_days k
     WHERE ($1 = '' OR k.org_id = $1) AND NOT daterange('1900-01-01', k.last_day, '[]') <@ daybook.closed_days(k.org_id)
)
SELECT count(*) OVER (), w.org_id, w.document_id, NULL::bigint, w.detail FROM wrong w ORDER BY w.org_id, w.last_day, w.document_id, w.account_code LIMIT $2
;
WITH keys AS MATERIALIZED (
    (SELECT id FROM daybook.documents WHERE $1::bigint = 0 AND org_id = $2 AND id > $3 AND id >= $4 AND id < $5 ORDER BY id LIMIT $6)
     UNION
    (SELECT document_id FROM daybook.import_documents WHERE import_id = $1 AND document_id > $3 AND document_id >= $4 AND document_id < $5 ORDER BY document_id LIMIT $6)
     UNION
    (SELECT document_id FROM daybook.accounting_work_queue WHERE $1::bigint = 0 AND org_id = $2 AND document_id > $3 AND document_id >= $4 AND document_id < $5 ORDER BY document_id LIMIT $6)
     UNION
    (SELECT document_id FROM daybook.impacts WHERE $1::bigint = 0 AND org_id = $2 AND document_id > $3 AND document_id >= $4 AND document_id < $5 AND seq = 1 ORDER BY document_id LIMIT $6)
     ORDER BY 1 LIMIT $6
)
SELECT scanned.n, coalesce(scanned.last, ''), x.*
  FROM (SELECT count(*) AS n, max(id) AS last FROM keys) scanned
  LEFT JOIN (
        SELECT k.id, d.id IS NOT NULL AS here, coalesce(d.type, '') AS type, coalesce(d.direction, '') AS direction, coalesce(d.currency, '') AS currency,
               coalesce(d.issue_date, i.document_date) AS date, coalesce(d.accounting_ready_version, j.version_hint, 0) AS version,
               d.accounting_ready_at, d.deleted_at, coalesce(j.state::text, '') AS state, coalesce(j.last_error_code, '') AS code,
               CASE WHEN i.kind = 'post' THEN i.document_version END AS posted, d.value_date, d.created_at, d.updated_at,
               CASE WHEN i.kind = 'post' THEN i.no_entries ELSE '' END AS no_entries, d.import_id,
               coalesce(d.content ->> 'number', '') AS number, coalesce(d.content ->> 'counterparty', '') AS counterparty,
               daybook.stated_amount(d.content)::text AS amount
          FROM keys k
          LEFT JOIN LATERAL (SELECT * FROM daybook.documents x WHERE x.org_id = $2 AND x.id = k.id LIMIT 1) d ON true
          LEFT JOIN LATERAL (SELECT * FROM daybook.accounting_work_queue x WHERE x.org_id = $2 AND x.document_id = k.id LIMIT 1) j ON true
          LEFT JOIN LATERAL (
                SELECT p.kind, p.document_version, p.document_date, p.no_entries FROM daybook.impacts p
                 WHERE p.org_id = $2 AND p.document_id = k.id ORDER BY p.seq DESC LIMIT 1) i ON true
         WHERE ($1::bigint = 0 OR d.import_id = $1) AND ($7 = '' OR d.type = $7) AND ($8 = '' OR j.state::text = $8)
           AND ($9::boolean IS NULL OR (i.kind IS NOT DISTINCT FROM 'post') = $9)
           AND ($10::date IS NULL OR coalesce(d.issue_date, i.document_date) >= $10) AND ($11::date IS NULL OR coalesce(d.issue_date, i.document_date) <= $11)
         ORDER BY k.id
         LIMIT $12) x ON true
 ORDER BY x.id
;
WITH lines AS MATERIALIZED (
    SELECT line FROM jsonb_array_elements($1::jsonb) AS x (line)
), jobs AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.jobs', 'id', (SELECT jsonb_agg(line -> 'jobs' -> 0) FROM lines WHERE line ->> 'kind' = 'jobs')) AS r
), whole AS MATERIALIZED (
    SELECT line FROM lines WHERE line ->> 'kind' = 'attempts' OR line -> 'jobs' -> 0 ->> 'id' IN (SELECT r FROM jobs)
), attempts AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.attempt_log', 'id', (SELECT jsonb_agg(x) FROM whole, jsonb_array_elements(line -> 'attempts') AS x)) AS r
), links AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.job_links', 'id', (SELECT jsonb_agg(x) FROM whole, jsonb_array_elements(line -> 'links') AS x)) AS r
), receipts AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.webhook_deliveries', 'job_id', (SELECT jsonb_agg(x) FROM whole, jsonb_array_elements(line -> 'receipts') AS x)) AS r
), deliveries AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.job_deliveries', 'job_id', (SELECT jsonb_agg(x) FROM whole, jsonb_array_elements(line -> 'deliveries') AS x)) AS r
), steps AS MATERIALIZED (
    SELECT r FROM daybook.restore_rows('daybook.job_steps', 'job_id', (SELECT jsonb_agg(x) FROM whole, jsonb_array_elements(line -> 'steps') AS x)) AS r
)
SELECT ARRAY[(SELECT count(*) FROM jobs), (SELECT count(*) FROM attempts), (SELECT count(*) FROM links), (SELECT count(*) FROM receipts), (SELECT count(*) FROM deliveries), (SELECT count(*) FROM steps)]
;
WITH live AS (
    SELECT i.org_id, i.document_id, i.id, i.document_version
      FROM daybook.impacts i
     WHERE i.kind = 'post' AND ($1 = '' OR i.org_id = $1)
       AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
), wrong AS MATERIALIZED (
SELECT d.org_id, d.id, l.id AS impact_id,
       format('version %s is ready and %s; %s', d.accounting_ready_version,
              CASE WHEN l.id IS NULL THEN 'nothing is posted' ELSE format('version %s is posted', l.document_version) END,
              CASE WHEN j.id IS NULL THEN 'there is no job' ELSE format('its job for version %s is %s', j.version_hint, j.state) END)
  FROM daybook.documents d
  LEFT JOIN live l ON l.org_id = d.org_id AND l.document_id = d.id
  LEFT JOIN daybook.accounting_work_queue j ON j.org_id = d.org_id AND j.document_id = d.id
  LEFT JOIN daybook.organizations o ON o.id = d.org_id
 WHERE d.accounting_ready_at IS NOT NULL AND d.deleted_at IS NULL AND ($1 = '' OR d.org_id = $1)
   AND coalesce(o.source, (SELECT s.source FROM daybook.defaults s)) = 'daybook'
   AND l.document_version IS DISTINCT FROM d.accounting_ready_version
   AND (j.state IN ('completed', 'cancelled') OR j.state = 'failed' AND j.version_hint < d.accounting_ready_version) IS NOT FALSE
   AND NOT EXISTS (SELECT 1 FROM daybook.confirmations c WHERE c.impact_id = l.id AND c.document_version = d.accounting_ready_version)
   AND NOT (l.id IS NULL AND EXISTS (SELECT 1 FROM daybook.posted_elsewhere p
                                      WHERE p.org_id = d.org_id AND p.document_id = d.id AND p.next <> 'full' AND p.document_version >= d.accounting_ready_version))
)
SELECT count(*) OVER (), w.* FROM wrong w ORDER BY w.org_id, w.id LIMIT $2
;
WITH looked AS MATERIALIZED (
    (SELECT l.job_id AS id FROM daybook.job_links l WHERE $1 <> '' AND l.kind = $1 AND l.id = $2 AND l.job_id > $3 ORDER BY l.job_id LIMIT $4)
     UNION ALL
    (SELECT j.id FROM daybook.jobs j
      WHERE $1 = '' AND j.org_id = $5 AND j.state IN ('pending', 'leased', 'failed') AND NOT j.cancel_requested AND j.id > $3
      ORDER BY j.id LIMIT $4)
), open AS MATERIALIZED (
    SELECT j.id FROM looked JOIN daybook.jobs j USING (id) WHERE j.org_id = $5 AND j.state IN ('pending', 'leased', 'failed') AND NOT j.cancel_requested
)
SELECT coalesce((SELECT max(id) FROM looked), ''), daybook.cancel_jobs(coalesce((SELECT array_agg(id) FROM open), '{}'), '{pending,leased,failed}')
;
WITH looked AS MATERIALIZED (
    (SELECT l.job_id AS id FROM daybook.job_links l WHERE $1 <> '' AND l.kind = $1 AND l.id = $2 AND l.job_id > $3 ORDER BY l.job_id LIMIT $4)
     UNION ALL
    (SELECT j.id FROM daybook.jobs j WHERE $1 = '' AND j.org_id = $5 AND j.state::text IN ('completed', 'cancelled') AND j.id > $3 ORDER BY j.id LIMIT $4)
), doomed AS MATERIALIZED (
    SELECT j.id, j.limit_scope, j.limit_key
      FROM looked JOIN daybook.jobs j USING (id)
     WHERE j.org_id = $5 AND j.state IN ('completed', 'cancelled')
       FOR UPDATE OF j SKIP LOCKED
), attempts AS (
    DELETE FROM daybook.attempt_log a USING doomed d WHERE a.job_id = d.id RETURNING 1
), receipts AS (
    DELETE FROM daybook.webhook_deliveries w USING doomed d WHERE w.job_id = d.id RETURNING 1
), deliveries AS (
    DELETE FROM daybook.job_deliveries c USING doomed d WHERE c.job_id = d.id RETURNING 1
), steps AS (
    DELETE FROM daybook.job_steps s USING doomed d WHERE s.job_id = d.id RETURNING 1
), unused AS MATERIALIZED (
    SELECT r.*
      FROM (SELECT DISTINCT d.limit_scope, d.limit_key FROM doomed d) d
      JOIN daybook.job_limit_rates r ON r.scope = d.limit_scope AND r.org_id = $5 AND r.limit_key = d.limit_key
     WHERE NOT EXISTS (SELECT FROM daybook.jobs o WHERE o.limit_scope = r.scope AND o.org_id = r.org_id AND o.limit_key = r.limit_key AND o.finished_at IS NULL)
), rates AS (
    DELETE FROM daybook.job_limit_rates r USING unused w WHERE (r.scope, r.org_id, r.limit_key, r.next_at, r.look_at) = (w.scope, w.org_id, w.limit_key, w.next_at, w.look_at)
), links AS (
    DELETE FROM daybook.job_links l USING doomed d WHERE l.job_id = d.id RETURNING 1
), adopted AS (
    UPDATE daybook.adopted_rows r SET legacy_row = jsonb_build_object('erased', $6::text) FROM doomed d WHERE r.job_id = d.id RETURNING 1
), actions AS (
    UPDATE daybook.actions a SET subject = '', details = jsonb_build_object('erased', $6::text)
      FROM doomed d
     WHERE a.subject = d.id AND (a.org_id = $5 OR a.org_id IS NULL) AND a.details -> 'erased' IS NULL
    RETURNING 1
), jobs AS (
    DELETE FROM daybook.jobs j USING doomed d WHERE j.id = d.id RETURNING 1
)
SELECT coalesce((SELECT max(id) FROM looked), ''),
       jsonb_build_object('jobs', (SELECT count(*) FROM jobs), 'attempts', (SELECT count(*) FROM attempts), 'job_links', (SELECT count(*) FROM links),
           'webhook_deliveries', (SELECT count(*) FROM receipts), 'job_deliveries', (SELECT count(*) FROM deliveries), 'job_steps', (SELECT count(*) FROM steps), 'adopted_rows', (SELECT count(*) FROM adopted), 'actions', (SELECT count(*) FROM actions))
;
WITH looked AS MATERIALIZED (
    SELECT d.id, d.content,
           (SELECT q.state IN ('pending', 'leased', 'failed') FROM daybook.accounting_work_queue q WHERE q.org_id = d.org_id AND q.document_id = d.id) IS TRUE AS open
      FROM daybook.documents d
     WHERE d.org_id = $1 AND d.id = ANY ($2)
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
     WHERE d.org_id = $1 AND d.id = c.id AND d.content <> c.content
    RETURNING 1
)
SELECT (SELECT count(*) FROM looked), coalesce((SELECT max(id) FROM looked), $3), (SELECT count(*) FROM clean WHERE open),
       jsonb_build_object('documents', (SELECT count(*) FROM documents))
;
WITH looked AS MATERIALIZED (
    SELECT id, finished_at
      FROM daybook.jobs
     WHERE state IN ('completed', 'cancelled') AND finished_at < $1 AND (finished_at, id) > ($2, $3)
     ORDER BY finished_at, id
     LIMIT $4
), doomed AS MATERIALIZED (
    SELECT j.id
      FROM daybook.jobs j
      JOIN looked l ON l.id = j.id
     WHERE ($5 = '' OR j.org_id = $5) AND j.id <> $6 AND j.state IN ('completed', 'cancelled') AND j.finished_at < $1
       FOR UPDATE OF j SKIP LOCKED
), attempts AS (
    DELETE FROM daybook.attempt_log a USING doomed d WHERE a.job_id = d.id RETURNING 1
), receipts AS (
    DELETE FROM daybook.webhook_deliveries w USING doomed d WHERE w.job_id = d.id RETURNING 1
), deliveries AS (
    DELETE FROM daybook.job_deliveries c USING doomed d WHERE c.job_id = d.id
), jobs AS (
    DELETE FROM daybook.jobs j USING doomed d WHERE j.id = d.id RETURNING 1
)
SELECT (SELECT count(*) FROM looked), (SELECT count(*) FROM jobs), (SELECT count(*) FROM attempts), (SELECT count(*) FROM receipts),
       coalesce((SELECT max(finished_at) FROM looked), $2), coalesce((SELECT id FROM looked ORDER BY finished_at DESC, id DESC LIMIT 1), $3),
       $7::bigint
;
WITH looked AS MATERIALIZED (
    SELECT job_id, attempt, sent_at
      FROM daybook.webhook_deliveries
     WHERE (job_id, attempt) > ($1, $2)
     ORDER BY job_id, attempt
     LIMIT $3
), gone AS (
    DELETE FROM daybook.webhook_deliveries w
     USING looked l
      LEFT JOIN daybook.jobs j ON j.id = l.job_id
     WHERE w.job_id = l.job_id AND w.attempt = l.attempt AND l.sent_at < $4 AND l.job_id <> $5
       AND ($6 = '' OR j.org_id = $6) AND (j.id IS NULL OR j.state IN ('completed', 'cancelled'))
    RETURNING 1
)
SELECT (SELECT count(*) FROM looked), 0, 0, (SELECT count(*) FROM gone), $7::timestamptz,
       coalesce((SELECT job_id FROM looked ORDER BY job_id DESC, attempt DESC LIMIT 1), $1),
       coalesce((SELECT attempt FROM looked ORDER BY job_id DESC, attempt DESC LIMIT 1), $2)
;
WITH looked AS MATERIALIZED (
    SELECT job_id, id, ended_at, org_id, kind
      FROM daybook.attempt_log
     WHERE (job_id, id) > ($1, $2)
     ORDER BY job_id, id
     LIMIT $3
), gone AS (
    DELETE FROM daybook.attempt_log a
     USING looked l
      JOIN daybook.accounting_work_queue q ON q.id = l.job_id
     WHERE a.job_id = l.job_id AND a.id = l.id AND l.kind = 'accounting' AND l.ended_at < $4 AND l.job_id <> $5
       AND ($6 = '' OR l.org_id = $6) AND q.state IN ('completed', 'cancelled')
    RETURNING 1
)
SELECT (SELECT count(*) FROM looked), 0, (SELECT count(*) FROM gone), 0, $7::timestamptz,
       coalesce((SELECT job_id FROM looked ORDER BY job_id DESC, id DESC LIMIT 1), $1),
       coalesce((SELECT id FROM looked ORDER BY job_id DESC, id DESC LIMIT 1), $2)
;
WITH looked AS MATERIALIZED (
    SELECT m.import_id, m.document_id
      FROM daybook.import_documents m
      JOIN daybook.imports i ON i.id = m.import_id
     WHERE m.former IS NOT NULL AND i.org_id = $1 AND ($2 = '' OR m.document_id = $2) AND m.document_id >= $3
     ORDER BY m.document_id
     LIMIT $4
), formers AS (
    UPDATE daybook.import_documents m SET former = NULL FROM looked l WHERE m.import_id = l.import_id AND m.document_id = l.document_id RETURNING 1
)
SELECT coalesce((SELECT max(document_id) FROM looked), ''), jsonb_build_object('import_documents', (SELECT count(*) FROM formers))
;
WITH looked AS MATERIALIZED (
    SELECT q.id, q.document_id
      FROM daybook.accounting_work_queue q
     WHERE q.org_id = $1 AND ($2 = '' OR q.document_id = $2) AND q.document_id > $3
     ORDER BY q.document_id
     LIMIT $4
), queue AS (
    UPDATE daybook.accounting_work_queue q SET last_error = '[erased]'
     WHERE q.id IN (SELECT x.id FROM looked JOIN daybook.accounting_work_queue x USING (id)
                     WHERE x.last_error <> '[erased]' AND x.state <> 'leased' FOR UPDATE OF x SKIP LOCKED)
    RETURNING 1
), attempts AS (
    UPDATE daybook.attempt_log a SET error = '[erased]' FROM looked l WHERE a.job_id = l.id AND a.kind = 'accounting' AND a.error <> '[erased]' RETURNING 1
)
SELECT coalesce((SELECT max(document_id) FROM looked), ''),
       jsonb_build_object('accounting_work_queue', (SELECT count(*) FROM queue), 'accounting_attempts', (SELECT count(*) FROM attempts))
;
WITH looked AS MATERIALIZED (
    SELECT r.document_id
      FROM daybook.reconciled r
     WHERE r.org_id = $1 AND r.document_id > $2
       AND ($3 = '' OR r.group_id IN (SELECT g.group_id FROM daybook.reconciled g
                                              WHERE g.org_id = $1 AND g.document_id IN ($3, daybook.open_item_of($1, $3))))
       AND (r.reason NOT IN ('', '[erased]') OR r.actor <> '[erased]')
     ORDER BY r.document_id
     LIMIT $4
), reasons AS (
    UPDATE daybook.reconciled r SET reason = CASE r.reason WHEN '' THEN '' ELSE '[erased]' END, actor = '[erased]'
      FROM looked l WHERE r.org_id = $1 AND r.document_id = l.document_id RETURNING 1
)
SELECT coalesce((SELECT max(document_id) FROM looked), ''), jsonb_build_object('reconciled', (SELECT count(*) FROM reasons))
;
WITH looked AS MATERIALIZED (
    SELECT x.id
      FROM daybook.actions x
     WHERE x.id > coalesce(nullif($1, '')::bigint, 0) AND x.details -> 'erased' IS NULL AND (x.subject <> '' OR x.details <> '{}')
       AND CASE WHEN $2 = '' THEN x.org_id = $3
                ELSE (x.org_id = $3 OR x.org_id IS NULL)
                     AND (x.details ->> 'link' IN ($2 || '=' || $4, '=' || $4)
                          OR $2 = 'document' AND x.subject IN ($3 || ' ' || $4, $4) AND x.org_id = $3) END
     ORDER BY x.id
     LIMIT $5
), marked AS (
    UPDATE daybook.actions a SET subject = '', details = jsonb_build_object('erased', $6::text) FROM looked l WHERE a.id = l.id RETURNING 1
)
SELECT coalesce((SELECT max(id) FROM looked)::text, ''), jsonb_build_object('actions', (SELECT count(*) FROM marked))
;
WITH lost AS (
    UPDATE daybook.job_deliveries
       SET state = 'unknown', reference = NULL, ended_at = clock_timestamp(), error_code = 'WORKER_LOST',
           error = 'the attempt ended before it was on record whether the message was sent'
     WHERE job_id = $1 AND state = 'sending'
    RETURNING channel, state, attempt, reference, error_code, error
)
SELECT channel, state, attempt, coalesce(reference, ''), coalesce(error_code, ''), coalesce(error, '') FROM lost
 UNION ALL
SELECT d.channel, d.state, d.attempt, coalesce(d.reference, ''), coalesce(d.error_code, ''), coalesce(d.error, '')
  FROM daybook.job_deliveries d
 WHERE d.job_id = $1 AND d.state <> 'sending'
;
WITH matching AS MATERIALIZED (
    SELECT org_id, document_id
      FROM daybook.accounting_work_queue
     WHERE id = ANY ($1) AND state::text = $2 AND updated_at < $3 AND ($4 = '' OR org_id = $4) AND ($5 = '' OR last_error_code = $5)
     ORDER BY org_id, document_id
       FOR NO KEY UPDATE SKIP LOCKED
)
SELECT count(r.job_id)
  FROM matching m
 CROSS JOIN LATERAL daybook.mark_accounting_job_pending(m.org_id, m.document_id, NULL, $6) r
;
WITH mine AS MATERIALIZED (
    SELECT id FROM daybook.accounting_work_queue
     WHERE id = ANY ($1) AND turn_id IN ($2, $3) AND fence = $4
     ORDER BY org_id, id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.accounting_work_queue q
   SET turn_id = $3, detached = $5, last_attempted_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM mine)) AND (SELECT count(*) FROM mine) = cardinality($1::text[])
RETURNING q.id
;
WITH mine AS MATERIALIZED (
    SELECT id FROM daybook.jobs
     WHERE id = ANY ($1) AND turn_id IN ($2, $3) AND fence = $4
     ORDER BY org_id, id
       FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE daybook.jobs q
   SET turn_id = $3, detached = $5, last_attempted_at = clock_timestamp()
 WHERE q.id = ANY (ARRAY(SELECT id FROM mine)) AND (SELECT count(*) FROM mine) = cardinality($1::text[])
RETURNING q.id
;
WITH newest AS MATERIALIZED (
    SELECT e.error_id, e.task_id, e.created_at AS at
      FROM queues.error e
     WHERE $1 = ''
     ORDER BY e.error_id DESC
     LIMIT $2
), failed AS MATERIALIZED (
    SELECT DISTINCT ON (n.task_id) n.task_id, n.error_id, n.at, t.task_type
      FROM newest n
      JOIN queues.task t USING (task_id)
      JOIN queues.task_completed c USING (task_id)
     WHERE n.at > statement_timestamp() - interval '1 day'
     ORDER BY n.task_id, n.error_id DESC
), groups AS (
    SELECT f.task_type, count(*) AS n, min(f.at) AS since, max(f.at) AS last, (array_agg(f.error_id ORDER BY f.error_id DESC))[1] AS error_id
      FROM failed f
     GROUP BY 1
)
SELECT g.task_type, '', g.n, g.since, g.last, e.task_id::text, '', left(e.error_message, 500)
  FROM groups g
  JOIN queues.error e USING (error_id)
 ORDER BY g.n DESC, g.task_type
;
WITH newest AS MATERIALIZED (
    SELECT q.id, '' AS type, q.last_error_code AS code, q.updated_at AS at,
           (SELECT w.cause
              FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w (code, words, cause, i)
             WHERE w.code = q.last_error_code AND position(w.words IN left(q.last_error, 500)) > 0
             ORDER BY w.i
             LIMIT 1) AS cause
      FROM daybook.accounting_work_queue q
     WHERE q.state = 'failed' AND ($4 = '' OR q.org_id = $4)
     ORDER BY q.updated_at DESC
     LIMIT $5
), groups AS (
    SELECT n.type, n.code, count(*) AS n, min(n.at) AS since, max(n.at) AS last, (array_agg(n.id ORDER BY n.at DESC, n.id))[1] AS id
      FROM newest n
     GROUP BY n.type, n.code, n.cause
)
SELECT g.type, g.code, g.n, g.since, g.last, q.document_id, q.org_id, left(coalesce(q.last_error, ''), 500)
  FROM groups g
  JOIN daybook.accounting_work_queue q ON q.id = g.id
 ORDER BY g.n DESC, g.code
;
WITH newest AS MATERIALIZED (
    SELECT q.id, q.org_id, q.sequence, q.type, q.last_error_code AS code, q.finished_at AS at
      FROM daybook.jobs q
     WHERE q.state = 'failed' AND ($1 = '' OR q.org_id = $1)
     ORDER BY q.finished_at DESC
     LIMIT $2
), held AS MATERIALIZED (
    SELECT n.*
      FROM newest n
     WHERE n.sequence IS NOT NULL
       AND EXISTS (SELECT FROM daybook.job_sequences s WHERE s.org_id = n.org_id AND s.key = n.sequence AND s.holder = n.id)
       AND EXISTS (SELECT FROM daybook.jobs w
                    WHERE w.org_id = n.org_id AND w.sequence = n.sequence AND w.state IN ('pending', 'leased', 'failed') AND w.state = 'pending' AND w.id <> n.id)
), first AS MATERIALIZED (
    SELECT h.*, count(*) OVER () AS all FROM held h ORDER BY h.at, h.id LIMIT $3
)
SELECT f.org_id, f.sequence, f.id, f.type, coalesce(f.code, ''), f.at,
       (SELECT count(*)
          FROM (SELECT FROM daybook.jobs w
                 WHERE w.org_id = f.org_id AND w.sequence = f.sequence AND w.state IN ('pending', 'leased', 'failed') AND w.state = 'pending' AND w.id <> f.id
                 LIMIT $4) x), f.all
  FROM first f
 ORDER BY f.at, f.id
;
WITH newest AS MATERIALIZED (
    SELECT q.id, q.type, q.last_error_code AS code, q.finished_at AS at,
           (SELECT w.cause
              FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w (code, words, cause, i)
             WHERE w.code = q.last_error_code AND position(w.words IN left(q.last_error, 500)) > 0
             ORDER BY w.i
             LIMIT 1) AS cause
      FROM daybook.jobs q
     WHERE q.state = 'failed' AND ($4 = '' OR q.org_id = $4)
     ORDER BY q.finished_at DESC
     LIMIT $5
), groups AS (
    SELECT n.type, n.code, count(*) AS n, min(n.at) AS since, max(n.at) AS last, (array_agg(n.id ORDER BY n.at DESC, n.id))[1] AS id
      FROM newest n
     GROUP BY n.type, n.code, n.cause
)
SELECT g.type, g.code, g.n, g.since, g.last, q.id, q.org_id, left(coalesce(q.last_error, ''), 500)
  FROM groups g
  JOIN daybook.jobs q ON q.id = g.id
 ORDER BY g.n DESC, g.type, g.code
;
WITH of AS (SELECT coalesce((SELECT u.fleet FROM daybook.queues u WHERE u.name = $1), 0) AS fleet),
workers AS (SELECT w.types, w.versions FROM daybook.live_job_workers w, of WHERE w.fleet = of.fleet)
SELECT (SELECT o.paused_at FROM daybook.organizations o WHERE o.id = $2), (SELECT o.max_in_flight FROM daybook.organizations o WHERE o.id = $2),
       CASE $3 WHEN 'jobs' THEN (SELECT count(*) FROM daybook.jobs j WHERE j.capped AND j.turn_id IS NOT NULL AND j.org_id = $2)
                  ELSE (SELECT count(*) FROM daybook.accounting_work_queue q WHERE q.capped AND q.turn_id IS NOT NULL AND q.org_id = $2) END,
       $3 = 'jobs' AND coalesce((SELECT daybook.organization_starts(o) < 1 FROM daybook.organizations o WHERE o.id = $2 AND o.rate IS NOT NULL), false),
       (SELECT count(*) FROM workers), (SELECT count(*) FROM workers w WHERE $4 = ANY (w.types) AND coalesce(w.versions[array_position(w.types, $4)], 0) >= $5),
       (SELECT f.name FROM daybook.fleets f, of WHERE f.id = of.fleet), (SELECT u.paused_at FROM daybook.queues u WHERE u.name = $1)
;
WITH open AS MATERIALIZED (
    (SELECT one.*
       FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1}'::smallint[]) AS f (id)
      CROSS JOIN LATERAL (
            SELECT q.id, q.type, q.last_error_code AS code, q.updated_at AS at, q.run_count, q.org_id, q.ready_at
              FROM daybook.jobs q
             WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp() AND q.ready_at < '9999-12-31 00:00:00+00'
             ORDER BY q.ready_at
             LIMIT $2) one
      ORDER BY one.ready_at
      LIMIT $2)
    UNION ALL
    (SELECT one.*
       FROM unnest(ARRAY(SELECT l.id FROM daybook.fleets l) || '{-1,-2}'::smallint[]) AS f (id)
      CROSS JOIN LATERAL (
            SELECT q.id, q.type, q.last_error_code AS code, q.updated_at AS at, q.run_count, q.org_id, q.ready_at
              FROM daybook.jobs q
             WHERE q.fleet = f.id AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
             ORDER BY q.ready_at
             LIMIT $2) one
      ORDER BY one.ready_at
      LIMIT $2)
), groups AS (
    SELECT o.type, o.code, count(*) AS n, min(o.at) AS since, max(o.at) AS last, (array_agg(o.id ORDER BY o.at DESC, o.id))[1] AS id
      FROM open o
     WHERE o.code IS NOT NULL AND o.run_count > 0 AND o.code <> 'AWAITING_CALLBACK' AND ($1 = '' OR o.org_id = $1)
     GROUP BY 1, 2
)
SELECT g.type, g.code, g.n, g.since, g.last, q.id, q.org_id, left(coalesce(q.last_error, ''), 500)
  FROM groups g
  JOIN daybook.jobs q ON q.id = g.id
 ORDER BY g.n DESC, g.type, g.code
;
WITH open AS MATERIALIZED (
    (SELECT q.id, '' AS type, q.last_error_code AS code, q.updated_at AS at, q.run_count, q.org_id
       FROM daybook.accounting_work_queue q
      WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
      ORDER BY q.ready_at
      LIMIT $2)
    UNION ALL
    (SELECT q.id, '' AS type, q.last_error_code AS code, q.updated_at AS at, q.run_count, q.org_id
       FROM daybook.accounting_work_queue q
      WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at <= statement_timestamp()
      ORDER BY q.ready_at
      LIMIT $2)
), groups AS (
    SELECT o.type, o.code, count(*) AS n, min(o.at) AS since, max(o.at) AS last, (array_agg(o.id ORDER BY o.at DESC, o.id))[1] AS id
      FROM open o
     WHERE o.code IS NOT NULL AND o.run_count > 0 AND ($1 = '' OR o.org_id = $1)
     GROUP BY 1, 2
)
SELECT g.type, g.code, g.n, g.since, g.last, q.document_id, q.org_id, left(coalesce(q.last_error, ''), 500)
  FROM groups g
  JOIN daybook.accounting_work_queue q ON q.id = g.id
 ORDER BY g.n DESC, g.code
;
WITH open AS MATERIALIZED (
    SELECT e.error_id, e.task_id, e.created_at AS at, o.task_type
      FROM (SELECT e.error_id, e.task_id, e.created_at FROM queues.error e WHERE $1 = '' ORDER BY e.error_id DESC LIMIT $2) e
      JOIN queues.open_task o USING (task_id)
), groups AS (
    SELECT o.task_type, count(DISTINCT o.task_id) AS n, min(o.at) AS since, max(o.at) AS last, (array_agg(o.error_id ORDER BY o.error_id DESC))[1] AS error_id
      FROM open o
     GROUP BY 1
)
SELECT g.task_type, '', g.n, g.since, g.last, e.task_id::text, '', left(e.error_message, 500)
  FROM groups g
  JOIN queues.error e USING (error_id)
 ORDER BY g.n DESC, g.task_type
;
WITH pairs AS (
    SELECT r.id, r.org_id, r.document_id, p.id AS mirrored
      FROM daybook.impacts r
      JOIN daybook.impacts p ON p.org_id = r.org_id AND p.document_id = r.document_id AND p.seq = r.previous_seq
     WHERE r.kind = 'reverse' AND ($1 = '' OR r.org_id = $1)
), lines AS (
    SELECT pairs.id, e.line_no, e.org_id, e.account_code, e.side, e.amount_minor, e.currency, e.rule_line_id, e.document_line, e.dimensions, 1 AS one
      FROM pairs JOIN daybook.entries e ON e.impact_id = pairs.id AND ($1 = '' OR e.org_id = $1)
     UNION ALL
    SELECT pairs.id, e.line_no, e.org_id, e.account_code, CASE e.side WHEN 'debit' THEN 'credit' ELSE 'debit' END::daybook.entry_side,
           e.amount_minor, e.currency, e.rule_line_id, e.document_line, e.dimensions, -1
      FROM pairs JOIN daybook.entries e ON e.impact_id = pairs.mirrored AND ($1 = '' OR e.org_id = $1)
), odd AS (
    SELECT DISTINCT id
      FROM (SELECT id FROM lines
             GROUP BY id, line_no, org_id, account_code, side, amount_minor, currency, rule_line_id, document_line, dimensions
            HAVING sum(one) <> 0) l
)
SELECT count(*) OVER (), pairs.org_id, pairs.document_id, pairs.id, format('it does not mirror impact %s', pairs.mirrored)
  FROM odd JOIN pairs ON pairs.id = odd.id
 ORDER BY pairs.id
 LIMIT $2
;
WITH posted AS (
    SELECT i.org_id, i.document_id, i.id, greatest(i.document_version, c.document_version) AS version, greatest(i.created_at, c.created_at) AS at
      FROM daybook.impacts i
      LEFT JOIN (SELECT DISTINCT ON (impact_id) impact_id, document_version, created_at
                   FROM daybook.confirmations ORDER BY impact_id, document_version DESC, created_at DESC) c ON c.impact_id = i.id
     WHERE i.kind = 'post' AND ($1 = '' OR i.org_id = $1)
       AND NOT EXISTS (SELECT 1 FROM daybook.impacts x WHERE x.org_id = i.org_id AND x.document_id = i.document_id AND x.previous_seq = i.seq)
), wrong AS MATERIALIZED (
SELECT d.org_id, d.id, p.id AS impact_id,
       CASE WHEN p.version > d.accounting_ready_version
            THEN format('version %s is posted, and the document is at version %s', p.version, d.accounting_ready_version)
            WHEN d.created_at > p.at
            THEN format('the document was written anew at %s, and version %s was posted before', d.created_at, p.version)
            ELSE format('the document was changed at %s without being marked ready, and version %s was posted before', d.updated_at, p.version) END
  FROM daybook.documents d
  JOIN posted p ON p.org_id = d.org_id AND p.document_id = d.id
  LEFT JOIN daybook.organizations o ON o.id = d.org_id
 WHERE coalesce(o.source, (SELECT s.source FROM daybook.defaults s)) = 'daybook'
   AND (p.version > d.accounting_ready_version
        OR p.version = d.accounting_ready_version AND greatest(d.created_at, d.updated_at) > p.at)
)
SELECT count(*) OVER (), w.* FROM wrong w ORDER BY w.org_id, w.id LIMIT $2
;
WITH put AS (
    INSERT INTO daybook.documents AS d (org_id, id, type, direction, currency, issue_date, value_date, content, accounting_ready_at, accounting_ready_version, import_id)
    SELECT k.org_id, k.id, k.type, k.direction, k.currency, k.issue_date, k.value_date, k.content, CASE WHEN $1 THEN clock_timestamp() END, $1::boolean::integer, k.import_id
      FROM (SELECT org_id, id, type, direction, currency, issue_date, value_date, content::jsonb, import_id, n
              FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::date[], $8::date[],
                          $9::text[], $10::bigint[]) WITH ORDINALITY AS r (org_id, id, type, direction, currency, issue_date, value_date, content, import_id, n)
            OFFSET 0) k
     WHERE NOT EXISTS (
           SELECT FROM daybook.documents d
            WHERE d.org_id = k.org_id AND d.id = k.id
              AND CASE WHEN d.deleted_at IS NOT NULL THEN NOT daybook.is_undone(d)
                       ELSE (d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content)
                            IS NOT DISTINCT FROM (k.type, k.direction, k.currency, k.issue_date, k.value_date, k.content) END)
     ORDER BY k.n
    ON CONFLICT (org_id, id) DO UPDATE
       SET type = excluded.type, direction = excluded.direction, currency = excluded.currency, issue_date = excluded.issue_date,
           value_date = excluded.value_date, content = excluded.content, updated_at = clock_timestamp(),
           accounting_ready_at = coalesce(excluded.accounting_ready_at, d.accounting_ready_at),
           accounting_ready_version = d.accounting_ready_version + $1::boolean::integer, deleted_at = NULL, import_id = excluded.import_id
     WHERE CASE WHEN d.deleted_at IS NOT NULL THEN daybook.is_undone(d)
                ELSE (d.type, d.direction, d.currency, d.issue_date, d.value_date, d.content)
                     IS DISTINCT FROM
                     (excluded.type, excluded.direction, excluded.currency, excluded.issue_date, excluded.value_date, excluded.content) END
    RETURNING d.org_id, d.id, d.accounting_ready_version, d.xmax = 0 AS inserted, d.import_id, d.updated_at
), written AS (
    INSERT INTO daybook.import_documents (import_id, document_id, created, version, written_at)
    SELECT p.import_id, p.id, p.inserted, p.accounting_ready_version, p.updated_at FROM put p WHERE p.import_id IS NOT NULL
    ON CONFLICT (import_id, document_id) DO UPDATE SET version = excluded.version, written_at = excluded.written_at
)
SELECT org_id, id, accounting_ready_version, inserted FROM put
;
WITH put AS (
    INSERT INTO daybook.organizations AS o (id, currency) VALUES ($1, $2)
        ON CONFLICT ON CONSTRAINT organizations_pkey DO UPDATE SET currency = excluded.currency, updated_at = clock_timestamp()
     WHERE o.currency IS DISTINCT FROM excluded.currency
    RETURNING 1
)
SELECT EXISTS (SELECT FROM put)
;
WITH put AS (
    INSERT INTO daybook.rates AS r (org_id, currency, valid_on, rate, source, actor)
    SELECT $1, k.currency, k.valid_on, k.rate::numeric, k.source, $2
      FROM unnest($3::text[], $4::date[], $5::text[], $6::text[]) AS k (currency, valid_on, rate, source)
        ON CONFLICT ON CONSTRAINT rates_pkey DO UPDATE SET rate = excluded.rate, source = excluded.source, actor = excluded.actor, created_at = clock_timestamp()
     WHERE (r.rate, r.source) <> (excluded.rate, excluded.source)
    RETURNING 1
)
SELECT count(*) FROM put
;
WITH recent AS MATERIALIZED (
    SELECT q.priority, q.org_id,  ''::text  AS slot, q.ready_at, q.id 
      FROM daybook.accounting_work_queue q
     WHERE  num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp() - make_interval(secs => $1) AND q.ready_at <= statement_timestamp()
     ORDER BY q.ready_at DESC
     LIMIT $2
), firsts AS MATERIALIZED (
    SELECT DISTINCT ON (r.priority, r.org_id, r.slot) r.*
      FROM recent r
     ORDER BY r.priority, r.org_id, r.slot, r.ready_at, r.id
)
SELECT f.priority, f.org_id, f.slot, f.ready_at, f.id,  o.max_in_flight IS NOT NULL ,  false , 0::float8
  FROM firsts f
  LEFT JOIN daybook.organizations o ON o.id = f.org_id
   
 WHERE o.paused_at IS NULL 
    AND coalesce(o.source, (SELECT source FROM daybook.defaults WHERE one)) = ANY ($3)
                  AND coalesce(o.hooks, (SELECT hooks FROM daybook.defaults WHERE one)) <@ $4 
 UNION ALL
SELECT 0, '', '', '-infinity', '', (SELECT count(*) FROM recent) = $2, false,
       coalesce((SELECT extract(epoch FROM least(q.ready_at, statement_timestamp() + interval '1 day') - statement_timestamp())
                   FROM daybook.accounting_work_queue q
                  WHERE $5 AND  num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
                  ORDER BY q.ready_at
                  LIMIT 1), 0)::float8
;
WITH recent AS MATERIALIZED (
    SELECT q.priority, q.org_id, daybook.job_slot(q.type, q.queue, q.min_version) AS slot, q.ready_at, q.id, q.queue
      FROM daybook.jobs q
     WHERE q.fleet = $1 AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp() - make_interval(secs => $2) AND q.ready_at <= statement_timestamp()
     ORDER BY q.ready_at DESC
     LIMIT $3
), firsts AS MATERIALIZED (
    SELECT DISTINCT ON (r.priority, r.org_id, r.slot) r.*
      FROM recent r
     ORDER BY r.priority, r.org_id, r.slot, r.ready_at, r.id
)
SELECT f.priority, f.org_id, f.slot, f.ready_at, f.id, num_nonnulls(o.max_in_flight, o.rate) > 0, num_nonnulls(u.max_parallel, u.rate, u.per_process) > 0, 0::float8
  FROM firsts f
  LEFT JOIN daybook.organizations o ON o.id = f.org_id
  LEFT JOIN daybook.queues u ON u.name = f.queue
 WHERE o.paused_at IS NULL AND u.paused_at IS NULL
   
 UNION ALL
SELECT 0, '', '', '-infinity', '', (SELECT count(*) FROM recent) = $3, false,
       coalesce((SELECT extract(epoch FROM least(q.ready_at, statement_timestamp() + interval '1 day') - statement_timestamp())
                   FROM daybook.jobs q
                  WHERE $4 AND q.fleet = $1 AND num_nulls(nullif(q.state, 'pending')) = 1 AND q.ready_at > statement_timestamp()
                  ORDER BY q.ready_at
                  LIMIT 1), 0)::float8
;
WITH roles AS MATERIALIZED (
    SELECT r.oid, r.rolname, r.rolname = session_user AS own
      FROM pg_roles r
     WHERE (r.rolname IN ('daybook_worker', 'daybook_server', session_user)
            OR r.oid IN (SELECT a.usesysid FROM pg_stat_activity a WHERE a.datname = current_database() AND a.application_name LIKE 'daybook%'))
       AND (r.rolname = 'worker_service_user' OR has_table_privilege(r.oid, to_regclass('daybook.impacts'), 'INSERT'))
), paths AS (
    SELECT r.oid, r.rolname,
           coalesce(
               CASE WHEN r.own THEN (SELECT g.reset_val FROM pg_settings g WHERE g.name = 'search_path') END,
               (SELECT substr(c, length('search_path=') + 1)
                  FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) c
                 WHERE c LIKE 'search\_path=%' AND s.setrole IN (r.oid, 0)
                   AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
                 ORDER BY s.setrole = 0, s.setdatabase = 0
                 LIMIT 1),
               '"$user", public') AS path
      FROM roles r
), schemas AS (
    SELECT p.oid, p.rolname, m.place, CASE WHEN w.word = '$user' THEN p.rolname ELSE w.word::name END AS name
      FROM paths p
     CROSS JOIN LATERAL regexp_matches(p.path, '"(($1:[^"]|"")*)"|([^,\s"]+)', 'g') WITH ORDINALITY m (words, place)
     CROSS JOIN LATERAL (SELECT coalesce(replace(m.words[1], '""', '"'), lower(m.words[2])) AS word) w
)
SELECT quote_ident(n.nspname), CASE WHEN a.grantee = 0 THEN '' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
       array_agg(quote_ident(s.rolname) ORDER BY s.rolname),
       (array_agg(coalesce((SELECT string_agg(quote_ident(o.name), ', ' ORDER BY o.place) FROM schemas o WHERE o.oid = s.oid AND o.name <> n.nspname), 'pg_catalog') ORDER BY s.rolname))[1],
       quote_ident(current_database())
  FROM schemas s
  JOIN pg_namespace n ON n.nspname = s.name AND n.nspname <> 'pg_catalog'
 CROSS JOIN LATERAL aclexplode(n.nspacl) a
 WHERE a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner AND has_schema_privilege(s.oid, n.oid, 'USAGE')
   AND (a.grantee = 0 OR NOT pg_has_role(a.grantee, s.oid, 'MEMBER'))
 GROUP BY n.nspname, a.grantee
 ORDER BY a.grantee <> 0, 1, 2
 LIMIT 20
;
WITH seen AS (
    UPDATE daybook.job_callbacks SET seen = true WHERE job_id = $1 AND name = $2 AND called_at IS NOT NULL AND NOT seen
)
SELECT data::text, called_at, extract(epoch FROM deadline - clock_timestamp())::float8
  FROM daybook.job_callbacks
 WHERE job_id = $1 AND name = $2 AND (awaited OR called_at IS NOT NULL)
 ORDER BY called_at, deadline DESC
 LIMIT 1
;
WITH sums AS (
    SELECT e.org_id, e.account_code, e.currency,
           coalesce(sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END) FILTER (WHERE i.posting_date < $1), 0) AS opening,
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'debit' AND (i.posting_date < $1) IS NOT TRUE), 0) AS debit,
           coalesce(sum(e.amount_minor) FILTER (WHERE e.side = 'credit' AND (i.posting_date < $1) IS NOT TRUE), 0) AS credit
      FROM daybook.entries e
      JOIN daybook.impacts i ON i.id = e.impact_id
     WHERE ($2 = '' OR e.org_id = $2) AND ($3 = '' OR e.account_code = $3) AND ($4 = '' OR e.currency = $4)
       AND (i.posting_date > $5) IS NOT TRUE
     GROUP BY e.org_id, e.account_code, e.currency
)
SELECT s.account_code, coalesce(min(a.name), ''), coalesce(min(a.type)::text, ''), s.currency,
       sum(s.opening)::text, sum(s.debit)::text, sum(s.credit)::text
  FROM sums s
  LEFT JOIN daybook.accounts a ON a.org_id = s.org_id AND a.code = s.account_code
 GROUP BY s.currency, s.account_code
 ORDER BY s.currency, s.account_code
;
WITH sums AS (
    SELECT org_id, account_code, currency,
           coalesce(sum(amount_minor) FILTER (WHERE side = 'debit'), 0) AS debit,
           coalesce(sum(amount_minor) FILTER (WHERE side = 'credit'), 0) AS credit
      FROM daybook.entries
     WHERE ($1 = '' OR org_id = $1) AND ($2 = '' OR account_code = $2) AND ($3 = '' OR currency = $3)
     GROUP BY org_id, account_code, currency
)
SELECT s.account_code, coalesce(min(a.name), ''), coalesce(min(a.type)::text, ''), s.currency, '0', sum(s.debit)::text, sum(s.credit)::text
  FROM sums s
  LEFT JOIN daybook.accounts a ON a.org_id = s.org_id AND a.code = s.account_code
 GROUP BY s.currency, s.account_code
 ORDER BY s.currency, s.account_code
;
WITH sums AS (
    SELECT s.account_code, s.currency, s.debit - s.credit AS opening, 0 AS debit, 0 AS credit
      FROM daybook.account_sums($1, NULL, $2::date - 1) s WHERE $2::date IS NOT NULL
     UNION ALL
    SELECT s.account_code, s.currency, 0, s.debit, s.credit FROM daybook.account_sums($1, $2, $3) s
)
SELECT s.account_code, coalesce(min(a.name), ''), coalesce(min(a.type)::text, ''), s.currency,
       sum(s.opening)::text, sum(s.debit)::text, sum(s.credit)::text
  FROM sums s
  LEFT JOIN daybook.accounts a ON a.org_id = $1 AND a.code = s.account_code
 WHERE $4 = '' OR s.currency = $4
 GROUP BY s.currency, s.account_code
 ORDER BY s.currency, s.account_code
;
WITH unused AS MATERIALIZED (
    SELECT r.* FROM daybook.job_limit_rates r WHERE r.org_id = $1 AND NOT EXISTS (SELECT FROM daybook.jobs o WHERE o.limit_scope = r.scope AND o.org_id = r.org_id AND o.limit_key = r.limit_key AND o.finished_at IS NULL)
), receipts AS (
    DELETE FROM daybook.webhook_deliveries w WHERE w.org_id = $1 AND NOT EXISTS (SELECT FROM daybook.jobs j WHERE j.id = w.job_id) RETURNING 1
), attempts AS (
    DELETE FROM daybook.attempt_log a WHERE a.org_id = $1 AND a.kind = 'jobs' AND NOT EXISTS (SELECT FROM daybook.jobs j WHERE j.id = a.job_id) RETURNING 1
), adopted AS (
    UPDATE daybook.adopted_rows r SET legacy_row = jsonb_build_object('erased', $2::text) WHERE r.org_id = $1 AND r.legacy_row -> 'erased' IS NULL RETURNING 1
), sessions AS (
    DELETE FROM daybook.console_sessions s USING daybook.api_tokens t WHERE t.id = s.token_id AND t.org_id = $1 RETURNING 1
), tokens AS (
    UPDATE daybook.api_tokens t SET name = '[erased]', revoked_at = coalesce(t.revoked_at, clock_timestamp()) WHERE t.org_id = $1 AND t.name <> '[erased]' RETURNING 1
), rates AS (
    DELETE FROM daybook.job_limit_rates r USING unused w WHERE (r.scope, r.org_id, r.limit_key, r.next_at, r.look_at) = (w.scope, w.org_id, w.limit_key, w.next_at, w.look_at)
), operations AS (
    DELETE FROM daybook.bulk_operations b WHERE b.org_id = $1 RETURNING 1
), imports AS (
    UPDATE daybook.imports i SET files = '[erased]' WHERE i.org_id = $1 AND i.files NOT IN ('', '[erased]') RETURNING 1
), organizations AS (
    UPDATE daybook.organizations o SET name = '', updated_at = clock_timestamp() WHERE o.id = $1 AND o.name <> '' RETURNING 1
)
SELECT '', jsonb_build_object('webhook_deliveries', (SELECT count(*) FROM receipts), 'attempts', (SELECT count(*) FROM attempts), 'adopted_rows', (SELECT count(*) FROM adopted),
           'console_sessions', (SELECT count(*) FROM sessions), 'api_tokens', (SELECT count(*) FROM tokens), 'bulk_operations', (SELECT count(*) FROM operations),
           'imports', (SELECT count(*) FROM imports), 'organizations', (SELECT count(*) FROM organizations))
;
WITH v AS (
    SELECT id, outcome, code, error, coalesce(delay, 0) AS delay, version, result, coalesce(unlogged, false) AS unlogged, attempt, generation, started_at,
           coalesce(old_version, 0) AS old_version, place
      FROM (SELECT unnest($1::text[]) AS id, unnest($2::text[]) AS outcome, unnest($3::text[]) AS code, unnest($4::text[]) AS error,
                   unnest($5::float8[]) AS delay, unnest($6::bigint[]) AS version, unnest($7::text[]) AS result,
                   unnest($8::boolean[]) AS unlogged, unnest($9::integer[]) AS attempt, unnest($10::bigint[]) AS generation, unnest($11::timestamptz[]) AS started_at,
                   unnest($12::bigint[]) AS old_version, unnest($13::tid[]) AS place) u
), completed AS (
    UPDATE daybook.accounting_work_queue q
       SET state = CASE
               WHEN q.cancel_requested THEN 'cancelled'
               WHEN q.generation <> q.leased_generation OR v.outcome IN ('retried', 'rescheduled') THEN 'pending'
               ELSE v.outcome END::daybook.job_state,
           run_count = CASE
               WHEN q.generation <> q.leased_generation AND NOT q.cancel_requested THEN 0
               WHEN v.outcome = 'rescheduled' THEN v.attempt - 1
               ELSE v.attempt END,
           ready_at = CASE
               WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp())
               WHEN v.outcome IN ('retried', 'rescheduled') THEN clock_timestamp() + make_interval(secs => v.delay)
               ELSE q.ready_at END,
           first_ready_at = CASE WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
           finished_at = CASE
               WHEN q.cancel_requested THEN clock_timestamp()
               WHEN q.generation <> q.leased_generation OR v.outcome IN ('retried', 'rescheduled') THEN NULL
               ELSE  statement_timestamp()  END,
            version_hint = CASE WHEN v.version IS NULL OR q.generation <> q.leased_generation THEN q.version_hint ELSE v.version END,
           not_ready_count = CASE WHEN v.code IS DISTINCT FROM 'DOCUMENT_NOT_READY' OR q.generation <> q.leased_generation THEN 0
                                  ELSE least(q.not_ready_count, 999999) + 1 END, 
           last_error = v.error, last_error_code = v.code,
           cancel_requested = false, working = false, reclaims = 0,
           turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL,
           last_attempted_at = CASE WHEN $14 THEN v.started_at ELSE q.last_attempted_at END,
           completed_turn_id = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              AND coalesce(v.version, q.version_hint) = v.old_version  THEN $15 END,
           completed_fence = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              AND coalesce(v.version, q.version_hint) = v.old_version  THEN $16::bigint END,
           completed_by = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              AND coalesce(v.version, q.version_hint) = v.old_version  THEN $17 END,
           completed_started_at = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              AND coalesce(v.version, q.version_hint) = v.old_version  THEN v.started_at END,
           updated_at = clock_timestamp()
      FROM v
     WHERE q.id = v.id
       AND CASE WHEN $14 THEN q.turn_id IS NULL AND q.finished_at IS NULL AND q.generation = v.generation
                ELSE q.turn_id = $15 AND q.fence = $16 AND q.run_count = v.attempt AND q.leased_generation = v.generation AND q.attempt_started_at = v.started_at AND NOT ($18 AND q.cancel_requested) END
    RETURNING q.id AS job_id, q.org_id, v.attempt, v.outcome, v.code, v.error, v.started_at, v.unlogged,
               'accounting' AS kind, NULL::text AS type, q.document_id, v.old_version AS version ,
              q.state = 'pending' AND v.outcome NOT IN ('retried', 'rescheduled') AS asked_again,
              q.completed_turn_id IS NOT NULL AS kept
-- folds
), again AS (
    SELECT s.job_id, s.error, s.started_at, a.place
      FROM completed s
     CROSS JOIN LATERAL (SELECT *, ctid AS place FROM daybook.attempt_log a WHERE a.job_id = s.job_id ORDER BY a.id DESC LIMIT 1) a
     WHERE s.outcome = 'rescheduled' AND NOT s.unlogged AND a.outcome = 'rescheduled' AND a.attempt = s.attempt
       AND a.error_code IS NOT DISTINCT FROM s.code AND a.version IS NOT DISTINCT FROM s.version
), folded AS (
    UPDATE daybook.attempt_log a
       SET times = a.times + 1, first_started_at = coalesce(a.first_started_at, a.started_at),
           error = (SELECT g.error FROM again g WHERE g.job_id = a.job_id), started_at = (SELECT g.started_at FROM again g WHERE g.job_id = a.job_id),
           ended_at = clock_timestamp(), worker = $17, turn_id = $15, fence = $16, workflow_run_id = $19
     WHERE a.ctid = ANY (ARRAY(SELECT g.place FROM again g))
    RETURNING a.job_id
-- until here
), logged AS (
    INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, document_id, version, attempt, outcome, error_code, error, started_at,
                                     worker, turn_id, fence, workflow_run_id)
    SELECT job_id, org_id, kind, type, document_id, version, attempt, outcome::daybook.attempt_outcome, code, error, started_at,
           $17, $15, $16, $19
      FROM completed s
     WHERE NOT unlogged AND NOT kept
-- folds
       AND s.job_id <> ALL (ARRAY(SELECT f.job_id FROM folded f))
-- until here
)
SELECT CASE WHEN count(*) = cardinality($1::text[]) THEN count(*) FILTER (WHERE asked_again) ELSE daybook.lease_lost(cardinality($1::text[]), count(*)) END
  FROM completed
;
WITH v AS (
    SELECT id, outcome, code, error, coalesce(delay, 0) AS delay, version, result, coalesce(unlogged, false) AS unlogged, attempt, generation, started_at,
           coalesce(old_version, 0) AS old_version, place
      FROM (SELECT unnest($1::text[]) AS id, unnest($2::text[]) AS outcome, unnest($3::text[]) AS code, unnest($4::text[]) AS error,
                   unnest($5::float8[]) AS delay, unnest($6::bigint[]) AS version, unnest($7::text[]) AS result,
                   unnest($8::boolean[]) AS unlogged, unnest($9::integer[]) AS attempt, unnest($10::bigint[]) AS generation, unnest($11::timestamptz[]) AS started_at,
                   unnest($12::bigint[]) AS old_version, unnest($13::tid[]) AS place) u
), completed AS (
    UPDATE daybook.jobs q
       SET state = CASE
               WHEN q.cancel_requested THEN 'cancelled'
               WHEN q.generation <> q.leased_generation OR v.outcome IN ('retried', 'rescheduled') THEN 'pending'
               ELSE v.outcome END::daybook.job_state,
           run_count = CASE
               WHEN q.generation <> q.leased_generation AND NOT q.cancel_requested THEN 0
               WHEN v.outcome = 'rescheduled' THEN v.attempt - 1
               ELSE v.attempt END,
           ready_at = CASE
               WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp())
               WHEN v.outcome IN ('retried', 'rescheduled') THEN clock_timestamp() + make_interval(secs => v.delay)
               ELSE q.ready_at END,
           first_ready_at = CASE WHEN q.generation <> q.leased_generation THEN greatest(q.ready_at, clock_timestamp()) ELSE q.first_ready_at END,
           finished_at = CASE
               WHEN q.cancel_requested THEN clock_timestamp()
               WHEN q.generation <> q.leased_generation OR v.outcome IN ('retried', 'rescheduled') THEN NULL
               ELSE clock_timestamp() END,
           result = CASE WHEN v.outcome = 'completed' THEN v.result::jsonb ELSE q.result END,
           -- folds
           awaited = q.awaited OR v.code IS NOT DISTINCT FROM 'AWAITING_CALLBACK',
           -- until here
           
           last_error = v.error, last_error_code = v.code,
           cancel_requested = false, working = false, reclaims = 0,
           turn_id = NULL, detached = false, fence = NULL, worker = NULL, leased_generation = NULL, attempt_started_at = NULL,
           last_attempted_at = CASE WHEN $14 THEN v.started_at ELSE q.last_attempted_at END,
           completed_turn_id = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              THEN $15 END,
           completed_fence = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              THEN $16::bigint END,
           completed_by = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              THEN $17 END,
           completed_started_at = CASE WHEN v.outcome = 'completed' AND NOT q.cancel_requested AND q.generation = coalesce(q.leased_generation, q.generation)
                                              THEN v.started_at END,
           updated_at = clock_timestamp()
      FROM v
     WHERE q.id = v.id
       AND CASE WHEN $14 THEN q.turn_id IS NULL AND q.finished_at IS NULL AND q.generation = v.generation
                ELSE q.turn_id = $15 AND q.fence = $16 AND q.run_count = v.attempt AND q.leased_generation = v.generation AND q.attempt_started_at = v.started_at AND NOT ($18 AND q.cancel_requested) END
    RETURNING q.id AS job_id, q.org_id, v.attempt, v.outcome, v.code, v.error, v.started_at, v.unlogged,
              'jobs' AS kind, q.type, NULL::text AS document_id, NULL::bigint AS version
              ,
              q.state = 'pending' AND v.outcome NOT IN ('retried', 'rescheduled') AS asked_again,
              q.completed_turn_id IS NOT NULL AS kept
-- folds
), again AS (
    SELECT s.job_id, s.error, s.started_at, a.place
      FROM completed s
     CROSS JOIN LATERAL (SELECT *, ctid AS place FROM daybook.attempt_log a WHERE a.job_id = s.job_id ORDER BY a.id DESC LIMIT 1) a
     WHERE s.outcome = 'rescheduled' AND NOT s.unlogged AND a.outcome = 'rescheduled' AND a.attempt = s.attempt
       AND a.error_code IS NOT DISTINCT FROM s.code AND a.version IS NOT DISTINCT FROM s.version
), folded AS (
    UPDATE daybook.attempt_log a
       SET times = a.times + 1, first_started_at = coalesce(a.first_started_at, a.started_at),
           error = (SELECT g.error FROM again g WHERE g.job_id = a.job_id), started_at = (SELECT g.started_at FROM again g WHERE g.job_id = a.job_id),
           ended_at = clock_timestamp(), worker = $17, turn_id = $15, fence = $16, workflow_run_id = $19
     WHERE a.ctid = ANY (ARRAY(SELECT g.place FROM again g))
    RETURNING a.job_id
-- until here
), logged AS (
    INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, document_id, version, attempt, outcome, error_code, error, started_at,
                                     worker, turn_id, fence, workflow_run_id)
    SELECT job_id, org_id, kind, type, document_id, version, attempt, outcome::daybook.attempt_outcome, code, error, started_at,
           $17, $15, $16, $19
      FROM completed s
     WHERE NOT unlogged AND NOT kept
-- folds
       AND s.job_id <> ALL (ARRAY(SELECT f.job_id FROM folded f))
-- until here
)
SELECT CASE WHEN count(*) = cardinality($1::text[]) THEN count(*) FILTER (WHERE asked_again) ELSE daybook.lease_lost(cardinality($1::text[]), count(*)) END
  FROM completed
;
WITH v AS (
    SELECT unnest($1::tid[]) AS place, unnest($2::text[]) AS id, unnest($3::integer[]) AS attempt, unnest($4::timestamptz[]) AS started_at,
            unnest($5::bigint[]) AS version 
), completed AS (
    UPDATE daybook.accounting_work_queue q
       SET state = 'completed', run_count = v.attempt, last_error = NULL, last_error_code = NULL,
            finished_at = statement_timestamp(), not_ready_count = 0 ,
           reclaims = 0, last_attempted_at = v.started_at, completed_turn_id = $6, completed_fence = $7, completed_by = $8,
           completed_started_at = v.started_at, updated_at = clock_timestamp()
      FROM v
     WHERE q.ctid = v.place AND q.id = v.id AND q.turn_id IS NULL AND q.finished_at IS NULL AND q.version_hint = coalesce(v.version, 0) 
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($2::text[]) THEN 0 ELSE daybook.lease_lost(cardinality($2::text[]), count(*)) END
  FROM completed
;
WITH v AS (
    SELECT unnest($1::tid[]) AS place, unnest($2::text[]) AS id, unnest($3::integer[]) AS attempt, unnest($4::timestamptz[]) AS started_at,
           unnest($5::text[]) AS result
), completed AS (
    UPDATE daybook.jobs q
       SET state = 'completed', run_count = v.attempt, last_error = NULL, last_error_code = NULL,
           finished_at = clock_timestamp(), result = v.result::jsonb,
           reclaims = 0, last_attempted_at = v.started_at, completed_turn_id = $6, completed_fence = $7, completed_by = $8,
           completed_started_at = v.started_at, updated_at = clock_timestamp()
      FROM v
     WHERE q.ctid = v.place AND q.id = v.id AND q.turn_id IS NULL AND q.finished_at IS NULL
    RETURNING 1
)
SELECT CASE WHEN count(*) = cardinality($2::text[]) THEN 0 ELSE daybook.lease_lost(cardinality($2::text[]), count(*)) END
  FROM completed
;
WITH waiting AS MATERIALIZED (
    SELECT q.org_id, q.sequence, q.first_ready_at
      FROM daybook.jobs q
     WHERE num_nulls(nullif(q.state, 'pending')) = 1 AND q.fleet = ANY (ARRAY(SELECT f.id FROM daybook.fleets f) || '{-1}'::smallint[])
       AND q.ready_at >= '9999-12-31 00:00:00+00' AND ($1 = '' OR q.org_id = $1)
     LIMIT $2
), late AS MATERIALIZED (
    SELECT h.org_id, h.sequence, h.id, h.type, h.ready_at
      FROM (SELECT DISTINCT w.org_id, w.sequence
              FROM waiting w
             WHERE w.sequence IS NOT NULL AND w.first_ready_at <= statement_timestamp()) w
      JOIN daybook.job_sequences s ON s.org_id = w.org_id AND s.key = w.sequence
      JOIN daybook.jobs h ON h.id = s.holder
     WHERE h.state = 'pending' AND h.last_error_code IS DISTINCT FROM 'AWAITING_CALLBACK'
       AND h.ready_at > statement_timestamp() + make_interval(secs => $3) AND h.ready_at < '9999-12-31 00:00:00+00'
), first AS MATERIALIZED (
    SELECT l.*, count(*) OVER () AS all FROM late l ORDER BY l.ready_at DESC, l.id LIMIT $4
)
SELECT f.org_id, f.sequence, f.id, f.type, extract(epoch FROM f.ready_at - statement_timestamp())::float8,
       (SELECT count(*)
          FROM (SELECT FROM daybook.jobs w
                 WHERE w.org_id = f.org_id AND w.sequence = f.sequence AND w.state IN ('pending', 'leased', 'failed')
                   AND w.state = 'pending' AND w.id <> f.id AND w.first_ready_at <= statement_timestamp()
                 LIMIT $5) x), f.all
  FROM first f
 ORDER BY f.ready_at DESC, f.id

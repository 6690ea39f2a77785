package store

// checks implements operations. That facts are append-only is a matter of their triggers, which are
// guards of the schema.
func (tasksQueue) checks() []Check {
	return []Check{
		{
			"completed_without_lease_in_tasks",
			"a task that is completed was leased before",
			auditUnleasedTasks,
		},
		{
			"unreachable_in_tasks",
			"a task is open exactly while it is not completed, as its facts say, and no cursor hides it from a dequeue",
			auditOpenTasks,
		},
		{
			"fact_of_no_task_in_tasks",
			"each lease, error and completion is one of a task that exists",
			auditTaskFacts,
		},
	}
}

const auditUnleasedTasks = `
SELECT count(*) OVER (), NULL::text, NULL::text, NULL::bigint, format('task %s is completed, and was never leased', c.task_id)
  FROM queues.task_completed c
 WHERE $1 = '' AND NOT EXISTS (SELECT FROM queues.task_lease l WHERE l.task_id = c.task_id)
 ORDER BY c.task_id
 LIMIT $2`

// A task may be ready later than it was scheduled: the worker puts it off while the database is
// unavailable. It may be ready earlier when it was leased once, which says that it was due: the
// clock was set back since. What a cursor claims is in decision 9; one of a scope that stands for
// too many types to name ('!#') is not checked.
const auditOpenTasks = `
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
 LIMIT $2`

const auditTaskFacts = `
SELECT count(*) OVER (), NULL::text, NULL::text, NULL::bigint, format('%s of task %s, which does not exist', f.what, f.task_id)
  FROM (SELECT 'a lease' AS what, l.task_id FROM queues.task_lease l
        UNION ALL
        SELECT 'an error', e.task_id FROM queues.error e
        UNION ALL
        SELECT 'the completion', c.task_id FROM queues.task_completed c) f
 WHERE $1 = '' AND NOT EXISTS (SELECT FROM queues.task t WHERE t.task_id = f.task_id)
 ORDER BY f.task_id, f.what
 LIMIT $2`

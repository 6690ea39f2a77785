package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoTaskFunctionWalksDeadRows: beside an old snapshot all tasks stay that were open since, and
// ANALYZE finds the table empty. Then every way to a row seems to cost the same, and one that leads
// through all that died is as good to the planner as a look by id.
func TestNoTaskFunctionWalksDeadRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	enqueue := func(n int) {
		b.exec(`SELECT queues.enqueue_tasks(array_fill('noop'::text, ARRAY[$1::int]), array_fill('{}'::jsonb, ARRAY[$1]))`,
			n)
	}
	enqueue(10_000)
	b.exec(`CREATE TABLE public.leased (task_id bigint, lease bigint)`)
	b.holdSnapshot()
	b.exec(`INSERT INTO public.leased SELECT task_id, task_lease_id FROM queues.dequeue_available_tasks(10000)`)
	b.exec(`SELECT queues.complete_tasks(array_agg(task_id), array_agg(lease)) FROM public.leased`)
	b.exec(`TRUNCATE public.leased`)
	b.exec(`ANALYZE queues.open_task`)
	enqueue(400)
	b.exec(`INSERT INTO public.leased SELECT task_id, task_lease_id FROM queues.dequeue_available_tasks(200)`)

	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	const ids, leases = `ARRAY(SELECT task_id FROM public.leased ORDER BY 1 LIMIT 5)`,
		`ARRAY(SELECT lease FROM public.leased ORDER BY task_id LIMIT 5)`
	const held = `ARRAY(SELECT task_id FROM queues.open_task WHERE turn_id = 'turn' LIMIT 5)`
	const attempts = `array_fill(1, ARRAY[cardinality(` + held + `)])`
	for _, call := range []string{
		`queues.renew_task_leases(` + ids + `, ` + leases + `)`,
		`queues.prolong_tasks(` + ids + `)`,
		`queues.give_back_tasks(` + ids + `, ` + leases + `)`,
		`queues.complete_tasks(` + ids + `, ` + leases + `)`,
		`queues.complete_tasks(` + ids + `)`,
		`queues.fail_tasks((` + ids + `)[1:1], '{it fails}')`,
		`queues.dequeue_available_tasks(5)`,
		`queues.dequeue_available_tasks(5, '{noop}')`,
		`queues.next_task_due()`,
		`queues.is_type_due('noop')`,
		`queues.claim_tasks(20, NULL, 'turn', 1, 'worker')`,
		`queues.mark_tasks_waiting('turn', 1, ` + held + `)`,
		`queues.begin_tasks('turn', 1, ` + held + `)`,
		`queues.tasks_of_turn('turn', 1)`,
		`queues.turns_with_tasks('{turn}')`,
		`queues.renew_tasks_of_turn('turn', 1, '{}')`,
		`queues.lock_tasks('turn', 1, ` + held + `)`,
		`queues.hand_tasks_over('turn', 1, 'turn', false, ` + held + `)`,
		`queues.end_tasks('turn', 1, ` + held + `, ` + attempts + `, NULL, NULL, NULL, NULL)`,
		`queues.end_tasks('turn', 1, ` + held + `, ` + attempts +
			`, array_fill('retried'::text, ARRAY[5]), array_fill('it fails'::text, ARRAY[5]), array_fill(60.0::float8, ARRAY[5]), array_fill(false, ARRAY[5]))`,
		`queues.give_tasks_of_turn_back('turn', 1, ` + held + `, 0)`,
		`queues.reclaim_tasks_of_turns('turn', 2, 2, 'worker', false, '{turn}', true)`,
		`queues.reclaim_expired_tasks()`,
		`queues.counted_tasks('noop')`,
		`queues.tasks_in_flight('noop', 100)`,
	} {
		assert.Less(t, b.mostPages(conn, `SELECT queues.claim_tasks(20, NULL, 'turn', 1, 'worker')`, call), 3000, call)
	}
}

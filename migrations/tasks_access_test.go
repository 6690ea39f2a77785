package migrations_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/migrations"
)

const workerRole = "worker_service_user"

// Facts are kept from the owner, who is a superuser here, and the error says what to do.
func TestTaskFactsAreAppendOnly(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueTask(t, db.Pool, 0)
	id := dequeueTask(t, db.Pool)
	_, err := db.Pool.Exec(t.Context(), `SELECT queues.fail_task($1, 'broken'), queues.complete_task($1)`, id)
	require.NoError(t, err)
	for table, column := range map[string]string{
		"task": "payload", "task_lease": "expires_at",
		"task_completed": "completed_at", "error": "error_message",
	} {
		for operation, stmt := range map[string]string{
			"UPDATE":   fmt.Sprintf(`UPDATE queues.%s SET %s = %s`, table, column, column),
			"DELETE":   `DELETE FROM queues.` + table,
			"TRUNCATE": `TRUNCATE queues.` + table,
		} {
			refuses(t, db.Pool, "DB004", stmt)
			_, err := db.Pool.Exec(t.Context(), stmt)
			require.ErrorContains(t, err, fmt.Sprintf("queues.%s is append-only: %s refused", table, operation))
		}
		assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.`+table))
	}
}

// Retention removes what is completed and old, with all its facts, which it returns; everything
// else stays, and is as closed as before.
func TestRemoveCompletedTasks(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueDue(t, db.Pool, 5)
	for _, id := range dequeueTasks(t, db.Pool, 4) {
		_, err := db.Pool.Exec(t.Context(), `SELECT queues.fail_task($1, 'broken')`, id)
		require.NoError(t, err)
		if id < 4 {
			completeTask(t, db.Pool, id)
		}
	}
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	var facts map[string]any
	require.NoError(t, tx.QueryRow(t.Context(),
		`SELECT facts FROM queues.remove_completed_tasks(clock_timestamp(), 1)`).Scan(&facts))
	assert.EqualValues(t, 1, facts["task_id"])
	assert.Equal(t, "email", facts["task_type"])
	assert.NotEmpty(t, facts["completed_at"])
	assert.Len(t, facts["leases"], 1)
	assert.Equal(t, "broken", facts["errors"].([]any)[0].(map[string]any)["error_message"])
	_, err = tx.Exec(t.Context(), `DELETE FROM queues.task`)
	require.ErrorContains(t, err, "append-only", "after the removal, in its transaction")
	require.NoError(t, tx.Rollback(t.Context()))

	assert.Zero(t, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM queues.remove_completed_tasks(clock_timestamp() - interval '1 hour')`))
	assert.Equal(t, 3, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.remove_completed_tasks(clock_timestamp())`))
	for table, left := range map[string]int{"task": 2, "task_lease": 1, "task_completed": 0, "error": 1} {
		assert.Equal(t, left, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.`+table), table)
	}
	refuses(t, db.Pool, "DB004", `DELETE FROM queues.task`)
	refuses(t, db.Pool, "DB010", `SELECT queues.remove_completed_tasks('infinity')`)
	assert.EqualValues(t, 5, dequeueTask(t, db.Pool))
}

// The open tasks are what the facts say, also when tasks were added without queues.enqueue.
func TestRebuildOpenTasks(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueDue(t, db.Pool, 3)
	completeTask(t, db.Pool, dequeueTask(t, db.Pool))
	leased := dequeueTask(t, db.Pool)
	_, err := db.Pool.Exec(t.Context(),
		`INSERT INTO queues.task (task_type, payload, scheduled_at) VALUES ('sms', '{}', '2020-01-01')`)
	require.NoError(t, err)
	const open = `SELECT count(*) FROM (SELECT task_id, task_type, scheduled_at, leases, task_lease_id, leased_until FROM queues.open_task EXCEPT SELECT * FROM before) x`
	_, err = db.Pool.Exec(t.Context(),
		`CREATE TABLE before AS SELECT task_id, task_type, scheduled_at, leases, task_lease_id, leased_until FROM queues.open_task`)
	require.NoError(t, err)
	assert.Equal(t, 3, fixture.Count(t, db.Pool, `SELECT queues.rebuild_open_tasks()`))
	assert.Equal(t, 1, fixture.Count(t, db.Pool, open), "the new one, and what was open is as it was")
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.leased_tasks WHERE task_id = $1`, leased))
	assert.Equal(t, []int64{4, 3}, dequeueTasks(t, db.Pool, 10))
}

// A claim that was renewed is one claim with the id that its worker knows, and ends with its last
// renewal. A task that was given back and handed out again has the later claim.
func TestRebuildKeepsRenewedClaims(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueDue(t, db.Pool, 2)
	renew := func(id, lease int64) int {
		return fixture.Count(t, db.Pool,
			`SELECT count(*) FROM queues.renew_task_leases(ARRAY[$1::bigint], ARRAY[$2::bigint])`, id, lease)
	}
	claims := func() (of []int64) {
		require.Len(t, dequeueTasks(t, db.Pool, 2), 2)
		require.NoError(t, db.Pool.QueryRow(t.Context(),
			`SELECT array_agg(task_lease_id ORDER BY task_id) FROM queues.open_task`).Scan(&of))
		return of
	}
	first := claims()
	require.Equal(t, 1, renew(1, first[0]))
	require.Equal(t, 2, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM queues.give_back_tasks(ARRAY[1, 2]::bigint[], $1)`, first))
	second := claims()
	for range 3 {
		require.Equal(t, 1, renew(2, second[1]))
	}
	_, err := db.Pool.Exec(t.Context(),
		`CREATE TABLE before AS SELECT task_id, task_lease_id, leased_until FROM queues.open_task`)
	require.NoError(t, err)
	require.Equal(t, 2, fixture.Count(t, db.Pool, `SELECT queues.rebuild_open_tasks()`))
	assert.Zero(t, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM (SELECT * FROM before EXCEPT SELECT task_id, task_lease_id, leased_until FROM queues.open_task) x`))
	assert.Equal(t, 2, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.open_task WHERE leases = 2`),
		"renewals are not counted as handed out")
	assert.Equal(t, 1, renew(2, second[1]), "its worker still has it")
}

// A cursor that came with a dump counts the transactions of another server. It hides nothing here.
func TestCursorOfAnotherServer(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"whose transactions have higher numbers": `(pg_control_system()).system_identifier, '1000000000000'`,
		"of another name":                        `1, '3'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			enqueueDue(t, db.Pool, 2)
			_, err := db.Pool.Exec(t.Context(), `UPDATE queues.open_task SET arrived = '1'`)
			require.NoError(t, err)
			const foreign = `
INSERT INTO queues.task_cursor (scope, server, seen_to, unseen, last_at, last_id, passed)
SELECT scope, %s, '{}', 'infinity', 9223372036854775807, '{}' FROM unnest(ARRAY['*', '@', 'email']) AS scope`
			_, err = db.Pool.Exec(t.Context(), fmt.Sprintf(foreign, values))
			require.NoError(t, err)
			assert.EqualValues(t, 1, dequeueTask(t, db.Pool))
			assert.Equal(t, []int64{2}, dequeueTasks(t, db.Pool, 1, "email"))
			assert.Zero(t, fixture.Count(t, db.Pool,
				`SELECT count(*) FROM queues.task_cursor WHERE last_id = 9223372036854775807 AND last_at = 'infinity'`))
		})
	}
}

// business makes a schema with a function that the worker is granted, one that it is not, and names
// that need quoting.
const business = `
CREATE SCHEMA "Comms";
CREATE TABLE "Comms".log (payload jsonb);
CREATE FUNCTION "Comms"."send; DROP"(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO "Comms".log VALUES (_payload);
    PERFORM queues.enqueue('email', '{"task_type": "email"}');
    RETURN jsonb_build_object('status', 'succeeded', 'payload', _payload);
END $$;
CREATE FUNCTION "Comms".secret(_payload jsonb) RETURNS jsonb LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'SELECT _payload';
CREATE FUNCTION "Comms".public_one(_payload jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT _payload';
CREATE FUNCTION "Comms".other_type(_payload jsonb) RETURNS text LANGUAGE sql AS 'SELECT _payload::text';
REVOKE ALL ON FUNCTION "Comms"."send; DROP", "Comms".secret FROM PUBLIC;
GRANT USAGE ON SCHEMA "Comms" TO worker_service_user;
GRANT EXECUTE ON FUNCTION "Comms"."send; DROP", "Comms".other_type TO worker_service_user;`

// TestWorkerRole logs in as the worker, which does its work and is refused everything else.
func TestWorkerRole(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), business)
	require.NoError(t, err)
	const payload = `{"task_type": "db_function", "db_function": "\"Comms\".\"send; DROP\"", "id": 123}`
	_, err = db.Pool.Exec(t.Context(), `SELECT queues.enqueue('db_function', $1::jsonb), queues.enqueue('sms', '{}')`,
		payload)
	require.NoError(t, err)
	worker := as(t, db, workerRole)

	// The seed's path: lease, dispatch, complete; the function that it calls enqueues with the rights
	// of its owner.
	var id int64
	var result string
	require.NoError(t, worker.QueryRow(t.Context(), `
SELECT d.task_id, internal.run_function(d.payload ->> 'db_function', d.payload) ->> 'status' FROM queues.dequeue_next_available_task() d`).Scan(&id, &result))
	assert.Equal(t, "succeeded", result)
	completeTask(t, worker, id)
	id = dequeueTask(t, worker)
	_, err = worker.Exec(t.Context(), `SELECT queues.fail_task($1, 'no provider'), queues.complete_task($1)`, id)
	require.NoError(t, err)
	// And for many at once.
	ids := dequeueTasks(t, worker, 10)
	require.Len(t, ids, 1)
	var lease int64
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT task_lease_id FROM queues.open_task WHERE task_id = $1`,
		ids[0]).Scan(&lease))
	for _, stmt := range []string{
		`SELECT queues.renew_task_leases(ARRAY[$1::bigint], ARRAY[$2::bigint])`,
		`SELECT queues.fail_tasks(ARRAY[$1::bigint], ARRAY[$2::bigint::text])`,
		`SELECT queues.next_task_due(), $1::bigint, $2::bigint`,
		`SELECT queues.complete_tasks(ARRAY[$1::bigint], ARRAY[$2::bigint])`,
		`SELECT queues.give_back_tasks(ARRAY[$1::bigint], ARRAY[$2::bigint])`,
	} {
		_, err = worker.Exec(t.Context(), stmt, ids[0], lease)
		require.NoError(t, err, stmt)
	}
	assert.Equal(t, 3, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_completed`))

	// It is not granted; from PostgreSQL 18 on it has a second argument, so that there is none to call.
	builtin := "42501"
	if fixture.Count(t, db.Pool, `SELECT current_setting('server_version_num')::int`) >= 180000 {
		builtin = "42883"
	}
	for stmt, state := range map[string]string{
		`SELECT queues.enqueue('email', '{}')`:                                "42501",
		`SELECT * FROM queues.task`:                                           "42501",
		`SELECT * FROM queues.open_tasks`:                                     "42501",
		`INSERT INTO queues.task_completed VALUES (1)`:                        "42501",
		`DELETE FROM queues.open_task`:                                        "42501",
		`SELECT queues.remove_completed_tasks(now())`:                         "42501",
		`SELECT queues.rebuild_open_tasks()`:                                  "42501",
		`SELECT queues.claim_tasks(1, NULL)`:                                  "42501",
		`SELECT queues.grant_to_worker()`:                                     "42501",
		`SELECT * FROM daybook.jobs`:                                          "42501",
		`SELECT "Comms".secret('{}')`:                                         "42501",
		`SELECT * FROM "Comms".log`:                                           "42501",
		`CREATE TABLE queues.mine ()`:                                         "42501",
		`SELECT internal.run_function('"Comms".secret', '{}')`:                "42501",
		`SELECT internal.run_function('"Comms".public_one', '{}')`:            "42501",
		`SELECT internal.run_function('pg_catalog.jsonb_strip_nulls', '{}')`:  builtin,
		`SELECT internal.run_function('queues.complete_task', '{}')`:          "42883",
		`SELECT internal.run_function('"Comms".other_type', '{}')`:            "42883",
		`SELECT internal.run_function('Comms.secret', '{}')`:                  "42883",
		`SELECT internal.run_function('secret', '{}')`:                        "42602",
		`SELECT internal.run_function('a.b.c', '{}')`:                         "42602",
		`SELECT internal.run_function('a.b; DROP TABLE queues.task', '{}')`:   "42602",
		`SELECT internal.run_function('a.b($1), queues.enqueue(''x''', '{}')`: "42602",
		`SELECT internal.run_function('', '{}')`:                              "42602",
		`SELECT internal.run_function(NULL, '{}')`:                            "42602",
	} {
		refuses(t, worker, state, stmt)
	}
	_, err = worker.Exec(t.Context(), `SELECT internal.run_function('"Comms".secret', '{}')`)
	assert.ErrorContains(t, err, `function "Comms".secret is not granted to worker_service_user`)
}

// Every function that runs with its owner's rights pins its search path, and PUBLIC may execute
// none: of a trigger's function that is the right to make it a trigger of any table. Of tasks
// PUBLIC may call none of the functions that write.
func TestFunctionsAreClosed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	assert.Zero(t, fixture.Count(t, db.Pool, `
SELECT count(*) FROM pg_proc p WHERE p.pronamespace IN ('daybook'::regnamespace, 'queues'::regnamespace, 'internal'::regnamespace) AND p.prosecdef
   AND (has_function_privilege('public', p.oid, 'EXECUTE') OR NOT coalesce(p.proconfig::text LIKE '%search_path=pg_catalog, pg_temp%', false))`))
	assert.Zero(t, fixture.Count(t, db.Pool, `
SELECT count(*) FROM pg_proc p WHERE p.pronamespace IN ('queues'::regnamespace, 'internal'::regnamespace) AND p.prorettype <> 'trigger'::regtype
   AND has_function_privilege('public', p.oid, 'EXECUTE')`))
	assert.Zero(t, fixture.Count(t, db.Pool, `
SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = 'queues'::regnamespace AND a.grantee <> c.relowner`), "only the owner has a right to a table")
}

// The migrations need no superuser: a role that may create schemas makes everything of tasks, and
// takes it back.
func TestMigrateTasksAsAnOrdinaryRole(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	role := "tasks_owner_" + strings.ToLower(db.Name)
	for _, stmt := range []string{
		`CREATE ROLE "` + role + `" LOGIN PASSWORD 'for-a-test'`, `GRANT "` + role + `" TO CURRENT_USER`,
		`GRANT CREATE ON DATABASE "` + db.Name + `" TO "` + role + `"`,
	} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := db.Pool.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY "`+role+`" CASCADE; DROP ROLE "`+role+`"`)
		assert.NoError(t, err)
	})
	address, err := url.Parse(db.URL)
	require.NoError(t, err)
	address.User = url.UserPassword(role, "for-a-test")
	require.NoError(t, migrations.Up(t.Context(), address.String()))
	enqueueTask(t, db.Pool, 0)
	assert.EqualValues(t, 1, dequeueTask(t, db.Pool))
	require.NoError(t, migrations.Down(t.Context(), address.String(), migrations.DownOptions{All: true, DeleteData: true}))
}

// What the application has in the schemas queues and internal stays when the migrations are taken
// back.
func TestSchemasOfTheApplicationStay(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	_, err := db.Pool.Exec(t.Context(), `CREATE SCHEMA internal; CREATE TABLE internal.mine ()`)
	require.NoError(t, err)
	require.NoError(t, migrations.Up(t.Context(), db.URL))
	_, err = db.Pool.Exec(t.Context(), `CREATE TABLE queues.mine ()`)
	require.NoError(t, err)
	require.NoError(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{All: true}))
	assert.Equal(t, 2, fixture.Count(t, db.Pool, `SELECT count(*) FROM pg_class WHERE relname = 'mine'`))
	_, err = db.Pool.Exec(t.Context(), `DROP TABLE queues.mine, internal.mine`)
	require.NoError(t, err)
}

// While a worker waits, each task that is due within a minute wakes it; no other does.
func TestEnqueuedTaskWakes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	listener, err := db.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer listener.Release()
	_, err = listener.Exec(t.Context(), `SELECT pg_advisory_lock(daybook.lock_class('wakers'), 3); LISTEN daybook_tasks`)
	require.NoError(t, err)
	enqueueTask(t, db.Pool, time.Hour)
	_, err = db.Pool.Exec(t.Context(), `SELECT set_config('daybook.notify', 'off', true), queues.enqueue('email', '{}')`)
	require.NoError(t, err)
	enqueueTask(t, db.Pool, 0)
	n, err := listener.Conn().WaitForNotification(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "daybook_tasks", n.Channel)
	_, err = listener.Exec(t.Context(), `UNLISTEN *; SELECT pg_advisory_unlock_all()`)
	require.NoError(t, err)
	assert.Empty(t, n.Payload)
}

// While a worker waits, what becomes ready again wakes it, as what is enqueued does.
func TestReadyAgainWakes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueDue(t, db.Pool, 1)
	listener, err := db.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer listener.Release()
	_, err = listener.Exec(t.Context(),
		`SELECT pg_advisory_lock(daybook.lock_class('wakers'), 3); LISTEN daybook_tasks; LISTEN after`)
	require.NoError(t, err)
	// wakes says whether a statement does: a notification that follows it comes later, or alone.
	wakes := func(stmt string, args ...any) (woken bool) {
		_, err := db.Pool.Exec(t.Context(), stmt, args...)
		require.NoError(t, err)
		_, err = db.Pool.Exec(t.Context(), `SELECT pg_notify('after', '')`)
		require.NoError(t, err)
		for {
			n, err := listener.Conn().WaitForNotification(t.Context())
			require.NoError(t, err)
			if n.Channel == "after" {
				return woken
			}
			woken = true
		}
	}
	var lease int64
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT task_lease_id FROM queues.dequeue_available_tasks(1)`).Scan(&lease))
	const giveBack = `SELECT queues.give_back_tasks(ARRAY[1::bigint], ARRAY[$1::bigint])`
	assert.False(t, wakes(giveBack, lease+1), "nothing was given back")
	assert.False(t, wakes(`SELECT queues.rebuild_open_tasks()`), "the lease goes on")
	assert.True(t, wakes(giveBack, lease))
	_, err = db.Pool.Exec(t.Context(), `INSERT INTO queues.task (task_type, payload) VALUES ('sms', '{}')`)
	require.NoError(t, err)
	assert.True(t, wakes(`SELECT queues.rebuild_open_tasks()`), "a task was added by hand")
	_, err = listener.Exec(t.Context(), `UNLISTEN *; SELECT pg_advisory_unlock_all()`)
	require.NoError(t, err)
}

// A claim that another worker has by now is neither completed, nor renewed, nor given back by its
// lease's id.
func TestClaimsByTheirLeases(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueDue(t, db.Pool, 3)
	var first []int64
	var leases []int64
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT array_agg(task_id), array_agg(task_lease_id) FROM queues.dequeue_available_tasks(2)`).Scan(&first, &leases))
	calls := func(stmt string, args ...any) int {
		return fixture.Count(t, db.Pool, `SELECT count(*) FROM `+stmt, args...)
	}
	wrong := []int64{leases[0] + 100, leases[1] + 100}
	assert.Zero(t, calls(`queues.complete_tasks($1, $2)`, first, wrong))
	assert.Zero(t, calls(`queues.renew_task_leases($1, $2)`, first, wrong))
	assert.Zero(t, calls(`queues.give_back_tasks($1, $2)`, first, wrong))
	assert.Equal(t, 2, calls(`queues.renew_task_leases($1, $2)`, first, leases))
	assert.Equal(t, 4, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_lease`), "each renewal is on record")
	assert.Equal(t, 1, calls(`queues.give_back_tasks($1, $2)`, first[:1], leases[:1]))
	assert.Equal(t, first[:1], dequeueTasks(t, db.Pool, 1), "first in the order again")
	assert.Zero(t, calls(`queues.complete_tasks($1, $2)`, first[:1], leases[:1]), "of the claim that was given back")
	assert.Equal(t, 1, calls(`queues.complete_tasks($1, $2)`, first, leases))
	assert.Equal(t, 2, calls(`queues.complete_tasks($1)`, []int64{1, 2, 3, 3}),
		"whichever claim holds them; one was completed before")
	assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.open_tasks`))
}

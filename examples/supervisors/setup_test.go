package main

import (
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

// bundle is a database with the example's schemas, and a pool that is logged in as the worker.
type bundle struct {
	*pgtest.DB
	t      *testing.T
	worker *pgxpool.Pool
	// providers are what channels call, by the type of the task.
	providers map[string]func(payload map[string]any) (any, error)
}

// setup has settings with which a process of five attempts ends within a second.
func setup(t *testing.T) *bundle {
	t.Helper()
	db := pgtest.New(t)
	require.NoError(t, migrate(t.Context(), db.URL))
	b := &bundle{DB: db, t: t, worker: asWorker(t, db), providers: map[string]func(map[string]any) (any, error){}}
	b.exec(settings)
	return b
}

// settings are those of all processes, made short. Their grants stay.
const settings = `
DO $$
DECLARE
    _name text;
BEGIN
    FOREACH _name IN ARRAY ARRAY['comms.send_email', 'comms.send_sms', 'files.file_deletion', 'accounts.account_anonymization'] LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION %s_settings(OUT max_attempts integer, OUT base_interval interval, OUT longest_interval interval, OUT attempt_timeout interval)
            LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS %L', _name, 'SELECT 3, interval ''20 ms'', interval ''100 ms'', interval ''1 hour''');
    END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION accounts.account_deletion_settings(OUT base_interval interval, OUT longest_interval interval)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$SELECT interval '20 ms', interval '100 ms'$$;`

// roles keeps two tests from changing the worker's role, which the server has once, at the same
// moment.
var roles sync.Mutex

// asWorker is a pool that is logged in as worker_service_user.
func asWorker(t *testing.T, db *pgtest.DB) *pgxpool.Pool {
	t.Helper()
	roles.Lock()
	defer roles.Unlock()
	// A member may end the role's sessions: those that are about to end when the test's database is
	// dropped.
	for _, stmt := range []string{
		`ALTER ROLE worker_service_user PASSWORD 'for-a-test'`,
		`GRANT worker_service_user TO CURRENT_USER`,
	} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	address, err := url.Parse(db.URL)
	require.NoError(t, err)
	address.User = url.UserPassword("worker_service_user", "for-a-test")
	pool, err := pgxpool.New(t.Context(), address.String())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func (b *bundle) exec(stmt string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), stmt, args...)
	require.NoError(b.t, err)
}

func (b *bundle) count(query string, args ...any) int {
	b.t.Helper()
	return fixture.Count(b.t, b.Pool, query, args...)
}

// text returns a statement's only value.
func (b *bundle) text(query string, args ...any) string {
	b.t.Helper()
	var value *string
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), query, args...).Scan(&value))
	if value == nil {
		return ""
	}
	return *value
}

// call calls a function as a task does, and returns the status that it answers.
func (b *bundle) call(function, payload string) string {
	b.t.Helper()
	var status string
	require.NoError(b.t, b.worker.QueryRow(b.t.Context(), `SELECT internal.run_function($1, $2) ->> 'status'`, function,
		payload).Scan(&status))
	return status
}

// open counts the open tasks of a type, or those that call a function.
func (b *bundle) open(what string) int {
	b.t.Helper()
	return b.count(`SELECT count(*) FROM queues.open_tasks WHERE $1 IN (task_type, payload ->> 'db_function')`, what)
}

// work works tasks, with the SQL functions alone, until a process ends.
func (b *bundle) work(until func() bool) {
	b.t.Helper()
	deadline, tick := time.After(30*time.Second), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for {
		for b.step() {
		}
		if until() {
			return
		}
		select {
		case <-deadline:
			b.t.Fatal("the process does not end: ", b.text(`SELECT jsonb_agg(to_jsonb(o))::text FROM queues.open_tasks o`))
		case <-tick.C:
		}
	}
}

// step works one task as a worker does: leased, worked, completed, each in a transaction of its
// own. It reports whether there was one.
func (b *bundle) step() bool {
	b.t.Helper()
	ctx := b.t.Context()
	var id *int64
	var taskType *string
	var payload map[string]any
	require.NoError(b.t, b.worker.QueryRow(ctx,
		`SELECT task_id, task_type, payload FROM queues.dequeue_next_available_task()`).Scan(&id, &taskType, &payload))
	if id == nil {
		return false
	}
	b.process(*taskType, payload)
	_, err := b.worker.Exec(ctx, `SELECT queues.complete_task($1)`, *id)
	require.NoError(b.t, err)
	return true
}

// process does what a task asks for.
func (b *bundle) process(taskType string, payload map[string]any) {
	b.t.Helper()
	if taskType == "db_function" {
		b.run(payload["db_function"], payload)
		return
	}
	prepared := b.run(payload["before_handler"], payload)
	var said any
	err := fmt.Errorf("%v", prepared["status"])
	if prepared["status"] == "succeeded" {
		said, err = b.providers[taskType](prepared["payload"].(map[string]any))
	}
	if err != nil {
		b.run(payload["error_handler"], map[string]any{"original_payload": payload, "error": err.Error()})
		return
	}
	b.run(payload["success_handler"], map[string]any{"original_payload": payload, "worker_payload": said})
}

func (b *bundle) run(function any, payload map[string]any) (answer map[string]any) {
	b.t.Helper()
	require.NoError(b.t, b.worker.QueryRow(b.t.Context(), `SELECT internal.run_function($1, $2)`, function,
		payload).Scan(&answer))
	return answer
}

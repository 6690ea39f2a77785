package migrations_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// querier is a pool, a connection or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func enqueueTask(t *testing.T, q querier, in time.Duration) {
	t.Helper()
	const stmt = `SELECT queues.enqueue('email', '{"task_type": "email", "send_email_attempt_id": 456}', clock_timestamp() + make_interval(secs => $1))`
	_, err := q.Exec(t.Context(), stmt, in.Seconds())
	require.NoError(t, err)
}

// enqueueDue enqueues n tasks that became due one after the other; their ids are first and the
// following ones.
func enqueueDue(t *testing.T, q querier, n int) {
	t.Helper()
	const stmt = `SELECT count(queues.enqueue('email', jsonb_build_object('n', i), clock_timestamp() - interval '1 hour' + i * interval '1 ms')::text) FROM generate_series(1, $1) AS i`
	_, err := q.Exec(t.Context(), stmt, n)
	require.NoError(t, err)
}

// dequeueTask returns the id of the task that is handed out; 0: none is.
func dequeueTask(t *testing.T, q querier) int64 {
	t.Helper()
	var id *int64
	require.NoError(t, q.QueryRow(t.Context(), `SELECT task_id FROM queues.dequeue_next_available_task()`).Scan(&id))
	if id == nil {
		return 0
	}
	return *id
}

func dequeueTasks(t *testing.T, q querier, limit int, types ...string) []int64 {
	t.Helper()
	rows, err := q.Query(t.Context(), `SELECT task_id FROM queues.dequeue_available_tasks($1, $2)`, limit, types)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	return ids
}

func completeTask(t *testing.T, q querier, id int64) {
	t.Helper()
	_, err := q.Exec(t.Context(), `SELECT queues.complete_task($1)`, id)
	require.NoError(t, err)
}

// claimTasks is the function that leases for every dequeue.
const claimTasks = "queues.claim_tasks(integer, text, text, bigint, text, boolean, boolean, boolean)"

// leasesLast makes new leases last for d instead of five minutes.
func leasesLast(t *testing.T, db *pgtest.DB, d time.Duration) {
	t.Helper()
	rewrite(t, db, claimTasks, "interval '5 minutes'", fmt.Sprintf("interval '%d microseconds'", d.Microseconds()))
}

// cursorsMoveAlways has each dequeue move its cursors, however young they are.
func cursorsMoveAlways(t *testing.T, db *pgtest.DB) {
	t.Helper()
	rewrite(t, db, "queues.cursor_is_old(queues.task_cursor)", "RETURN false", "RETURN true")
}

// rewrite replaces a text in a function.
func rewrite(t *testing.T, db *pgtest.DB, function, from, to string) {
	t.Helper()
	var text string
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT pg_get_functiondef($1::regprocedure)`, function).Scan(&text))
	require.Contains(t, text, from)
	_, err := db.Pool.Exec(t.Context(), strings.ReplaceAll(text, from, to))
	require.NoError(t, err)
}

// eventuallyTask dequeues until a task is handed out.
func eventuallyTask(t *testing.T, q querier) (id int64) {
	t.Helper()
	require.Eventually(t, func() bool { id = dequeueTask(t, q); return id != 0 }, pgtest.Patience, 5*time.Millisecond)
	return id
}

// refuses asserts the SQLSTATE of a statement's error.
func refuses(t *testing.T, pool *pgxpool.Pool, state, stmt string) {
	t.Helper()
	_, err := pool.Exec(t.Context(), stmt)
	assert.Equal(t, state, store.SQLState(err), "%s: %v", stmt, err)
}

func TestTaskIsEnqueuedWithWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(),
		`SELECT queues.enqueue(_task_type => 'sms', _payload => '{"a": [1]}', _scheduled_at => '2030-01-02 03:04:05+00')`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `SELECT queues.enqueue('db_function', '{}')`)
	require.NoError(t, err)
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `
SELECT count(*) FROM queues.task WHERE task_type = 'sms' AND payload = '{"a": [1]}' AND scheduled_at = '2030-01-02 03:04:05+00' AND enqueued_at BETWEEN now() - interval '1 minute' AND now()`))
	assert.Equal(t, 1, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM queues.task WHERE task_type = 'db_function' AND scheduled_at = enqueued_at`),
		"due at once, when it is not said")
}

func TestEnqueueTaskRefuses(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for stmt, state := range map[string]string{
		`SELECT queues.enqueue('', '{}')`:                                              "DB010",
		`SELECT queues.enqueue(NULL, '{}')`:                                            "DB010",
		`SELECT queues.enqueue('E mail', '{}')`:                                        "DB010",
		`SELECT queues.enqueue('email', NULL)`:                                         "DB021",
		`SELECT queues.enqueue('email', '[1]')`:                                        "DB021",
		`SELECT queues.enqueue('email', '{}', 'infinity')`:                             "DB010",
		`SELECT queues.enqueue('email', '{}', '-infinity')`:                            "DB010",
		`SELECT queues.enqueue('email', jsonb_build_object('a', repeat('x', 131072)))`: "DB020",
	} {
		refuses(t, db.Pool, state, stmt)
	}
	assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task`))
}

// A task that is enqueued in a transaction that rolls back was never asked for.
func TestTaskIsOfItsTransaction(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	enqueueTask(t, tx, 0)
	assert.Zero(t, dequeueTask(t, db.Pool), "not committed")
	require.NoError(t, tx.Rollback(t.Context()))
	assert.Zero(t, dequeueTask(t, db.Pool))
}

// The whole row of the task comes back, as SELECT * and as a value; all columns are null when
// nothing is due.
func TestDequeueReturnsTheTask(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueTask(t, db.Pool, time.Hour)
	var none bool
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT d IS NULL FROM queues.dequeue_next_available_task() d`).Scan(&none))
	assert.True(t, none)
	enqueueTask(t, db.Pool, 0)
	var same bool
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT to_jsonb(t) = to_jsonb(d) FROM queues.dequeue_next_available_task() d JOIN queues.task t USING (task_id)`).Scan(&same))
	assert.True(t, same)
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `
SELECT count(*) FROM queues.task_lease WHERE task_id = 2 AND expires_at = leased_at + interval '5 minutes' AND leased_at BETWEEN now() - interval '1 minute' AND now()`))
}

func TestTasksComeInTheirOrder(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]bool{"cursors move with each dequeue": true, "cursors move now and then": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			if move {
				cursorsMoveAlways(t, db)
			}
			for _, in := range []time.Duration{-time.Minute, -time.Hour, 0, -2 * time.Minute, time.Hour} {
				enqueueTask(t, db.Pool, in)
			}
			assert.EqualValues(t, 2, dequeueTask(t, db.Pool))
			assert.EqualValues(t, 4, dequeueTask(t, db.Pool))
			enqueueTask(t, db.Pool, -2*time.Hour)
			assert.EqualValues(t, 6, dequeueTask(t, db.Pool), "due before all that was handed out")
			assert.Equal(t, []int64{1, 3}, dequeueTasks(t, db.Pool, 10))
			assert.Zero(t, dequeueTask(t, db.Pool), "the other one is due in an hour")
			_, err := db.Pool.Exec(t.Context(),
				`SELECT queues.enqueue('email', '{}', '2020-01-01'), queues.enqueue('email', '{}', '2020-01-01')`)
			require.NoError(t, err)
			assert.Equal(t, []int64{7, 8}, dequeueTasks(t, db.Pool, 10), "of the same time by their ids")
		})
	}
}

// Types have orders of their own: what waits of one does not hide what is due of another.
func TestTasksOfTypes(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	enqueueDue(t, db.Pool, 5)
	_, err := db.Pool.Exec(t.Context(),
		`SELECT queues.enqueue('sms', '{}'), queues.enqueue('sms', '{}', '2020-01-01'), queues.enqueue('own_type', '{}')`)
	require.NoError(t, err)
	assert.Equal(t, []int64{7, 6}, dequeueTasks(t, db.Pool, 10, "sms"))
	assert.Empty(t, dequeueTasks(t, db.Pool, 10, "sms", "file_delete"))
	assert.Equal(t, []int64{1, 2, 8}, dequeueTasks(t, db.Pool, 2, "sms", "own_type", "email"), "up to the limit of each")
	assert.EqualValues(t, 3, dequeueTask(t, db.Pool), "by any type")
	assert.Equal(t, []int64{4, 5}, dequeueTasks(t, db.Pool, 10, "email"))
}

// A type that cannot be one is refused: the names of cursors that are not of a type above all,
// which would be moved past what they have not handed out.
func TestTypesThatAreNoNames(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	enqueueDue(t, db.Pool, 1)
	for _, types := range []string{
		"ARRAY['*']", "ARRAY['@']", "ARRAY['email', '*']", "ARRAY['']", "ARRAY['E mail']",
		"ARRAY['email', NULL]", "ARRAY[repeat('a', 64)]",
	} {
		refuses(t, db.Pool, "DB010", `SELECT queues.dequeue_available_tasks(10, `+types+`)`)
		refuses(t, db.Pool, "DB010", `SELECT queues.next_task_due(`+types+`)`)
	}
	refuses(t, db.Pool, "DB010", `SELECT queues.claim_tasks(10, '*')`)
	assert.Empty(t, dequeueTasks(t, db.Pool, 10, "sms"))
	assert.EqualValues(t, 1, dequeueTask(t, db.Pool), "nothing was passed over")
}

func TestCompletedTaskIsNeverHandedOut(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	leasesLast(t, db, time.Millisecond)
	enqueueTask(t, db.Pool, 0)
	id := dequeueTask(t, db.Pool)
	for range 3 {
		completeTask(t, db.Pool, id)
	}
	completedAt := func() (at time.Time) {
		require.NoError(t, db.Pool.QueryRow(t.Context(),
			`SELECT completed_at FROM queues.task_completed WHERE task_id = $1`, id).Scan(&at))
		return at
	}
	first := completedAt()
	completeTask(t, db.Pool, id)
	assert.Equal(t, first, completedAt(), "the first completion counts")
	_, err := db.Pool.Exec(t.Context(), `SELECT pg_sleep(0.01)`)
	require.NoError(t, err)
	assert.Zero(t, dequeueTask(t, db.Pool), "its lease has expired, and it is completed")
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_lease`))
}

// A task may be completed without a lease: by an operator who does not want it done.
func TestCompleteWithoutALease(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueTask(t, db.Pool, 0)
	completeTask(t, db.Pool, 1)
	assert.Zero(t, dequeueTask(t, db.Pool))
	refuses(t, db.Pool, "DB010", `SELECT queues.complete_task(4711)`)
	refuses(t, db.Pool, "DB010", `SELECT queues.complete_task(NULL)`)
}

// What is failed is noted, and nothing more: the task is completed by complete_task, or handed out
// again when its lease expires.
func TestFailedTaskStaysOpen(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	leasesLast(t, db, time.Millisecond)
	enqueueTask(t, db.Pool, 0)
	id := dequeueTask(t, db.Pool)
	for _, message := range []any{"refused by the provider", "", nil} {
		_, err := db.Pool.Exec(t.Context(), `SELECT queues.fail_task($1, $2)`, id, message)
		require.NoError(t, err)
	}
	assert.Equal(t, 1, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM queues.error WHERE task_id = $1 AND error_message = 'refused by the provider'`, id))
	assert.Equal(t, id, eventuallyTask(t, db.Pool))
	assert.Equal(t, 1, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM queues.failed_tasks WHERE task_id = $1 AND errors = 3 AND completed_at IS NULL`, id))
	refuses(t, db.Pool, "DB010", `SELECT queues.fail_task(4711, 'unknown')`)
}

// A worker that ends before it completes its task leaves a lease, which expires; each time that the
// task is handed out is on record.
func TestCrashBeforeCompletion(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]bool{"cursors move with each dequeue": true, "cursors move now and then": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			if move {
				cursorsMoveAlways(t, db)
			}
			leasesLast(t, db, 300*time.Millisecond)
			enqueueDue(t, db.Pool, 2)
			first := dequeueTask(t, db.Pool)
			second := dequeueTask(t, db.Pool)
			completeTask(t, db.Pool, second)
			enqueueTask(t, db.Pool, time.Hour)
			for range 3 {
				assert.Equal(t, first, eventuallyTask(t, db.Pool))
			}
			assert.Equal(t, 4, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_lease WHERE task_id = $1`, first))
			assert.Zero(t, fixture.Count(t, db.Pool, `
SELECT count(*) FROM queues.task_lease a JOIN queues.task_lease b ON b.task_id = a.task_id AND b.task_lease_id > a.task_lease_id AND b.leased_at < a.expires_at`), "no two at a time")
			assert.Equal(t, 1, fixture.Count(t, db.Pool,
				`SELECT count(*) FROM queues.stuck_tasks WHERE task_id = $1 AND leases = 4`, first))
		})
	}
}

// A task whose lease expired has its place in the order again, before what became due after it.
func TestReclaimedTaskKeepsItsPlace(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	leasesLast(t, db, 100*time.Millisecond)
	enqueueDue(t, db.Pool, 3)
	assert.EqualValues(t, 1, dequeueTask(t, db.Pool))
	_, err := db.Pool.Exec(t.Context(), `SELECT pg_sleep(0.15)`)
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 2, 3}, dequeueTasks(t, db.Pool, 3))
}

package migrations_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// enqueueTypes enqueues tasks of types that became due one after the other, from 1 on.
func enqueueTypes(t *testing.T, q querier, types ...string) {
	t.Helper()
	const stmt = `
SELECT count(*) FROM queues.enqueue_tasks($1::text[], (SELECT array_agg('{}'::jsonb) FROM unnest($1::text[])),
                                          (SELECT array_agg(clock_timestamp() - interval '1 hour' + n * interval '1 ms') FROM generate_series(1, cardinality($1::text[])) n))`
	_, err := q.Exec(t.Context(), stmt, types)
	require.NoError(t, err)
}

func limitTasks(t *testing.T, q querier, taskType string, paused *bool, most *int) (changed bool) {
	t.Helper()
	require.NoError(t, q.QueryRow(t.Context(), `SELECT changed FROM queues.limit_tasks($1, $2, $3)`, taskType, paused,
		most).Scan(&changed))
	return changed
}

// nextTaskDue says whether a task, or the end of a lease, is due within the hour.
func nextTaskDue(t *testing.T, q querier, types ...string) bool {
	t.Helper()
	var due bool
	require.NoError(t, q.QueryRow(t.Context(), `SELECT coalesce(queues.next_task_due($1) < clock_timestamp(), false)`,
		types).Scan(&due))
	return due
}

func TestEnqueueManyTasks(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	rows, err := db.Pool.Query(t.Context(),
		`SELECT task_id FROM queues.enqueue_tasks('{email,sms,email}', ARRAY['{"n":1}','{"n":2}','{"n":3}']::jsonb[], ARRAY[now(), NULL, now() + interval '1 hour']) ORDER BY ordinal`)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	require.Len(t, ids, 3)
	for n, id := range ids {
		assert.Equal(t, 1, fixture.Count(t, db.Pool,
			`SELECT count(*) FROM queues.task JOIN queues.open_task USING (task_id, task_type, scheduled_at) WHERE task_id = $1 AND payload = jsonb_build_object('n', $2::int)`, id, n+1))
	}
	assert.Equal(t, ids[:2], dequeueTasks(t, db.Pool, 10))
	assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.enqueue_tasks('{}', '{}')`))
	for _, c := range []struct{ state, says, arguments string }{
		{"DB010", "the type of a task must be", `'{email,Email}', ARRAY['{}','{}']::jsonb[]`},
		{"DB010", "the type of a task must be", `'{NULL}', ARRAY['{}']::jsonb[]`},
		{"DB010", "as many payloads", `'{email}', ARRAY['{}','{}']::jsonb[]`},
		{"DB010", "as many payloads", `'{email}', ARRAY['{}']::jsonb[], '{}'`},
		{"DB010", "as many payloads", `NULL, NULL`},
		{"DB010", "task 2: scheduled_at", `'{email,email}', ARRAY['{}','{}']::jsonb[], ARRAY[now(), 'infinity']`},
		{"DB020", "task 1: the payload has", `'{email}', ARRAY[jsonb_build_object('a', repeat('x', 131072))]`},
		{"DB021", "task 2: the payload must be a JSON object, not array", `'{email,sms}', ARRAY['{}','[]']::jsonb[]`},
		{"DB021", "task 1: the payload must be a JSON object, not null", `'{email}', ARRAY[NULL]::jsonb[]`},
	} {
		stmt := `SELECT queues.enqueue_tasks(` + c.arguments + `)`
		refuses(t, db.Pool, c.state, stmt)
		_, err := db.Pool.Exec(t.Context(), stmt)
		assert.ErrorContains(t, err, c.says, stmt)
	}
	assert.Equal(t, 3, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task`))
}

// A paused type is not handed out by any function, holds no other type back, and takes its old
// place when it is resumed.
func TestPausedTasksAreNotHandedOut(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	enqueueTypes(t, db.Pool, "email", "email", "sms", "sms", "email", "sms")
	require.True(t, limitTasks(t, db.Pool, "email", new(true), nil))
	require.False(t, limitTasks(t, db.Pool, "email", new(true), nil), "it is paused already")
	assert.EqualValues(t, 3, dequeueTask(t, db.Pool))
	assert.Empty(t, dequeueTasks(t, db.Pool, 10, "email"))
	assert.False(t, nextTaskDue(t, db.Pool, "email"))
	assert.True(t, nextTaskDue(t, db.Pool))
	assert.Equal(t, []int64{4, 6}, dequeueTasks(t, db.Pool, 10))
	assert.Zero(t, dequeueTask(t, db.Pool))
	assert.False(t, nextTaskDue(t, db.Pool), "what is paused is not due")
	enqueueTypes(t, db.Pool, "email", "sms")
	assert.EqualValues(t, 8, dequeueTask(t, db.Pool), "what comes during the pause")
	assert.Zero(t, dequeueTask(t, db.Pool))
	require.True(t, limitTasks(t, db.Pool, "sms", new(true), nil), "another pause is another order")
	enqueueTypes(t, db.Pool, "fax")
	assert.EqualValues(t, 9, dequeueTask(t, db.Pool))

	require.True(t, limitTasks(t, db.Pool, "email", new(false), nil))
	assert.True(t, nextTaskDue(t, db.Pool, "email"))
	assert.Equal(t, []int64{1, 2, 5, 7}, dequeueTasks(t, db.Pool, 10))
}

func TestAllTasksArePaused(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueTypes(t, db.Pool, "email", "sms")
	require.True(t, limitTasks(t, db.Pool, "*", new(true), nil))
	assert.Zero(t, dequeueTask(t, db.Pool))
	assert.Empty(t, dequeueTasks(t, db.Pool, 10))
	assert.Empty(t, dequeueTasks(t, db.Pool, 10, "email", "sms"))
	assert.False(t, nextTaskDue(t, db.Pool))
	assert.Equal(t, 2, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM queues.stuck_tasks WHERE reason = 'due for five minutes, and paused'`))
	require.True(t, limitTasks(t, db.Pool, "*", new(false), nil))
	assert.Equal(t, []int64{1, 2}, dequeueTasks(t, db.Pool, 10))
	assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_limit`), "no limit, no row")
}

func TestCapsOfTasks(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	enqueueTypes(t, db.Pool, "email", "email", "email", "sms", "email", "sms")
	limitTasks(t, db.Pool, "email", nil, new(2))
	assert.Equal(t, []int64{1, 2, 4, 6}, dequeueTasks(t, db.Pool, 10), "the third has no room, and holds nothing back")
	assert.Empty(t, dequeueTasks(t, db.Pool, 10, "email"))
	completeTask(t, db.Pool, 1)
	assert.EqualValues(t, 3, dequeueTask(t, db.Pool), "the seed's function keeps to caps as well")
	assert.Zero(t, dequeueTask(t, db.Pool))
	limitTasks(t, db.Pool, "email", nil, new(0))
	limitTasks(t, db.Pool, "*", nil, new(4))
	assert.Zero(t, dequeueTask(t, db.Pool), "four are leased")
	completeTask(t, db.Pool, 2)
	assert.Equal(t, []int64{5}, dequeueTasks(t, db.Pool, 10, "email"))
	refuses(t, db.Pool, "DB010", `SELECT queues.limit_tasks('email', NULL, -1)`)
	refuses(t, db.Pool, "DB010", `SELECT queues.limit_tasks('Email', true)`)
}

// However many dequeue at once, no more are leased than the cap says.
func TestCapsHoldAmongManyCallers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueDue(t, db.Pool, 200)
	limitTasks(t, db.Pool, "email", nil, new(7))
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error {
			for range 20 {
				stmt := `SELECT count(*) FROM queues.dequeue_available_tasks(3)`
				if i%2 == 0 {
					stmt = `SELECT count(*) FROM queues.dequeue_available_tasks(3, '{email}')`
				}
				if _, err := db.Pool.Exec(context.WithoutCancel(t.Context()), stmt); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	assert.Equal(t, 7, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM queues.open_task WHERE leased_until > clock_timestamp()`))
}

// A dequeue does not wait for one whose transaction is open.
func TestCapsWaitForNoTransaction(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	enqueueTypes(t, db.Pool, "email", "email", "sms")
	limitTasks(t, db.Pool, "email", nil, new(2))
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, dequeueTask(t, tx))
	ctx, cancel := context.WithTimeout(t.Context(), pgtest.Patience)
	defer cancel()
	var id int64
	require.NoError(t, db.Pool.QueryRow(ctx, `SELECT task_id FROM queues.dequeue_next_available_task()`).Scan(&id))
	assert.EqualValues(t, 3, id)
	require.NoError(t, tx.Rollback(t.Context()))
	assert.EqualValues(t, 1, dequeueTask(t, db.Pool))
}

// TestNoTaskIsLostByLimits pauses, resumes and caps types at random while tasks are enqueued,
// dequeued and completed: in the end all are completed.
func TestNoTaskIsLostByLimits(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	types := []string{"email", "sms", "fax"}
	var g errgroup.Group
	for w := range 4 {
		g.Go(func() error {
			ctx := context.WithoutCancel(t.Context())
			for i := range 60 {
				kind := types[(i+w)%3]
				stmts := []string{
					fmt.Sprintf(`SELECT queues.enqueue_tasks('{%s,%s}', '{"{}","{}"}')`, kind, types[i%3]),
					`SELECT queues.complete_tasks(ARRAY(SELECT task_id FROM queues.dequeue_available_tasks(2)))`,
					`SELECT queues.complete_task(task_id) FROM queues.dequeue_next_available_task() WHERE task_id IS NOT NULL`,
				}
				if w == 0 {
					stmts = append(stmts, fmt.Sprintf(`SELECT queues.limit_tasks('%s', %t, %d)`, kind, i%2 == 0, i%5))
				}
				for _, stmt := range stmts {
					if _, err := db.Pool.Exec(ctx, stmt); err != nil {
						return fmt.Errorf("%s: %w", stmt, err)
					}
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	for _, kind := range types {
		limitTasks(t, db.Pool, kind, new(false), new(0))
	}
	for len(dequeueTasks(t, db.Pool, 100)) > 0 {
		_, err := db.Pool.Exec(t.Context(),
			`SELECT queues.complete_tasks(ARRAY(SELECT task_id FROM queues.open_task WHERE leased_until IS NOT NULL))`)
		require.NoError(t, err)
	}
	assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.open_task`))
	assert.Equal(t, 480, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_completed`))
}

package migrations_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// What the worker and other clients ask while tasks are worked. Each is measured in a transaction
// that is rolled back.
var asked = map[string]string{
	"a lease":                         `SELECT queues.lease_tasks('run/0/2', 2, 'test', false, true, 5, '{email,sms}', '{5,5}', '{0,0}')`,
	"a lease with a limit everywhere": `SELECT queues.lease_tasks('run/0/2', 2, 'test', false, true, 5, '{email,sms}', '{5,5}', '{9,9}')`,
	"a lease when nothing is ready":   `SELECT queues.lease_tasks('run/0/2', 2, 'test', false, true, 5, '{file_delete}', '{5}', '{0}')`,
	"a dequeue of a type":             `SELECT queues.dequeue_available_tasks(5, '{sms}')`,
	"a dequeue":                       `SELECT queues.dequeue_available_tasks(5)`,
	"when the next task is due":       `SELECT queues.next_task_due('{email,sms}')`,
	"the expired leases":              `SELECT queues.reclaim_expired_tasks()`,
	"what other workers have to do":   `SELECT queues.has_other_tasks('{email}')`,
	"a dequeue of a capped type":      `SELECT queues.dequeue_available_tasks(5, '{sms}') FROM queues.limit_tasks('sms', NULL, 1000)`,
	"a dequeue when all are capped":   `SELECT queues.dequeue_available_tasks(5) FROM queues.limit_tasks('*', NULL, 1000)`,
}

// Beside a snapshot that is held, a call reads as many pages after 30,000 completed tasks as after
// 600, whether tasks wait or not: each task leaves dead rows in every index, which PostgreSQL may
// not skip. Pages are counted, because time says little on a machine that does other work.
func TestPagesUnderASnapshot(t *testing.T) {
	t.Parallel()
	const (
		enqueue = `PERFORM n.* FROM queues.enqueue_tasks(array_fill('sms'::text, ARRAY[50]) || array_fill('email'::text, ARRAY[50]), array_fill('{}'::jsonb, ARRAY[100])) n; COMMIT;`
		work    = `
SELECT array_agg(task_id ORDER BY task_id), array_agg(attempt ORDER BY task_id) INTO ids, attempts
  FROM queues.lease_tasks('run/0/1', 1, 'test', false, true, 100, '{email,sms}', '{50,50}', '{200,200}') WHERE task_id IS NOT NULL;
COMMIT;
PERFORM queues.end_tasks('run/0/1', 1, ids, attempts, NULL, NULL, NULL, NULL);
COMMIT;`
		loop = `DO $do$ DECLARE ids bigint[]; attempts integer[]; BEGIN FOR i IN 1..%d LOOP %s END LOOP; END $do$`
	)
	for name, rounds := range map[string]func(n int) []string{
		"100 wait":  func(n int) []string { return []string{fmt.Sprintf(loop, n, enqueue+work)} },
		"a backlog": func(n int) []string { return []string{fmt.Sprintf(loop, n, enqueue), fmt.Sprintf(loop, n, work)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			run := func(stmts ...string) {
				for _, stmt := range stmts {
					_, err := db.Pool.Exec(t.Context(), stmt)
					require.NoError(t, err)
				}
			}
			// A cursor is moved however young it is, if something has happened since.
			rewrite(t, db, "queues.cursor_is_old(queues.task_cursor)", "interval '100 milliseconds'",
				"interval '0 milliseconds'")
			// The workers of both types live.
			run(`SELECT queues.note_task_types('test', '{email,sms}', '{growth,growth}', '{60,60}', '{5,5}')`)
			if name == "100 wait" {
				run(fmt.Sprintf(loop, 1, enqueue))
			}
			held, err := db.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			require.NoError(t, err)
			defer func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }()
			_, err = held.Exec(t.Context(), `SELECT FROM pg_class LIMIT 1`)
			require.NoError(t, err)

			round := func() { run(rounds(1)...) }
			run(rounds(5)...)
			few := pagesOf(t, db, round)
			run(rounds(294)...)
			// By its statistics the table is empty then, and each index as small as any other. A vacuum
			// that runs by itself finds the same.
			run("ANALYZE")
			for call, n := range pagesOf(t, db, round) {
				t.Logf("%s: %d pages, then %d", call, few[call], n)
				// A call that walks the dead rows of one index reads 400 pages more, and most then read
				// 1,000.
				assert.LessOrEqual(t, n, few[call]+200, call)
			}
		})
	}
}

// pagesOf counts the pages that each call reads, the fewest of three times: what other tests do on the
// server at that moment only adds to them, and a call that walks dead rows does so every time.
func pagesOf(t *testing.T, db *pgtest.DB, round func()) map[string]int {
	t.Helper()
	fewest := map[string]int{}
	for range 3 {
		moveCursors(t, db, round)
		for call, n := range pagesNow(t, db) {
			if known, counted := fewest[call]; !counted || n < known {
				fewest[call] = n
			}
		}
	}
	return fewest
}

// moveCursors moves the cursors, by a round of work, until none of them names another transaction. A
// cursor names the transactions that were open when it was made, those of other tests on the server
// and of vacuums too, and each call looks for the tasks of each of them.
func moveCursors(t *testing.T, db *pgtest.DB, round func()) {
	t.Helper()
	for others, tries := 1, 0; others > 0; tries++ {
		require.Less(t, tries, 500, "another transaction is always open on the server")
		round()
		// The order of all types has a cursor as well, where clients use it.
		for _, id := range dequeueTasks(t, db.Pool, 1) {
			completeTask(t, db.Pool, id)
		}
		require.NoError(t, db.Pool.QueryRow(t.Context(), `
SELECT max(cardinality(c.unseen)) - 1 FROM (SELECT DISTINCT ON (scope) unseen FROM queues.task_cursor ORDER BY scope, cursor_no DESC) c`).Scan(&others))
	}
}

// pagesNow counts the pages that each call reads, the second time in its session: the first call
// reads the catalog as well.
func pagesNow(t *testing.T, db *pgtest.DB) map[string]int {
	t.Helper()
	conn, err := db.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	pages := map[string]int{}
	for range 2 {
		for call, stmt := range asked {
			tx, err := conn.Begin(t.Context())
			require.NoError(t, err)
			var text string
			require.NoError(t, tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+stmt).Scan(&text))
			require.NoError(t, tx.Rollback(t.Context()))
			var plans []struct {
				Plan struct {
					Hit  int `json:"Shared Hit Blocks"`
					Read int `json:"Shared Read Blocks"`
				}
			}
			require.NoError(t, json.Unmarshal([]byte(text), &plans))
			pages[call] = plans[0].Plan.Hit + plans[0].Plan.Read
		}
	}
	return pages
}

// A limit over all workers counts every lease, wherever the cursor of leases stands, and no lease
// that has ended.
func TestLimitsCountBehindCursors(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	enqueueTypes(t, db.Pool, slices.Repeat([]string{"sms", "email"}, 20)...)
	lease := func(turn int) (ids []int64) {
		ids, err := store.Collect(t.Context(), db.Pool, pgx.RowTo[int64],
			`SELECT task_id FROM queues.lease_tasks('run/0/' || @turn::int, @turn, 'test', false, true, 2, '{sms}', '{2}', '{5}') WHERE task_id IS NOT NULL`, pgx.NamedArgs{"turn": turn})
		require.NoError(t, err)
		return ids
	}
	first := lease(1)
	require.Len(t, first, 2)
	require.Len(t, lease(2), 2)
	require.Len(t, dequeueTasks(t, db.Pool, 3, "email"), 3, "leases of another type, which no limit counts")
	_, err := db.Pool.Exec(t.Context(), `SELECT queues.prolong_tasks($1)`, first)
	require.NoError(t, err)
	require.Len(t, lease(3), 1)
	for range 3 {
		require.Empty(t, lease(4), "five are leased")
	}
	completeTask(t, db.Pool, first[0])
	_, err = db.Pool.Exec(t.Context(), `SELECT queues.give_tasks_of_turn_back('run/0/2', 2, NULL, 0)`)
	require.NoError(t, err)
	assert.Len(t, lease(5), 2)
	assert.Len(t, lease(6), 1)
	assert.Empty(t, lease(7))
}

// When all that was leased is completed, the cursors move once more, past it, and then nothing is
// written.
func TestIdleQueueMovesNoCursor(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	rewrite(t, db, "queues.cursor_is_old(queues.task_cursor)", "interval '100 milliseconds'", "interval '0 milliseconds'")
	enqueueTypes(t, db.Pool, "sms", "sms", "sms")
	for _, id := range dequeueTasks(t, db.Pool, 3, "sms") {
		completeTask(t, db.Pool, id)
	}
	last := func() int {
		require.Empty(t, dequeueTasks(t, db.Pool, 3, "sms"))
		return fixture.Count(t, db.Pool, `SELECT max(cursor_no) FROM queues.task_cursor`)
	}
	moved := last()
	assert.Equal(t, 1, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM queues.task_cursor WHERE scope = '@' AND last_at = 'infinity'`), "no lease is open")
	for range 3 {
		assert.Equal(t, moved, last())
	}
}

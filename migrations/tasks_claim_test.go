package migrations_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// A hundred transactions that are open at once, with one dequeue each, get a hundred different
// tasks.
func TestHundredDequeuesGetHundredTasks(t *testing.T) {
	t.Parallel()
	const n = 100
	db := pgtest.New(t)
	enqueueDue(t, db.Pool, n)
	var conns []*pgx.Conn
	defer func() {
		for _, conn := range conns {
			_ = conn.Close(context.WithoutCancel(t.Context()))
		}
	}()
	for range n {
		conn, err := pgx.Connect(t.Context(), db.URL)
		require.NoError(t, err)
		conns = append(conns, conn)
	}

	var mu sync.Mutex
	got := map[int64]bool{}
	var open sync.WaitGroup
	open.Add(n)
	var g errgroup.Group
	for _, conn := range conns {
		g.Go(func() error {
			return pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				defer func() { open.Done(); open.Wait() }()
				var id *int64
				if err := tx.QueryRow(t.Context(),
					`SELECT task_id FROM queues.dequeue_next_available_task()`).Scan(&id); err != nil || id == nil {
					return fmt.Errorf("task %v: %w", id, err)
				}
				mu.Lock()
				defer mu.Unlock()
				got[*id] = true
				return nil
			})
		})
	}
	require.NoError(t, g.Wait())
	assert.Len(t, got, n)
	assert.Equal(t, n, fixture.Count(t, db.Pool, `SELECT count(DISTINCT task_id) FROM queues.task_lease`))
	assert.Zero(t, dequeueTask(t, db.Pool))
}

// A dequeue that rolls back leaves the task as it was: first in the order, and without a lease.
func TestDequeueThatRollsBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	enqueueDue(t, db.Pool, 3)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 1, dequeueTask(t, tx))
	assert.EqualValues(t, 2, dequeueTask(t, db.Pool), "the first one is held")
	require.NoError(t, tx.Rollback(t.Context()))
	assert.EqualValues(t, 1, dequeueTask(t, db.Pool))
	assert.Equal(t, 2, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_lease`))
}

// What a transaction enqueues that stays open while cursors move on is found when it commits.
func TestTaskThatCommitsLate(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	late, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = late.Rollback(context.WithoutCancel(t.Context())) }()
	enqueueTask(t, late, -time.Minute)
	enqueueDue(t, db.Pool, 100)
	for range 100 {
		require.NotZero(t, dequeueTask(t, db.Pool))
	}
	require.Zero(t, dequeueTask(t, db.Pool))
	require.NoError(t, late.Commit(t.Context()))
	for range 3 {
		assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) WHERE queues.next_task_due() < clock_timestamp()`))
	}
	assert.EqualValues(t, 1, dequeueTask(t, db.Pool))
}

// A task that becomes ready while a dequeue looks is handed out with what it is, or not at all: a
// lease that no one hears of would last five minutes.
func TestTaskThatCommitsDuringADequeue(t *testing.T) {
	t.Parallel()
	for name, dequeue := range map[string]func(t *testing.T, q querier) int64{
		"the next":          dequeueTask,
		"many":              func(t *testing.T, q querier) int64 { t.Helper(); return append(dequeueTasks(t, q, 5), 0)[0] },
		"many of some type": func(t *testing.T, q querier) int64 { t.Helper(); return append(dequeueTasks(t, q, 5, "email"), 0)[0] },
		"the worker's": func(t *testing.T, q querier) (id int64) {
			t.Helper()
			const stmt = `SELECT coalesce(task_id, 0) FROM queues.lease_tasks('run/0/1', 1, 'test', false, true, 5, '{email}', '{5}', '{0}') ORDER BY task_id LIMIT 1`
			require.NoError(t, q.QueryRow(t.Context(), stmt).Scan(&id))
			return id
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			// The dequeue stops before it looks, until this session lets it go on.
			rewrite(t, db, claimTasks, "c := queues.last_cursor(",
				"PERFORM pg_advisory_xact_lock_shared(99); c := queues.last_cursor(")
			hold, err := db.Pool.Acquire(t.Context())
			require.NoError(t, err)
			defer hold.Release()
			_, err = hold.Exec(t.Context(), `SELECT pg_advisory_lock(99)`)
			require.NoError(t, err)
			got := make(chan int64, 1)
			go func() { got <- dequeue(t, db.Pool) }()
			require.Eventually(t, func() bool {
				return fixture.Count(t, db.Pool,
					`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == 1
			}, pgtest.Patience, 5*time.Millisecond)
			enqueueTask(t, db.Pool, -time.Hour)
			_, err = hold.Exec(t.Context(), `SELECT pg_advisory_unlock(99)`)
			require.NoError(t, err)
			assert.EqualValues(t, 1, <-got)
		})
	}
}

// A lease whose transaction commits after it has expired is found as well.
func TestLeaseThatCommitsLate(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	leasesLast(t, db, 50*time.Millisecond)
	enqueueDue(t, db.Pool, 1)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	require.EqualValues(t, 1, dequeueTask(t, tx))
	_, err = db.Pool.Exec(t.Context(), `SELECT pg_sleep(0.1)`)
	require.NoError(t, err)
	for range 3 {
		enqueueTask(t, db.Pool, 0)
		require.NotZero(t, dequeueTask(t, db.Pool))
	}
	require.NoError(t, tx.Commit(t.Context()))
	assert.Contains(t, []int64{1, eventuallyTask(t, db.Pool)}, int64(1))
	require.Eventually(t, func() bool {
		dequeueTask(t, db.Pool)
		return fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_lease WHERE task_id = 1`) > 1
	}, pgtest.Patience, 5*time.Millisecond)
}

// A cursor that was moved is gone, also when the cursors of other scopes were moved much more
// often.
func TestCursorsAreForgotten(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	for range 5 {
		moveSMSCursor(t, db.Pool)
		otherCursorsMove(t, db.Pool)
	}
	assert.Equal(t, 1, smsCursors(t, db.Pool))
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_cursor WHERE scope = '@'`))
}

// A cursor of a transaction that commits late, when others have moved on, is removed by one that
// moves a cursor a minute old.
func TestCursorThatCommitsLateIsForgotten(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	cursorsMoveAlways(t, db)
	late, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = late.Rollback(context.WithoutCancel(t.Context())) }()
	moveSMSCursor(t, late)
	otherCursorsMove(t, db.Pool)
	moveSMSCursor(t, db.Pool)
	require.NoError(t, late.Commit(t.Context()))
	require.Equal(t, 2, smsCursors(t, db.Pool))
	_, err = db.Pool.Exec(t.Context(), `UPDATE queues.task_cursor SET made_at = made_at - interval '2 minutes'`)
	require.NoError(t, err)
	moveSMSCursor(t, db.Pool)
	assert.Equal(t, 1, smsCursors(t, db.Pool))
}

// moveSMSCursor has a dequeue move the cursor of the type sms, and that of leases.
func moveSMSCursor(t *testing.T, q querier) {
	t.Helper()
	_, err := q.Exec(t.Context(), `SELECT queues.enqueue('sms', '{}', '2020-01-01')`)
	require.NoError(t, err)
	require.Len(t, dequeueTasks(t, q, 1, "sms"), 1)
}

// otherCursorsMove uses up the numbers of 1,000 cursors.
func otherCursorsMove(t *testing.T, q querier) {
	t.Helper()
	_, err := q.Exec(t.Context(),
		`SELECT count(nextval(pg_get_serial_sequence('queues.task_cursor', 'cursor_no'))) FROM generate_series(1, 1000)`)
	require.NoError(t, err)
}

func smsCursors(t *testing.T, q *pgxpool.Pool) int {
	t.Helper()
	return fixture.Count(t, q, `SELECT count(*) FROM queues.task_cursor WHERE scope = 'sms'`)
}

// TestNoTaskIsLost works tasks in many transactions that overlap, commit and roll back at random,
// with leases that expire, and cursors that move with every call. In the end each committed task is
// completed, and none twice.
func TestNoTaskIsLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			cursorsMoveAlways(t, db)
			leasesLast(t, db, 30*time.Millisecond)
			w := &chaos{
				t: t, pool: db.Pool, r: rand.New(rand.NewPCG(seed, 12)), open: make([]pgx.Tx, 5),
				types: []string{"email", "sms", "own"},
			}
			for range 600 {
				w.step()
			}
			for i := range w.open {
				w.end(i, true)
			}
			limit := time.Now().Add(30 * time.Second)
			for fixture.Count(t, db.Pool,
				`SELECT count(*) FROM queues.task t WHERE NOT EXISTS (SELECT FROM queues.task_completed c WHERE c.task_id = t.task_id)`) > 0 {
				require.True(t, time.Now().Before(limit), "tasks that are not handed out: %d",
					fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.open_task`))
				for _, id := range dequeueTasks(t, db.Pool, 50, w.filter()...) {
					completeTask(t, db.Pool, id)
				}
			}
			assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.open_task`))
			assert.Zero(t, fixture.Count(t, db.Pool, `
SELECT count(*) FROM queues.task_completed c WHERE NOT EXISTS (SELECT FROM queues.task_lease l WHERE l.task_id = c.task_id)`), "completed without a lease on record")
			assert.LessOrEqual(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_cursor`), 500,
				"cursors are forgotten")
		})
	}
}

// chaos is some transactions at the same queue.
type chaos struct {
	t     *testing.T
	pool  *pgxpool.Pool
	r     *rand.Rand
	open  []pgx.Tx
	types []string
	held  []int64
}

// filter is no types, or some.
func (w *chaos) filter() []string {
	if w.r.IntN(2) == 0 {
		return nil
	}
	return w.types
}

func (w *chaos) end(i int, commit bool) {
	if w.open[i] == nil {
		return
	}
	end := w.open[i].Rollback
	if commit {
		end = w.open[i].Commit
	}
	require.NoError(w.t, end(w.t.Context()))
	w.open[i] = nil
}

// step does one thing, in an open transaction or in one of its own. Open transactions do not wait
// for each other: only what is not held is touched.
func (w *chaos) step() {
	i := w.r.IntN(len(w.open))
	if w.open[i] == nil {
		tx, err := w.pool.Begin(w.t.Context())
		require.NoError(w.t, err)
		w.open[i] = tx
	}
	switch n := w.r.IntN(100); {
	case n < 40:
		const stmt = `SELECT queues.enqueue($1, '{}', clock_timestamp() - make_interval(secs => $2))`
		_, err := w.open[i].Exec(w.t.Context(), stmt, w.types[w.r.IntN(len(w.types))], w.r.Float64()*w.r.Float64()-0.01)
		require.NoError(w.t, err)
	case n < 60:
		dequeueTasks(w.t, w.open[i], 1+w.r.IntN(5), w.filter()...)
	case n < 70:
		// Leased and completed in one transaction of its own.
		require.NoError(w.t, pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
			for _, id := range dequeueTasks(w.t, tx, 1+w.r.IntN(5), w.filter()...) {
				completeTask(w.t, tx, id)
			}
			return nil
		}))
	case n < 80:
		if id := dequeueTask(w.t, w.pool); id != 0 {
			w.held = append(w.held, id)
		}
	case n < 90:
		w.end(i, w.r.IntN(3) > 0)
	case len(w.held) > 0:
		// Of a claim that may have expired: it is completed where no open transaction holds its row.
		at := w.r.IntN(len(w.held))
		require.NoError(w.t, pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
			const free = `SELECT FROM queues.open_task o WHERE o.task_id = $1 FOR UPDATE SKIP LOCKED`
			if tag, err := tx.Exec(w.t.Context(), free, w.held[at]); err != nil || tag.RowsAffected() == 0 {
				return err
			}
			_, err := tx.Exec(w.t.Context(), `SELECT queues.complete_task($1)`, w.held[at])
			return err
		}))
		w.held = slices.Delete(w.held, at, at+1)
	}
}

package engine

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// work is a Handlers with one type of jobs, which are worked by calling it.
type work func(ctx context.Context) Attempt

func (work) Handling(jobType string) (Handling, bool) {
	return Handling{Parallel: 10, Timeout: 100 * time.Millisecond, Charged: true}, jobType == "named"
}

func (w work) Work(ctx context.Context, _ store.Job, _ *Running) Attempt { return w(ctx) }

func (work) Prepare(context.Context, string, []store.Job) (BulkCommit, error) { panic("not in bulk") }

func (work) Failed(_ store.Job, err error) Attempt {
	return Attempt{Outcome: models.OutcomeRetried, Code: models.CodeTimeout, Message: err.Error(), Delay: time.Hour}
}

// picking is an engine that picks, on a pool with so many connections of its own.
func picking(t *testing.T, db *pgtest.DB, connections int32, w work) (*Engine, *pgxpool.Pool) {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.URL)
	require.NoError(t, err)
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	e := NewOn(Tables(store.NewQueue(pool, store.Jobs)), w, Options{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	e.LearnShort("named")
	return e, pool
}

func done(context.Context) Attempt { return Attempt{Outcome: models.OutcomeCompleted} }

// enqueueNamed makes n jobs due.
func enqueueNamed(t *testing.T, db *pgtest.DB, n int) {
	t.Helper()
	_, err := db.Pool.Exec(t.Context(), `SELECT daybook.enqueue_job('org_1', 'named', '{}') FROM generate_series(1, $1)`,
		n)
	require.NoError(t, err)
}

// picker is a turn whose loop takes nothing in.
func picker(t *testing.T, e *Engine, q TurnRequest) *runner {
	t.Helper()
	q.Turn, q.Batch = store.Turn{ID: "run/0/1", Fence: 1}, 50
	r := e.newRunner(q, e.waker.Subscribe(), nil)
	t.Cleanup(r.acquirer.takeNoMore)
	return r
}

// next is the next event, which is an E.
func next[E event](t *testing.T, r *runner) E {
	t.Helper()
	e, ok := (<-r.events).(E)
	require.True(t, ok)
	return e
}

// pickUntil picks until something is found.
func pickUntil(t *testing.T, r *runner, n int) (l refilled) {
	t.Helper()
	require.Eventually(t, func() bool {
		go r.getJobs(t.Context(), picks{short: true}, n, r.acquirer.waiter)
		l = next[refilled](t, r)
		return l.worked+len(l.jobs) > 0 || l.err != nil
	}, pgtest.Patience, time.Millisecond)
	return l
}

// TestPickNeedsNoLoop has the handler of a picked job hold all other connections of a pool while
// the loop takes nothing in, as when it waits for one: the job gets its lease.
func TestPickNeedsNoLoop(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, pool := picking(t, db, 2, done)
	e.handlers = needing{work: done, pool: pool}
	enqueueNamed(t, db, 1)
	r := picker(t, e, TurnRequest{Length: time.Minute})
	pickUntil(t, r, 10)
	c := next[*returned](t, r)
	require.Equal(t, models.OutcomeCompleted, c.jobs[0].attempt.Outcome, "%v", c.jobs[0].attempt)
	assert.Equal(t, 1, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM daybook.jobs WHERE state = 'leased' AND working AND progress IS NOT NULL`))
}

// needing stores progress while it has a connection.
type needing struct {
	work
	pool *pgxpool.Pool
}

// Handling has a timeout that no busy machine reaches.
func (n needing) Handling(jobType string) (Handling, bool) {
	h, ok := n.work.Handling(jobType)
	h.Timeout = time.Minute
	return h, ok
}

func (n needing) Work(ctx context.Context, _ store.Job, running *Running) Attempt {
	conn, err := n.pool.Acquire(ctx)
	if err != nil {
		return n.Failed(store.Job{}, err)
	}
	defer conn.Release()
	if err := running.Progress(ctx, []byte(`{}`)); err != nil {
		return n.Failed(store.Job{}, err)
	}
	return done(ctx)
}

// TestPickThatComesTooLateIsLeftAlone has a pick under way when the turn is told to begin nothing
// more, or its time is up.
func TestPickThatComesTooLateIsLeftAlone(t *testing.T) {
	t.Parallel()
	enough := make(chan struct{})
	close(enough)
	for name, q := range map[string]TurnRequest{
		"enough":         {enough: enough},
		"its time is up": {Length: time.Nanosecond},
		"it ends":        {Length: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			e, _ := picking(t, db, 1, func(context.Context) Attempt {
				assert.Fail(t, "a job is begun")
				return Attempt{}
			})
			enqueueNamed(t, db, 1)
			r := picker(t, e, q)
			if name == "it ends" {
				r.beginNoMore()
			}
			l := r.pickShort(t.Context(), 10, r.acquirer.waiter)
			assert.Zero(t, l.worked)
			assert.Zero(t, e.room.used["named"])
			assert.Equal(t, 1, fixture.Count(t, db.Pool,
				`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND run_count = 0`))
		})
	}
}

// TestAbandonedCallOfALostPickIsCharged has a handler not return when its time is up, while its
// job, whose transaction was lost, is waited for.
func TestAbandonedCallOfALostPickIsCharged(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	begun, proceed := make(chan struct{}, 1), make(chan struct{})
	e, _ := picking(t, db, 10, func(context.Context) Attempt {
		begun <- struct{}{}
		<-proceed
		return Attempt{Outcome: models.OutcomeCompleted}
	})
	defer close(proceed)
	enqueueNamed(t, db, 1)
	// The row can be locked, and cannot be changed.
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.jobs IN SHARE MODE`)
	require.NoError(t, err)

	work, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1", Fence: 1}, Batch: 50, Length: time.Minute}, e.waker.Subscribe(), cancel)
	r.acquirer.next = picks{short: true}
	turned := make(chan error, 1)
	end := r.tend(t.Context(), work)
	go func() {
		_, err := r.run(t.Context(), work)
		turned <- err
	}()
	<-begun
	require.Eventually(t, func() bool {
		var ended int
		err := db.Pool.QueryRow(t.Context(), `
SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock') AS s`).Scan(&ended)
		return err == nil && ended > 0
	}, time.Minute, 5*time.Millisecond, "the pick waits for the lock when it leases")
	// The turn waits for the row.
	row, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = row.Exec(t.Context(), `SELECT FROM daybook.jobs FOR UPDATE`)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Eventually(t, func() bool {
		r.calls.mu.Lock()
		defer r.calls.mu.Unlock()
		for c := range r.calls.all {
			return c.late(time.Now().Add(-200 * time.Millisecond))
		}
		return false
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, row.Rollback(t.Context()))
	require.NoError(t, <-turned)
	end()
	r.close()
	var outcome, code string
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT outcome::text, error_code FROM daybook.attempts`).Scan(&outcome, &code))
	assert.Equal(t, "retried TIMEOUT", outcome+" "+code)
}

// TestCallsThatReturnAfterTheirTurnBlockNothing has more abandoned calls return after the turn than
// it can be told of.
func TestCallsThatReturnAfterTheirTurnBlockNothing(t *testing.T) {
	t.Parallel()
	e, _ := picking(t, pgtest.New(t), 1, done)
	r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1"}}, e.waker.Subscribe(), nil)
	r.close()
	for range cap(r.events) + 1 {
		r.tell(&returned{})
	}
}

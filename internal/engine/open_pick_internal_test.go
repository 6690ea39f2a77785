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
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// work is a Handlers with one type of jobs, which are worked by calling it.
type work func(ctx context.Context) Attempt

func (work) Handling(jobType string) (Handling, bool) {
	return Handling{Parallel: 10, Timeout: 100 * time.Millisecond, Charged: true}, jobType == "named"
}

func (w work) Work(ctx context.Context, _ store.Job, _ Progress) Attempt { return w(ctx) }

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
	e := NewJobs(store.NewQueue(pool, store.Jobs), w, Options{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	e.LearnShort("named")
	return e, pool
}

func done(context.Context) Attempt { return Attempt{Outcome: models.OutcomeCompleted} }

// enqueueNamed makes n jobs due.
func enqueueNamed(t *testing.T, db *pgtest.DB, n int) {
	t.Helper()
	_, err := db.Pool.Exec(t.Context(), `SELECT daybook.enqueue_job('org_1', 'named', '{}') FROM generate_series(1, $1)`, n)
	require.NoError(t, err)
}

// TestStatementsEndTheOpenPickFirst has the handlers of an open pick hold every connection of a pool while the loop needs one: it ends
// the pick before it waits.
func TestStatementsEndTheOpenPickFirst(t *testing.T) {
	t.Parallel()
	some := []store.Job{{ID: "a", Type: "named"}}
	for name, need := range map[string]func(r *runner){
		"give back":     func(r *runner) { r.back = []givenBack{{jobs: some}} },
		"verify":        func(r *runner) { r.own.since = time.Now() },
		"retry skipped": func(r *runner) { r.skipped = some },
		"mark waiting":  func(r *runner) { r.engine.room.used["named"], r.queue = 10, some },
		"mark working":  func(r *runner) { r.queue = []store.Job{{ID: "a", Type: "named", Waiting: true}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			e, pool := picking(t, db, 1, done)
			r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1"}, Batch: 50, Length: time.Minute}, nil)
			o := &openPick{finish: make(chan finish, 1)}
			r.open, r.refill.underWay = o, true
			need(r)
			held, err := pool.Acquire(t.Context())
			require.NoError(t, err)
			stepped := make(chan error, 1)
			go func() {
				_, err := r.step(t.Context(), false)
				stepped <- err
			}()
			select {
			case <-o.finish:
			case <-time.After(time.Minute):
				assert.Fail(t, "the pick was not ended")
			}
			held.Release()
			require.NoError(t, <-stepped)
		})
	}
}

// TestPickIsUndoneForALoopThatWaits has a pick hold the only connection while the loop waits for one, and does not hear of the pick.
func TestPickIsUndoneForALoopThatWaits(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, pool := picking(t, db, 1, done)
	enqueueNamed(t, db, 3)
	r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1"}, Batch: 50, Length: time.Minute}, nil)
	r.waiter = e.waker.Subscribe(true)
	defer r.waitNoMore()
	var l refilled
	for l.open == nil {
		r.refill.underWay = true
		r.openPick(t.Context(), 10) // nothing is taken from the pick until it returns
		l = <-r.refills
	}
	require.NoError(t, pool.Ping(t.Context()), "the connection is free again")
	require.NoError(t, r.noteRefill(t.Context(), l))
	assert.False(t, r.refill.underWay)
	assert.Zero(t, r.active)
	assert.Zero(t, e.room.used["named"])

	report, err := e.Process(t.Context(), TurnRequest{Turn: store.Turn{ID: "run/0/2"}, Batch: 50, Length: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, 3, report.Completed, "they are found again")
}

// TestPickThatComesTooLateIsLeftAlone has a pick under way when the turn is told to begin nothing more, or its time is up.
func TestPickThatComesTooLateIsLeftAlone(t *testing.T) {
	t.Parallel()
	enough := make(chan struct{})
	close(enough)
	for name, q := range map[string]TurnRequest{
		"enough":         {Enough: enough},
		"its time is up": {Length: time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := picking(t, pgtest.New(t), 1, func(context.Context) Attempt {
				assert.Fail(t, "a job is begun")
				return Attempt{}
			})
			q.Turn = store.Turn{ID: "run/0/1"}
			r := e.newRunner(q, nil)
			require.Equal(t, 1, e.room.Reserve("named", 1))
			o := &openPick{finish: make(chan finish, 1), jobs: []store.Job{{ID: "a", Type: "named", Room: true}}}
			assert.Zero(t, r.beginPick(t.Context(), o))
			assert.Equal(t, finish{}, <-o.finish)
			assert.Zero(t, e.room.used["named"])
		})
	}
}

// TestAbandonedCallOfALostPickIsCharged has a handler not return when its time is up, while its job, whose transaction was lost, is waited for.
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
	r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1", Fence: 1}, Batch: 50, Length: time.Minute}, cancel)
	r.refill.picks = picksShort
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
	var abandoned time.Time
	require.Eventually(t, func() bool {
		r.calls.mu.Lock()
		defer r.calls.mu.Unlock()
		for c := range r.calls.all {
			if c.abandoned && abandoned.IsZero() {
				abandoned = time.Now()
			}
		}
		return !abandoned.IsZero() && time.Since(abandoned) > 200*time.Millisecond
	}, time.Minute, 20*time.Millisecond)
	require.NoError(t, row.Rollback(t.Context()))
	require.NoError(t, <-turned)
	end()
	r.close()
	var outcome, code string
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT outcome::text, error_code FROM daybook.attempts`).Scan(&outcome, &code))
	assert.Equal(t, "retried TIMEOUT", outcome+" "+code)
}

// TestCallsThatReturnAfterTheirTurnBlockNothing has more abandoned calls return after the turn than it can be told of.
func TestCallsThatReturnAfterTheirTurnBlockNothing(t *testing.T) {
	t.Parallel()
	e, _ := picking(t, pgtest.New(t), 1, done)
	r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1"}}, nil)
	r.close()
	for range cap(r.over) + 1 {
		r.tellOver(returned{})
	}
}

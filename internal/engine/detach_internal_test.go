package engine

import (
	"context"
	"log/slog"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// handing is a Kind that hands over whatever it is asked for, and counts that.
type handing struct {
	Kind
	asked int
}

func (k *handing) HandOver(context.Context, store.Turn, store.Turn, []string) (bool, error) {
	k.asked++
	return true, nil
}

// TestTurnIsDetachedWhenItOnlyWaits: a turn hands its jobs over when it has nothing else to do than
// to wait for long ones, and not before.
func TestTurnIsDetachedWhenItOnlyWaits(t *testing.T) {
	t.Parallel()
	e, _ := picking(t, pgtest.New(t), 1, done)
	k := &handing{Kind: e.kind}
	e.kind = k
	some := []ended{{job: store.Job{ID: "b", Type: "named"}}}
	for name, busy := range map[string]func(r *runner, c *call){
		"it only waits":                func(*runner, *call) {},
		"it does not linger":           func(r *runner, _ *call) { r.request.Linger = false },
		"nothing is worked":            func(r *runner, c *call) { r.worker.active = 0; r.calls.end(c) },
		"a refill is under way":        func(r *runner, _ *call) { r.acquirer.underWay = true },
		"a completion is under way":    func(r *runner, _ *call) { r.finisher.completing = true },
		"a job has ended":              func(r *runner, _ *call) { r.finisher.ended = some },
		"a completion is tried again":  func(r *runner, _ *call) { r.finisher.held = some },
		"another job has just begun":   func(r *runner, _ *call) { r.worker.active = 2 },
		"the job has just begun":       func(_ *runner, c *call) { c.began = time.Now() },
		"jobs are worked together":     func(_ *runner, c *call) { c.single = false },
		"the call is not waited for":   func(_ *runner, c *call) { c.abandoned = true },
		"a completion pins the holder": func(r *runner, _ *call) { r.leases.pin() },
	} {
		k.asked = 0
		r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1"}, Batch: 50, Length: time.Minute, Linger: true}, e.waker.Subscribe(), nil)
		c := &call{jobType: "named", single: true, open: 1, inHand: []store.Job{{ID: "a"}}}
		r.calls.begin(c)
		c.began, r.worker.active = time.Now().Add(-2*detachAfter), 1
		busy(r, c)

		handed, err := r.detach(t.Context())
		require.NoError(t, err)
		only := name == "it only waits"
		assert.Equal(t, []bool{only, only, only}, []bool{handed, k.asked == 1, r.leases.heldBy().Detached}, name)
	}
}

// TestRetryBeforeTheHandOverIsNoticed: the turn has written it since it last looked, and hands over
// what it works.
func TestRetryBeforeTheHandOverIsNoticed(t *testing.T) {
	t.Parallel()
	e, _ := picking(t, pgtest.New(t), 1, done)
	r := e.newRunner(TurnRequest{Turn: store.Turn{ID: "run/0/1"}, Batch: 50, Linger: true}, e.waker.Subscribe(), func() {})
	r.tally.count(store.Completed{models.OutcomeRetried: 1})
	r.acquirer.nothingDue = true
	_, err := r.goOn(t.Context(), t.Context())
	require.NoError(t, err)
	assert.False(t, r.acquirer.nothingDue)
}

// TestHandOverOfALostJob: a job that the turn has lost prevents the hand-over, and its call is
// ended; one whose row is locked for a moment prevents it as well, and goes on.
func TestHandOverOfALostJob(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, done)
	enqueueNamed(t, db, 2)
	r, jobs := leasing(t, e, 2)
	ended := map[string]bool{}
	for _, j := range jobs {
		r.calls.begin(&call{
			jobType: "named", single: true, open: 1, inHand: []store.Job{j},
			try: &tryContext{cancel: func() { ended[j.ID] = true }},
		})
	}
	other, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `UPDATE daybook.jobs SET fence = fence + 1 WHERE id = $1`, jobs[0].ID)
	require.NoError(t, err)

	handed, err := r.leases.handOver(t.Context(), idsOf(jobs))
	require.NoError(t, err)
	assert.False(t, handed)
	assert.Empty(t, ended, "the row is only locked")

	require.NoError(t, other.Commit(t.Context()))
	handed, err = r.leases.handOver(t.Context(), idsOf(jobs))
	require.NoError(t, err)
	assert.False(t, handed)
	assert.Equal(t, map[string]bool{jobs[0].ID: true}, ended)
	assert.False(t, r.leases.heldBy().Detached)

	handed, err = r.leases.handOver(t.Context(), []string{jobs[1].ID})
	require.NoError(t, err)
	assert.True(t, handed)
	assert.True(t, r.leases.heldBy().Detached)
}

// TestWaitingJobWhoseRowIsHeld: of the jobs that waited for room, one whose row another transaction
// holds is not begun, gives its room back, and is tried again.
func TestWaitingJobWhoseRowIsHeld(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 5, done)
	enqueueNamed(t, db, 2)
	r, jobs := leasing(t, e, 2)
	require.NoError(t, r.worker.markWaiting(t.Context(), jobs))
	for i := range jobs {
		jobs[i].Room = e.room.take(jobs[i].Type)
	}
	other := locking(t, db, jobs[0].ID)
	defer func() { require.NoError(t, other.Rollback(context.WithoutCancel(t.Context()))) }()

	left, locked, _, err := r.worker.markWorking(t.Context(), jobs)
	require.NoError(t, err)
	assert.Equal(t, map[string]bool{jobs[0].ID: true}, left)
	require.Equal(t, []string{jobs[0].ID}, idsOf(locked))
	assert.False(t, locked[0].Room)
	assert.Equal(t, 1, e.room.used["named"])
}

// TestDetachedTurnLeavesNothingBehind: what a turn that no activity waits for could not give back
// at its end, because another transaction had the row locked, is given back as soon as that is
// over, uncounted, also when the process is stopped and has interrupted the turn's work. A lease
// that comes second for a row locks it for a moment.
func TestDetachedTurnLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, stopped := range []bool{false, true} {
		db := pgtest.New(t)
		e, _ := picking(t, db, 5, done)
		enqueueNamed(t, db, 2)
		r, jobs := leasing(t, e, 2)
		other := locking(t, db, jobs[0].ID)
		time.AfterFunc(500*time.Millisecond, func() { assert.NoError(t, other.Commit(context.WithoutCancel(t.Context()))) })
		var work context.Context
		work, r.cancelWork = context.WithCancel(t.Context())
		if stopped {
			r.cancelWork()
		}
		r.endDetached(work, nil, func() {})
		assert.Zero(t, fixture.Count(t, db.Pool, notAsBefore), "stopped: %v", stopped)
		assert.Equal(t, 2, e.late.split().Released, "stopped: %v", stopped)
	}
}

// TestHandOverWithoutAConnection has a completion hold the pool's only connection while a hand-over
// that has begun needs one: neither waits for the other for long, and the job is completed.
func TestHandOverWithoutAConnection(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	e, _ := picking(t, db, 1, done)
	enqueueNamed(t, db, 2)
	r, jobs := leasing(t, e, 2)
	c := &call{jobType: "named", single: true, open: 1, inHand: jobs[:1]}
	r.calls.begin(c)
	handed := make(chan error, 1)
	completing := &completion{turn: r.turn, call: c, timeout: time.Minute, job: jobs[0], attempt: Attempt{
		Outcome: models.OutcomeCompleted, InTx: func(ctx context.Context, tx pgx.Tx) ([]byte, error) {
			if _, err := tx.Exec(ctx, `SELECT $1::int`, 1); err != nil || len(handed) > 0 || !r.leases.moving.TryRLock() {
				return nil, err
			}
			r.leases.moving.RUnlock()
			go func() {
				// The look below keeps a try from beginning, if it comes at that moment.
				var moved bool
				var err error
				for ; !moved && err == nil && ctx.Err() == nil; runtime.Gosched() {
					moved, err = r.leases.handOver(t.Context(), idsOf(jobs))
				}
				handed <- err
			}()
			for ctx.Err() == nil && r.leases.moving.TryRLock() {
				r.leases.moving.RUnlock()
				runtime.Gosched()
			}
			return nil, nil
		},
	}}
	completed := make(chan error, 1)
	go func() { completed <- completing.run(t.Context()) }()
	for what, over := range map[string]chan error{"the hand-over": handed, "the completion": completed} {
		select {
		case err := <-over:
			require.NoError(t, err, what)
		case <-time.After(pgtest.Patience):
			require.FailNow(t, what+" waits for the other one")
		}
	}
	assert.Equal(t, 1, fixture.Count(t, db.Pool,
		`SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`))
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'leased' AND detached`))
}

// TestLeasesAreKeptWhileNothingConnects: the server, or a proxy before it, leaves a new connection
// without an answer. What waits for it, because no other was free, gives up before the leases end,
// which are not renewed meanwhile.
func TestLeasesAreKeptWhileNothingConnects(t *testing.T) {
	t.Parallel()
	handOver := func(ctx context.Context, r *runner, jobs []store.Job) error {
		_, err := r.leases.handOver(ctx, idsOf(jobs))
		return err
	}
	for what, c := range map[string]struct {
		connections int32 // of which one is in use
		asks        func(ctx context.Context, r *runner, jobs []store.Job) error
	}{
		"a hand-over":                   {1, handOver},
		"a hand-over on the pool's own": {2, handOver},
		"a question what the turn holds": {1, func(ctx context.Context, r *runner, _ []store.Job) error {
			_, err := r.leases.held(ctx)
			return err
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			pool, asked := unansweredOnce(t, db, c.connections)
			e := NewOn(Tables(store.NewQueue(pool, store.Jobs)), work(done), Options{Log: slog.New(slog.DiscardHandler)})
			t.Cleanup(e.Close)
			enqueueNamed(t, db, 1)
			r, jobs := leasing(t, e, 1)
			busy, err := pool.Acquire(t.Context())
			require.NoError(t, err)
			defer busy.Release()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				_ = c.asks(ctx, r, jobs) // with an error or without
				close(ended)
			}()
			<-asked
			go func() {
				for ctx.Err() == nil {
					_, _ = r.leases.renewOnce(ctx, time.Millisecond)
				}
			}()
			assert.Eventually(t, func() bool {
				return fixture.Count(t, db.Pool,
					`SELECT count(*) FROM daybook.jobs WHERE last_attempted_at > attempt_started_at + interval '1 second'`) == 1
			}, 9*time.Second, 10*time.Millisecond)
			cancel()
			<-ended
		})
	}
}

// unansweredOnce is a pool of so many connections. The second one that is made gets no answer;
// asked is told of it. Others do.
func unansweredOnce(t *testing.T, db *pgtest.DB, connections int32) (pool *pgxpool.Pool, asked chan struct{}) {
	t.Helper()
	var listen net.ListenConfig
	silent, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, silent.Close()) })
	address, err := url.Parse("postgres://" + silent.Addr().String())
	require.NoError(t, err)
	port, err := strconv.ParseUint(address.Port(), 10, 16)
	require.NoError(t, err)
	config, err := pgxpool.ParseConfig(db.URL)
	require.NoError(t, err)
	config.MaxConns = connections
	asked = make(chan struct{})
	var made atomic.Int32
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if made.Add(1) == 2 {
			c.Host, c.Port, c.Fallbacks = address.Hostname(), uint16(port), nil
			close(asked)
		}
		return nil
	}
	pool, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, asked
}

// leasing is a turn that has leased n jobs.
func leasing(t *testing.T, e *Engine, n int) (*runner, []store.Job) {
	t.Helper()
	turn := store.Turn{ID: "run/0/1", Begins: true}
	var err error
	turn.Fence, err = e.kind.NextFence(t.Context())
	require.NoError(t, err)
	leased, err := e.kind.LeaseFor(t.Context(), turn, n, pgtest.Unbounded())
	require.NoError(t, err)
	require.Len(t, leased.Jobs, n)
	return e.newRunner(TurnRequest{Turn: turn, Batch: 50, Length: time.Minute, Linger: true}, e.waker.Subscribe(), nil), leased.Jobs
}

package jobs_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// short works a turn whose time is up at once, and that would wait for more.
func (b *bundle) short(e *engine.Engine, stop <-chan struct{}) engine.Report {
	b.t.Helper()
	r, err := e.Process(b.t.Context(),
		engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: time.Second, Linger: true, Stop: stop})
	require.NoError(b.t, err)
	return r
}

// detach works turns whose time is up at once until n jobs have begun that are detached from them.
// The first of these turns may end before it has found the jobs.
func (b *bundle) detach(e *engine.Engine, stop <-chan struct{}, n int) (reported engine.Report) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		r := b.short(e, stop)
		reported.Leased += r.Leased
		reported.Completed += r.Completed
		reported.LeftBehind = append(reported.LeftBehind, r.LeftBehind...)
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'leased' AND working AND detached`) == n
	}, long, time.Millisecond)
	return reported
}

// TestJobIsDetachedFromItsTurn: a turn does not wait for a handler that takes long, and what the
// handler does counts.
func TestJobIsDetachedFromItsTurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text)`)
	goOn, told, finish := make(chan struct{}), make(chan error, 1), make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[greet]) error {
		if job.Payload.Name == "quick" {
			return nil
		}
		<-goOn
		told <- job.Progress(ctx, map[string]int{"percent": 80})
		<-finish
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ($1)`, job.Payload.Name)
			return err
		})
		return nil
	})
	slow := b.enqueue(greet{Name: "slow"}, queue.JobOptions{})
	r := b.detach(b.engine, nil, 1)
	assert.Equal(t, 1, r.Leased)
	assert.Zero(t, r.Completed)
	assert.Empty(t, r.LeftBehind, "no later activity is to reclaim it")
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'leased' AND working AND detached`, slow))

	// The lane works on, and leaves the job alone.
	b.enqueue(greet{Name: "quick"}, queue.JobOptions{})
	require.Eventually(t, func() bool { return b.short(b.engine, nil).Completed == 1 }, long, time.Millisecond)

	close(goOn)
	require.NoError(t, <-told)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE id = $1 AND progress = '{"percent": 80}'`, slow))
	close(finish)
	require.Eventually(t, func() bool { return b.row(slow).State == models.JobCompleted }, pgtest.Patience,
		10*time.Millisecond)
	assert.Equal(t, 1, b.row(slow).RunCount)
	assert.Equal(t, 1, b.row(slow).Attempts)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
	// A later turn reports it.
	reported := 0
	require.Eventually(t, func() bool {
		reported += b.short(b.engine, nil).Completed
		return reported > 0
	}, pgtest.Patience, 10*time.Millisecond)
	assert.Equal(t, 1, reported)
}

// TestDetachedJobsCount: they keep their place among those of their type.
func TestDetachedJobsCount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var now, most atomic.Int32
	finish := make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{Parallel: 2}, func(context.Context, *jobs.Job[greet]) error {
		most.Store(max(most.Load(), now.Add(1)))
		<-finish
		now.Add(-1)
		return nil
	})
	for range 6 {
		b.enqueue(greet{}, queue.JobOptions{})
	}
	for range 3 {
		b.due()
		b.short(b.engine, nil)
	}
	assert.EqualValues(t, 2, now.Load())
	close(finish)
	require.Eventually(t, func() bool {
		b.due()
		b.short(b.engine, nil)
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`) == 6
	}, 60*time.Second, 10*time.Millisecond)
	assert.LessOrEqual(t, most.Load(), int32(2))
	assert.Equal(t, 6, b.count(`SELECT count(*) FROM daybook.attempts`))
}

// TestDetachedJobsAreStopped: closing the engine ends what is detached, after the grace, and gives
// it back uncounted.
func TestDetachedJobsAreStopped(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(e *engine.Engine, stop chan struct{}){
		"by the worker's stop": func(e *engine.Engine, stop chan struct{}) { close(stop); e.Close() },
		"by Close":             func(e *engine.Engine, _ chan struct{}) { e.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e := engine.NewJobs(b.store, b.registry,
				engine.Options{Log: slog.New(slog.DiscardHandler), Grace: 20 * time.Millisecond})
			jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, _ *jobs.Job[greet]) error {
				<-ctx.Done()
				return ctx.Err()
			})
			id := b.enqueue(greet{}, queue.JobOptions{})
			stop := make(chan struct{})
			b.detach(e, stop, 1)
			require.Equal(t, models.JobLeased, b.row(id).State)
			end(e, stop)
			j := b.row(id)
			assert.Equal(t, models.JobPending, j.State)
			assert.Zero(t, j.RunCount)
			assert.Zero(t, j.Attempts)
		})
	}
}

// TestDetachedJobsAreReclaimed: when their process does not renew them.
func TestDetachedJobsAreReclaimed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	finish := make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error {
		if calls.Add(1) == 1 {
			<-finish
		}
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.detach(b.engine, nil, 1)
	other := b.engineOn(b.Pool)
	n, err := other.Lease(t.Context(), b.turn(), 10, nil)
	require.NoError(t, err)
	assert.Zero(t, n, "it is renewed")
	b.exec(`UPDATE daybook.jobs SET last_attempted_at = clock_timestamp() - interval '11 seconds' WHERE id = $1`, id)
	got, err := store.NewQueue(b.Pool, store.Jobs).ReclaimExpired(t.Context())
	require.NoError(t, err)
	assert.Equal(t, store.Reclaimed{Jobs: 1, Lost: 1}, got)
	turn := b.turn()
	n, err = other.Lease(t.Context(), turn, 10, nil)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	r, err := other.Process(t.Context(), engine.TurnRequest{Turn: turn, Batch: 10, Length: 0})
	require.NoError(t, err)
	assert.Equal(t, 1, r.Completed)
	close(finish)
	b.engine.Close()
	j := b.row(id)
	assert.Equal(t, models.JobCompleted, j.State)
	assert.Equal(t, 2, j.RunCount)
	assert.Equal(t, 2, j.Attempts, "one lost, one completed")
}

// TestTurnBeginsWhatComes: what comes while a turn waits is begun at once, and from then on the turn
// has its length.
func TestTurnBeginsWhatComes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	found := make(chan bool, 9)
	done := make(chan engine.Report, 1)
	go func() {
		r, err := b.engine.Process(context.Background(), engine.TurnRequest{
			Turn: b.turn(), Batch: 50, Wait: time.Second, Length: 3 * time.Second, Linger: true, Fresh: true,
			Found: func(full bool) { found <- full },
		})
		assert.NoError(t, err)
		done <- r
	}()
	runAt := time.Now().Add(300 * time.Millisecond)
	b.enqueue(greet{}, queue.JobOptions{RunAt: runAt})
	assert.False(t, receive(t, found), "it has found less than it asked for")
	b.enqueue(greet{}, queue.JobOptions{RunAt: runAt.Add(1500 * time.Millisecond)})
	r := receive(t, done)
	assert.Equal(t, 2, r.Completed, "the second one was due when the wait would have been over")
	assert.Equal(t, 2, r.Leased)
	assert.Empty(t, found, "the first find is told, and no other")
	assert.Equal(t, 2, b.count(`SELECT count(*) FROM daybook.attempts`))
}

// TestTurnThatWaitsEndsGently: when its context ends, a turn that waits ends at once, and one that
// works begins nothing more and hands on what lasts.
func TestTurnThatWaitsEndsGently(t *testing.T) {
	t.Parallel()
	for name, works := range map[string]bool{"it waits": false, "it works": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			begun, end := b.untilTold(1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan engine.Report, 1)
			go func() {
				r, err := b.engine.Process(ctx, engine.TurnRequest{
					Turn: b.turn(), Batch: 50, Wait: time.Hour, Length: time.Hour, Linger: true, Fresh: true, Gently: true,
				})
				assert.NoError(t, err)
				done <- r
			}()
			b.untilQuiet()
			if works {
				b.enqueueFor(org, 2, 2)
				receive(t, begun)
			}
			cancel()
			r := receive(t, done)
			assert.False(t, r.Stopped)
			if !works {
				assert.Zero(t, r.Leased)
				return
			}
			assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'leased'`), "it goes on")
			assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'pending'`), "it is not begun")
			close(end)
			b.until(1, completed)
		})
	}
}

// TestTurnBeginsLongJobs: they count among those of their type when the turn is over.
func TestTurnBeginsLongJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var now, most atomic.Int32
	finish := make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{Parallel: 1}, func(context.Context, *jobs.Job[greet]) error {
		most.Store(max(most.Load(), now.Add(1)))
		<-finish
		now.Add(-1)
		return nil
	})
	done := make(chan engine.Report, 1)
	go func() {
		r, err := b.engine.Process(context.Background(),
			engine.TurnRequest{Turn: b.turn(), Batch: 50, Wait: time.Minute, Length: 100 * time.Millisecond, Linger: true})
		assert.NoError(t, err)
		done <- r
	}()
	first := b.enqueue(greet{}, queue.JobOptions{RunAt: time.Now().Add(300 * time.Millisecond)})
	<-done // it goes on without the turn
	require.EqualValues(t, 1, now.Load())
	second := b.enqueue(greet{}, queue.JobOptions{})
	b.short(b.engine, nil)
	assert.EqualValues(t, 1, most.Load())
	assert.Equal(t, models.JobPending, b.row(second).State, "it is not leased before there is room")
	close(finish)
	require.Eventually(t, func() bool {
		b.due()
		b.short(b.engine, nil)
		return b.row(first).State == models.JobCompleted && b.row(second).State == models.JobCompleted
	}, 60*time.Second, 10*time.Millisecond)
	assert.EqualValues(t, 1, most.Load())
	assert.Equal(t, 2, b.count(`SELECT count(*) FROM daybook.attempts`))
}

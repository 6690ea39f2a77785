package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// poison is the name of the job that is to blame.
const poison = "doc-30"

// work is what the handler of a test does with the named jobs, which share a call.
type work func(ctx context.Context, names []string) error

type named struct {
	Name string `json:"name"`
}

func (named) JobType() string { return "named" }

// kinds are the kinds of queue and of handlers that the tests of this file hold to the same.
var kinds = map[string]struct {
	// queued and log are where jobs and the attempts at them are read.
	queued, log string
	// size is how many jobs share a call.
	size    int
	enqueue func(b *bundle, n int)
	engine  func(b *bundle, pool *pgxpool.Pool, w work, o engine.Options) *engine.Engine
}{
	"documents": {
		"daybook.accounting_work_queue", "daybook.attempts", 50,
		func(b *bundle, n int) { fixture.ManyReady(b.t, b.Pool, org, "doc-", n) },
		func(_ *bundle, pool *pgxpool.Pool, w work, o engine.Options) *engine.Engine {
			o.ChunkSize = 50
			return engine.New(store.New(pool), failing{prepare: func(ctx context.Context, all []engine.Job) error {
				names := make([]string, len(all))
				for i, j := range all {
					names[i] = j.DocumentID
				}
				return w(ctx, names)
			}}, o)
		},
	},
	"jobs in bulk": {
		"daybook.jobs", "daybook.attempts", 50, enqueueNamed,
		func(_ *bundle, pool *pgxpool.Pool, w work, o engine.Options) *engine.Engine {
			r := jobs.NewRegistry()
			jobs.RegisterBulk(r, jobs.Policy{Parallel: 50, MaxAttempts: 6},
				func(ctx context.Context, _ pgx.Tx, all []*jobs.Job[named]) ([]error, error) {
					names := make([]string, len(all))
					for i, j := range all {
						names[i] = j.Payload.Name
					}
					return nil, w(ctx, names)
				})
			return engine.NewJobs(store.NewQueue(pool, store.Jobs), r, o)
		},
	},
	"single jobs": {
		"daybook.jobs", "daybook.attempts", 1, enqueueNamed,
		func(_ *bundle, pool *pgxpool.Pool, w work, o engine.Options) *engine.Engine {
			r := jobs.NewRegistry()
			jobs.Register(r, jobs.Policy{Parallel: 50, MaxAttempts: 6},
				func(ctx context.Context, j *jobs.Job[named]) error { return w(ctx, []string{j.Payload.Name}) })
			return engine.NewJobs(store.NewQueue(pool, store.Jobs), r, o)
		},
	},
	"tasks": {taskStates, taskLog, 1, enqueueNamedTasks, startTasks},
}

// start starts an engine of the kind on a pool. queued and log are the kind's.
type start struct {
	engine      func(pool *pgxpool.Pool, w work, o engine.Options) *engine.Engine
	queued, log string
	size        int
}

func enqueueNamed(b *bundle, n int) {
	many := make([]queue.NewJob, n)
	for i := range many {
		many[i] = queue.NewJob{OrgID: org, Payload: named{Name: fmt.Sprint("doc-", i+1)}}
	}
	_, err := queue.EnqueueJobs(b.t.Context(), b.Pool, many)
	require.NoError(b.t, err)
}

// everyKind runs a test for each of the kinds, on a database of its own with n jobs.
func everyKind(t *testing.T, n int, test func(b *bundle, k start)) {
	t.Parallel()
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			k.enqueue(b, n)
			test(b, start{func(pool *pgxpool.Pool, w work, o engine.Options) *engine.Engine {
				o.Log = slog.New(slog.DiscardHandler)
				e := k.engine(b, pool, w, o)
				t.Cleanup(e.Close)
				return e
			}, k.queued, k.log, k.size})
		})
	}
}

// in counts the jobs of a table that a condition holds for.
func (b *bundle) in(table, condition string) int {
	return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM `+table+` WHERE `+condition)
}

// TestEveryKindFindsTheOneToBlame has one of a hundred jobs fail every call that it is in.
func TestEveryKindFindsTheOneToBlame(t *testing.T) {
	everyKind(t, 100, func(b *bundle, k start) {
		e := k.engine(b.Pool, func(_ context.Context, names []string) error {
			if slices.Contains(names, poison) {
				return errors.New("no luck")
			}
			return nil
		}, engine.Options{})
		r, err := e.Process(b.t.Context(), request(1))
		require.NoError(b.t, err)
		assert.Equal(b.t, 99, r.Completed)
		assert.Equal(b.t, 1, r.Retried+r.Failed, "a task fails for good: its supervisor tries again")
		assert.Equal(b.t, 99, b.in(k.queued, `state = 'completed' AND run_count = 1`))
		assert.Equal(b.t, 100, b.in(k.log, `attempt = 1`), "each once")
	})
}

// TestEveryKindStops stops a turn in its first calls: they end, and the rest is given back,
// uncounted.
func TestEveryKindStops(t *testing.T) {
	everyKind(t, 100, func(b *bundle, k start) {
		reached, proceed := make(chan struct{}, 100), make(chan struct{})
		e := k.engine(b.Pool, func(context.Context, []string) error {
			reached <- struct{}{}
			<-proceed
			return nil
		}, engine.Options{})
		stop := make(chan struct{})
		q := request(1)
		q.Stop = stop
		done := b.processing(e, q)
		<-reached
		close(stop)
		close(proceed)
		r := <-done
		assert.True(b.t, r.Stopped)
		assert.Positive(b.t, r.Completed)
		assert.Equal(b.t, r.Completed, b.in(k.queued, `state = 'completed' AND run_count = 1`))
		assert.Equal(b.t, 100-r.Completed, b.in(k.queued, `state = 'pending' AND run_count = 0`))
	})
}

// TestEveryKindEndsWithItsGrace stops a turn whose handlers do not end by themselves: everything is
// given back, uncounted.
func TestEveryKindEndsWithItsGrace(t *testing.T) {
	everyKind(t, 20, func(b *bundle, k start) {
		reached := make(chan struct{}, 100)
		e := k.engine(b.Pool, func(ctx context.Context, _ []string) error {
			reached <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}, engine.Options{Grace: 10 * time.Millisecond})
		stop := make(chan struct{})
		q := request(1)
		q.Stop = stop
		done := b.processing(e, q)
		<-reached
		assert.Positive(b.t, e.Handling())
		close(stop)
		r := <-done
		assert.Zero(b.t, e.Handling())
		assert.Positive(b.t, e.Interrupted())
		assert.Zero(b.t, r.Completed)
		// Sessions that were cut off may hold rows for a moment longer: the turn says so, and is asked
		// to give them back again.
		_, err := e.ReleaseTurn(b.t.Context(), turn(1))
		require.NoError(b.t, err)
		assert.Equal(b.t, 20, b.in(k.queued, `state = 'pending' AND run_count = 0`))
		assert.Zero(b.t, b.in(k.log, `true`))
	})
}

// TestEveryKindOutlastsAnOutage stops the database in mid-turn: nothing is charged, and nothing is
// done twice.
func TestEveryKindOutlastsAnOutage(t *testing.T) {
	everyKind(t, 120, func(b *bundle, k start) {
		line := b.Line(b.t)
		var calls atomic.Int32
		reached, proceed := make(chan struct{}), make(chan struct{})
		e := k.engine(line.Pool, func(context.Context, []string) error {
			if int(calls.Add(1)) == 1+60/k.size {
				close(reached)
				<-proceed
			}
			return nil
		}, engine.Options{})
		done := b.processing(e, request(1))
		<-reached
		line.Cut()
		close(proceed)
		line.AwaitTries(5)
		line.Mend()
		<-done
		assert.Equal(b.t, 120, b.in(k.queued, `state = 'completed' AND run_count = 1`))
		assert.Equal(b.t, 120, b.in(k.log, `outcome = 'completed'`))
		assert.Equal(b.t, 120, b.in(k.log, `true`))
	})
}

// TestEveryKindEndsWhatKillsItsWorker lets one job of fifty kill one worker after the other: it
// ends as failed, and the others are completed once.
func TestEveryKindEndsWhatKillsItsWorker(t *testing.T) {
	everyKind(t, 50, func(b *bundle, k start) {
		met, revive := make(chan struct{}), make(chan struct{})
		var dead []<-chan engine.Report
		for alive := true; alive; {
			// Each life is a process of its own.
			e := k.engine(b.Pool, func(_ context.Context, names []string) error {
				if slices.Contains(names, poison) {
					met <- struct{}{}
					<-revive
				}
				return nil
			}, engine.Options{RenewEvery: time.Hour})
			q := request(1)
			q.Crashed = len(dead) > 0
			done := b.processing(e, q)
			select {
			case <-met:
				require.Less(b.t, len(dead), 20, "it must end")
				dead = append(dead, done)
				// Its sessions end with it.
				b.exec(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'`)
			case <-done:
				alive = false
			case <-time.After(time.Minute):
				require.Fail(b.t, "the turn neither died nor ended")
			}
		}
		assert.Equal(b.t, 49, b.in(k.queued, `state = 'completed'`))
		assert.Equal(b.t, 1, b.in(k.queued, `state = 'failed'`))
		close(revive)
		for _, done := range dead {
			<-done
		}
		assert.Equal(b.t, 49, b.in(k.log, `outcome = 'completed'`), "each once")
	})
}

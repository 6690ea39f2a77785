package engine_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// fleet is three processes that wait for work, and what ends them.
type fleet struct {
	*bundle
	// met has the process that works the job that ends it; then it waits until revive is closed.
	met    chan *pgtest.Line
	revive chan struct{}
}

// processes are how many there are.
const processes = 3

// handler is what a process does with the named jobs.
func (f *fleet) handler(line *pgtest.Line) work {
	return func(_ context.Context, names []string) error {
		if slices.Contains(names, poison) {
			f.met <- line
			<-f.revive
		}
		return nil
	}
}

// TestFleetLosesOneProcessBeforeAJobIsBlamed has a job end the process that works it, which has
// picked it, in a fleet whose processes all pick: the next one leases it, so that it is charged.
func TestFleetLosesOneProcessBeforeAJobIsBlamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table   string
		start   func(f *fleet, stop <-chan struct{})
		enqueue func(f *fleet)
	}{
		"documents":   {"daybook.accounting_work_queue", documentsInTurns, poisonedDocument},
		"single jobs": {"daybook.jobs", singleJobs, poisonedJob},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fleet{bundle: setup(t), met: make(chan *pgtest.Line, processes), revive: make(chan struct{})}
			stop := make(chan struct{})
			c.start(f, stop)
			t.Cleanup(func() { close(stop) })
			c.enqueue(f)
			states := []string{}
			for range 2 {
				var dies *pgtest.Line
				select {
				case dies = <-f.met:
				case <-time.After(time.Minute):
					require.Fail(t, "no process works the job")
				}
				var state string
				require.NoError(t, f.Pool.QueryRow(t.Context(),
					`SELECT state::text FROM `+c.table+` WHERE state <> 'completed'`).Scan(&state))
				states = append(states, state)
				dies.Cut()
				t.Cleanup(dies.Mend)
			}
			t.Cleanup(func() { close(f.revive) })
			assert.Equal(t, "leased", states[1], "the first process had it as %s, the second one has leased it", states[0])
		})
	}
}

// process returns a process's engine.
func (f *fleet) process(engineOf func(pool *pgxpool.Pool, w work) *engine.Engine) *engine.Engine {
	line := f.Line(f.t)
	e := engineOf(line.Pool, f.handler(line))
	f.t.Cleanup(e.Close)
	return e
}

// turns has each process work a turn until stop is closed.
func (f *fleet) turns(all []*engine.Engine, stop <-chan struct{}) {
	for i, e := range all {
		var turning sync.WaitGroup
		turning.Go(func() { turnUntil(e, i+1, stop) })
		f.t.Cleanup(turning.Wait)
	}
}

// turnUntil works a turn until stop is closed. One that died may end with an error.
func turnUntil(e *engine.Engine, n int, stop <-chan struct{}) {
	_, _ = e.Process(context.Background(),
		engine.TurnRequest{Turn: turn(n), Batch: 50, Wait: time.Hour, Length: time.Hour, Linger: true, Stop: stop})
}

func documentsEngine(pool *pgxpool.Pool, w work) *engine.Engine {
	return kinds["documents"].engine(nil, pool, w,
		engine.Options{Direct: true, Grace: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
}

func documentsInTurns(f *fleet, stop <-chan struct{}) {
	var all []*engine.Engine
	for range processes {
		all = append(all, f.process(documentsEngine))
	}
	f.turns(all, stop)
}

func poisonedDocument(f *fleet) {
	fixture.Ready(f.t, f.Pool, fixture.Invoice(org, poison, 1000))
}

// singleJobs has each process lease a job first: what comes after short ones is picked.
func singleJobs(f *fleet, stop <-chan struct{}) {
	var all []*engine.Engine
	var begun sync.WaitGroup
	begun.Add(processes)
	for range processes {
		e := f.process(func(pool *pgxpool.Pool, w work) *engine.Engine {
			r := jobs.NewRegistry()
			jobs.Register(r, jobs.Policy{Parallel: 1}, func(ctx context.Context, j *jobs.Job[named]) error {
				if j.Payload.Name == "first" {
					begun.Done()
					begun.Wait()
				}
				return w(ctx, []string{j.Payload.Name})
			})
			return engine.NewJobs(store.NewQueue(pool, store.Jobs), r,
				engine.Options{Grace: time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		})
		e.LearnShort(named{}.JobType())
		all = append(all, e)
	}
	f.turns(all, stop)
	for range processes {
		_, err := queue.EnqueueJob(f.t.Context(), f.Pool, org, named{Name: "first"}, queue.JobOptions{})
		require.NoError(f.t, err)
	}
	require.Eventually(f.t, func() bool { return f.in("daybook.jobs", `state = 'completed'`) == processes }, time.Minute,
		5*time.Millisecond)
	for _, e := range all {
		e.LearnShort(named{}.JobType()) // they have waited for each other
	}
}

func poisonedJob(f *fleet) {
	_, err := queue.EnqueueJob(f.t.Context(), f.Pool, org, named{Name: poison}, queue.JobOptions{})
	require.NoError(f.t, err)
}

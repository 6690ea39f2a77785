package jobs_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// sync17 are the options of requests with one key; the job is due at once.
var sync17 = queue.JobOptions{Debounce: queue.Debounce{Key: "customer-17"}}

// What is asked for while a debounced job runs is worked after it, with the newest payload; the
// attempt that runs keeps its own, and is not tried again when it fails.
func TestDebouncedIsAskedWhileItRuns(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]error{"completed": nil, "failed": errors.New("out of order")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			begun, goOn := make(chan string, 3), make(chan struct{})
			var running, worked atomic.Int32
			jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
				assert.EqualValues(t, 1, running.Add(1), "one at a time")
				defer running.Add(-1)
				begun <- job.Payload.Name
				if worked.Add(1) > 1 {
					return nil
				}
				<-goOn
				return end
			})
			first := b.enqueue(greet{Name: "first"}, sync17)
			done := make(chan engine.Report, 1)
			go func() { done <- b.work() }()
			assert.Equal(t, "first", <-begun)
			second := b.enqueue(greet{Name: "second"}, sync17)
			assert.NotEqual(t, first, second)
			assert.Equal(t, second, b.enqueue(greet{Name: "third"}, sync17))
			close(goOn)
			<-done
			require.Eventually(t, func() bool {
				b.work()
				return b.row(second).State == models.JobCompleted
			}, long, 5*time.Millisecond)
			assert.Equal(t, "third", <-begun)
			assert.EqualValues(t, 2, worked.Load())
			if end == nil {
				assert.Equal(t, models.JobCompleted, b.row(first).State)
				return
			}
			assert.Equal(t, models.JobCancelled, b.row(first).State)
			assert.EqualValues(t, models.CodeReplaced, b.row(first).Code)
			assert.Equal(t, 1, b.row(first).Attempts)
		})
	}
}

// A job that asks for its own key in its completing transaction is worked again, also when its row
// was picked without a lease.
func TestDebouncedAsksForItself(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]queue.Keep{"newest": queue.KeepNewest, "first": queue.KeepFirst, "merged": queue.KeepMerged} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			o := sync17
			o.Debounce.Keep = keep
			var names []string
			b.shortly(jobs.Policy{Parallel: 5}, func(_ context.Context, job *jobs.Job[greet]) error {
				name := job.Payload.Name
				job.InTx(func(ctx context.Context, tx pgx.Tx) error {
					if name == "special again" {
						return nil
					}
					_, err := queue.EnqueueJob(ctx, tx, org, greet{Name: "special again"}, o)
					return err
				})
				names = append(names, name)
				return nil
			})
			b.linger(b.engine)
			n := b.learn()
			b.enqueue(greet{Name: "special"}, o)
			b.until(n+2, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
			assert.Equal(t, "special again", names[len(names)-1])
			assert.Equal(t, n+2, b.count(`SELECT count(*) FROM daybook.jobs`))
		})
	}
}

// A request that meets a job which is being worked without a lease waits for the end of that, and
// makes a job of its own.
func TestDebouncedMeetsAPickedJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	locked := make(chan struct{})
	b.shortly(jobs.Policy{Parallel: 5}, func(_ context.Context, job *jobs.Job[greet]) error {
		if job.Payload.Name == "special" {
			job.InTx(func(context.Context, pgx.Tx) error {
				close(locked)
				time.Sleep(50 * time.Millisecond)
				return nil
			})
		}
		return nil
	})
	b.linger(b.engine)
	n := b.learn()
	first := b.enqueue(greet{Name: "special"}, sync17)
	<-locked
	second := b.enqueue(greet{Name: "special too"}, sync17)
	assert.NotEqual(t, first, second)
	b.until(n+2, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`)
}

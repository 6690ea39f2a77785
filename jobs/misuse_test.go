package jobs_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// limitError is an application's error that says its code by a method. A function whose result is a
// *limitError returns a nil one as an error that is not nil.
type limitError struct{ code models.ErrorCode }

func (e *limitError) Error() string               { return "limit " + string(e.code) }
func (e *limitError) ErrorCode() models.ErrorCode { return e.code }

func nilLimit() *limitError { return nil }

// TestErrorWhoseCodePanics: a handler's error that panics when it is asked for its code fails the
// attempt, wherever the handler returns it. It does not end the worker.
func TestErrorWhoseCodePanics(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(b *bundle){
		"Handler": func(b *bundle) {
			jobs.Register(b.registry, jobs.Policy{Base: time.Hour},
				func(context.Context, *jobs.Job[greet]) error { return nilLimit() })
		},
		"InTx": func(b *bundle) {
			jobs.Register(b.registry, jobs.Policy{Base: time.Hour}, func(_ context.Context, job *jobs.Job[greet]) error {
				job.InTx(func(context.Context, pgx.Tx) error { return nilLimit() })
				return nil
			})
		},
		"BulkItem": func(b *bundle) {
			jobs.RegisterBulk(b.registry, jobs.Policy{Base: time.Hour},
				func(_ context.Context, _ pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
					errs := make([]error, len(all))
					for i := range errs {
						errs[i] = nilLimit()
					}
					return errs, nil
				})
		},
		"Bulk": func(b *bundle) {
			jobs.RegisterBulk(b.registry, jobs.Policy{Base: time.Hour},
				func(context.Context, pgx.Tx, []*jobs.Job[greet]) ([]error, error) { return nil, nilLimit() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			register(b)
			id := b.enqueue(greet{}, queue.JobOptions{})
			r := b.work()
			assert.Equal(t, 1, r.Retried)
			assert.Equal(t, models.JobPending, b.row(id).State)
			assert.Equal(t, 1, b.row(id).RunCount)
		})
	}
}

// TestErrorHandlerThatEndsItsGoroutine: an error handler that calls runtime.Goexit changes nothing,
// also when it is told of an error of the completing transaction. The turn goes on.
func TestErrorHandlerThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(job *jobs.Job[greet]) error{
		"a handler's error": func(*jobs.Job[greet]) error { return errors.New("no") },
		"an error of the completing transaction": func(job *jobs.Job[greet]) error {
			job.InTx(func(context.Context, pgx.Tx) error { return errors.New("no") })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var told atomic.Int32
			b.registry.OnError(func(context.Context, *jobs.Info, jobs.Failure) jobs.Verdict {
				told.Add(1)
				runtime.Goexit()
				return jobs.Leave
			})
			jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[ping]) error { return nil })
			jobs.Register(b.registry, jobs.Policy{Base: time.Hour},
				func(_ context.Context, job *jobs.Job[greet]) error { return end(job) })
			turn := b.linger(b.engine)
			b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
			assert.Eventually(t, func() bool { return told.Load() > 0 }, long, time.Millisecond)
			for range 20 {
				b.enqueue(ping{}, queue.JobOptions{})
			}
			assert.Eventually(t, func() bool {
				return b.count(`SELECT count(*) FROM daybook.jobs WHERE type = 'ping' AND state = 'completed'`) == 20
			}, pgtest.Patience, 10*time.Millisecond, "the turn completes other jobs")
			turn.stop()
			select {
			case <-turn.done:
			case <-time.After(pgtest.Patience):
				assert.Fail(t, "the turn does not end when it is stopped")
			}
		})
	}
}

// TestEachJobHasAGoroutineOfItsOwn, leased or picked: what its handler does to the goroutine stays
// with the job.
func TestEachJobHasAGoroutineOfItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var seen sync.Map
	var n atomic.Int32
	jobs.Register(b.registry, jobs.Policy{Parallel: 300}, func(context.Context, *jobs.Job[greet]) error {
		head := make([]byte, 64)
		number, _, _ := strings.Cut(string(head[:runtime.Stack(head, false)]), " [")
		seen.Store(number, true)
		n.Add(1)
		return nil
	})
	b.countLeases()
	turn := b.linger(b.engine)
	learned := b.learn()
	b.enqueueMany(200, "quick ")
	b.until(learned+200, completed)
	turn.end()
	goroutines := 0
	seen.Range(func(any, any) bool {
		goroutines++
		return true
	})
	assert.EqualValues(t, n.Load(), goroutines)
}

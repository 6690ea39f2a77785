package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// nested is an error that wraps others, and what becomes of its job: the outermost word counts.
type nested struct {
	err   error
	state models.JobState
	code  models.ErrorCode
	// wait is when the job is due again; 0: that is not looked at.
	wait time.Duration
}

func nestedErrors() map[string]nested {
	plain := errors.New("no luck")
	notFound := jobs.WithCode(models.CodeNotFound, plain)
	await := jobs.AwaitCallback(&jobs.Callback{Name: "answer"})
	const (
		pending, dead, cancelled = models.JobPending, models.JobFailed, models.JobCancelled
		handler                  = models.CodeHandlerError
		policy                   = 10 * time.Minute
	)
	return map[string]nested{
		"final around snooze": {jobs.Final(jobs.Snooze(time.Hour)), dead, handler, 0},
		"final, text, snooze": {
			fmt.Errorf("a: %w", jobs.Final(fmt.Errorf("b: %w", jobs.Snooze(time.Hour)))),
			dead, handler, 0,
		},
		"final around retry after":         {jobs.Final(jobs.RetryAfter(time.Hour, plain)), dead, handler, 0},
		"final around cancel":              {jobs.Final(jobs.Cancel("done")), dead, handler, 0},
		"final around a callback":          {jobs.Final(await), dead, handler, 0},
		"final around a code and a snooze": {jobs.Final(jobs.WithCode("BUSY", jobs.Snooze(time.Hour))), dead, "BUSY", 0},
		"retry after around cancel":        {jobs.RetryAfter(time.Hour, jobs.Cancel("done")), pending, handler, time.Hour},
		"retry after around snooze": {
			jobs.RetryAfter(time.Hour, jobs.Snooze(time.Minute)), pending, handler,
			time.Hour,
		},
		"retry after around final":     {jobs.RetryAfter(time.Hour, jobs.Final(plain)), pending, handler, time.Hour},
		"retry after around not found": {jobs.RetryAfter(time.Hour, notFound), pending, models.CodeNotFound, time.Hour},
		"retry after around retry after": {
			jobs.RetryAfter(time.Hour, jobs.RetryAfter(time.Minute, plain)), pending,
			handler, time.Hour,
		},
		"final code around retry after": {
			jobs.WithCode(models.CodeNotFound, jobs.RetryAfter(time.Hour, plain)), dead,
			models.CodeNotFound, 0,
		},
		"final code around snooze": {
			jobs.WithCode(models.CodePayloadInvalid, jobs.Snooze(time.Hour)), dead,
			models.CodePayloadInvalid, 0,
		},
		"own code around final":     {jobs.WithCode("BUSY", jobs.Final(plain)), dead, "BUSY", 0},
		"own code around not found": {jobs.WithCode("BUSY", notFound), pending, "BUSY", policy},
		"own code around retry after": {
			jobs.WithCode("BUSY", jobs.RetryAfter(time.Hour, plain)), pending, "BUSY",
			time.Hour,
		},
		"joined, final first": {
			errors.Join(plain, jobs.Final(plain), jobs.Snooze(time.Hour)), dead, handler,
			0,
		},
		"joined, cancel first": {
			errors.Join(jobs.Cancel("done"), jobs.Final(plain)), cancelled,
			models.CodeJobCancelled, 0,
		},
		"several wrapped, second decides": {
			fmt.Errorf("%w and %w", plain, jobs.RetryAfter(time.Hour, plain)), pending,
			handler, time.Hour,
		},
		"joined within final":   {jobs.Final(errors.Join(jobs.Snooze(time.Hour), jobs.Cancel("done"))), dead, handler, 0},
		"joined, a code second": {errors.Join(plain, notFound), dead, models.CodeNotFound, 0},
		"snooze":                {fmt.Errorf("later: %w", jobs.Snooze(time.Hour)), pending, models.CodeSnoozed, time.Hour},
		"own deadline":          {fmt.Errorf("ask: %w", context.DeadlineExceeded), pending, handler, policy},
	}
}

func (n nested) check(t *testing.T, b *bundle, id string) {
	t.Helper()
	j := b.row(id)
	assert.Equal(t, n.state, j.State, j.Error)
	assert.Equal(t, string(n.code), j.Code, j.Error)
	if n.wait > 0 {
		assert.InDelta(t, n.wait.Seconds(), j.Wait.Seconds(), n.wait.Seconds()/10+1)
	}
}

func TestTheOutermostWordCounts(t *testing.T) {
	t.Parallel()
	all := nestedErrors()
	policy := jobs.Policy{Base: 10 * time.Minute}
	of := func(name string) error { return all[name].err }
	for way, register := range map[string]func(b *bundle){
		"a handler": func(b *bundle) {
			jobs.Register(b.registry, policy,
				func(_ context.Context, job *jobs.Job[greet]) error { return of(job.Payload.Name) })
		},
		"the completing transaction": func(b *bundle) {
			jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
				job.InTx(func(context.Context, pgx.Tx) error { return of(job.Payload.Name) })
				return nil
			})
		},
		"a bulk handler, of one job": func(b *bundle) {
			jobs.RegisterBulk(b.registry, policy,
				func(_ context.Context, _ pgx.Tx, some []*jobs.Job[greet]) ([]error, error) {
					errs := make([]error, len(some))
					for i, job := range some {
						errs[i] = of(job.Payload.Name)
					}
					return errs, nil
				})
		},
		"a bulk handler, of all jobs": func(b *bundle) {
			jobs.RegisterBulk(b.registry, policy,
				func(_ context.Context, _ pgx.Tx, some []*jobs.Job[greet]) ([]error, error) {
					return nil, of(some[0].Payload.Name)
				})
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			register(b)
			ids := map[string]string{}
			for name := range all {
				ids[name] = b.enqueue(greet{Name: name}, queue.JobOptions{})
			}
			b.work()
			for name, id := range ids {
				t.Run(name, func(t *testing.T) { all[name].check(t, b, id) })
			}
		})
	}
}

// A middleware is outside of the handler, and so its word counts.
func TestMiddlewareOverrulesTheHandler(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		jobs.Snooze(time.Hour), jobs.RetryAfter(time.Hour, errors.New("no luck")),
		jobs.Cancel("done"),
	} {
		b := setup(t)
		b.registry.Use(func(ctx context.Context, _ *jobs.Info, next func(context.Context) error) error {
			return jobs.Final(fmt.Errorf("the middleware has had enough: %w", next(ctx)))
		})
		jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return err })
		id := b.enqueue(greet{}, queue.JobOptions{})
		b.work()
		j := b.row(id)
		assert.Equal(t, models.JobFailed, j.State, err)
		assert.Contains(t, j.Error, "has had enough")
	}
}

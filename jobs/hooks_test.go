package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// notes are what hooks saw, in their order.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, fmt.Sprintf(format, args...))
}

type noteKey struct{}

// TestMiddleware is called from the outermost inwards, sees the job, and gives the handler its
// context and its result.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var n notes
	b.registry.Use(
		func(ctx context.Context, job *jobs.Info, next func(context.Context) error) error {
			links, err := job.Links(ctx)
			n.add("outer %s %s %s %d/%d %d %s %v %v", job.Type, job.OrgID, job.Owner, job.Attempt, job.MaxAttempts,
				job.Priority, job.Payload, links, err)
			err = next(context.WithValue(ctx, noteKey{}, "from outside"))
			n.add("outer got %v", err)
			return nil // it was not so bad
		},
		func(ctx context.Context, _ *jobs.Info, next func(context.Context) error) error {
			n.add("inner %v", ctx.Value(noteKey{}))
			return next(ctx)
		})
	jobs.Register(b.registry, jobs.Policy{Owner: "growth", MaxAttempts: 4},
		func(ctx context.Context, job *jobs.Job[greet]) error {
			n.add("handler %s %v %d", job.Payload.Name, ctx.Value(noteKey{}), job.Priority)
			return errors.New("no luck")
		})
	id := b.enqueue(greet{Name: "Ada"},
		queue.JobOptions{Priority: queue.High, Links: []queue.Link{{Kind: "order", ID: "17"}}})

	assert.Equal(t, 1, b.work().Completed)
	assert.Equal(t, []string{
		`outer greet org_1 growth 1/4 1 {"name": "Ada"} [{order 17}] <nil>`, "inner from outside",
		"handler Ada from outside 1", "outer got no luck",
	}, n.all)
	assert.Equal(t, models.JobCompleted, b.row(id).State)
}

// TestMiddlewareEndsAttempts: without the handler, with an error of its own, by a panic, or by
// calling the handler again.
func TestMiddlewareEndsAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var called notes
	b.registry.Use(func(ctx context.Context, job *jobs.Info, next func(context.Context) error) error {
		links, _ := job.Links(ctx)
		switch links[0].ID {
		case "skip":
			return nil
		case "refuse":
			return jobs.Final(jobs.WithCode("REFUSED", errors.New("not this one")))
		case "panic":
			panic("oh no")
		case "twice":
			_ = next(ctx)
		}
		return next(ctx)
	})
	jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		called.add("%s", job.Payload.Name)
		return nil
	})
	rows := map[string]string{}
	for _, name := range []string{"skip", "refuse", "panic", "twice"} {
		rows[name] = b.enqueue(greet{Name: name}, queue.JobOptions{Links: []queue.Link{{Kind: "way", ID: name}}})
	}
	b.work()
	assert.Equal(t, []string{"twice"}, called.all)
	assert.Equal(t, models.JobCompleted, b.row(rows["skip"]).State)
	assert.Equal(t, "REFUSED", b.row(rows["refuse"]).Code)
	assert.Equal(t, models.JobFailed, b.row(rows["refuse"]).State)
	assert.Contains(t, b.row(rows["panic"]).Error, "panic: oh no")
	assert.Contains(t, b.row(rows["twice"]).Error, "a second time")
}

// TestBulkMiddleware is called for the call of a bulk handler, in its transaction.
func TestBulkMiddleware(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var n notes
	b.registry.UseBulk(func(ctx context.Context, tx pgx.Tx, all []*jobs.Info,
		next func(context.Context) ([]error, error),
	) ([]error, error) {
		links, err := all[0].Links(ctx)
		n.add("%d %v %v", len(all), links, err)
		errs, err := next(ctx)
		errs[1] = jobs.Final(errors.New("the second one"))
		return errs, errors.Join(err, tx.QueryRow(ctx, `SELECT 1`).Scan(new(int)))
	})
	jobs.RegisterBulk(b.registry, jobs.Policy{},
		func(_ context.Context, _ pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
			n.add("handler %d", len(all))
			return nil, nil
		})
	for range 3 {
		b.enqueue(greet{}, queue.JobOptions{Links: []queue.Link{{Kind: "order", ID: "17"}}})
	}
	r := b.work()
	assert.Equal(t, 2, r.Completed)
	assert.Equal(t, 1, r.Failed)
	assert.Equal(t, []string{"3 [{order 17}] <nil>", "handler 3"}, n.all)
}

// TestOnError is told of each attempt that failed, and may make a dead letter of the job.
func TestOnError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var n notes
	b.registry.OnError(func(_ context.Context, job *jobs.Info, f jobs.Failure) jobs.Verdict {
		n.add("%s %d %s %v %v %v", job.IdempotencyKey, job.Attempt, f.Code, f.Panic, f.Stack != "", f.Final)
		switch job.IdempotencyKey {
		case "hopeless":
			return jobs.DeadLetter
		case "worse":
			panic("in the error handler")
		}
		return jobs.Leave
	})
	jobs.Register(b.registry, jobs.Policy{Parallel: 1}, func(_ context.Context, job *jobs.Job[greet]) error {
		switch job.IdempotencyKey {
		case "panics":
			panic("oh no")
		case "snoozes":
			return jobs.Snooze(1)
		case "in transaction":
			job.InTx(func(context.Context, pgx.Tx) error { return jobs.Final(jobs.WithCode("CLOSED", errors.New("closed"))) })
			return nil
		}
		return errors.New("no luck")
	})
	ids := map[string]string{}
	for _, key := range []string{"hopeful", "hopeless", "panics", "snoozes", "worse", "in transaction"} {
		ids[key] = b.enqueue(greet{}, queue.JobOptions{IdempotencyKey: key})
	}
	b.work()
	assert.ElementsMatch(t, []string{
		"hopeful 1 HANDLER_ERROR <nil> false false", "hopeless 1 HANDLER_ERROR <nil> false false",
		"panics 1 HANDLER_ERROR oh no true false",
		"worse 1 HANDLER_ERROR <nil> false false", "in transaction 1 CLOSED <nil> false true",
	}, n.all)
	assert.Equal(t, models.JobPending, b.row(ids["hopeful"]).State)
	assert.Equal(t, models.JobFailed, b.row(ids["hopeless"]).State)
	assert.Equal(t, 1, b.row(ids["hopeless"]).Attempts)
	assert.Contains(t, b.row(ids["worse"]).Error, "The error handler panicked as well: in the error handler")
	assert.Equal(t, models.JobPending, b.row(ids["worse"]).State)
}

// TestOnErrorOfBulkHandlers is told of the jobs that a bulk handler names, and of one whose call
// fails alone.
func TestOnErrorOfBulkHandlers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var n notes
	b.registry.OnError(func(_ context.Context, job *jobs.Info, f jobs.Failure) jobs.Verdict {
		n.add("%s %v", job.IdempotencyKey, f.Panic)
		return jobs.DeadLetter
	})
	jobs.RegisterBulk(b.registry, jobs.Policy{},
		func(_ context.Context, _ pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
			errs := make([]error, len(all))
			for i, j := range all {
				switch j.Payload.Name {
				case "named":
					errs[i] = errors.New("no luck")
				case "panics":
					panic("oh no")
				}
			}
			return errs, nil
		})
	for _, name := range []string{"fine", "named", "panics"} {
		b.enqueue(greet{Name: name}, queue.JobOptions{IdempotencyKey: name})
	}
	r := b.work()
	assert.Equal(t, 1, r.Completed)
	assert.Equal(t, 2, r.Failed)
	assert.Subset(t, n.all, []string{"named <nil>", "panics oh no"})
}

// TestHandlersSeeTheJob: its links, its priority and the attempts before.
func TestHandlersSeeTheJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var n notes
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[greet]) error {
		links, err := job.Links(ctx)
		require.NoError(t, err)
		earlier, err := job.EarlierAttempts(ctx)
		require.NoError(t, err)
		n.add("%v %d %d", links, job.Priority, len(earlier))
		if job.Attempt == 1 {
			return jobs.WithCode("FIRST", errors.New("the first time"))
		}
		n.add("%d %s %s %s", earlier[0].Number, earlier[0].Outcome, earlier[0].Code, earlier[0].Error)
		return nil
	})
	b.enqueue(greet{}, queue.JobOptions{
		Priority: queue.Low,
		Links:    []queue.Link{{Kind: "order", ID: "17"}, {Kind: "form", ID: "a"}},
	})
	b.work()
	b.due()
	b.work()
	assert.Equal(t, []string{"[{form a} {order 17}] 3 0", "[{form a} {order 17}] 3 1", "1 retried FIRST the first time"},
		n.all)
}

// TestHooksComeBeforeTheWorker: what is added later is a mistake of the program.
func TestHooksComeBeforeTheWorker(t *testing.T) {
	t.Parallel()
	r := jobs.NewRegistry()
	jobs.Register(r, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	assert.Panics(t, func() { r.Use(nil) })
	require.NoError(t, r.Started())
	assert.Panics(t, func() { r.Use() })
	assert.Panics(t, func() { r.UseBulk() })
	assert.Panics(t, func() { r.OnError(nil) })
}

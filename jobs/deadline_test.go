package jobs_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// own runs f with a deadline of the handler's own.
func own(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	return f(ctx)
}

// sleep is a statement that ends by itself soon: the request to cancel it is lost when PostgreSQL gets
// it before the statement, and then it holds the job's row until its end.
func sleep(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT pg_sleep(5)`)
	return err
}

// Each ends by a time limit that is not the policy's, outside of a transaction or in one.
func TestALimitOfTheHandlersOwnIsNoTimeout(t *testing.T) {
	t.Parallel()
	away := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(away.Close)
	outside := map[string]func(ctx context.Context) error{
		"a context": func(ctx context.Context) error {
			return own(ctx, func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("ask: %w", ctx.Err()) })
		},
		"an HTTP client": func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, away.URL, nil)
			if err != nil {
				return err
			}
			_, err = (&http.Client{Timeout: time.Millisecond}).Do(r) //nolint:bodyclose // there is none
			return err
		},
	}
	inTx := map[string]func(ctx context.Context, tx pgx.Tx) error{
		"a context in a statement": func(ctx context.Context, tx pgx.Tx) error {
			return own(ctx, func(ctx context.Context) error { return sleep(ctx, tx) })
		},
		"a context that is over": func(ctx context.Context, tx pgx.Tx) error {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return sleep(ended, tx)
		},
		"a statement timeout": func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = '1ms'`); err != nil {
				return err
			}
			return sleep(ctx, tx)
		},
		// Before PostgreSQL 17 there is none, which is the handler's mistake as well.
		"a transaction timeout": func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT set_config('transaction_timeout', '1ms', true)`); err != nil {
				return err
			}
			return sleep(ctx, tx)
		},
		"a lock timeout": func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '1ms'`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `LOCK TABLE held`)
			return err
		},
	}
	for name, f := range outside {
		inTx[name] = func(ctx context.Context, _ pgx.Tx) error { return f(ctx) }
		t.Run("a handler, "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, _ *jobs.Job[greet]) error { return f(ctx) })
			b.failsByItself()
		})
	}
	for name, f := range inTx {
		t.Run("the completing transaction, "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
				job.InTx(f)
				return nil
			})
			b.failsByItself()
		})
		t.Run("a bulk handler, "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			jobs.RegisterBulk(b.registry, jobs.Policy{},
				func(ctx context.Context, tx pgx.Tx, _ []*jobs.Job[greet]) ([]error, error) {
					return nil, f(ctx, tx)
				})
			b.failsByItself()
		})
		t.Run("a job of a bulk handler, "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			jobs.RegisterBulk(b.registry, jobs.Policy{},
				func(ctx context.Context, tx pgx.Tx, _ []*jobs.Job[greet]) ([]error, error) {
					return []error{f(ctx, tx)}, nil
				})
			b.failsByItself()
		})
	}
}

// failsByItself works a job, whose handler is to blame: its attempt counts, and is no TIMEOUT and
// no DATABASE_ERROR.
func (b *bundle) failsByItself() {
	b.t.Helper()
	b.exec(`CREATE TABLE held ()`)
	tx, err := b.Pool.Begin(b.t.Context())
	assert.NoError(b.t, err)
	b.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(b.t.Context())) })
	_, err = tx.Exec(b.t.Context(), `LOCK TABLE held`)
	assert.NoError(b.t, err)
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	j := b.row(id)
	assert.Equal(b.t, models.JobPending, j.State)
	assert.Equal(b.t, string(models.CodeHandlerError), j.Code, j.Error)
	assert.Equal(b.t, 1, j.RunCount, "it counts")
	assert.NotContains(b.t, j.Error, "not finished within")
}

// The policy's own time limit is told from all of these by the cause of the context's end.
func TestThePolicysTimeoutHasItsCause(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var cause error
	jobs.Register(b.registry, jobs.Policy{Timeout: 50 * time.Millisecond},
		func(ctx context.Context, _ *jobs.Job[greet]) error {
			within, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			<-within.Done()
			cause = context.Cause(within)
			return fmt.Errorf("ask: %w", within.Err())
		})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	j := b.row(id)
	assert.Equal(t, string(models.CodeTimeout), j.Code)
	assert.Contains(t, j.Error, "not finished within 50ms")
	assert.ErrorIs(t, cause, context.DeadlineExceeded)
	assert.NotEqual(t, context.DeadlineExceeded, cause)
}

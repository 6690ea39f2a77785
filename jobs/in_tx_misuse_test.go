package jobs_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// endings are ways in which a handler ends the transaction that it was lent, and whether what it
// wrote before is kept all the same.
var endings = map[string]struct {
	end  func(ctx context.Context, tx pgx.Tx) error
	kept bool
}{
	"Commit":          {func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }, false},
	"Rollback":        {func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) }, false},
	"COMMIT as SQL":   {func(ctx context.Context, tx pgx.Tx) error { return sql(ctx, tx, "COMMIT") }, true},
	"ROLLBACK as SQL": {func(ctx context.Context, tx pgx.Tx) error { return sql(ctx, tx, "ROLLBACK") }, false},
	"COMMIT and more": {func(ctx context.Context, tx pgx.Tx) error {
		return errors.Join(sql(ctx, tx, "COMMIT"), sql(ctx, tx, "SELECT 1"))
	}, true},
}

func sql(ctx context.Context, tx pgx.Tx, stmt string, args ...any) error {
	_, err := tx.Exec(ctx, stmt, args...)
	return err
}

func insertGreeted(ctx context.Context, tx pgx.Tx, job *jobs.Job[greet]) error {
	return sql(ctx, tx, `INSERT INTO greeted VALUES ($1)`, job.Payload.Name)
}

// TestInTxThatEndsTheTransaction: of what a function given to InTx writes before it ends the
// transaction nothing is kept, or, when it does that by SQL, what it wrote in one attempt. The job
// does not count as completed.
func TestInTxThatEndsTheTransaction(t *testing.T) {
	t.Parallel()
	for name, c := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`CREATE TABLE greeted (name text)`)
			jobs.Register(b.registry, jobs.Policy{MaxAttempts: 2}, func(_ context.Context, job *jobs.Job[greet]) error {
				job.InTx(func(ctx context.Context, tx pgx.Tx) error {
					if err := insertGreeted(ctx, tx, job); err != nil {
						return err
					}
					return c.end(ctx, tx)
				})
				return nil
			})
			id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
			for range 2 {
				b.work()
				b.due()
			}
			j := b.row(id)
			assert.Equal(t, models.JobFailed, j.State)
			assert.Equal(t, string(models.CodeHandlerError), j.Code)
			assert.Contains(t, j.Error, "return nil")
			if c.kept {
				assert.Equal(t, 1, j.Attempts, "it is not done again")
				assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
			} else {
				assert.Zero(t, b.count(`SELECT count(*) FROM greeted`))
			}
		})
	}
}

// TestBulkHandlerThatEndsTheTransaction is the same for a bulk handler. One that commits by SQL is
// called for picked jobs, and once more when they are leased.
func TestBulkHandlerThatEndsTheTransaction(t *testing.T) {
	t.Parallel()
	for name, c := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`CREATE TABLE greeted (name text)`)
			jobs.RegisterBulk(b.registry, jobs.Policy{MaxAttempts: 1},
				func(ctx context.Context, tx pgx.Tx, many []*jobs.Job[greet]) ([]error, error) {
					for _, job := range many {
						if err := insertGreeted(ctx, tx, job); err != nil {
							return nil, err
						}
					}
					return nil, c.end(ctx, tx)
				})
			for range 4 {
				b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
			}
			r := b.work()
			assert.Zero(t, r.Completed)
			assert.Equal(t, 4, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'failed' AND last_error_code = 'HANDLER_ERROR'`))
			if c.kept {
				assert.LessOrEqual(t, b.count(`SELECT count(*) FROM greeted`), 8)
			} else {
				assert.Zero(t, b.count(`SELECT count(*) FROM greeted`))
			}
		})
	}
}

// TestBulkHandlerThatEndsTheTransactionAndFailsEachJob: what it has said of the jobs does not hide
// that what it wrote may be kept, so it is not called for parts of them.
func TestBulkHandlerThatEndsTheTransactionAndFailsEachJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text)`)
	jobs.RegisterBulk(b.registry, jobs.Policy{MaxAttempts: 1},
		func(ctx context.Context, tx pgx.Tx, many []*jobs.Job[greet]) ([]error, error) {
			errs := make([]error, len(many))
			for i, job := range many {
				errs[i] = errors.Join(errors.New("no greeting"), insertGreeted(ctx, tx, job))
			}
			return errs, endings["COMMIT and more"].end(ctx, tx)
		})
	for range 4 {
		b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	}
	b.work()
	assert.Equal(t, 4, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'failed' AND last_error_code = 'HANDLER_ERROR'`))
	assert.LessOrEqual(t, b.count(`SELECT count(*) FROM greeted`), 8, "once for picked jobs, and once for leased ones")
}

// TestSavepointsOfALentTransaction: a handler may begin and end savepoints.
func TestSavepointsOfALentTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text)`)
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(_ context.Context, job *jobs.Job[greet]) error {
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return sql(ctx, tx, `SELECT 1/0`) })
			assert.Error(t, err)
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return insertGreeted(ctx, tx, job) })
		})
		return nil
	})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	b.work()
	assert.Equal(t, models.JobCompleted, b.row(id).State)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
}

// TestInTxThatPanics: a panic in the completing transaction is the handler's, as one outside of it.
func TestInTxThatPanics(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(context.Context, pgx.Tx) error{
		"panic": func(context.Context, pgx.Tx) error { panic("no") },
		"nil":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(_ context.Context, job *jobs.Job[greet]) error {
				job.InTx(f)
				return nil
			})
			id := b.enqueue(greet{}, queue.JobOptions{})
			b.work()
			j := b.row(id)
			assert.Equal(t, string(models.CodeHandlerError), j.Code)
			assert.NotContains(t, j.Error, "PROCESSOR_ERROR", "a code of the other queue")
		})
	}
}

// TestBulkErrorOfOneJobIsOnRecord: a statement of a bulk handler failed, and the handler said so of
// the job. The transaction cannot be committed; the job's error is what the handler said, not that
// the transaction is aborted.
func TestBulkErrorOfOneJobIsOnRecord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.RegisterBulk(b.registry, jobs.Policy{MaxAttempts: 1},
		func(ctx context.Context, tx pgx.Tx, many []*jobs.Job[greet]) ([]error, error) {
			errs := make([]error, len(many))
			for i := range many {
				if _, err := tx.Exec(ctx, `SELECT 1/0`); err != nil {
					errs[i] = errors.Join(errors.New("cannot greet"), err)
				}
			}
			return errs, nil
		})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	assert.Contains(t, b.row(id).Error, "division by zero")
}

// TestHandlerThatEndsItsGoroutineIsCounted: a handler that calls runtime.Goexit, as t.FailNow of an
// assertion in a handler under queuetest.DrainJobs does, fails its attempt. Given back uncounted,
// the job would be worked again and again, and nothing would say why.
func TestHandlerThatEndsItsGoroutineIsCounted(t *testing.T) {
	t.Parallel()
	for name, register := range map[string]func(b *bundle, p jobs.Policy){
		"single": func(b *bundle, p jobs.Policy) {
			jobs.Register(b.registry, p, func(context.Context, *jobs.Job[greet]) error {
				runtime.Goexit()
				return nil
			})
		},
		"in its transaction": func(b *bundle, p jobs.Policy) {
			jobs.Register(b.registry, p, func(_ context.Context, job *jobs.Job[greet]) error {
				job.InTx(func(context.Context, pgx.Tx) error {
					runtime.Goexit()
					return nil
				})
				return nil
			})
		},
		"bulk": func(b *bundle, p jobs.Policy) {
			jobs.RegisterBulk(b.registry, p, func(context.Context, pgx.Tx, []*jobs.Job[greet]) ([]error, error) {
				runtime.Goexit()
				return nil, nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			register(b, jobs.Policy{MaxAttempts: 2})
			id := b.enqueue(greet{}, queue.JobOptions{})
			for range 4 {
				b.work()
				b.due()
			}
			j := b.row(id)
			assert.Equal(t, models.JobFailed, j.State)
			assert.Equal(t, string(models.CodeHandlerError), j.Code)
			assert.Equal(t, 2, j.Attempts)
		})
	}
}

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

const readAll = `SELECT * FROM customers WHERE $1::text IS NOT NULL`

// readCustomers reads a table of the application as a handler does that takes its columns as they
// are.
func readCustomers(ctx context.Context, q store.Querier, name string) error {
	rows, err := q.Query(ctx, readAll, name)
	if err != nil {
		return fmt.Errorf("read customers: %w", err)
	}
	if _, err = pgx.CollectRows(rows, pgx.RowToMap); err != nil {
		return fmt.Errorf("read customers: %w", err)
	}
	return nil
}

// coded gives an error a code by which jobs are searched, and which decides nothing.
func coded(err error) error {
	if err == nil {
		return nil
	}
	return jobs.WithCode("CUSTOMERS_UNREAD", err)
}

// handling are the ways in which a handler asks the database.
var handling = map[string]func(b *bundle, policy jobs.Policy){
	"in the completing transaction": func(b *bundle, policy jobs.Policy) {
		jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
			job.InTx(func(ctx context.Context, tx pgx.Tx) error { return readCustomers(ctx, tx, job.Payload.Name) })
			return nil
		})
	},
	"in a savepoint": func(b *bundle, policy jobs.Policy) {
		jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
			job.InTx(func(ctx context.Context, tx pgx.Tx) error {
				return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return readCustomers(ctx, tx, job.Payload.Name) })
			})
			return nil
		})
	},
	"by a function that keeps the types of a row": func(b *bundle, policy jobs.Policy) {
		b.exec(`CREATE FUNCTION first_name() RETURNS text LANGUAGE plpgsql AS $$ DECLARE r record; x text; BEGIN
  SELECT * INTO r FROM customers; SELECT r.name::text INTO x; RETURN x; END $$`)
		jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
			job.InTx(func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `SELECT first_name() WHERE $1::text IS NOT NULL`, job.Payload.Name)
				return err
			})
			return nil
		})
	},
	"by a parameter of a type that is made anew": func(b *bundle, policy jobs.Policy) {
		jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
			job.InTx(func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `INSERT INTO moods VALUES ($1)`, "glad")
				return err
			})
			return nil
		})
	},
	"in bulk": func(b *bundle, policy jobs.Policy) {
		jobs.RegisterBulk(b.registry, policy,
			func(ctx context.Context, tx pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
				return make([]error, len(all)), readCustomers(ctx, tx, "all")
			})
	},
	"in bulk, each job in a savepoint": func(b *bundle, policy jobs.Policy) {
		jobs.RegisterBulk(b.registry, policy,
			func(ctx context.Context, tx pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
				errs := make([]error, len(all))
				for i, job := range all {
					errs[i] = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return readCustomers(ctx, tx, job.Payload.Name) })
				}
				return errs, nil
			})
	},
	"in bulk, with a code": func(b *bundle, policy jobs.Policy) {
		jobs.RegisterBulk(b.registry, policy,
			func(ctx context.Context, tx pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
				errs := make([]error, len(all))
				for i, job := range all {
					errs[i] = pgx.BeginFunc(ctx, tx,
						func(tx pgx.Tx) error { return coded(readCustomers(ctx, tx, job.Payload.Name)) })
				}
				return errs, nil
			})
	},
	"outside of a transaction, with a code": func(b *bundle, policy jobs.Policy) {
		jobs.Register(b.registry, policy, func(ctx context.Context, job *jobs.Job[greet]) error {
			return coded(readCustomers(ctx, b.Pool, job.Payload.Name))
		})
	},
	"outside of a transaction": func(b *bundle, policy jobs.Policy) {
		jobs.Register(b.registry, policy, func(ctx context.Context, job *jobs.Job[greet]) error {
			return readCustomers(ctx, b.Pool, job.Payload.Name)
		})
	},
}

const changeSchema = `ALTER TABLE customers ADD COLUMN city text; ALTER TABLE customers ALTER COLUMN name TYPE varchar(99);
DROP TYPE mood CASCADE; CREATE TYPE mood AS ENUM ('glad'); ALTER TABLE moods ADD COLUMN mood mood`

// TestSchemaChangeChargesNoJob: the application changes its tables while handlers read them. What
// the sessions of the worker have planned before fails, and no attempt is charged.
func TestSchemaChangeChargesNoJob(t *testing.T) {
	t.Parallel()
	for name, register := range handling {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 15
			b := setup(t)
			b.exec(`CREATE TYPE mood AS ENUM ('glad'); CREATE TABLE moods (mood mood); CREATE TABLE customers (name text); INSERT INTO customers VALUES ('Ada')`)
			register(b, jobs.Policy{MaxAttempts: 1})
			turn := b.linger(b.engine)
			b.enqueueMany(n, "before ")
			b.until(n, completed)
			b.exec(changeSchema)
			b.enqueueMany(n, "after ")
			b.until(2*n, `SELECT count(*) FROM daybook.jobs WHERE state IN ('completed', 'failed')`)
			turn.end()
			assert.Equal(t, 2*n, b.count(completed))
			assert.Equal(t, 2*n, b.count(`SELECT count(*) FROM daybook.jobs WHERE run_count = 1`))
			assert.Zero(t, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome NOT IN ('completed', 'rescheduled')`))
		})
	}
}

// TestSchemaChangeEachTimeIsCounted: a handler that spoils its own plans each time ends as a dead
// letter, which names the cause.
func TestSchemaChangeEachTimeIsCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE customers (name text)`)
	var calls atomic.Int32
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(_ context.Context, job *jobs.Job[greet]) error {
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			calls.Add(1)
			if err := readCustomers(ctx, tx, "a"); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `ALTER TABLE customers ADD COLUMN city text`); err != nil {
				return err
			}
			return readCustomers(ctx, tx, "b")
		})
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	j := b.row(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, string(models.CodeDatabaseError), j.Code)
	assert.Contains(t, j.Error, "cached plan")
	assert.LessOrEqual(t, calls.Load(), int32(10))
	assert.Equal(t, "failed", b.outcomes(id))
}

// TestWhatAFunctionRaisesIsCounted: a function that raises the SQLSTATE of a changed plan by itself
// is the handler's own.
func TestWhatAFunctionRaisesIsCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(_ context.Context, job *jobs.Job[greet]) error {
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE 'cached plan must not change result type' USING ERRCODE = '0A000'; END $$`)
			return err
		})
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	assert.Equal(t, string(models.CodeHandlerError), b.row(id).Code)
}

// TestHandlerDecidesAboutTheDatabase: a handler that says what becomes of its job is asked no more
// than that, though the database failed it.
func TestHandlerDecidesAboutTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 5}, func(ctx context.Context, _ *jobs.Job[greet]) error {
		return jobs.Final(endSession(ctx, b))
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	j := b.row(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, string(models.CodeHandlerError), j.Code)
}

// TestRestartUnderAHandlersOwnSession: what ends a session that a handler has opened itself is no
// attempt, unless it happens each time.
func TestRestartUnderAHandlersOwnSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		times int32
		want  models.JobState
	}{"once": {1, models.JobCompleted}, "each time": {1 << 20, models.JobFailed}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var calls atomic.Int32
			jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(ctx context.Context, _ *jobs.Job[greet]) error {
				if calls.Add(1) > c.times {
					return nil
				}
				return endSession(ctx, b)
			})
			id := b.enqueue(greet{}, queue.JobOptions{})
			for range 15 {
				b.work()
				b.due()
			}
			j := b.row(id)
			assert.Equal(t, c.want, j.State)
			assert.Equal(t, 1, j.RunCount)
		})
	}
}

// endSession is the error of a session that the server ends.
func endSession(ctx context.Context, b *bundle) error {
	conn, err := pgx.Connect(ctx, b.URL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
	if err == nil {
		err = errors.New("the session goes on")
	}
	require.Error(b.t, err)
	return fmt.Errorf("ask: %w", err)
}

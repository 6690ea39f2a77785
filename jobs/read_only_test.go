package jobs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestReadOnlyDatabaseIsTriedSlowly: a database that is read and not written, as after a failover,
// is tried again as one that is unavailable, and work goes on when it can be written again.
func TestReadOnlyDatabaseIsTriedSlowly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	b.enqueue(greet{}, queue.JobOptions{})
	l := b.linger(b.engine)
	b.until(1, completed)
	b.exec(`SELECT daybook.enqueue_job($1, 'greet', '{"name": "later"}', ready_at => clock_timestamp() + interval '1 second')`, org)
	b.readOnly()
	b.awaitSessions()
	b.writable()
	b.until(2, completed)
	l.end()
	lines := strings.Count(b.log.String(), "the database failed a statement")
	assert.Positive(t, lines)
	assert.LessOrEqual(t, lines, 3)
}

// readOnly has new sessions of the database only read; the pool's are new ones.
func (b *bundle) readOnly() {
	b.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	b.Pool.Reset()
}

// awaitSessions waits until the worker has opened many sessions, because each of them only reads.
func (b *bundle) awaitSessions() {
	b.t.Helper()
	before := b.Pool.Stat().NewConnsCount()
	// A try opens one or two.
	require.Eventually(b.t, func() bool { return b.Pool.Stat().NewConnsCount() > before+3*inVain/2 }, long,
		10*time.Millisecond)
}

// writable ends what readOnly began.
func (b *bundle) writable() {
	b.t.Helper()
	require.NoError(b.t, pgx.BeginTxFunc(b.t.Context(), b.Pool, pgx.TxOptions{AccessMode: pgx.ReadWrite},
		func(tx pgx.Tx) error {
			_, err := tx.Exec(b.t.Context(),
				`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`)
			return err
		}))
	b.Pool.Reset()
}

// TestReadOnlyDatabaseChargesNoJob has the database only read from the moment at which a handler is
// called until the worker has opened many sessions in vain: no attempt is charged, and a handler
// that has returned nil is not called again.
func TestReadOnlyDatabaseChargesNoJob(t *testing.T) {
	t.Parallel()
	policy := jobs.Policy{MaxAttempts: 1}
	single := func(write func(context.Context, pgx.Tx) error) func(b *bundle, called func()) {
		return func(b *bundle, called func()) {
			jobs.Register(b.registry, policy, func(_ context.Context, job *jobs.Job[greet]) error {
				called()
				job.InTx(write)
				return nil
			})
		}
	}
	for name, register := range map[string]func(b *bundle, called func()){
		"to the handler": single(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ('Ada')`)
			return err
		}),
		"to a completion in the handler's transaction": single(func(context.Context, pgx.Tx) error { return nil }),
		"to a bulk handler": func(b *bundle, called func()) {
			var again bool
			jobs.RegisterBulk(b.registry, policy,
				func(ctx context.Context, tx pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
					if !again {
						again = true
						called()
						// the next try has a session that only reads
						_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
						return nil, err
					}
					_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ('Ada')`)
					return make([]error, len(all)), err
				})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(`CREATE TABLE greeted (name text)`)
			called, proceed := make(chan struct{}, 9), make(chan struct{})
			register(b, func() {
				called <- struct{}{}
				<-proceed
			})
			b.enqueue(greet{}, queue.JobOptions{})
			turn := b.linger(b.engine)
			receive(t, called)
			b.readOnly()
			close(proceed)
			b.awaitSessions()
			b.writable()
			b.until(1, `SELECT count(*) FROM daybook.jobs WHERE state IN ('completed', 'failed')`)
			turn.end()
			b.assertOnce(1)
			assert.Empty(t, called)
		})
	}
}

// TestReadOnlyTransactionOfAHandler: a handler that has its transaction only read, in a database
// that can be written, is charged.
func TestReadOnlyTransactionOfAHandler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text)`)
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(_ context.Context, job *jobs.Job[greet]) error {
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET TRANSACTION READ ONLY`); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ('Ada')`)
			return err
		})
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	assert.Equal(t, string(models.CodeHandlerError), b.row(id).Code)
}

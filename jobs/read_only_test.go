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
	"github.com/daybook-dev/daybook/queue"
)

// TestReadOnlyDatabaseIsTriedSlowly: a database that is read and not written, as after a failover, is tried again as one that is unavailable,
// and work goes on when it can be written again.
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
	require.Eventually(b.t, func() bool { return b.Pool.Stat().NewConnsCount() > before+3*inVain/2 }, long, 10*time.Millisecond)
}

// writable ends what readOnly began.
func (b *bundle) writable() {
	b.t.Helper()
	require.NoError(b.t, pgx.BeginTxFunc(b.t.Context(), b.Pool, pgx.TxOptions{AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		_, err := tx.Exec(b.t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`)
		return err
	}))
	b.Pool.Reset()
}

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
	b.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	b.Pool.Reset()
	began := time.Now()
	lasts(t, began)
	tx, err := b.Pool.BeginTx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadWrite})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	b.Pool.Reset()
	b.until(2, completed)
	l.end()
	lines := strings.Count(b.log.String(), "the database failed a statement")
	assert.Positive(t, lines)
	assert.LessOrEqual(t, lines, 3)
}

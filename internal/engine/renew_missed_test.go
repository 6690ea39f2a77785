package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
)

// TestMissedRowsAreRenewedSoon: a row that another transaction holds locked at a renewal, as those
// that look for expired leases do, is renewed as soon as it is free, and not by the next renewal
// alone: after an outage that would be too late.
func TestMissedRowsAreRenewedSoon(t *testing.T) {
	t.Parallel()
	g := newGate()
	const every = 8 * time.Second
	b := setupWith(t, g, engine.Options{RenewEvery: every})
	fixture.ManyReady(t, b.Pool, org, "doc-", 1)
	b.lease(1, 1)
	began := time.Now()
	done := b.processing(b.engine, engine.TurnRequest{Turn: turn(1), Batch: 1, Length: 0})
	<-g.reached
	b.exec(`UPDATE daybook.accounting_work_queue SET last_attempted_at = clock_timestamp() - interval '1 hour'`)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM daybook.accounting_work_queue FOR NO KEY UPDATE`)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT pg_sleep($1)`, (every + time.Second - time.Since(began)).Seconds())
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	require.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM daybook.accounting_work_queue WHERE last_attempted_at > now() - interval '1 minute'`) == 1
	}, every/2, 20*time.Millisecond)
	close(g.proceed)
	<-done
}

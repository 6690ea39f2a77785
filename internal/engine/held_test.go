package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
)

// TestHeldConfigurationCostsNoRewrites has a lane work beside a transaction that changes an
// organization's configuration for seconds. The organization's jobs stay as they are, its neighbour
// goes on, and everything is posted when the transaction has ended.
func TestHeldConfigurationCostsNoRewrites(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{true, false} {
		t.Run(fmt.Sprint("direct ", direct), func(t *testing.T) {
			t.Parallel()
			const documents = 3000
			b := setupWith(t, ledger.New(nil), engine.Options{Direct: direct})
			fixture.Organization(t, b.Pool, "neighbour")
			fixture.ManyReady(t, b.Pool, org, "doc-", documents)
			change, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = change.Rollback(context.WithoutCancel(t.Context())) }()
			_, err = change.Exec(t.Context(), `SELECT daybook.lock_configuration($1)`, org)
			require.NoError(t, err)
			// Each rewrite of a row counts.
			b.exec(`
CREATE TABLE rewrites (n bigint);
CREATE FUNCTION count_rewrites() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO rewrites SELECT count(*) FROM rewritten WHERE org_id = 'org_1'; RETURN NULL; END $$;
CREATE TRIGGER count_rewrites AFTER UPDATE ON daybook.accounting_work_queue REFERENCING NEW TABLE AS rewritten FOR EACH STATEMENT EXECUTE FUNCTION count_rewrites()`)
			rewrites := `SELECT coalesce(sum(n), 0) FROM rewrites`

			stop := make(chan struct{})
			done := make(chan engine.Report, 1)
			go func() {
				r, err := b.engine.Process(context.WithoutCancel(t.Context()), engine.TurnRequest{
					Turn: turn(1), Batch: 50, Length: time.Hour, Linger: true, Stop: stop,
				})
				assert.NoError(t, err)
				done <- r
			}()
			open := `SELECT count(*) FROM daybook.accounting_work_queue WHERE state <> 'completed' AND org_id = $1`
			for began := time.Now(); time.Since(began) < 3*time.Second; {
				fixture.ManyReady(t, b.Pool, "neighbour", fmt.Sprint("n-", time.Since(began), "-"), 10)
				require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, open, "neighbour") == 0 }, time.Minute,
					20*time.Millisecond)
			}
			limit := 0
			if !direct {
				// Two for each time that it was tried, of at most a refill's jobs.
				limit = 2 * documents
			}
			assert.LessOrEqual(t, fixture.Count(t, b.Pool, rewrites), limit)
			require.NoError(t, change.Commit(t.Context()))
			require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, open, org) == 0 }, time.Minute,
				20*time.Millisecond)
			close(stop)
			<-done
			assert.EqualValues(t, documents*1190, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
		})
	}
}

// TestHeldConfigurationIsTriedAgain begins no turn and is woken by nothing when the change ends.
func TestHeldConfigurationIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.ManyReady(t, b.Pool, org, "doc-", 10)
	change, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = change.Exec(t.Context(), `SELECT daybook.lock_configuration($1)`, org)
	require.NoError(t, err)
	time.AfterFunc(500*time.Millisecond, func() { assert.NoError(t, change.Commit(context.WithoutCancel(t.Context()))) })
	open := 10
	for n := 1; open > 0 && n < 20; n++ {
		_, err := b.engine.Process(t.Context(), engine.TurnRequest{Turn: turn(n), Batch: 50, Wait: time.Minute})
		require.NoError(t, err)
		open = fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE state <> 'completed'`)
	}
	assert.Zero(t, open)
}

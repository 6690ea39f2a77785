package engine_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TestPickedBulkLeasesItsSuspectsAlone has one of twenty documents carry the mark of a lost pick:
// the others are not leased because of it.
func TestPickedBulkLeasesItsSuspectsAlone(t *testing.T) {
	t.Parallel()
	var b *bundle
	var mu sync.Mutex
	leased := map[string]bool{}
	b = setupWith(t, failing{prepare: func(context.Context, []engine.Job) error {
		rows, err := b.Pool.Query(context.Background(),
			`SELECT document_id FROM daybook.accounting_work_queue WHERE state = 'leased'`)
		if err != nil {
			return err
		}
		defer rows.Close()
		mu.Lock()
		defer mu.Unlock()
		for rows.Next() {
			var document string
			if err := rows.Scan(&document); err != nil {
				return err
			}
			leased[document] = true
		}
		return rows.Err()
	}}, engine.Options{Direct: true, Parallel: 1})
	fixture.ManyReady(t, b.Pool, org, "doc-", 20)
	lost, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = lost.Exec(t.Context(),
		`SELECT FROM daybook.accounting_work_queue WHERE document_id = 'doc-7' FOR NO KEY UPDATE`)
	require.NoError(t, err)
	require.NoError(t, lost.Rollback(t.Context()))

	r, err := b.engine.Process(t.Context(), request(1))
	require.NoError(t, err)
	assert.Equal(t, 20, r.Completed)
	assert.Equal(t, map[string]bool{"doc-7": true}, leased)
}

// commitSlowly has what leases documents take long to commit.
const commitSlowly = `
CREATE FUNCTION commit_slowly() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(10);
    RETURN NULL;
EXCEPTION WHEN query_canceled THEN -- a commit that waits for the disk does not end either
    PERFORM pg_sleep(1);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER commit_slowly AFTER UPDATE ON daybook.accounting_work_queue DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.state = 'leased') EXECUTE FUNCTION commit_slowly();`

// committing counts the transactions that do.
const committing = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`

// TestCancelledTurnLeavesNoSuspectLeased cancels a waiting turn while the transaction commits
// that leases a suspect of its pick: the turn waits for that, and gives the job back.
func TestCancelledTurnLeavesNoSuspectLeased(t *testing.T) {
	t.Parallel()
	b := setupWith(t, effortless{}, engine.Options{Direct: true})
	b.exec(commitSlowly + `
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at) VALUES ('org_1', 'doc', 1, now() + interval '3 s')`)
	lost, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = lost.Exec(t.Context(), `SELECT FROM daybook.accounting_work_queue FOR NO KEY UPDATE`)
	require.NoError(t, err)
	require.NoError(t, lost.Rollback(t.Context()))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan engine.Report, 1)
	go func() {
		r, err := b.engine.Process(ctx, engine.TurnRequest{Turn: turn(1), Batch: 50, Wait: time.Minute})
		assert.NoError(t, err)
		ended <- r
	}()
	require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, committing) == 1 }, pgtest.Patience,
		10*time.Millisecond)
	cancel()
	<-ended
	require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, committing) == 0 }, pgtest.Patience,
		10*time.Millisecond)
	leased := `SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'leased'`
	require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, leased) == 0 }, pgtest.Patience,
		10*time.Millisecond)
	b.assertJob("doc", models.JobPending, 0, "")
}

// TestLeaseOfACutTurnIsGivenBack cuts the connection of a turn while its lease commits: the next
// try finds the rows locked, and the lease is committed after it. Its holder lives, and gives the
// job back before it expires.
func TestLeaseOfACutTurnIsGivenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(commitSlowly + `
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) VALUES ('org_1', 'doc', 1)`)
	line := b.Line(t)
	e := engine.New(store.New(line.Pool), effortless{}, engine.Options{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	ended := make(chan engine.Report, 1)
	go func() {
		r, err := e.Process(t.Context(), engine.TurnRequest{Turn: turn(1), Batch: 50, Wait: time.Minute})
		assert.NoError(t, err)
		ended <- r
	}()
	require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, committing) == 1 }, pgtest.Patience,
		10*time.Millisecond)
	// the next ones do not
	b.exec(`CREATE OR REPLACE FUNCTION commit_slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`)
	line.Cut()
	line.Mend()
	assert.Equal(t, 1, (<-ended).Leased)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE reclaims > 0`),
		"the lease has expired")
}

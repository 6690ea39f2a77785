package ledger_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TestRandomVersionsLeaveOneLiveImpact changes, retracts, deletes and reposts documents in random
// order while two workers post. In the end each ready document has one live impact, of its newest
// content, everything balances, and to ask for everything again posts nothing.
func TestRandomVersionsLeaveOneLiveImpact(t *testing.T) {
	t.Parallel()
	b := setup(t)
	workers := []*engine.Engine{
		b.engine,
		engine.New(store.New(b.Pool), ledger.New(nil), engine.Options{ChunkSize: 2, Log: slog.New(slog.DiscardHandler)}),
	}
	t.Cleanup(workers[1].Close)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		org := fmt.Sprint("org-", run)
		fixture.Organization(t, b.Pool, org)
		want := map[string]int64{}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for n, w := range workers {
			wg.Go(func() {
				var left []string
				for turn := 1; ; turn++ {
					select {
					case <-stop:
						return
					default:
					}
					id := store.Turn{ID: fmt.Sprintf("run%d/%d/%d", run, n, turn), Worker: fmt.Sprint(n), WorkflowRunID: "run"}
					_, err := w.Lease(t.Context(), id, 3, nil)
					if err != nil {
						t.Errorf("worker %d: %v", n, err)
						return
					}
					report, err := w.Process(t.Context(), engine.TurnRequest{Turn: id, Batch: 3, LeftBehind: left})
					if err != nil {
						t.Errorf("worker %d: %v", n, err)
						return
					}
					left = report.LeftBehind
				}
			})
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			id := fmt.Sprint("doc-", rapid.IntRange(1, 3).Draw(rt, "document"))
			_, live := want[id]
			switch action := rapid.IntRange(0, 5).Draw(rt, "action"); {
			case action <= 3 || !live:
				net := rapid.SampledFrom([]int64{0, 1, 999, 1000, -250, 1 << 40}).Draw(rt, "net")
				fixture.Ready(t, b.Pool, fixture.Invoice(org, id, net))
				want[id] = net + net*19/100
			case action == 4:
				fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
					_, err := store.MarkDocumentNotReady(ctx, tx, org, id)
					require.NoError(t, err)
				})
				delete(want, id)
			default:
				_, err := store.RepostAccountingJob(t.Context(), b.Pool, org, id)
				require.NoError(t, err)
			}
		}
		b.awaitLedger(org, want)
		close(stop)
		wg.Wait()

		before := fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts WHERE org_id = $1`, org)
		for id := range want {
			_, err := store.MarkAccountingJobPending(t.Context(), b.Pool, org, id, nil, 0)
			require.NoError(t, err)
		}
		b.work()
		require.Equal(t, before, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts WHERE org_id = $1`, org),
			"asked again, nothing is posted")
		var total int64
		for _, amount := range want {
			total += amount
		}
		require.Equal(t, total, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
	})
}

// awaitLedger waits until each document that is wanted has one live impact of its version, the
// others none, and no job is open but those of documents that are not ready.
func (b *bundle) awaitLedger(org string, want map[string]int64) {
	b.t.Helper()
	const open = `
SELECT count(*) FROM daybook.accounting_work_queue q JOIN daybook.documents d ON d.org_id = q.org_id AND d.id = q.document_id
 WHERE q.org_id = $1 AND (q.state = 'leased' OR (q.state = 'pending' AND (d.accounting_ready_at IS NOT NULL OR q.last_error_code IS DISTINCT FROM 'DOCUMENT_NOT_READY')))`
	require.Eventually(b.t, func() bool {
		_, err := b.Pool.Exec(b.t.Context(), `
UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp()
 WHERE org_id = $1 AND state = 'pending' AND last_error_code IN ('VERSION_MISMATCH', 'DOCUMENT_LOCKED', 'CONFIGURATION_LOCKED') AND ready_at > now()`, org)
		return err == nil && fixture.Count(b.t, b.Pool, open, org) == 0
	}, 60*time.Second, 5*time.Millisecond)
	rows, err := b.Pool.Query(b.t.Context(), `
SELECT l.document_id, l.kind, l.document_version = d.accounting_ready_version
       OR EXISTS (SELECT 1 FROM daybook.confirmations c WHERE c.impact_id = l.id AND c.document_version = d.accounting_ready_version)
  FROM (SELECT DISTINCT ON (document_id) * FROM daybook.impacts WHERE org_id = $1 ORDER BY document_id, seq DESC) l
  JOIN daybook.documents d ON d.org_id = l.org_id AND d.id = l.document_id`, org)
	require.NoError(b.t, err)
	live := 0
	var id string
	var kind models.ImpactKind
	var newest bool
	_, err = pgx.ForEachRow(rows, []any{&id, &kind, &newest}, func() error {
		_, wanted := want[id]
		require.Equal(b.t, wanted, kind == models.ImpactPost, id)
		if wanted {
			live++
			require.True(b.t, newest, "%s is posted in its newest version", id)
		}
		return nil
	})
	require.NoError(b.t, err)
	require.Len(b.t, want, live)
}

package adopt_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/moving/adopt"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// options are those of the documented steps, with a short wait after an attempt.
func options() adopt.AccountingOptions {
	return adopt.AccountingOptions{
		Entries: "public.legacy_entries", Source: "shop",
		AttemptedWithin: 300 * time.Millisecond,
	}
}

func (l *legacy) adopter(o adopt.AccountingOptions) *adopt.Accounting {
	l.t.Helper()
	a, err := adopt.NewAccounting(l.t.Context(), l.Pool, o)
	require.NoError(l.t, err)
	return a
}

func (l *legacy) apply(o adopt.AccountingOptions) adopt.Report {
	l.t.Helper()
	r, err := adopt.Apply(l.t.Context(), l.adopter(o), nil)
	require.NoError(l.t, err)
	return r
}

// work runs a worker of Daybook that reads the application's documents, until the context ends.
func (l *legacy) work(ctx context.Context, name string) error {
	posts := ledger.New(accounting.Sources{"shop": legacyDocuments{}})
	kind, err := store.AccountingFor(posts.Abilities())
	if err != nil {
		return err
	}
	e := engine.New(store.NewQueue(l.Pool, kind), posts, engine.Options{Log: slog.New(slog.DiscardHandler)})
	defer e.Close()
	for n := 1; ctx.Err() == nil; n++ {
		turn := store.Turn{ID: fmt.Sprintf("%s/0/%d", name, n), Worker: name, WorkflowRunID: name}
		if _, err := e.Process(context.WithoutCancel(ctx),
			engine.TurnRequest{Turn: turn, Batch: 50, Length: 50 * time.Millisecond}); err != nil {
			return err
		}
	}
	return nil
}

// workOnce runs one turn, which works what is due.
func (l *legacy) workOnce() {
	l.t.Helper()
	posts := ledger.New(accounting.Sources{"shop": legacyDocuments{}})
	kind, err := store.AccountingFor(posts.Abilities())
	require.NoError(l.t, err)
	e := engine.New(store.NewQueue(l.Pool, kind), posts, engine.Options{Log: slog.New(slog.DiscardHandler)})
	defer e.Close()
	_, err = e.Process(l.t.Context(),
		engine.TurnRequest{
			Turn: store.Turn{ID: "once/0/1", Worker: "once", WorkflowRunID: "once"}, Batch: 50,
			Length: time.Minute,
		})
	require.NoError(l.t, err)
}

// drain works until no job of Daybook is open.
func (l *legacy) drain() {
	l.t.Helper()
	ctx, stop := context.WithCancel(l.t.Context())
	done := make(chan error, 1)
	go func() { done <- l.work(ctx, "drain") }()
	assert.Eventually(l.t, func() bool {
		_, err := l.Pool.Exec(ctx,
			`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() WHERE state = 'pending' AND ready_at > clock_timestamp()`)
		return err == nil && fixture.Count(l.t, l.Pool,
			`SELECT count(*) FROM daybook.accounting_work_queue WHERE state IN ('pending', 'leased')`) == 0
	}, time.Minute, 20*time.Millisecond)
	stop()
	require.NoError(l.t, <-done)
}

// requireBothLedgers requires that both ledgers together hold what posting every document anew
// comes to, document by document.
func (l *legacy) requireBothLedgers() {
	l.t.Helper()
	const differing = `
WITH both_ledgers AS (
    SELECT org_id, document_id, account, sum(debit_cents - credit_cents) AS net FROM financial_entries GROUP BY 1, 2, 3
     UNION ALL
    SELECT e.org_id, i.document_id, e.account_code, sum(CASE e.side WHEN 'debit' THEN e.amount_minor ELSE -e.amount_minor END)
      FROM daybook.entries e JOIN daybook.impacts i ON i.id = e.impact_id GROUP BY 1, 2, 3
), wanted AS (
    SELECT d.org_id, d.id AS document_id, n.account, n.net
      FROM documents d, LATERAL (VALUES ('1200', d.net + d.net * 19 / 100), ('3800', -(d.net * 19 / 100)), ('4400', -d.net)) AS n (account, net)
     WHERE d.deleted_at IS NULL
)
SELECT coalesce(b.document_id, w.document_id) || ' ' || coalesce(b.account, w.account) || ': ' || coalesce(b.net, 0) || ', want ' || coalesce(w.net, 0)
  FROM (SELECT org_id, document_id, account, sum(net) AS net FROM both_ledgers GROUP BY 1, 2, 3) b
  FULL JOIN wanted w USING (org_id, document_id, account)
 WHERE coalesce(b.net, 0) <> coalesce(w.net, 0)
 ORDER BY 1`
	rows, err := l.app.Query(l.t.Context(), differing)
	require.NoError(l.t, err)
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(l.t, err)
	require.Empty(l.t, wrong[:min(len(wrong), 10)], "%d accounts of documents differ", len(wrong))
}

// failures counts Daybook's dead letters by code.
func (l *legacy) failures() map[string]int {
	l.t.Helper()
	rows, err := l.Pool.Query(l.t.Context(),
		`SELECT last_error_code, count(*) FROM daybook.accounting_work_queue WHERE state = 'failed' GROUP BY 1`)
	require.NoError(l.t, err)
	counts := map[string]int{}
	var code string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&code, &n}, func() error {
		counts[code] = n
		return nil
	})
	require.NoError(l.t, err)
	return counts
}

// adoptedDocuments is how many documents the demonstration has: 400, or what DAYBOOK_TEST_ADOPTED
// says.
func adoptedDocuments() int {
	if n, err := strconv.Atoi(os.Getenv("DAYBOOK_TEST_ADOPTED")); err == nil {
		return n
	}
	return 400
}

// TestAdoptedUnderLoad adopts a legacy queue with documents in every state by the documented steps,
// while the legacy worker, old code that enqueues and Daybook's workers run. In the end both
// ledgers together hold what posting everything anew comes to, and nothing was posted twice.
func TestAdoptedUnderLoad(t *testing.T) {
	t.Parallel()
	n := adoptedDocuments()
	l := newLegacy(t, n)
	ctx := t.Context()
	var group errgroup.Group
	oldWorker, stopOldWorker := context.WithCancel(ctx)
	oldCode, stopOldCode := context.WithCancel(ctx)
	newWorkers, stopNewWorkers := context.WithCancel(ctx)
	defer stopNewWorkers()
	defer stopOldCode()
	defer stopOldWorker()
	group.Go(func() error { return legacyWorker(oldWorker, l.app) })
	group.Go(func() error { return legacyEnqueuer(oldCode, l.app, n, l.orgs) })

	// Look, and change nothing.
	plan, err := l.adopter(options()).Look(ctx)
	require.NoError(t, err)
	require.Empty(t, plan.Problems.Blocking())
	require.Zero(t, fixture.Count(t, l.Pool, `SELECT count(*) FROM daybook.accounting_work_queue`))

	// Adopt for the first time; Daybook's workers begin.
	first := l.apply(options())
	assert.Positive(t, first.Done.Rows())
	for _, name := range []string{"new-1", "new-2"} {
		group.Go(func() error { return l.work(newWorkers, name) })
	}
	// Repeat it while everything runs, then hand on what old code inserts.
	for range 3 {
		l.apply(options())
	}
	forward := options()
	forward.Forward = true
	l.apply(forward)
	// The legacy worker ends; what it held is adopted by the next repetitions.
	stopOldWorker()
	var last adopt.Report
	assert.Eventually(t, func() bool { last = l.apply(forward); return last.Left.Rows() == 0 }, pgtest.Patience,
		100*time.Millisecond)
	require.Empty(t, last.Left, "%+v", last.Problems)
	// Old code runs on for a moment: everything goes to Daybook.
	before := fixture.Count(t, l.Pool, `SELECT count(*) FROM daybook.adopted_rows WHERE taken_state = 'forwarded'`)
	assert.Eventually(t, func() bool {
		return fixture.Count(t, l.Pool,
			`SELECT count(*) FROM daybook.adopted_rows WHERE taken_state = 'forwarded'`) > before
	}, pgtest.Patience, 10*time.Millisecond)
	stopOldCode()
	stopNewWorkers()
	require.NoError(t, group.Wait())

	// Dead letters of the legacy queue are retried, as a person would; documents without an amount
	// wait for one.
	assert.Positive(t, l.failures()["FAILED_ELSEWHERE"])
	f := store.AccountingRetryFilter{
		State: models.JobFailed, Code: models.CodeFailedElsewhere,
		Before: time.Now().Add(time.Hour),
	}
	ids, err := store.AccountingJobsToRetry(ctx, l.Pool, f)
	require.NoError(t, err)
	_, err = store.MarkAccountingJobsPending(ctx, l.Pool, ids, f, 0)
	require.NoError(t, err)
	l.drain()
	for code := range l.failures() {
		assert.Equal(t, "POSTED_ELSEWHERE", code)
	}
	l.exec(`
SELECT daybook.decide_posted_elsewhere(q.org_id, q.document_id, 'full') FROM daybook.accounting_work_queue q
 WHERE q.state = 'failed' AND q.last_error_code = 'POSTED_ELSEWHERE'
   AND NOT EXISTS (SELECT FROM legacy_entries e WHERE e.document_id = q.document_id)`)
	l.drain()
	assert.Empty(t, l.failures())
	l.requireBothLedgers()

	v, err := adopt.Check(ctx, l.adopter(options()))
	require.NoError(t, err, "%+v", v)
	assert.Empty(t, v.Left)
	report, err := ledger.Audit(ctx, l.Pool, accounting.Sources{"shop": legacyDocuments{}}, audit.Options{})
	require.NoError(t, err)
	assert.Zero(t, report.Wrong(), "%+v", report.Checks)
	assert.Zero(t, fixture.Count(t, l.app,
		`SELECT count(*) FROM accounting_work_queue WHERE state IN ('pending', 'leased')`),
		"the legacy queue has nothing left")
}

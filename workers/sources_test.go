package workers_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/workers"
)

// lines is a log that a test reads while a worker writes.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

const shop = "shop"

// invoices writes invoices of the shop in its own table, in a version, and enqueues them in the
// same transaction.
func (b *bundle) invoices(version int64, n int) {
	b.t.Helper()
	fixture.Tx(b.t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		var jobs []queue.AccountingJob
		for i := range n {
			number := fmt.Sprint("2026-", i)
			_, err := tx.Exec(ctx, `INSERT INTO invoices (number, version, net) VALUES ($1, $2::bigint, 1000 * $2::bigint)
ON CONFLICT (number) DO UPDATE SET version = excluded.version, net = excluded.net`, number, version)
			require.NoError(b.t, err)
			jobs = append(jobs, queue.AccountingJob{OrgID: shop, DocumentID: number, Version: version})
		}
		_, err := queue.EnqueueAccountingJobs(ctx, tx, jobs)
		require.NoError(b.t, err)
	})
}

// completed waits until so many jobs are completed.
func (b *bundle) completed(n int) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.states()[models.JobCompleted] == n }, 90*time.Second,
		50*time.Millisecond, "%d jobs", n)
}

// TestEmbeddedBesideStock has a program with its own source and hook beside a stock worker, on one
// task queue. Each posts what it can read: nothing is cancelled, reversed or untold, whichever
// worker is asked first.
func TestEmbeddedBesideStock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ownTables()
	fixture.Organization(t, b.Pool, shop)
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		for range 2 {
			_, err := queue.SetSource(ctx, tx, shop, "orders")
			require.NoError(t, err)
			_, err = queue.SetHooks(ctx, tx, shop, []string{"follow"})
			require.NoError(t, err)
		}
	})
	b.exec(`CREATE TABLE told (impact_id bigint PRIMARY KEY)`)
	tell := func(ctx context.Context, tx pgx.Tx, posted []accounting.Posted) error {
		for _, p := range posted {
			if _, err := tx.Exec(ctx, `INSERT INTO told VALUES ($1)`, p.Impact.ID); err != nil {
				return err
			}
		}
		return nil
	}

	// The stock worker is alone at first: it leaves the shop's jobs, and says so.
	var log lines
	b.invoices(1, 10)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "own", 1000))
	b.start(workers.AccountingOptions{Log: slog.New(slog.NewTextHandler(&log, nil))})
	b.run(`{"pollIntervalSeconds": 3600}`)
	b.completed(1)
	assert.Equal(t, map[models.JobState]int{models.JobCompleted: 1, models.JobPending: 10}, b.states())
	require.Eventually(t, func() bool { return bytes.Contains([]byte(log.String()), []byte("source=orders")) },
		pgtest.Patience, 20*time.Millisecond, "the log names the source")

	b.start(workers.AccountingOptions{
		Sources: accounting.Sources{"orders": ownTable{}},
		Hooks:   accounting.Hooks{"follow": tell},
	})
	b.completed(11)
	b.invoices(2, 16)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "own", 3000))
	b.completed(17)

	assert.Equal(t, map[models.JobState]int{models.JobCompleted: 17}, b.states(), "nothing is cancelled, nothing failed")
	assert.EqualValues(t, 16*2380, fixture.Balance(t, b.Pool, shop, "1200", "EUR"))
	assert.EqualValues(t, 3570, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
	const ofShop = `SELECT count(*) FROM daybook.impacts WHERE org_id = 'shop'`
	assert.Equal(t, 10+10+16, fixture.Count(t, b.Pool, ofShop), "posted, then replaced, ten of them")
	assert.Equal(t, 36, fixture.Count(t, b.Pool, ofShop+` AND id IN (SELECT impact_id FROM told)`),
		"the hook was told of each")
	assert.Equal(t, 36, fixture.Count(t, b.Pool, `SELECT count(*) FROM told`), "and of nothing else")
}

// TestEmbeddedLeavesImported has a database whose default is the application's source, and one
// organization whose documents are in daybook.documents: a worker with both sources posts both, and
// what was posted of the imported ones stays.
func TestEmbeddedLeavesImported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ownTables()
	fixture.Organization(t, b.Pool, shop)
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := queue.SetDefaultSource(ctx, tx, "orders")
		require.NoError(t, err)
		_, err = queue.SetSource(ctx, tx, org, queue.SourceDaybook)
		require.NoError(t, err)
	})
	b.start(workers.AccountingOptions{Sources: accounting.Sources{"orders": ownTable{}}})
	b.run(`{}`)
	for version := int64(1); version <= 2; version++ {
		b.invoices(version, 3)
		fixture.Ready(t, b.Pool, fixture.Invoice(org, "imported", 1000*version))
		require.Eventually(t, func() bool {
			return fixture.Count(t, b.Pool,
				`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed' AND version_hint = $1`,
				version) == 4
		}, 90*time.Second, 50*time.Millisecond)
	}
	assert.EqualValues(t, 3*2380, fixture.Balance(t, b.Pool, shop, "1200", "EUR"))
	assert.EqualValues(t, 2380, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
}

// TestSourcesThatCannotWork are refused before anything runs.
func TestSourcesThatCannotWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for says, o := range map[string]workers.AccountingOptions{
		"the source orders is nil": {Sources: accounting.Sources{"orders": nil}},
		"every worker reads":       {Sources: accounting.Sources{"daybook": ownTable{}}},
		`"the shop": a source`:     {Sources: accounting.Sources{"the shop": ownTable{}}},
		"the hook follow is nil":   {Hooks: accounting.Hooks{"follow": nil}},
		`"": a source or hook`:     {Hooks: accounting.Hooks{"": follow}},
		`"Reports": a source or`: {
			JobProcessor:     reports{},
			ProcessorOptions: workers.ProcessorOptions{Sources: []string{"Reports"}},
		},
		"for Daybook's ledger": {JobProcessor: reports{}, Sources: accounting.Sources{"orders": ownTable{}}},
	} {
		o.Client, o.Pool = b.client, b.Pool
		_, err := workers.NewAccounting(o)
		assert.ErrorContains(t, err, says)
	}
}

// TestProcessorWorksItsSources leaves the jobs of other sources to others.
func TestProcessorWorksItsSources(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE reports (document_id text PRIMARY KEY, version bigint NOT NULL)`)
	b.exec(`SELECT daybook.set_source('shop', 'orders')`)
	b.start(workers.AccountingOptions{
		JobProcessor:     reports{},
		ProcessorOptions: workers.ProcessorOptions{Sources: []string{"orders"}},
	})
	for _, o := range []string{shop, org} {
		_, err := queue.EnqueueAccountingJob(t.Context(), b.Pool,
			queue.AccountingJob{OrgID: o, DocumentID: "doc-of-" + o, Version: 1})
		require.NoError(t, err)
	}
	assert.EqualValues(t, 1, b.drainOnce().Completed)
	assert.Equal(t, models.JobPending, fixture.Job(t, b.Pool, org, "doc-of-"+org).State)
}

package engine_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const org = "org_1"

// bundle is a database with one organization, and an engine on it.
type bundle struct {
	*pgtest.DB
	t      *testing.T
	store  *store.Store
	engine *engine.Engine
}

// setup returns an engine with Daybook's ledger, as a worker makes it.
func setup(t *testing.T) *bundle { return setupWith(t, ledger.New(nil), engine.Options{Direct: true}) }

func setupWith(t *testing.T, p engine.Processor, o engine.Options) *bundle {
	t.Helper()
	db := pgtest.New(t)
	fixture.Organization(t, db.Pool, org)
	b := &bundle{DB: db, t: t, store: store.New(db.Pool)}
	b.engine = b.another(p, o)
	return b
}

// another returns an engine on the same database, as of another worker.
func (b *bundle) another(p engine.Processor, o engine.Options) *engine.Engine {
	o.Log = slog.New(slog.DiscardHandler)
	e := engine.New(b.store, p, o)
	b.t.Cleanup(e.Close)
	return e
}

// turn names a turn of a test's own.
func turn(n int) store.Turn {
	return store.Turn{ID: fmt.Sprintf("run/0/%d", n), Worker: "test", WorkflowRunID: "run"}
}

// lease leases a batch for turn n, and returns how many it has got.
func (b *bundle) lease(n, batch int) int {
	b.t.Helper()
	leased, err := b.engine.Lease(b.t.Context(), turn(n), batch, nil)
	require.NoError(b.t, err)
	return leased
}

// process works turn n once, without refills that would wait.
func (b *bundle) process(n int) engine.Report {
	b.t.Helper()
	r, err := b.engine.Process(b.t.Context(), engine.TurnRequest{Turn: turn(n), Batch: 50, Length: time.Minute})
	require.NoError(b.t, err)
	return r
}

// work leases and processes everything that is due.
func (b *bundle) work(n int) engine.Report {
	b.t.Helper()
	b.lease(n, 50)
	return b.process(n)
}

func (b *bundle) job(document string) models.AccountingJob {
	b.t.Helper()
	return fixture.Job(b.t, b.Pool, org, document)
}

// exec runs a statement of the test's.
func (b *bundle) exec(query string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	require.NoError(b.t, err)
}

// due makes every pending job due now.
func (b *bundle) due() {
	b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() WHERE state = 'pending'`)
}

func TestInvoiceIsPosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))

	report := b.work(1)

	assert.Equal(t, 1, report.Completed)
	job := b.job("inv-1")
	assert.Equal(t, models.JobCompleted, job.State)
	assert.Equal(t, 1, job.RunCount)
	assert.NotNil(t, job.FinishedAt)
	impacts := fixture.Impacts(t, b.Pool, org, "inv-1")
	require.Len(t, impacts, 1)
	assert.Equal(t, 3, impacts[0].EntryCount)
	assert.Equal(t, "sale", impacts[0].RuleID)
	assert.Equal(t, "run", impacts[0].WorkflowRunID)
	assert.EqualValues(t, 1190, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
	assert.EqualValues(t, -1000, fixture.Balance(t, b.Pool, org, "4400", "EUR"))
	assert.EqualValues(t, -190, fixture.Balance(t, b.Pool, org, "3800", "EUR"))
	attempts := fixture.Attempts(t, b.Pool, org, "inv-1")
	require.Len(t, attempts, 1)
	assert.Equal(t, models.OutcomeCompleted, attempts[0].Outcome)
	assert.Equal(t, 1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.documents WHERE accounting_impact_created_at IS NOT NULL`))
}

func TestRefillsUntilEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.ManyReady(t, b.Pool, org, "inv-", 730)

	assert.Equal(t, 50, b.lease(1, 50))
	report := b.process(1)

	assert.Equal(t, 730, report.Leased)
	assert.Equal(t, 730, report.Completed)
	assert.Equal(t, 730, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
	assert.EqualValues(t, 730*1190, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
}

// reclaim ends the leases that have expired, at once.
func (b *bundle) reclaim() store.Reclaimed {
	b.t.Helper()
	got, err := b.store.ReclaimExpired(b.t.Context())
	require.NoError(b.t, err)
	return got
}

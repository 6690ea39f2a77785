package main

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) {
	daybooktest.Main(m, daybooktest.Options{Migrate: daybooktest.SQL(schema)})
}

// bundle is an organization whose documents are in the example's tables.
type bundle struct {
	*daybooktest.DB
	t       *testing.T
	sources accounting.Sources
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{DB: daybooktest.New(t), t: t}
	var err error
	b.sources, err = sources()
	require.NoError(t, err)
	daybooktest.AddOrganization(t, b.Pool, daybooktest.Organization{ID: "acme", Source: "billing"})
	return b
}

func (b *bundle) exec(statement string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), statement, args...)
	require.NoError(b.t, err)
}

// issue writes an invoice of 100.00 and 19 % of tax as any client would, and returns its key.
func (b *bundle) issue() (id int64) {
	b.t.Helper()
	require.NoError(b.t, pgx.BeginFunc(b.t.Context(), b.Pool, func(tx pgx.Tx) error {
		ctx := b.t.Context()
		if err := tx.QueryRow(ctx,
			`INSERT INTO billing.invoices (org_id, number, customer) VALUES ('acme', '2026-1', 'Ada') RETURNING id`).Scan(&id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx,
			`INSERT INTO billing.invoice_lines (invoice_id, description, net_cents) VALUES ($1, 'Tea', 6000), ($1, 'Cups', 4000)`, id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE billing.invoices SET issued_at = now() WHERE id = $1`, id)
		return err
	}))
	return id
}

// post posts what is due, and returns the codes of the jobs that are not completed.
func (b *bundle) post() map[string]models.ErrorCode {
	b.t.Helper()
	codes := map[string]models.ErrorCode{}
	for _, j := range queuetest.DrainAccounting(b.t, b.Pool, queuetest.AccountingOptions{Sources: b.sources}).Jobs {
		if j.LastErrorCode != nil {
			codes[j.DocumentID] = *j.LastErrorCode
		}
	}
	queuetest.RequireSound(b.t, b.Pool, b.sources)
	return codes
}

func (b *bundle) balances() map[string]int64 {
	b.t.Helper()
	return daybooktest.Balances(b.t, b.Pool, "acme", "EUR")
}

func (b *bundle) posted(id int64) (posted bool) {
	b.t.Helper()
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `SELECT posted FROM billing.invoices WHERE id = $1`,
		id).Scan(&posted))
	return posted
}

func TestInvoiceIsPostedAndPostedAnewWhenALineChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.issue()
	assert.Empty(t, b.post())
	assert.Equal(t, map[string]int64{"1200": 11900, "3800": -1900, "4400": -10000}, b.balances())
	assert.True(t, b.posted(id))
	b.exec(`UPDATE billing.invoice_lines SET net_cents = 5000 WHERE description = 'Cups'`)
	assert.Empty(t, b.post())
	assert.Equal(t, map[string]int64{"1200": 13090, "3800": -2090, "4400": -11000}, b.balances())
}

func TestDraftIsNotPosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO billing.invoices (org_id, number, customer) VALUES ('acme', '2026-1', 'Ada')`)
	drained := queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{Sources: b.sources})
	assert.Empty(t, drained.Jobs)
	b.exec(`DELETE FROM billing.invoices`)
	assert.Empty(t, b.post())
}

func TestReopenedInvoiceIsReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.issue()
	b.post()
	b.exec(`UPDATE billing.invoices SET issued_at = NULL`)
	assert.Equal(t, map[string]models.ErrorCode{queue.DocumentID("invoice", id): models.CodeDocumentNotReady}, b.post())
	assert.Empty(t, b.balances())
	assert.False(t, b.posted(id))
	b.exec(`UPDATE billing.invoices SET issued_at = now()`)
	assert.Empty(t, b.post())
	assert.True(t, b.posted(id))
}

func TestVoidedInvoiceIsReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.issue()
	b.post()
	b.exec(`UPDATE billing.invoices SET voided_at = now()`)
	b.post()
	assert.Empty(t, b.balances())
	assert.False(t, b.posted(id))
}

func TestRemovedInvoiceIsReversed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.issue()
	b.post()
	b.exec(`DELETE FROM billing.invoices`)
	b.post()
	assert.Empty(t, b.balances())
}

func TestPaymentIsPostedAndReversedWhenItIsDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO billing.payments (org_id, amount_cents) VALUES ('acme', 11900)`)
	assert.Empty(t, b.post())
	assert.Equal(t, map[string]int64{"1200": -11900, "1360": 11900}, b.balances())
	b.exec(`UPDATE billing.payments SET deleted_at = now()`)
	b.post()
	assert.Empty(t, b.balances())
}

func TestInvoiceThatIsBeingChangedWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.issue()
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM billing.invoices FOR UPDATE`)
	require.NoError(t, err)

	worker, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = worker.Rollback(context.WithoutCancel(t.Context())) }()
	found, err := b.sources["billing"].LockAndRead(t.Context(), worker, []accounting.Key{
		{OrgID: "acme", ID: queue.DocumentID("invoice", id)},
		{OrgID: "acme", ID: queue.DocumentID("invoice", id+1)},
		{OrgID: "beta", ID: queue.DocumentID("invoice", id)},
	})
	require.NoError(t, err)
	assert.Equal(t, []accounting.Found{
		{State: accounting.Locked},
		{State: accounting.Unknown},
		{State: accounting.Unknown},
	}, found)
}

func TestADocumentStaysInItsOrganization(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.issue()
	_, err := b.Pool.Exec(t.Context(), `UPDATE billing.invoices SET org_id = 'beta'`)
	assert.ErrorContains(t, err, "stays in its organization")
}

// TestChangesWhileDocumentsArePosted: however the changes of lines and the worker's transactions
// interleave, what is posted in the end is what the rows say.
func TestChangesWhileDocumentsArePosted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []int64
	for range 5 {
		ids = append(ids, b.issue())
	}
	changed := make(chan error, 4)
	for range cap(changed) {
		go func() {
			for i := range 40 {
				// Half of the changes leave the transaction open for as long as the worker may need to meet
				// it.
				_, err := b.Pool.Exec(t.Context(), `
WITH changed AS (UPDATE billing.invoice_lines SET net_cents = 100 + (random() * 10000)::int WHERE invoice_id = $1 AND description = 'Tea' RETURNING id)
SELECT pg_sleep($2) FROM changed`, ids[i%len(ids)], float64(i%2)/1000)
				if err != nil {
					changed <- err
					return
				}
			}
			changed <- nil
		}()
	}
	for ended := 0; ended < cap(changed); {
		queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{Sources: b.sources})
		select {
		case err := <-changed:
			require.NoError(t, err)
			ended++
		default:
		}
	}
	assert.Empty(t, b.post())
	var net int64
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT sum(net_cents) FROM billing.invoice_lines`).Scan(&net))
	assert.Equal(t, -net, b.balances()["4400"])
}

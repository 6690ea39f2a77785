package accounting_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A hook is told what is posted, in the transaction that posts it: what it enqueues follows exactly
// once.
func ExampleHook() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	fixture.Organization(e, pool, "acme")
	if _, err := queue.SetHooks(ctx, pool, "acme", []string{"notify"}); err != nil {
		panic(err)
	}
	fixture.Ready(e, pool, fixture.Invoice("acme", "inv-1", 10000))

	notify := func(ctx context.Context, tx pgx.Tx, posted []accounting.Posted) error {
		for _, p := range posted {
			fmt.Println(p.Impact.Kind, p.Impact.DocumentID, p.Impact.DocumentVersion)
			payload := queue.RawPayload{Type: "webhook", Data: json.RawMessage(`{"url": "https://example.com"}`)}
			if _, err := queue.EnqueueJob(ctx, tx, p.Impact.OrgID, payload, queue.JobOptions{}); err != nil {
				return err
			}
		}
		return nil
	}
	queuetest.DrainAccounting(e, pool,
		queuetest.AccountingOptions{Hooks: accounting.Hooks{"notify": notify}}).RequireCompleted(e)
	// Output: post inv-1 1
}

// memory is a source for the example: a real one reads its own tables in tx, FOR NO KEY UPDATE SKIP
// LOCKED.
type memory map[string]*models.Document

// LockAndRead implements accounting.Source: it answers for each key, in order.
func (m memory) LockAndRead(_ context.Context, _ pgx.Tx, keys []accounting.Key) ([]accounting.Found, error) {
	found := make([]accounting.Found, len(keys))
	for i, k := range keys {
		found[i].State = accounting.Unknown
		if d := m[k.ID]; d != nil {
			found[i] = accounting.Found{State: accounting.Here, Document: d}
		}
	}
	return found, nil
}

// SetPosted implements accounting.Source.
func (memory) SetPosted(_ context.Context, _ pgx.Tx, keys []accounting.Key, live []bool) error {
	for i, k := range keys {
		fmt.Println(k.ID, "is posted:", live[i])
	}
	return nil
}

// Documents that stay in an application's own tables are read through a source, which is on record
// for their organization.
func ExampleSource() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	fixture.Organization(e, pool, "acme")
	if _, err := queue.SetSource(ctx, pool, "acme", "orders"); err != nil {
		panic(err)
	}
	order := fixture.Invoice("acme", "order-7", 10000)
	now := time.Now()
	order.AccountingReadyAt, order.AccountingReadyVersion = &now, 1
	if _, err := queue.EnqueueAccountingJob(ctx, pool,
		queue.AccountingJob{OrgID: "acme", DocumentID: "order-7", Version: 1}); err != nil {
		panic(err)
	}

	sources := accounting.Sources{"orders": memory{"order-7": order}}
	queuetest.DrainAccounting(e, pool, queuetest.AccountingOptions{Sources: sources}).RequireCompleted(e)
	// Output: order-7 is posted: true
}

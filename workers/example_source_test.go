package workers_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// orders reads documents from a table of the application's own:
//
//	CREATE TABLE orders (org text, id text, version bigint, ready_at timestamptz, deleted boolean, booked boolean,
//	                     placed_on date, net bigint, tax bigint, PRIMARY KEY (org, id))
type orders struct{}

// LockAndRead implements accounting.Source.
func (orders) LockAndRead(ctx context.Context, tx pgx.Tx, keys []accounting.Key) ([]accounting.Found, error) {
	orgs, ids := split(keys)
	found := make([]accounting.Found, len(keys)) // the zero value is not an answer: each gets one below
	for i := range found {
		found[i].State = accounting.Unknown
	}
	there, err := tx.Query(ctx, `
SELECT k.n FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org, id, n) JOIN orders o USING (org, id)`, orgs,
		ids)
	if err != nil {
		return nil, err
	}
	var n int
	if _, err := pgx.ForEachRow(there, []any{&n}, func() error {
		found[n-1].State = accounting.Locked // unless the next statement gets it
		return nil
	}); err != nil {
		return nil, err
	}
	locked, err := tx.Query(ctx, `
SELECT k.n, o.version, o.ready_at, o.deleted, o.placed_on, o.net, o.tax
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org, id, n) JOIN orders o USING (org, id)
   FOR NO KEY UPDATE OF o SKIP LOCKED`, orgs, ids)
	if err != nil {
		return nil, err
	}
	var version, net, tax int64
	var readyAt *time.Time
	var deleted bool
	var placed time.Time
	_, err = pgx.ForEachRow(locked, []any{&n, &version, &readyAt, &deleted, &placed, &net, &tax}, func() error {
		if deleted {
			found[n-1].State = accounting.Deleted
			return nil
		}
		found[n-1] = accounting.Found{State: accounting.Here, Document: &models.Document{
			OrgID: orgs[n-1], ID: ids[n-1], Type: models.DocumentInvoice, Direction: models.DirectionOut, Currency: "EUR",
			IssueDate: models.NewDate(placed.Date()), AccountingReadyAt: readyAt, AccountingReadyVersion: version,
			Content: models.Content{
				Lines: []models.Line{{Kind: "item", Net: net, Rate: models.MustRate("19"), Category: "VAT"}},
				Taxes: []models.Tax{{Category: "VAT", Rate: models.MustRate("19"), Base: net, Amount: tax}},
				Total: net + tax, Payable: net + tax,
			},
		}}
		return nil
	})
	return found, err
}

// SetPosted implements accounting.Source.
func (orders) SetPosted(ctx context.Context, tx pgx.Tx, keys []accounting.Key, live []bool) error {
	orgs, ids := split(keys)
	_, err := tx.Exec(ctx, `
UPDATE orders o SET booked = k.live
  FROM unnest($1::text[], $2::text[], $3::boolean[]) AS k (org, id, live)
 WHERE o.org = k.org AND o.id = k.id`, orgs, ids, live)
	return err
}

// split is the organizations and the ids of keys.
func split(keys []accounting.Key) (orgs, ids []string) {
	for _, k := range keys {
		orgs, ids = append(orgs, k.OrgID), append(ids, k.ID)
	}
	return orgs, ids
}

// TestSourceOfTheDocs posts what is ready, leaves what is not, and reverses what is deleted.
func TestSourceOfTheDocs(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	fixture.Organization(t, db.Pool, shop)
	_, err := db.Pool.Exec(t.Context(), `
CREATE TABLE orders (org text, id text, version bigint, ready_at timestamptz, deleted boolean, booked boolean,
                     placed_on date, net bigint, tax bigint, PRIMARY KEY (org, id))`)
	require.NoError(t, err)
	_, err = queue.SetSource(t.Context(), db.Pool, shop, "orders")
	require.NoError(t, err)
	drain := func(version int64, ids ...string) map[string]models.ErrorCode {
		t.Helper()
		for _, id := range ids {
			_, err := queue.EnqueueAccountingJob(t.Context(), db.Pool,
				queue.AccountingJob{OrgID: shop, DocumentID: id, Version: version})
			require.NoError(t, err)
		}
		drained := queuetest.DrainAccounting(t, db.Pool,
			queuetest.AccountingOptions{Sources: accounting.Sources{"orders": orders{}}})
		codes := map[string]models.ErrorCode{}
		for _, j := range drained.Jobs {
			codes[j.DocumentID] = ""
			if j.LastErrorCode != nil {
				codes[j.DocumentID] = *j.LastErrorCode
			}
		}
		return codes
	}
	_, err = db.Pool.Exec(t.Context(), `
INSERT INTO orders VALUES ('shop', 'ready', 1, now(), false, false, '2026-01-31', 10000, 1900), ('shop', 'not yet', 1, NULL, false, false, '2026-01-31', 10000, 1900)`)
	require.NoError(t, err)
	assert.Equal(t, map[string]models.ErrorCode{
		"ready": "", "not yet": models.CodeDocumentNotReady,
		"lost": models.CodeDocumentUnknown,
	},
		drain(1, "ready", "not yet", "lost"))
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM orders WHERE booked`))

	_, err = db.Pool.Exec(t.Context(), `UPDATE orders SET deleted = true, version = 2 WHERE id = 'ready'`)
	require.NoError(t, err)
	drain(2, "ready")
	assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM orders WHERE booked`))
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.impacts WHERE kind = 'reverse'`))
}

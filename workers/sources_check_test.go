package workers_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/queue/source"
	"github.com/daybook-dev/daybook/workers"
)

// TestWrongSourceEndsRun: a worker whose source cannot be read says so when it starts, and works
// nothing. What failed because of it comes back with a worker whose source is right.
func TestWrongSourceEndsRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ownTables()
	fixture.Organization(t, b.Pool, shop)
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := queue.SetSource(ctx, tx, shop, "orders")
		require.NoError(t, err)
	})
	b.invoices(1, 3)
	const keys = ` FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (org_id, id, n) JOIN invoices i ON i.number = k.id`
	wrong, err := source.New(source.SQL[string]{
		Lock: `SELECT k.n` + keys,
		Read: `SELECT k.n, i.version, now(), NULL AS deleted_at, '{}'::jsonb AS document` + keys,
	})
	require.NoError(t, err)
	w, err := workers.NewAccounting(workers.AccountingOptions{
		Client: b.client, Pool: b.Pool, Log: slog.New(slog.DiscardHandler), Sources: accounting.Sources{"orders": wrong},
	})
	require.NoError(t, err)
	defer w.Close()
	err = w.Run(t.Context())
	assert.ErrorContains(t, err,
		`workers: Sources: check the source: SOURCE_INVALID: the document source orders: documents of "": Read: column 3 is called "now"`)
	assert.Equal(t, map[models.JobState]int{models.JobPending: 3}, b.states())

	b.exec(`UPDATE daybook.accounting_work_queue SET state = 'failed', last_error_code = 'SOURCE_INVALID', last_error = 'x', finished_at = now() WHERE document_id = '2026-1'`)
	b.start(workers.AccountingOptions{Sources: accounting.Sources{"orders": ownTable{}}})
	b.run(`{}`)
	b.completed(3)
}

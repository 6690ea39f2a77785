package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TestUnreadableRowsAreSetAside has two rows that a worker cannot lease, with and without a lease
// before the work. The others are posted, and these two as well when they are asked for again.
func TestUnreadableRowsAreSetAside(t *testing.T) {
	t.Parallel()
	for name, fetched := range map[string]int{"leased": 50, "picked": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var documents []*models.Document
			for i := range 10 {
				documents = append(documents, fixture.Invoice(org, fmt.Sprintf("inv-%d", i), 1000))
			}
			fixture.Ready(t, b.Pool, documents...)
			b.exec(`ALTER TABLE daybook.accounting_work_queue DROP CONSTRAINT sound`)
			b.exec(`UPDATE daybook.accounting_work_queue SET run_count = 2147483647 WHERE document_id = 'inv-4'`)
			b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = '-infinity' WHERE document_id = 'inv-7'`)

			b.lease(1, fetched)
			assert.Equal(t, 8, b.process(1).Completed)
			for _, document := range []string{"inv-4", "inv-7"} {
				b.assertJob(document, models.JobFailed, 0, models.CodeRowUnreadable)
				fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
					_, err := store.MarkAccountingJobPending(ctx, tx, org, document, nil, 0)
					require.NoError(t, err)
				})
			}
			assert.Equal(t, 2, b.work(2).Completed)
		})
	}
}

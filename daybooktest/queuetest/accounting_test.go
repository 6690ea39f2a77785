package queuetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestDrainAccounting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, org)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000), fixture.Unbalanced(org, "inv-2"))

	_, err := queue.SetHooks(t.Context(), b.Pool, org, []string{"follow"})
	require.NoError(t, err)

	drained := queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{
		Hooks: accounting.Hooks{"follow": func(ctx context.Context, tx pgx.Tx, posted []accounting.Posted) error {
			for _, p := range posted {
				if _, err := queue.EnqueueJob(ctx, tx, p.Impact.OrgID, greet{Name: p.Impact.DocumentID},
					queue.JobOptions{}); err != nil {
					return err
				}
			}
			return nil
		}},
	})

	assert.Equal(t, queuetest.Counts{Completed: 1, Failed: 1}, drained.Counts)
	require.Len(t, drained.Jobs, 2)
	assert.Equal(t, models.JobCompleted, drained.Jobs[0].State)
	assert.Equal(t, models.CodeUnbalanced, *drained.Jobs[1].LastErrorCode)
	assert.EqualValues(t, 1190, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
	queuetest.RequireJobEnqueued(t, b.Pool, named("inv-1"))
	assert.Contains(t, failure(t, func(tb *failing) { drained.RequireCompleted(tb) }),
		"1 of 2 documents are not posted:\n  document inv-2  org org_1  failed  UNBALANCED")
}

// TestDrainAccountingAdvance posts what is due later.
func TestDrainAccountingAdvance(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, org)
	version := fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000))
	_, err := queue.MarkAccountingJobPending(t.Context(), b.Pool,
		queue.PendingAccountingJob{OrgID: org, DocumentID: "inv-1", Delay: time.Hour})
	require.NoError(t, err)
	assert.Empty(t, queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{}).Jobs)
	drained := queuetest.DrainAccounting(t, b.Pool, queuetest.AccountingOptions{Advance: time.Hour})
	drained.RequireCompleted(t)
	require.Len(t, drained.Jobs, 1)
	assert.Equal(t, version, drained.Jobs[0].VersionHint)
}

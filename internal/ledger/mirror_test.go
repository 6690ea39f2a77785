package ledger_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// TestReversalIsHeldToWhatItMirrors takes a posting back after its organization's chart has changed
// under it.
func TestReversalIsHeldToWhatItMirrors(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"currencies narrowed": `UPDATE daybook.accounts SET currencies = '{CHF}' WHERE org_id = 'org_1'`,
		"account gone":        `DELETE FROM daybook.accounts WHERE org_id = 'org_1' AND code = '1200'`,
		"no rules any more":   `UPDATE daybook.organizations SET active_rule_set = NULL WHERE id = 'org_1'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
			b.work()
			_, err := b.Pool.Exec(t.Context(), change)
			require.NoError(t, err)
			b.tx(func(ctx context.Context, tx pgx.Tx) {
				_, err := store.MarkDocumentDeleted(ctx, tx, org, "doc")
				require.NoError(t, err)
			})
			b.work()
			assert.Equal(t, models.JobCancelled, fixture.Job(t, b.Pool, org, "doc").State)
			assert.Zero(t, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
		})
	}
}

// TestPostingsAreHeldToTheChart refuses a new posting beside a reversal, and leaves the document as
// it was posted.
func TestPostingsAreHeldToTheChart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 1000))
	b.work()
	_, err := b.Pool.Exec(t.Context(),
		`UPDATE daybook.accounts SET currencies = '{CHF}' WHERE org_id = 'org_1' AND code = '1200'`)
	require.NoError(t, err)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc", 2000))
	b.work()
	assert.Equal(t, models.CodeUnknownAccount, *fixture.Job(t, b.Pool, org, "doc").LastErrorCode)
	assert.EqualValues(t, 1190, fixture.Balance(t, b.Pool, org, "1200", "EUR"))
}

package ledgerdb_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// TestOrganizationsWithTheSameNames: what one organization has says nothing of another one's
// document, account or rule set of the same name.
func TestOrganizationsWithTheSameNames(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const org, other = "org_1", "org_2"
	fixture.Organization(t, db.Pool, org)
	fixture.Organization(t, db.Pool, other)
	fixture.Ready(t, db.Pool, fixture.Invoice(other, "same", 1000))
	fixture.Tx(t, db.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := store.EnqueueAccountingJob(ctx, tx, org, "same", 1, nil, 0)
		require.NoError(t, err)
		_, err = store.MarkDocumentDeleted(ctx, tx, other, "same")
		require.NoError(t, err)
	})
	keys := []ledgerdb.DocumentKey{{OrgID: org, ID: "same"}, {OrgID: other, ID: "same"}}
	fixture.Tx(t, db.Pool, func(ctx context.Context, tx pgx.Tx) {
		found, _, err := ledgerdb.LockDocuments(ctx, tx, keys[:1])
		require.NoError(t, err)
		assert.Equal(t, ledgerdb.DocumentUnknown, found[0].State)
		deleted, err := ledgerdb.DeletedOnRecord(ctx, tx, keys)
		require.NoError(t, err)
		assert.Equal(t, []bool{false, true}, deleted)

		for _, source := range []string{"a: 1\n", "b: 1\n", "c: 1\n"} {
			_, err = ledgerdb.PutRuleSet(ctx, tx, other, "rules", source)
			require.NoError(t, err)
		}
		first, err := ledgerdb.PutRuleSet(ctx, tx, org, "rules", "a: 1\n")
		require.NoError(t, err)
		assert.True(t, first.Added)
		assert.EqualValues(t, 2, first.Version, "after the one of the fixture")
		again, err := ledgerdb.PutRuleSet(ctx, tx, org, "rules", "a: 1\n")
		require.NoError(t, err)
		assert.Equal(t, ledgerdb.StoredRuleSet{Version: 2}, again)
	})
}

// TestChartsAreChangedByWhatDiffers: accounts that are as they were change nothing, other
// currencies do, and only in that organization's chart.
func TestChartsAreChangedByWhatDiffers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	account := models.Account{Code: "1", Name: "Cash", Type: models.AccountAsset}
	put := func(org string, accounts ...models.Account) (changed bool) {
		fixture.Tx(t, db.Pool, func(ctx context.Context, tx pgx.Tx) {
			a, err := ledgerdb.PutAccounts(ctx, tx, org, accounts, nil)
			require.NoError(t, err)
			changed = a.Changed
		})
		return changed
	}
	hash := func() (h string) {
		fixture.Tx(t, db.Pool, func(ctx context.Context, tx pgx.Tx) {
			hashes, err := ledgerdb.ChartHashes(ctx, tx, []string{"org_1"})
			require.NoError(t, err)
			h = hashes["org_1"]
		})
		return h
	}
	assert.True(t, put("org_1", account))
	assert.False(t, put("org_1", account))
	before := hash()
	account.Currencies = models.Currencies{"EUR"}
	assert.True(t, put("org_1", account))
	assert.NotEqual(t, before, hash())
	assert.True(t, put("org_2", models.Account{Code: "2", Name: "Bank", Type: models.AccountAsset}))
	codes, err := ledgerdb.AccountCodes(t.Context(), db.Pool, "org_1")
	require.NoError(t, err)
	assert.Equal(t, []string{"1"}, codes)
	err = pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		_, err := ledgerdb.PutAccounts(t.Context(), tx, "org_1", []models.Account{account, account}, nil)
		return err
	})
	require.ErrorIs(t, err, store.ErrInvalid)
	assert.ErrorContains(t, err, "account 1 is listed twice")
}

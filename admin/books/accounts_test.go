package books_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/models"
)

// A chart that says nothing about roles and sections, such as an older file, takes none away.
func TestRolesAndSectionsStay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	put := func(csv string) (models.Account, bool) {
		accounts, err := books.ParseAccounts([]byte(csv))
		require.NoError(t, err)
		done, err := books.PutAccounts(t.Context(), b.Pool, org, accounts, books.AccountsOptions{})
		require.NoError(t, err)
		all, err := books.Accounts(t.Context(), b.Pool, org)
		require.NoError(t, err)
		for _, a := range all {
			if a.Code == "1999" {
				return a, done.Changed
			}
		}
		return models.Account{}, done.Changed
	}
	a, changed := put("section,role,code,name,type\nCurrent assets,suspense,1999,Unknown,asset\n")
	assert.True(t, changed)
	assert.Equal(t, models.RoleSuspense, a.Role)
	assert.Equal(t, "Current assets", a.Section)

	a, changed = put("code,name,type\n1999,Unknown,asset\n")
	assert.False(t, changed)
	assert.Equal(t, models.RoleSuspense, a.Role)

	a, changed = put("code,name,type,role,section\n1999,Unknown,asset,none,none\n")
	assert.True(t, changed)
	assert.Empty(t, a.Role+models.AccountRole(a.Section))

	for _, wrong := range []string{
		"code,name,type,role\n1999,Unknown,asset,debtor\n",
		"code,name,type,colour\n1999,Unknown,asset,red\n",
		"code,name,type,name\n1999,Unknown,asset,twice\n",
		"code,name,role\n1999,Unknown,cash\n",
	} {
		_, err := books.ParseAccounts([]byte(wrong))
		assert.ErrorIs(t, err, books.ErrInvalid, wrong)
	}
}

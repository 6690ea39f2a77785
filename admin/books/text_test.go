package books_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/models"
)

// TestTextsThatNoRowCanHave: a text that PostgreSQL cannot hold is refused in words of Daybook's.
func TestTextsThatNoRowCanHave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account := models.Account{Code: "1200", Name: "Bank", Type: models.AccountAsset}
	month := books.Month(2026, time.March)
	for _, wrong := range []string{"a\x00b", "a\xffb"} {
		code, name := account, account
		code.Code, name.Name = wrong, wrong
		said := map[string]error{}
		_, said["PutAccounts of an organization"] = books.PutAccounts(t.Context(), b.Pool, wrong, []models.Account{account},
			books.AccountsOptions{})
		_, said["PutAccounts of a new organization"] = books.PutAccounts(t.Context(), b.Pool, wrong,
			[]models.Account{account}, books.AccountsOptions{Create: true})
		_, said["PutAccounts: code"] = books.PutAccounts(t.Context(), b.Pool, org, []models.Account{code},
			books.AccountsOptions{})
		_, said["PutAccounts: name"] = books.PutAccounts(t.Context(), b.Pool, org, []models.Account{name},
			books.AccountsOptions{})
		_, said["Accounts"] = books.Accounts(t.Context(), b.Pool, wrong)
		_, said["RuleSets"] = books.RuleSets(t.Context(), b.Pool, wrong)
		_, said["RuleSet"] = books.RuleSet(t.Context(), b.Pool, wrong, 1)
		_, said["ActivateRules"] = books.ActivateRules(t.Context(), b.Pool, wrong, 1, books.ActivateOptions{})
		_, said["Periods"] = books.Periods(t.Context(), b.Pool, wrong)
		_, said["ClosePeriod"] = books.ClosePeriod(t.Context(), b.Pool, wrong, month, books.CloseOptions{})
		_, said["ClosedPeriodPolicy"] = books.ClosedPeriodPolicy(t.Context(), b.Pool, wrong)
		_, said["SetClosedPeriodPolicy"] = books.SetClosedPeriodPolicy(t.Context(), b.Pool, org,
			models.ClosedPeriodPolicy(wrong))
		_, said["AddPeriods"] = books.AddPeriods(t.Context(), b.Pool, wrong, []models.Period{month}, books.AddPeriodsOptions{})
		for function, err := range said {
			if assert.ErrorIs(t, err, books.ErrInvalid, function) {
				assert.NotContains(t, err.Error(), "SQLSTATE", function)
			}
		}
	}
}

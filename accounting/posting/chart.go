package posting

import (
	"slices"

	"github.com/daybook-dev/daybook/models"
)

// Chart says which accounts an organization has. It must be safe for concurrent use if Evaluate is
// called concurrently.
type Chart interface {
	// HasAccount reports whether entries may be posted to the account with this code.
	HasAccount(code string) bool
	// Allows reports whether the account with this code, which the chart has, takes entries in the
	// currency.
	Allows(code, currency string) bool
}

// Accounts is a Chart in memory: the account codes, each with the currencies (ISO 4217) that it
// takes; an account with none listed takes all. The nil chart has no account.
type Accounts map[string][]string

// NewAccounts returns the chart of the given codes. Each account takes every currency.
func NewAccounts(codes ...string) Accounts {
	a := make(Accounts, len(codes))
	for _, c := range codes {
		a[c] = nil
	}
	return a
}

// ChartOf returns the chart of the given accounts, whichever organization they belong to.
func ChartOf(accounts []models.Account) Accounts {
	a := make(Accounts, len(accounts))
	for i := range accounts {
		a[accounts[i].Code] = accounts[i].Currencies
	}
	return a
}

// HasAccount implements Chart.
func (a Accounts) HasAccount(code string) bool {
	_, ok := a[code]
	return ok
}

// Allows implements Chart.
func (a Accounts) Allows(code, currency string) bool {
	currencies := a[code]
	return len(currencies) == 0 || slices.Contains(currencies, currency)
}

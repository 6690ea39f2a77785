package posting

import "github.com/daybook-dev/daybook/models"

// Chart answers which accounts an organization has. It must be safe for concurrent use if Evaluate is used so.
type Chart interface {
	// HasAccount reports whether entries may be posted to the account with this code.
	HasAccount(code string) bool
}

// Accounts is a Chart in memory: the set of account codes. The nil set has no account.
type Accounts map[string]struct{}

// NewAccounts returns the chart of the given codes.
func NewAccounts(codes ...string) Accounts {
	a := make(Accounts, len(codes))
	for _, c := range codes {
		a[c] = struct{}{}
	}
	return a
}

// ChartOf returns the chart of the given accounts, whichever organization they belong to.
func ChartOf(accounts []models.Account) Accounts {
	a := make(Accounts, len(accounts))
	for i := range accounts {
		a[accounts[i].Code] = struct{}{}
	}
	return a
}

// HasAccount implements Chart.
func (a Accounts) HasAccount(code string) bool {
	_, ok := a[code]
	return ok
}

package daybooktest_test

import (
	"fmt"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// A test of what an application posts: t is the test's *testing.T.
func ExampleNew() {
	t := pgtest.NewExampleTB()
	defer t.Close()
	db := daybooktest.New(t)
	daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "acme"})
	write(t, db.Pool, "acme", "inv-1", 11900) // the code under test

	queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{}).RequireCompleted(t)
	fmt.Println(daybooktest.Balances(t, db.Pool, "acme", "EUR"))
	queuetest.RequireSound(t, db.Pool, nil)
	// Output: map[1200:11900 3800:-1900 4400:-10000]
}

// An organization that reads its documents from a source of the application's, with the sample
// chart and rules.
func ExampleAddOrganization() {
	t := pgtest.NewExampleTB()
	defer t.Close()
	db := daybooktest.New(t)
	daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "acme", Source: "billing"})

	var source string
	if err := db.Pool.QueryRow(t.Context(),
		`SELECT source FROM daybook.organizations WHERE id = 'acme'`).Scan(&source); err != nil {
		panic(err)
	}
	fmt.Println(source)
	// Output: billing
}

package queuetest_test

import (
	"fmt"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// After a test has changed and posted documents, the books are audited.
func ExampleRequireSound() {
	t := pgtest.NewExample()
	defer t.Close()
	fixture.Organization(t, t.Pool, "acme")
	fixture.Ready(t, t.Pool, fixture.Invoice("acme", "inv-1", 10000))
	queuetest.DrainAccounting(t, t.Pool, queuetest.AccountingOptions{})

	queuetest.RequireSound(t, t.Pool, nil)
	fmt.Println("sound")
	// Output: sound
}

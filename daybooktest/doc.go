// Package daybooktest is for the tests of an application that embeds Daybook: a PostgreSQL database
// for each test, with Daybook's schema and the application's own, and an organization with accounts
// and rules.
//
//	func TestMain(m *testing.M) { daybooktest.Main(m, daybooktest.Options{Migrate: daybooktest.SQL(schema)}) }
//
//	func TestInvoiceIsPosted(t *testing.T) {
//		t.Parallel()
//		db := daybooktest.New(t)
//		daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "acme", Source: "billing"})
//		writeInvoice(t, db.Pool) // the code under test
//		queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{Sources: sources}).RequireCompleted(t)
//		assert.Equal(t, int64(11900), daybooktest.Balances(t, db.Pool, "acme", "EUR")["1200"])
//		queuetest.RequireSound(t, db.Pool, sources)
//	}
//
// A test program starts one private server when its first test asks for a database, and migrates
// one template database. Each test's database is a copy of that template, which takes a fraction of
// a second, and is dropped when the test ends. The server needs PostgreSQL's programs (14 or newer)
// on the machine, and ends with the test program, however that ends. `go test ./...` runs several
// packages at once: each has a server of its own.
//
// DAYBOOK_TEST_DATABASE_URL names a running server to use instead, by the address of any database
// on it; its role needs CREATEDB. A test program that is killed leaves its databases there: their
// names begin with daybook_test_.
//
// What is enqueued is worked by package queuetest, in the test's process and without Temporal.
package daybooktest

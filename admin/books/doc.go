// Package books keeps an organization's books in order: its chart of accounts, the rules that its
// documents are posted by, and the periods of posting dates that are open or closed. The commands
// `daybook accounts`, `daybook rules` and `daybook periods` and the web console call this package.
//
// Every function takes a DB: a pool or a connection, on which a change commits by itself, or a
// transaction of the application through In:
//
//	tx, err := pool.Begin(ctx)
//	…
//	_, err = books.PutAccounts(ctx, books.In(tx), "acme", chart, books.AccountsOptions{Create: true})
//	_, err = books.ApplyRules(ctx, books.In(tx), "acme", rules, books.ApplyOptions{Create: true})
//	err = tx.Commit(ctx)
//
// A change waits for the chunk of documents that a worker is posting for the organization, and
// holds the organization's other documents until its transaction ends: keep that transaction short.
// Jobs that had failed for what the change puts right are pending again.
//
// The database's role is daybook_operator, or one that is a member of it, for what changes
// something, and daybook_reader for the rest.
package books

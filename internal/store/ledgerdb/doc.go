// Package ledgerdb holds the SQL statements about the ledger: documents, impacts and entries,
// charts of accounts, rule sets, periods and balances.
package ledgerdb

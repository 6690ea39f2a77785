// Package accounting is what an application tells the accounting queue: where its documents are when they are not in
// daybook.documents (a Source), what follows a booking in the same transaction (a Hook), and, instead of Daybook's ledger, how
// the queue's jobs are worked (a Processor).
//
// The worker is given them by workers.AccountingOptions, the drain of a test by queuetest.AccountingOptions. What package jobs is
// for background jobs, this package is for documents; domain code that enqueues needs neither.
package accounting

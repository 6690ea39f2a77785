// Package accounting is what an application tells the accounting queue: where its documents are
// when they are not in daybook.documents (a Source), what follows a booking in the same transaction
// (a Hook), and, instead of Daybook's ledger, how the queue's jobs are worked (a Processor).
//
// Pass them to a worker in workers.AccountingOptions, and to a test in queuetest.AccountingOptions.
// This package is for documents what package jobs is for background jobs; code that only enqueues
// needs neither.
package accounting

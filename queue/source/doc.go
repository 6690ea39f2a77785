// Package source makes an accounting.Source of an application's own tables: the application says
// how rows are locked and read, by SQL statements or by functions, and the package gives each key
// its answer.
//
//	invoices := source.SQL[int64]{Namespace: "invoice", Lock: lockInvoices, Read: readInvoices}
//	payments := source.SQL[[16]byte]{Namespace: "payment", Lock: lockPayments, Read: readPayments}
//	billing, err := source.New(invoices, payments)
//	// …
//	w, err := workers.NewAccounting(workers.AccountingOptions{Client: c, Pool: pool, Sources: accounting.Sources{"billing": billing}})
//
// Rows are locked by one statement and read by the next one. A statement that does both reads other
// tables, such as an invoice's lines, as they were before it waited for its lock or found it free;
// the second statement reads them as they are. So whatever changes a document must update or lock
// the row that Lock locks.
//
// Each key gets one of these answers:
//
//   - Here: the row is locked and read.
//   - Locked: Lock did not get it, and Read finds it.
//   - Deleted: its DeletedAt is set.
//   - Unknown: neither finds it, or the document id is not one of these tables' (queue.DocumentID).
//   - Later: the documents before it are as much as one transaction should hold.
//
// A worker checks the statements when it starts, and a test (package queuetest) before it posts.
// What is wrong with them is SOURCE_INVALID, and names the statement and the column. A null version
// fails the one document, with DOCUMENT_INVALID.
package source

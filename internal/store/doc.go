// Package store holds the SQL statements about queues and organizations. A job's state changes only here, through named functions. The packages
// below it hold those about the ledger, lists, audits and tokens; they build on this one, and not the other way round.
//
// Domain code locks a document and then its queue row. Nothing here that a worker calls ever waits for either: rows
// are locked with SKIP LOCKED, in the order of organization and id.
package store

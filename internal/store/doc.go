// Package store holds the SQL statements about queues and organizations. A job's state changes only
// here, through named functions. Package due says which jobs come next, and package wake who is
// told of new ones; this package builds on both. The packages about the ledger, lists, audits and
// tokens build on this one.
//
// Domain code locks a document and then its queue row. Nothing here that a worker calls ever waits
// for either: rows are locked with SKIP LOCKED, in the order of organization and id.
package store

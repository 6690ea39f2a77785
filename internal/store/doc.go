// Package store holds every SQL statement of Daybook's. A job's state changes only here, through named functions.
//
// Domain code locks a document and then its queue row. Nothing here that a worker calls ever waits for either: rows
// are locked with SKIP LOCKED, in the order of organization and id.
package store

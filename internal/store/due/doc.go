// Package due says which due jobs come next. It knows no SQL and leases nothing: package store
// sends the statements, asks Divide where to lease, and tells Took what came of it. Everything here
// is one process's memory, and may be wrong: the database alone decides which worker gets which
// job, and a later scan finds what this memory misses.
//
// # Words
//
// A partition is the due jobs of one organization, at one priority and, for background jobs, in one
// slot: the job's type, type/queue for a job in a named queue, or type/queue/version for a job that
// needs a version of the handler. The index of due jobs has the
// same order: priority, organization, slot, then the time at which a job is due, and its id.
//
// A cursor is a position in one partition. Every job before it has been leased, as far as is known.
// Leases read from the cursor on, and so never re-read finished rows, which PostgreSQL keeps as
// dead rows while an old snapshot is open.
//
// A scan finds out which partitions have due jobs. The recent scan reads what has fallen due since
// the last one, youngest first. It finds nearly everything, because a job is due when it is
// enqueued, or when its time comes. The full scan goes from partition to partition, in parts of
// about ten milliseconds, and goes on where the last part ended. It finds what a recent scan
// misses: rows that were committed late, organizations that were resumed, leases that another
// worker gave back, a backlog. A cursor is moved back to any job that a scan finds before it. While
// there is work, each of the two kinds takes a fiftieth of the worker's time at most.
//
// A partition in which a scan found work is active. One that gave fewer jobs than it was asked for
// is parked: leases leave it out until a scan finds work in it again.
//
// A share is what one lease asks of one partition: at most so many jobs, from its cursor on. Divide
// makes the shares and reserves room for them, so that each leased job can begin at once.
//
// # Order
//
//  1. A higher priority comes first. It leaves a fifth of the leases to the lower ones, and a fifth
//     of the room of each type, so that nothing waits for ever.
//  2. Within a priority, the organizations are asked one after another, for one job each, so that a
//     large backlog of one does not delay another. Then an organization goes behind the others. One
//     whose types have no room stays where it is.
//  3. Within an organization, its slots are asked one after another: more types do not give it more
//     jobs.
//  4. Within a partition, the job that has been due longest comes first.
//
// # Example
//
// Three partitions are active, all at normal priority, and the worker has room for two reports and
// any number of mails:
//
//	acme    mail    90 due
//	acme    report   5 due
//	bell    mail     1 due
//
// Divide(4) goes acme, bell, acme, bell, …: it asks acme for a mail, bell for a mail, acme for a
// report, and bell for a second mail, because it does not know how many are due. The lease gets one
// mail of bell, fewer than it was asked for, and bell is parked. The cursors of acme move behind
// the jobs that were leased. The next lease asks acme alone, for three mails and one report: then
// the room for reports is used up. When bell enqueues a mail, the next recent scan finds it, and
// bell is active again.
//
// # Files
//
// partitions.go and partition.go have what is remembered, divide.go and lines.go the order, scan.go
// and scan_full.go the scans, recent.go picks that need no scan, hold.go organizations that are left
// alone for a while because their configuration is being changed, foreign.go what the worker has no
// handler for.
package due

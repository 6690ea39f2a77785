// Package locks is the table of Daybook's advisory locks. A lock has two keys: its class, which
// names a purpose, and what of it is locked. The function daybook.lock_class has the same classes
// for SQL, and a test compares the two. pg_locks shows a class as classid, the other key as objid,
// and 2 as objsubid.
//
// A statement writes no number of its own: in SQL it says daybook.lock_class('…'), in Go it is
// given the class as an argument.
package locks

// Class is the purpose of an advisory lock. Two purposes never share one: a hash of a name may be
// any number.
type Class int32

// The classes.
const (
	// Wakers: the worker that waits for a queue to be notified holds the queue's; enqueuing
	// transactions try for it, shared. Key: the queue's (1 accounting, 3 tasks, otherwise of the
	// fleet's jobs). The number is public (docs/tasks.md).
	Wakers Class = 1684109666
	// Reclaim: one process at a time looks at the old leases of a kind. Key: the kind's.
	Reclaim Class = 1684109667
	// OrganizationLeases: one transaction at a time leases jobs of an organization whose jobs at a
	// time are limited. Key: the organization's hash.
	OrganizationLeases Class = 1684109668
	// TypeLeases: the same for a type of jobs that is limited over all workers. Key: the type's hash.
	TypeLeases Class = 1684109669
	// ConfigurationGroups: who posts for organizations holds their groups', shared; who changes the
	// configuration of one waits for it alone. Key: the last 6 bits of the organization's hash.
	ConfigurationGroups Class = 1684109670
	// Sampler: one process at a time writes a sample of figures. Key: 1.
	Sampler Class = 1684109671
	// Adoption: one transaction at a time adopts rows of a table. Key: the table's hash.
	Adoption Class = 1684109672
	// Configurations: as ConfigurationGroups, for one organization: who posts holds it where the group
	// is taken, and who writes what must fit the configuration holds this one alone; both shared. Key: the
	// organization's hash.
	Configurations Class = 1684109673
	// TaskTypeLeases: one transaction at a time leases tasks of a type that is limited over all
	// workers. Key: the type's hash.
	TaskTypeLeases Class = 1684109674
	// AsyncOperations: one transaction at a time puts the programs that claim operations on record.
	// Key: 0.
	AsyncOperations Class = 1684109675
	// QueueLeases: one transaction at a time leases jobs of a named queue that has a limit or a rate.
	// Key: the name's hash.
	QueueLeases Class = 1684109680
	// Fleets: one transaction at a time gives a fleet its number. Key: 0.
	Fleets Class = 1684109681
	// Workers: each session on which a worker process waits holds its own, shared, for as long as the
	// process lives. So its leases end early when it has died. Key: the hash of the worker's name.
	Workers Class = 1684109682
	// JobLimits: one transaction at a time gives out free places of keys of limits. It is only tried
	// for. Key: 0.
	JobLimits Class = 1684109683
	// Reconciliations: one transaction at a time changes which documents of an organization belong
	// together. Key: the organization's hash.
	Reconciliations Class = 1684109684
)

// Names are the classes by the names that SQL has for them.
var Names = map[string]Class{
	"wakers": Wakers, "reclaim": Reclaim, "organization leases": OrganizationLeases, "type leases": TypeLeases,
	"configuration groups": ConfigurationGroups, "configurations": Configurations, "sampler": Sampler,
	"adoption":         Adoption,
	"task type leases": TaskTypeLeases, "async operations": AsyncOperations, "queue leases": QueueLeases,
	"fleets": Fleets, "workers": Workers, "job limits": JobLimits,
	"reconciliations": Reconciliations,
}

// Whole is a lock with one key alone, a number of 64 bits. PostgreSQL keeps these apart from those
// with two: pg_locks shows 1 as their objsubid.
type Whole int64

// The locks with one key: "daybook" and a number.
const (
	// Migrations: one migration at a time. A session holds it.
	Migrations Whole = 0x646179626f6f6b01
	// Archive: who writes files and removes rows holds it, shared; who deletes files that are not on
	// record holds it alone.
	Archive Whole = 0x646179626f6f6b02
)

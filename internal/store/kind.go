package store

import (
	"sync"
	"sync/atomic"
)

// Kind is one kind of queue. The statements about leases are shared (statements.go): all kinds have
// the columns of a lease, and lose, retry and complete jobs by the same rules.
type Kind struct {
	// Name is the kind's in attempts.
	Name string
	// table and wake are the kind's names for its queue and the function that wakes its workers.
	table, wake string
	// fields are the destinations of the columns that a lease returns, locked those of what is only
	// locked.
	fields, locked func(j *Job) []any
	// lostCode is the error code of an attempt whose worker ended.
	lostCode string
	// channel and key are what the wake function notifies and locks.
	channel string
	key     int
	// fleetName is the fleet that the workers of the kind jobs belong to; "": the one without a name.
	// fleet is its number, unknown until Store.Join.
	fleetName string
	fleet     atomic.Int32
	// require is the function that has a transaction fail on another table than the one that was
	// verified, fence the statement that draws a fence; "": those of schema daybook.
	require, fence string
	// abilities are those of the worker, for the accounting kind; nil: the kind's jobs need none.
	abilities *Abilities
	// oldRows go when they are old.
	oldRows []OldRows
	// waits decide what is on record about its jobs that wait (Store.CheckWaits).
	waits waits
	// ownChecks are those of an audit that other kinds do not have.
	ownChecks []Check

	statements sync.Map
}

// leaseFields are the destinations of what every kind knows of a lease.
func leaseFields(j *Job) []any {
	return []any{&j.ID, &j.OrgID, &j.Attempt, &j.StartedAt, &j.Reclaims, &j.CancelRequested, &j.Generation}
}

// able adds what the worker can, and its fleet, to the arguments of a statement that asks what it
// works.
func (k *Kind) able(a Args) Args {
	if k.abilities != nil {
		a["sources"], a["hooks"] = k.abilities.Sources, k.abilities.Hooks
	}
	a["fleet"] = k.fleetID()
	return a
}

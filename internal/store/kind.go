package store

import "sync"

// Kind is one kind of queue. The statements about leases are shared (statements.go): all kinds have the columns of a lease, and lose, retry
// and complete jobs by the same rules.
type Kind struct {
	// Name is the kind's in attempts.
	Name string
	// table and wake are the kind's names for its queue and the function that wakes its workers.
	table, wake string
	// fields are the destinations of the columns that a lease returns, locked those of what is only locked.
	fields, locked func(j *Job) []any
	// lostCode is the error code of an attempt whose worker ended.
	lostCode string
	// channel and key are what the wake function notifies and locks.
	channel string
	key     int
	// abilities are those of the worker, for the accounting kind; nil: the kind's jobs need none.
	abilities *Abilities

	statements sync.Map
}

// Accounting is the queue of documents to be posted, for a worker that reads daybook.documents and has no hooks.
var Accounting = accounting(Abilities{Sources: []string{SourceDaybook}})

func accounting(can Abilities) *Kind {
	// An empty array, because nothing is among the names of null.
	can.Sources, can.Hooks = append([]string{}, can.Sources...), append([]string{}, can.Hooks...)
	fields := func(j *Job) []any {
		return append(leaseFields(j), &j.DocumentID, &j.Version, &j.NotReady, &j.Epoch)
	}
	return &Kind{
		Name: "accounting", table: "daybook.accounting_work_queue", wake: "daybook.wake_accounting_queue",
		lostCode: "WORKER_LOST", channel: "daybook_accounting", key: 1, abilities: &can,
		fields: fields, locked: fields,
	}
}

// Jobs is the queue of background jobs.
var Jobs = &Kind{
	Name: "jobs", table: "daybook.jobs", wake: "daybook.wake_job_queue",
	lostCode: "JOB_LOCK_TIMEOUT_RECLAIMED", channel: "daybook_jobs", key: 2,
	fields: func(j *Job) []any {
		return append(leaseFields(j), &j.Type, &j.Payload, &j.MaxAttempts, &j.Key, &j.EnqueuedAt)
	},
	locked: leaseFields,
}

// leaseFields are the destinations of what every kind knows of a lease.
func leaseFields(j *Job) []any {
	return []any{&j.ID, &j.OrgID, &j.Attempt, &j.StartedAt, &j.Takeovers, &j.CancelRequested}
}

// able adds what the worker can to the arguments of a statement that asks which organizations it works for.
func (k *Kind) able(a args) args {
	if k.abilities != nil {
		a["sources"], a["hooks"] = k.abilities.Sources, k.abilities.Hooks
	}
	return a
}

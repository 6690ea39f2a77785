package store

// Accounting is the queue of documents to be posted, for a worker that reads daybook.documents and has no hooks.
var Accounting = accounting(Abilities{Sources: []string{SourceDaybook}})

func accounting(can Abilities) *Kind {
	// An empty array, because nothing is among the names of null.
	can.Sources, can.Hooks = append([]string{}, can.Sources...), append([]string{}, can.Hooks...)
	locked := func(j *Job) []any {
		return append(leaseFields(j), &j.DocumentID, &j.Version, &j.NotReady, &j.Epoch)
	}
	return &Kind{
		Name: "accounting", table: "daybook.accounting_work_queue", wake: "daybook.wake_accounting_queue",
		lostCode: "WORKER_LOST", channel: "daybook_accounting", key: 1, abilities: &can, oldRows: oldAccounting,
		fields: func(j *Job) []any { return append(locked(j), &j.TraceParent) }, locked: locked,
	}
}

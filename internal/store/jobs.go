package store

// Jobs is the queue of background jobs.
var Jobs = newJobs()

func newJobs() *Kind {
	return &Kind{
		Name: "jobs", table: "daybook.jobs", wake: "daybook.wake_job_queue",
		lostCode: "JOB_LOCK_TIMEOUT_RECLAIMED", channel: "daybook_jobs", key: 2, oldRows: oldJobs,
		fields: func(j *Job) []any {
			return append(leaseFields(j), &j.Type, &j.Payload, &j.MaxAttempts, &j.Key, &j.EnqueuedAt, &j.TraceParent, &j.Queue)
		},
		locked: leaseFields,
	}
}

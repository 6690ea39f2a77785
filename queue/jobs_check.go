package queue

// CheckJob returns the error that EnqueueJob would return for a job before it reaches the database.
// It enqueues nothing. Use it for jobs that another program enqueues later.
func CheckJob(orgID string, p Payload, o JobOptions) error {
	_, err := newJobRow(NewJob{OrgID: orgID, Payload: p, Options: o})
	return err
}

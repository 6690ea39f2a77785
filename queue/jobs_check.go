package queue

// CheckJob says what EnqueueJob would refuse of a job before it asks the database, and enqueues nothing: for jobs that are
// enqueued later, by a program that cannot correct a mistake.
func CheckJob(orgID string, p Payload, o JobOptions) error {
	_, err := newJobRow(NewJob{OrgID: orgID, Payload: p, Options: o})
	return err
}

// Package jobs is for the handlers of background jobs: a job's payload is a struct, its type has
// one handler, and a policy says how often a job is tried and with which delays.
//
//	type Welcome struct {
//		UserID string `json:"user_id"`
//	}
//
//	func (Welcome) JobType() string { return "welcome" }
//
//	registry := jobs.NewRegistry()
//	jobs.Register(registry, jobs.Policy{Owner: "growth"}, func(ctx context.Context, job *jobs.Job[Welcome]) error {
//		return greet(ctx, job.Payload.UserID, job.IdempotencyKey)
//	})
//
// Jobs are enqueued by package queue, in the transaction that writes what they are about, and
// worked by package workers.
package jobs

// Package schedules makes periodic jobs: Temporal schedules that enqueue a background job each time
// they fire, exactly one for each firing. The command `daybook schedules` calls this package.
//
// A worker of background jobs (workers.NewJobs) must run: it enqueues the job of each firing. The
// job's idempotency key is made of the schedule's id and the time for which the firing was planned.
//
// A schedule and its payload are kept in Temporal: a payload may name secrets, and must not hold
// them.
package schedules

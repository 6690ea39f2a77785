// Package queuetest is for the tests of an application: they check which jobs it enqueued, and work
// these jobs.
//
//	func TestOrder(t *testing.T) {
//		tx := begin(t)
//		placeOrder(tx, "order_1")
//		job := queuetest.RequireJobEnqueued(t, tx, func(j queuetest.Job[Receipt]) bool { return j.Payload.OrderID == "order_1" })
//		assert.Equal(t, "receipt-order_1", job.IdempotencyKey)
//		commit(t, tx)
//
//		drained := queuetest.DrainJobs(t, pool, registry, queuetest.JobsOptions{})
//		drained.RequireCompleted(t)
//	}
//
// DrainJobs, DrainAccounting and DrainTasks use Daybook's real engine on the real tables, with
// leases, attempts, retries and dead letters, but without Temporal. Give each test a database of
// its own: they work every job in it.
package queuetest

// Package queuetest is for the tests of an application: did it enqueue what it should, and what becomes of it.
//
//	func TestOrder(t *testing.T) {
//		tx := begin(t)
//		placeOrder(tx, "order_1")
//		job := queuetest.RequireEnqueued(t, tx, func(j queuetest.Job[Receipt]) bool { return j.Payload.OrderID == "order_1" })
//		assert.Equal(t, "receipt-order_1", job.IdempotencyKey)
//		commit(t, tx)
//
//		drained := queuetest.Drain(t, pool, registry, queuetest.DrainOptions{})
//		drained.RequireCompleted(t)
//	}
//
// Drain and DrainAccounting work with Daybook's real engine on the real tables, with leases, attempts, retries and dead
// letters, but without Temporal. Give each test a database of its own: they work everything that is there.
package queuetest

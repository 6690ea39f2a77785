// Package wake tells the waiters of one process that a queue may have work. A transaction that
// enqueues notifies only while a waiter waits, which it sees by an advisory lock; a waker holds
// that lock, listens, and has its waiters scan. A wake-up says "look", never what there is.
//
// waker.go has the waiters and the connection, lock.go what is known of the lock, pace.go when
// notifications are given up because they come faster than scans, tell.go which waiter is told
// first.
package wake

// Package engine works the turns of a queue: it leases or picks jobs, calls their handlers, and
// completes them under the turn's fence, in the transaction that commits the handler's effect where
// there is one.
//
// It knows nothing of Temporal: the activities give it a turn, a function to report progress and a
// channel that tells it to stop.
package engine

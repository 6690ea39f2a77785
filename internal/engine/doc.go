// Package engine works the turns of a queue: it leases jobs, hands them to a processor chunk by
// chunk, and completes them under the turn's fence in the transaction that commits the processor's
// effect.
//
// It knows nothing of Temporal: the activities give it a turn, a function to report progress and a
// channel that tells it to stop.
package engine

// Package adopt moves work from legacy queues to Daybook, while the legacy workers and the code
// that enqueues still run.
//
// Each kind of legacy queue is an Adopter. Apply, Check and GiveBack run one; what they answer is
// the same for all of them, so that the commands `daybook adopt …` print it in one way. A row is
// adopted in one transaction: it is locked (FOR UPDATE SKIP LOCKED), marked in the legacy table so
// that the legacy worker leaves it alone, written to Daybook's queue and put on record in
// daybook.adopted_rows. So each row is held by exactly one of both systems at any moment, and an
// adoption can be killed and repeated.
package adopt

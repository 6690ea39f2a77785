package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
)

// Kind is the port: what the runner asks of a kind of queue. The two kinds whose rows are updated
// in place share one implementation, the store's. A kind whose rows are never updated, with its
// leases in a table of its own, has another one. Both pass the suite of package kindtest.
//
// Of every method:
//
//   - It is safe for concurrent use, by all turns and detached jobs of a process, unless
//     its comment says otherwise.
//   - The database's clock decides what is due, stale or expired. No time of this process is
//     compared with one of the database.
//   - A job is leased by one Turn: its ID and its Fence. A lease is a turn's own only under the
//     very fence by which it was taken. A method that is given a lower or a higher one changes
//     nothing, where its comment does not say otherwise.
//   - Rows that another transaction holds locked are skipped, never waited for, where its comment
//     does not say otherwise. A skipped row is as it was.
//   - Methods without a tx are atomic: they commit all that they say, or nothing. After an error
//     which store.IsTransient holds for, it is unknown which. Then the call may simply be made
//     again, unless its comment says what else is to be done.
//   - A request that comes while a job is leased (its generation grows) is never swallowed: however
//     the lease ends, the job is due again, and its attempts are counted anew. A request to cancel
//     ends the job as cancelled, however the lease ends.
//   - A kind may lack a notion: organizations and priorities (then jobs have none, in the order of
//     their age, the types in turn), requests that ask for a job anew or cancel it, picks
//     (PickTypes), progress, steps, and a log of attempts. Its test says which, and what it has instead.
//   - Errors: store.IsTransient says that the database as a whole is unavailable or asks to try
//     again, and that no job is to blame; store.IsSchemaMismatch that the schema is missing or not
//     this program's; every other error is what it is.
type Kind interface {
	// Name is the kind's in attempts, reports and log lines.
	Name() string
	Transactions
	Picker
	Leases
	Completer
	// Observe has f told, after each commit, of what becomes of jobs besides what results and
	// completions say: which were given back, cancelled as their lease ended, reclaimed, or made
	// dead letters without an attempt. It is called once, before every other method. f does not
	// block.
	Observe(f func([]store.Change))
	// NewReclaimer returns a Reclaimer of the kind's expired leases.
	NewReclaimer() Reclaimer
	// CheckWaits decides a part of what is on record about jobs that wait for their turn, for other
	// jobs or for a callback, and about failed jobs that are to be pending again. It waits for no
	// row lock. A kind whose jobs wait for nothing returns errors.ErrUnsupported, and is not asked
	// again.
	CheckWaits(ctx context.Context) (store.CheckedWaits, error)
	// NewWaker returns a Waker, which connects when it is first waited for. Every committed enqueue
	// that makes a job due within a minute wakes a waiter of some process within a fraction of a
	// second, also while another transaction that enqueues stays open. What falls due later is not
	// told: Leased.Outlook and Pick.Wait say when. While the waiters find work all the time the
	// Waker may tell them to scan every interval, and make enqueuing cheaper meanwhile. worker is the
	// process's name in its leases: while the Waker is connected, others know that it lives. Close
	// it.
	NewWaker(worker string, interval time.Duration, log *slog.Logger) *store.Waker
}

// Transactions are how the runner reaches the database of a kind.
type Transactions interface {
	// Answers reports whether the database answers now and can be written, and no session has
	// locked the kind's table against all that write; it waits for two seconds at most.
	Answers(ctx context.Context) bool
	// NextFence draws a number that is higher than every one drawn before, by any process. It fails
	// while the schema is not the one that this program works with, so that no turn begins.
	NextFence(ctx context.Context) (int64, error)
	// Poll is NextFence for a turn, which leases under the fence next. What an idle process asks
	// each time it polls may be asked with it: then the first LeaseFor under the fence finds what
	// is due as Poll saw it. So a turn has subscribed to the Waker before.
	Poll(ctx context.Context, room store.Room) (store.Polled, error)
	// InTx runs f in a transaction, and commits it, or rolls it back when f fails. It names its
	// isolation level (read committed) and its time limits, whatever the database's defaults are.
	// The session ends when it idles in the transaction for ten seconds: a worker that sleeps keeps
	// nothing locked. After an error of the commit it is unknown whether it took place: the caller
	// asks Held. f may have committed it already, by store.Access.Commit.
	InTx(ctx context.Context, f func(tx pgx.Tx) error) error
	// InTxWaiting is InTx for a transaction in which no statement waits longer than wait for a
	// lock: then store.IsLockTimeout holds for its error. 0 is any time.
	InTxWaiting(ctx context.Context, wait time.Duration, f func(tx pgx.Tx) error) error
}

// Picker finds due jobs: to lease them, or to lock them in a transaction that completes them.
//
// A job is due when it is pending and its ready_at has come. The order is: high priorities first;
// within one the organizations in turn, and within an organization its types in turn; the oldest of
// each first. An organization that is paused gets nothing, one with a cap (max_in_flight) no more
// than is left of it, over all processes; a type with a limit (Room.Everywhere) likewise. Jobs that
// this worker may not work (no handler, source or hook) are left as they are.
//
// What a process remembers from call to call of where due jobs begin never decides alone: what
// became due behind that is found in bounded time, also while there is other work (decision 2).
type Picker interface {
	// LeaseFor leases up to limit due jobs to the turn, under its fence. Two callers never get the
	// same job. Each job's Attempt is counted already, and is returned to it when the job is given
	// back. Room is reserved for what is returned, also with an error. When turn.Begins is set the
	// jobs are charged if the worker ends.
	//
	// With an error jobs may have been leased which are not returned: the turn's next ReclaimTurns
	// under a higher fence, or GiveBack, finds them. Leased.Outlook says, when there are no jobs,
	// how long it is worth waiting; its other fields why there are none.
	LeaseFor(ctx context.Context, turn store.Turn, limit int, room store.Room) (store.Leased, error)
	// PickTypes chooses up to limit due jobs, which the caller is about to lock and complete in one
	// transaction, of the types that may be picked. If jobs of other types are due too, and there is
	// room for them, it chooses nothing and sets Pick.Others. Room is reserved for what is chosen,
	// until Lock.
	// Nothing is written and nothing locked. A kind whose lease is always on record before a job is
	// worked chooses nothing and says Pick.Others at once: then the methods for picked jobs are
	// never called.
	PickTypes(ctx context.Context, limit int, may func(jobType string) bool, room store.Room) (*store.Pick, error)
	// HasLeft reports whether jobs are due that this worker may not work and another one might. A
	// kind whose jobs every worker can work says false.
	HasLeft(ctx context.Context) (bool, error)
	// ReadOn has the next scan read what the last one has put off, because it could not afford to
	// read it.
	ReadOn()
	// HoldBack leaves the jobs of an organization alone, in this process, for a pause that it
	// returns: it grows from call to call while that goes on. begun says that the organization was
	// not held back already. Nothing is written.
	HoldBack(org string) (pause time.Duration, begun bool)
}

// Leases are what the runner asks of the leases that a turn holds.
type Leases interface {
	// Renew makes the turn's leases young, those of the overdue ids left out, and those that are
	// younger than young, or than half of the time after which the kind's leases expire. It returns
	// all that the turn still holds under its fence, and says which of these are to be cancelled.
	// Missed says that leases were not renewed, because another transaction holds their rows. It
	// does not wait until a connection is free: handlers may have all of them for long.
	Renew(ctx context.Context, turn store.Turn, overdue []string, young time.Duration) (store.Renewed, error)
	// Held returns the ids of the jobs that the turn holds under its fence, locked or not.
	Held(ctx context.Context, turn store.Turn) ([]string, error)
	// TurnsWithLeases returns those of the named turns that hold a lease under any fence, locked or
	// not.
	TurnsWithLeases(ctx context.Context, turns []string) ([]string, error)

	// LeasePicked leases jobs, which Pick.Lock returned, to the turn under its fence, as being
	// worked, or, those with Waiting, as not being worked yet, and returns which: in the
	// transaction that has them locked, as locked says, all; in a later one those that are as they
	// were when they were locked, but none of which a request may have gone by unseen. It waits for
	// locked rows.
	LeasePicked(ctx context.Context, tx pgx.Tx, turn store.Turn, jobs []store.Job, locked bool) ([]string, error)

	// MarkWaiting says that leased jobs are not being worked yet: should the worker die, they are
	// not charged.
	MarkWaiting(ctx context.Context, turn store.Turn, ids []string) error
	// BeginWaiting says that leased jobs which were not being worked are worked now, each by
	// itself: should the worker die, they are charged. Working are to be begun; Held wait on,
	// because another transaction holds their rows; those that were to be cancelled are cancelled.
	// What is in neither list must not be begun.
	BeginWaiting(ctx context.Context, turn store.Turn, ids []string) (store.Begun, error)

	// HandOver makes all of these leases those of the turn to, which goes on when the activity of
	// from has ended (a detached turn); the fence stays. When one of them is not from's, or its row
	// is locked, nothing is handed over and false is returned. After an outage it is called again
	// until it is known: what was handed over already counts as such. It does not wait for a free
	// connection either.
	HandOver(ctx context.Context, from, to store.Turn, ids []string) (bool, error)
	// GiveBack gives leased jobs back, uncounted: they are pending again after delay, in their old
	// place in the order when it is 0, or cancelled where that was asked for. Nil ids: all that the
	// turn holds. Leases under lower fences of the turn are given back, too: an earlier activity's.
	// It returns how many there were; locked rows stay leased, and TurnsWithLeases names the turn
	// then. Those that wait for work are told.
	GiveBack(ctx context.Context, turn store.Turn, ids []string, delay time.Duration) (int, error)
	// ReclaimTurns reclaims what the named turns hold under a lower fence than the turn's: it is
	// leased to the turn, under its fence, and returned. Of two callers the one with the higher
	// fence has the jobs in the end, and what the other one completes under its own is refused.
	//
	// crashed says that the activity before did not end by itself. Then the jobs that it was
	// working are charged: their attempt is logged as lost, and the next one begins, or the job
	// fails when it has none left. What the running activity took under turn.FirstFence or a later
	// fence is not charged again. After an outage a new fence is drawn before it is called again:
	// what it took is found by that.
	ReclaimTurns(ctx context.Context, turn store.Turn, from []string, crashed bool) (store.ReclaimedTurns, error)
}

// Reclaimer ends the leases that their holders do not renew. It belongs to one goroutine.
//
// A lease that expires after seconds (store.StaleAfter) ends when the Reclaimer has itself seen,
// for as long as a holder takes to renew, in uninterrupted contact with a database that has not
// been restarted meanwhile, that it was neither renewed nor locked. It ends after less than half of
// that time when the Reclaimer has seen that its worker lived, and that all processes of the
// worker's name have ended since (Waker). One that expires after minutes
// gives its holder that time by itself: it ends when it has expired, also by a lease of any
// process. Its job is pending again. It is charged if it was being worked, and fails when that was
// its last attempt; what waited is not charged.
type Reclaimer interface {
	// Check ends the leases whose time has come, and says when to check again. After an error
	// nothing counts that was seen before.
	Check(ctx context.Context) (got store.Reclaimed, pause time.Duration, err error)
}

// Completer ends attempts in the caller's transaction, together with what the attempt wrote: all of
// it is committed, or nothing.
//
// A job changes its state only while it is the turn's under its fence. Each attempt is on record,
// in the log or in the row of the job that it completed; one that is rescheduled for the same
// reason as the one before is folded into that one's record. A rescheduled attempt is not counted.
// A job that was asked for anew meanwhile is pending again, whatever the outcome, and is counted as
// store.Requeued as well. When one of the jobs is no longer the turn's it fails with
// store.ErrLeaseLost, for which store.IsTransient holds, and the caller rolls back. An error for
// which store.IsUnstorable holds says that a result or a message cannot be stored: each is then
// completed by itself.
type Completer interface {
	// LockChunk locks those of the jobs that the turn still holds under its fence and that no other
	// transaction holds locked, and returns them as they are now: CancelRequested ones are to
	// commit nothing. Until the transaction ends no request can change them.
	LockChunk(ctx context.Context, tx pgx.Tx, turn store.Turn, ids []string) ([]store.Job, error)
	// Complete completes jobs that the transaction has as access says. Attempts at picked jobs are
	// recorded with the turn's name and fence. With access.Wait it returns store.ErrRowHeld when
	// another transaction has held a row for so long, and store.ErrLeaseLost, too, when one of the
	// jobs is to be cancelled. With access.Commit nothing is committed after an error, unless it is
	// one after which that is unknown, as it is after InTx.
	Complete(
		ctx context.Context, tx pgx.Tx, turn store.Turn, completions []store.Completion, access store.Access,
	) (store.Completed, error)

	// PutOff is how often this attempt at a job was rescheduled because of the database.
	PutOff(ctx context.Context, id string, attempt int) (int, error)
	// SetProgress stores what a running job says of itself, as JSON. It returns store.ErrLeaseLost
	// when the job is no longer the turn's. A kind without progress is never asked to.
	SetProgress(ctx context.Context, turn store.Turn, job store.Job, progress []byte) error
	// KeepStep keeps the result of a step of a running job. It may be repeated. It returns
	// store.ErrLeaseLost when the job is no longer the turn's. A kind without steps is never asked
	// to, and neither for the next two.
	KeepStep(ctx context.Context, turn store.Turn, job store.Job, step store.Step) error
	// CommitStep is KeepStep as the last statement of a transaction of InTx, which it commits. It may
	// not be repeated. It waits so long for the job's row, and returns store.ErrRowHeld after that.
	CommitStep(
		ctx context.Context, tx pgx.Tx, turn store.Turn, job store.Job, step store.Step, wait time.Duration,
	) error
	// StepKept returns the result of the step as this attempt has kept it; nil: it has not.
	StepKept(ctx context.Context, job store.Job, step store.Step) (json.RawMessage, error)
}

// Tables returns a store's queue as a Kind. The kinds accounting and jobs, whose rows are updated
// in place, share it.
func Tables(s *store.Store) Kind { return tables{s, s.Kind()} }

type tables struct {
	*store.Store
	*store.Kind
}

// Name implements Kind.
func (t tables) Name() string { return t.Kind.Name }

// NewReclaimer implements Kind.
func (t tables) NewReclaimer() Reclaimer { return t.Store.NewReclaimer() }

// Tasks is the Kind of tasks, which a store.TaskQueue works. Tasks have no organizations,
// priorities, requests that ask for them anew or cancel them, progress, steps, and log of attempts: their
// facts are the log. Their lease is on record before they are worked, so none is picked.
func Tasks(q *store.TaskQueue) Kind { return tasks{q} }

type tasks struct{ *store.TaskQueue }

// PickTypes implements Picker: every task is to be leased.
func (tasks) PickTypes(context.Context, int, func(string) bool, store.Room) (*store.Pick, error) {
	return &store.Pick{Others: true}, nil
}

// Poll implements Transactions: a lease is all that is asked.
func (t tasks) Poll(ctx context.Context, _ store.Room) (store.Polled, error) {
	fence, err := t.NextFence(ctx)
	return store.Polled{Fence: fence}, err
}

// ReadOn implements Picker: each lease reads all.
func (tasks) ReadOn() {}

// HoldBack implements Picker: nothing holds tasks back.
func (tasks) HoldBack(string) (pause time.Duration, begun bool) { return 0, false }

// LeasePicked implements Leases.
func (tasks) LeasePicked(context.Context, pgx.Tx, store.Turn, []store.Job, bool) ([]string, error) {
	return nil, errors.ErrUnsupported
}

// SetProgress implements Completer.
func (tasks) SetProgress(context.Context, store.Turn, store.Job, []byte) error {
	return errors.ErrUnsupported
}

// KeepStep implements Completer.
func (tasks) KeepStep(context.Context, store.Turn, store.Job, store.Step) error {
	return errors.ErrUnsupported
}

// CommitStep implements Completer.
func (tasks) CommitStep(context.Context, pgx.Tx, store.Turn, store.Job, store.Step, time.Duration) error {
	return errors.ErrUnsupported
}

// StepKept implements Completer.
func (tasks) StepKept(context.Context, store.Job, store.Step) (json.RawMessage, error) {
	return nil, errors.ErrUnsupported
}

// CheckWaits implements Kind: no task waits for another one.
func (tasks) CheckWaits(context.Context) (store.CheckedWaits, error) {
	return store.CheckedWaits{}, errors.ErrUnsupported
}

// NewReclaimer implements Kind. The queue is its own Reclaimer: what it has seen before does not
// count.
func (t tasks) NewReclaimer() Reclaimer { return t }

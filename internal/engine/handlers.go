package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/engine/carried"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Handlers works the jobs of a queue: each by itself and for as long as it takes, or many of a type
// in the transaction that completes them. It is safe for concurrent use.
type Handlers interface {
	// Handling says how jobs of a type are worked; ok is false when there is no handler for it.
	Handling(jobType string) (h Handling, ok bool)
	// Work works one job outside of transactions. running is what it may ask for meanwhile.
	Work(ctx context.Context, job store.Job, running *Running) Attempt
	// Prepare does, for jobs of one bulk type, what takes time and needs no transaction. It may be
	// called more than once for a job. workflowRun is the run of the workflow that works them. An
	// error is of all of them: one that Own has marked is theirs, also where it looks like one of
	// the database.
	Prepare(ctx context.Context, workflowRun string, jobs []store.Job) (BulkCommit, error)
	// Failed says how an attempt at a job ends that failed with err.
	Failed(job store.Job, err error) Attempt
}

// Reviewer is what Handlers may be besides: it is told of each attempt that is to end as retried or
// failed, before that is completed, and returns how it ends. Of a handler that was not waited for,
// what it returns has no effect. ctx ends with the turn.
type Reviewer interface {
	Review(ctx context.Context, job store.Job, a Attempt) Attempt
}

// BulkCommit works prepared jobs in tx, the transaction that completes them, and says how the
// attempt at each ends. It is given those that are still the turn's and are not to be cancelled,
// which may be fewer than were prepared. It neither commits tx nor rolls it back. An error, marked
// as Prepare's is, undoes the transaction.
type BulkCommit func(ctx context.Context, tx pgx.Tx, jobs []store.Job) ([]Attempt, error)

// Handling says how jobs of a type are worked.
type Handling struct {
	// Owner is the team or contact responsible for the type; empty: it is not said.
	Owner string
	// Parallel is how many jobs of the type a process works side by side, each in its own call; in
	// bulk it is how many share a call.
	Parallel int
	// Everywhere is how many jobs of the type are leased at a time, over all processes; 0: any
	// number.
	Everywhere int
	// Version is the handler's: jobs that need a higher one are left alone.
	Version int
	// Timeout is how long an attempt may take.
	Timeout time.Duration
	// Charged: an attempt at the job is counted when its worker dies. What is not charged is
	// charged only when it is worked alone, because it may have ended its worker before.
	Charged bool
	// Shared: of jobs that are worked each in a call of its own, what they give to InTx runs in a
	// transaction that several of them share.
	Shared bool

	// Bulk: Prepare and its BulkCommit work them. The rest is for these.
	Bulk bool
	// Calls is how many calls of the type a turn has side by side; 0: any number.
	Calls int
	// LockWait is how long a statement of the transaction may wait for a lock; 0: any time.
	LockWait time.Duration
	// Picked says when jobs of the type are worked without a lease before.
	Picked Picked
}

// Picked says when jobs of a bulk type are picked and completed in one transaction, without a
// lease.
type Picked int

const (
	// PickedWhenAlone picks after a lease that brought no other type, for as long as that is so and
	// calls are quick.
	PickedWhenAlone Picked = iota
	// PickedAtOnce picks from a turn's first batch on. The handler is Daybook's own, and changes no
	// row of its jobs in the transaction.
	PickedAtOnce
	// PickedNever always leases.
	PickedNever
)

// Attempt is how an attempt at a job ended.
type Attempt struct {
	Outcome models.Outcome
	// Code and Message say why, for every outcome but completed. Of that they say why its result is
	// not stored.
	Code    models.ErrorCode
	Message string
	// Cause is what the handler returned, for a Reviewer; nil: it is not known.
	Cause error
	// Delay is until the next attempt, for retried and rescheduled.
	Delay time.Duration
	// Version replaces the job's version; nil leaves it alone.
	Version *int64
	// Result is what a completed job leaves, as JSON.
	Result []byte
	// Unlogged attempts leave no row in the log.
	Unlogged bool
	// Unavailable: the handler failed because the database was unavailable to a query of Daybook's
	// own. Outcome and the others say how the attempt ends when that has happened too often in a
	// row.
	Unavailable bool
	// InTx is run in the transaction that ends the attempt, and returns the result anew, or an
	// UnstoredError; nil: nothing is run. Where the attempt has not completed the job, and InTx
	// fails, it ends all the same.
	InTx func(ctx context.Context, tx pgx.Tx) (result []byte, err error)
	// Call is what InTx does, where that is to call a function of the database: then one statement
	// calls it for several jobs, in a transaction that they share (Handling.Shared). Nil: InTx does
	// something else.
	Call *Call
	// Hide returns what is put on record and logged in place of Message; nil: Message is.
	Hide func(message string) string
	// Later is for a BulkCommit: it has left the job alone, because the transaction is large enough
	// without it. The job comes again in one of the turn's next calls. At least one job of a call
	// must not be put off.
	Later bool
	// LeftAlone is for a BulkCommit: the job need not be rewritten where it is not leased; the
	// Picker has been told to leave it alone.
	LeftAlone bool

	// took is how long the handler took; 0: it was not called.
	took time.Duration
}

// Call is a call of a function of the database.
type Call struct {
	// Function is its name, as the database takes it.
	Function string
	store.FunctionCall
	// Returned takes in what the function has returned, in the transaction in which it was called.
	Returned func(ctx context.Context, tx pgx.Tx, result json.RawMessage) error
}

// OnRecord is what is put on record, and shown, of Message.
func (a Attempt) OnRecord() string {
	if a.Hide == nil || a.Message == "" {
		return a.Message
	}
	return a.Hide(a.Message)
}

func (a Attempt) completion(job store.Job) store.Completion {
	return store.Completion{
		Job: job, Outcome: a.Outcome, Code: a.Code, Message: a.OnRecord(), Delay: a.Delay,
		Version: a.Version, Result: a.Result, Unlogged: a.Unlogged, Took: a.took,
	}
}

// ErrUnstorable is why an attempt fails of which the database refuses to store what its handler
// said.
var ErrUnstorable = errors.New("what the handler said could not be stored")

// Own marks an error of a handler that has the transaction tx as the handler's own, unless the
// transaction itself has failed in a way that is not the handler's doing: then it is tried again.
// ctx is the one that the handler was given.
func Own(ctx context.Context, tx pgx.Tx, err error) error {
	if err == nil || !endedItself(ctx, err) && IsUndone(tx, err) {
		return err
	}
	return &ownError{err}
}

// endedItself reports whether a handler failed with the end of a context that it has made itself of
// ctx. The driver closes the connection then, which looks like an outage.
func endedItself(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !store.IsUnavailable(err) &&
		(errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
}

// IsUndone reports whether the transaction of a handler has failed with err in a way that is not
// the handler's doing.
func IsUndone(tx pgx.Tx, err error) bool {
	switch store.FaultOf(err) {
	case store.Conflict:
		return true
	case store.Exhausted, store.Stale:
		if !store.IsRaised(err) {
			return true
		}
	case store.NoFault, store.Outage: // one that leaves the session alive is another database's
	}
	if store.IsTransactionTimeout(err) {
		return false // Daybook's transactions have no such limit: the handler has set it
	}
	return tx.Conn().IsClosed() || errors.Is(err, store.ErrLeaseLost) ||
		store.IsUnavailable(err) || store.OnlyReads(tx, err)
}

// ownError is what a handler failed with, when the transaction itself is sound.
type ownError struct{ err error }

func (e *ownError) Error() string { return e.err.Error() }
func (e *ownError) Unwrap() error { return e.err }

// HandlersFor makes handlers, which read by the worker's pool and log where it does.
type HandlersFor func(pool *pgxpool.Pool, log *slog.Logger) Handlers

// Registry is what handlers are registered with: a *jobs.Registry or a *tasks.Registry.
type Registry = carried.By[HandlersFor]

// HandlersOf makes the handlers of a registry.
func HandlersOf(r Registry, pool *pgxpool.Pool, log *slog.Logger) Handlers {
	return carried.Get(r)(pool, cmp.Or(log, slog.Default()))
}

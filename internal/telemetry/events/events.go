package events

import "time"

// Name says what has happened to a job.
type Name string

// The names of events. A job that ends has one of Completed, Failed (a dead letter) and Cancelled;
// Retried and Rescheduled end an attempt, and the job is due again later.
const (
	// Leased: a turn has the job on record as its own. A short job that is completed in the
	// transaction that picked it is never leased.
	Leased Name = "leased"
	// Completed: the attempt did what it was to do.
	Completed Name = "completed"
	// Retried: the attempt failed and is counted, and another one follows.
	Retried Name = "retried"
	// Rescheduled: the attempt was put off, uncounted.
	Rescheduled Name = "rescheduled"
	// Failed: the job is a dead letter.
	Failed Name = "failed"
	// Cancelled: the job was cancelled, by a request or by its handler.
	Cancelled Name = "cancelled"
	// Reclaimed: the lease of a worker that is gone was ended. Counted says that the worker was
	// working the job: that attempt is lost. Worker and Turn are those that are gone.
	Reclaimed Name = "reclaimed"
	// GivenBack: a turn has given a leased job back, uncounted.
	GivenBack Name = "given_back"
)

// Ends reports whether the event is the end of an attempt that a handler made, or was to make.
func (n Name) Ends() bool {
	switch n {
	case Completed, Retried, Rescheduled, Failed, Cancelled:
		return true
	case Leased, Reclaimed, GivenBack:
	}
	return false
}

// Event is one thing that has happened to a job, and is committed. It holds no payload and no
// result.
type Event struct {
	Name Name
	// Kind is "accounting", "jobs" or "tasks".
	Kind string
	// OrgID is empty for tasks, DocumentID for all but accounting jobs. Type is the type or alias
	// that a job was enqueued with; empty for accounting jobs.
	OrgID, Type, JobID, DocumentID string
	// Attempt is the number of the attempt, from 1.
	Attempt int
	// Code and Error say why, for the ends of an attempt but completed. Error is the text that the
	// attempts' log has; it may quote what a handler said.
	Code, Error string
	// Owner is who is responsible for the type; empty: it is not said.
	Owner string
	// Worker and Turn are those that have the lease, or had it.
	Worker, Turn string
	// Trace is the id of the trace that the job was enqueued in; empty: none.
	Trace string
	// At is when the process learnt of the commit, by its own clock.
	At time.Time
	// Waited is from when the attempt was ready until its end, or, of Leased, until the lease; 0: not
	// known. Took is how long the handler took, or, of a bulk handler, the whole call; 0: no handler
	// was called.
	Waited, Took time.Duration
	// Delay is until the next attempt, for Retried and Rescheduled.
	Delay time.Duration
	// Counted: the attempt counts as one of the job's attempts.
	Counted bool
	// Unlogged: the event has no row of its own in daybook.attempts. A job whose last attempt was
	// lost is Reclaimed, which has the row, and Failed.
	Unlogged bool
}

// Sink observes. The engine calls it once for each committed batch, after the commit, from several
// goroutines and outside of any lock.
//
// Observe must not block and must not panic. It must not keep the slice, nor change it: the engine
// uses it again. What a crash or a lost connection leaves unknown is told to no sink, so an event
// is told once at most; the database has what is true.
type Sink interface {
	Observe(batch []Event)
}

// TurnSink is a Sink that is told of the engine's own work as well.
type TurnSink interface {
	Sink
	// ObserveTurn is called when a turn has ended.
	ObserveTurn(t Turn)
	// ObserveWakeup is called when something has had a waiting lane, or a turn that lingers, look for
	// work.
	ObserveWakeup(kind string, cause Cause)
	// ObserveLanes is called when the number of lanes has changed that work in this process, or wait
	// for work.
	ObserveLanes(kind string, active, idle int)
}

// Turn is one turn that has ended, with what it counted.
type Turn struct {
	Kind, ID, Worker string
	// Batch is how many jobs it was to lease at a time. Jobs is how many it got, in all.
	Batch, Jobs int
	// What became of them. Lost counts attempts that had ended with their worker before.
	Completed, Retried, Rescheduled, Failed, Cancelled, Lost, GivenBack int
	// Length is how long the turn lasted.
	Length time.Duration
	// Detached: no activity waited for the turn's end. Failed turns have an Error.
	Detached bool
	Error    string
}

// Cause is why a lane looked for work.
type Cause string

// The causes. Notification: the database, or a part of this process, said that there may be work.
// Scan: a job that was known fell due, or room became free. Poll: nothing happened for as long as
// the poll interval, or for as long as a lane may go without a scan.
const (
	Notification Cause = "notification"
	Scan         Cause = "scan"
	Poll         Cause = "poll"
)

package queue

import (
	"slices"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// EventName says what has happened to a job.
type EventName string

// The names of events. Each is told after its transaction has committed, once at most.
const (
	// EventLeased: a worker has the job on record as its own. Short jobs are completed without that.
	EventLeased EventName = "leased"
	// EventCompleted: the job is done.
	EventCompleted EventName = "completed"
	// EventRetried: an attempt failed, and another one follows.
	EventRetried EventName = "retried"
	// EventRescheduled: an attempt was put off, uncounted.
	EventRescheduled EventName = "rescheduled"
	// EventFailed: the job is a dead letter.
	EventFailed EventName = "failed"
	// EventCancelled: the job was cancelled, by a request that came while a worker had it, or by its
	// handler.
	EventCancelled EventName = "cancelled"
	// EventReclaimed: the lease of a worker that is gone was ended. When Counted, the attempt is
	// lost.
	EventReclaimed EventName = "reclaimed"
	// EventGivenBack: a worker has given a leased job back, uncounted.
	EventGivenBack EventName = "given_back"
	// EventMissed is no job's: events were lost before this one, because the subscriber was slow or
	// its connection was lost. Missed says how many. Ask for the state of the jobs that matter
	// (ReadJobStatus, or the log of attempts).
	EventMissed EventName = "missed"
)

// Event is something that has happened to a job. workers.Worker.Subscribe tells of what one process
// does, ListenEvents of what all do.
type Event struct {
	Name EventName `json:"name"`
	// Kind is that of the queue; empty for EventMissed.
	Kind Kind `json:"kind,omitempty"`
	// OrgID is empty for tasks, DocumentID for all but accounting jobs, and Type for accounting jobs.
	OrgID      string `json:"org,omitempty"`
	Type       string `json:"type,omitempty"`
	JobID      string `json:"job,omitempty"`
	DocumentID string `json:"document,omitempty"`
	// Attempt is the number of the attempt, from 1.
	Attempt int              `json:"attempt,omitempty"`
	Code    models.ErrorCode `json:"code,omitempty"`
	// Counted: the attempt counts as one of the job's.
	Counted bool      `json:"counted,omitempty"`
	Worker  string    `json:"worker,omitempty"`
	At      time.Time `json:"at"`
	// Missed is how many events were lost, of EventMissed; 0: it is not known.
	Missed int `json:"missed,omitempty"`

	// Error is why an attempt ended as it did, Owner the team or contact responsible for the type.
	// Both are empty where ListenEvents tells.
	Error string `json:"-"`
	Owner string `json:"-"`
	// Waited is from when the attempt was ready until the event; Took is how long the handler took.
	// Both are 0 where ListenEvents tells.
	Waited time.Duration `json:"-"`
	Took   time.Duration `json:"-"`
}

// EventFilter says which events are meant. The zero value of each field means any, that of Names
// every end of an attempt: EventCompleted, EventRetried, EventRescheduled, EventFailed and
// EventCancelled. EventMissed always comes.
type EventFilter struct {
	Names []EventName
	Kinds []Kind
	Types []string
	OrgID string
	// Buffer is how many events wait for a slow subscriber before further ones are dropped; default
	// 1,000. It is for subscriptions in a process.
	Buffer int
}

// Matches reports whether an event is meant.
func (f *EventFilter) Matches(e *Event) bool {
	if e.Name == EventMissed {
		return true
	}
	named := slices.Contains(f.Names, e.Name)
	if len(f.Names) == 0 {
		switch e.Name {
		case EventCompleted, EventRetried, EventRescheduled, EventFailed, EventCancelled:
			named = true
		default:
		}
	}
	return named && (f.OrgID == "" || f.OrgID == e.OrgID) && (len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)) &&
		(len(f.Types) == 0 || slices.Contains(f.Types, e.Type))
}

package answers

import (
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

// QueueSettings are the settings of a named queue; what is left out is at its default.
type QueueSettings struct {
	Fleet       string  `json:"fleet,omitempty" required:"false" maxLength:"63" doc:"The fleet whose workers work it; default the fleet without a name" example:"shop"`
	MaxParallel int     `json:"maxParallel,omitempty" required:"false" minimum:"0" maximum:"2147483647" doc:"How many of its jobs are worked at a time, over all workers; default any number"`
	PerProcess  int     `json:"perProcess,omitempty" required:"false" minimum:"0" maximum:"2147483647" doc:"How many of its jobs each worker process works at a time; default any number"`
	Rate        int     `json:"rate,omitempty" required:"false" minimum:"0" maximum:"2147483647" doc:"How many attempts begin in rateSeconds, over all workers; default any number"`
	RateSeconds float64 `json:"rateSeconds,omitempty" required:"false" minimum:"0" maximum:"31536000" doc:"The time of rate; default 1"`
	RateBurst   int     `json:"rateBurst,omitempty" required:"false" minimum:"0" maximum:"2147483647" doc:"How many of rate may begin at once; default what it allows in 50 ms, at least one"`
	Owner       string  `json:"owner,omitempty" required:"false" maxLength:"255" doc:"The team or contact responsible"`
}

// Queue is a named queue of background jobs.
type Queue struct {
	Name string `json:"name"`
	QueueSettings
	SetBy     string     `json:"setBy,omitempty" doc:"Who has set these settings: what programs ask for waits until they are given back. Absent: they are what programs ask for"`
	SetAt     *time.Time `json:"setAt,omitempty" doc:"When they were set so"`
	PausedAt  *time.Time `json:"pausedAt,omitempty" doc:"Since when nothing of it begins; absent: it is not paused"`
	Pending   int        `json:"pending" doc:"Its jobs that wait"`
	Due       int        `json:"due" doc:"Those of the pending ones that are due"`
	Leased    int        `json:"leased" doc:"Its jobs that are being worked"`
	Failed    int        `json:"failed" doc:"Its dead letters"`
	OldestDue *time.Time `json:"oldestDue,omitempty" doc:"Since when the oldest due one is due"`
	Workers   int        `json:"workers" doc:"The workers of its fleet that were heard of in the last five minutes and have not stopped, by name"`
}

// QueueOf makes the answer of a named queue.
func QueueOf(u *store.NamedQueue) Queue {
	return Queue{
		Name: u.Name, SetBy: u.SetBy, SetAt: u.SetAt, PausedAt: u.PausedAt, Pending: u.Pending, Due: u.Due,
		Leased: u.Leased, Failed: u.Failed, OldestDue: u.OldestDue, Workers: u.Workers,
		QueueSettings: QueueSettings{
			Fleet: u.Fleet, MaxParallel: u.MaxParallel, PerProcess: u.PerProcess, Rate: u.Rate,
			RateSeconds: u.RateSeconds, RateBurst: u.RateBurst, Owner: u.Owner,
		},
	}
}

// QueueList is a page of the named queues.
type QueueList struct {
	Queues     []Queue `json:"queues"`
	NextCursor string  `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// QueueStats is how the queue of a kind stands.
type QueueStats struct {
	Kind         string           `json:"kind" doc:"The queue's: accounting, jobs or tasks"`
	At           time.Time        `json:"at" doc:"The database's clock"`
	Counts       map[string]int64 `json:"counts" doc:"Jobs, or tasks, by state. A task that was completed after an error counts as failed"`
	Estimated    []string         `json:"estimated" doc:"States whose counts are estimates: completed and cancelled, of all organizations, where the table is large"`
	Due          int64            `json:"due" doc:"Pending jobs whose time has come"`
	Waiting      int64            `json:"waiting" doc:"Pending jobs that wait for their turn in a sequence, for other jobs or for the limit of their key; they are not due"`
	StaleLeases  int64            `json:"staleLeases" doc:"Leases that have expired: their holder has not renewed them for 10 seconds, those of tasks for 5 minutes"`
	FailedByCode map[string]int64 `json:"failedByCode" doc:"Failed jobs by their last error's code"`
	// OldestDue and OldestPending are left out where there is none.
	OldestDue     *PendingJob `json:"oldestDue,omitempty" doc:"The job that has been due longest; absent: none is due"`
	OldestPending *PendingJob `json:"oldestPending,omitempty" doc:"The pending job that was asked for first; absent: none is pending"`
}

// PendingJob is a job, or a task, that waits.
type PendingJob struct {
	ID         string    `json:"id"`
	OrgID      string    `json:"orgId,omitempty" doc:"Absent: it is a task"`
	DocumentID string    `json:"documentId,omitempty" doc:"Of an accounting job"`
	Type       string    `json:"type,omitempty" doc:"Of a job or a task"`
	FirstDueAt time.Time `json:"firstDueAt" doc:"When it was first due, before any backoff"`
	DueAt      time.Time `json:"dueAt" doc:"When it is due next"`
	Waits      bool      `json:"waits,omitempty" doc:"It waits for its turn or for other jobs; dueAt is when it is to be due after that"`
	AgeSeconds float64   `json:"ageSeconds" doc:"How long ago it was first due, for oldestPending, or is due, for oldestDue; 0 when that lies ahead"`
}

// QueueStatsOf makes the answer of how the queue of a kind stands.
func QueueStatsOf(s *store.QueueStatus) QueueStats {
	return QueueStats{
		Kind: s.Kind, At: s.At, Counts: named(s.Counts), Estimated: store.Texts(s.Estimated), Due: s.Due,
		Waiting: s.Waiting, StaleLeases: s.StaleLeases,
		FailedByCode: named(s.FailedByCode), OldestDue: pendingJob(s.OldestDue), OldestPending: pendingJob(s.OldestPending),
	}
}

func pendingJob(p *store.PendingJob) *PendingJob {
	if p == nil {
		return nil
	}
	return &PendingJob{
		ID: p.JobID, OrgID: p.OrgID, DocumentID: p.DocumentID, Type: p.Type, FirstDueAt: p.FirstReadyAt, DueAt: p.ReadyAt,
		Waits: p.Waits, AgeSeconds: p.AgeSeconds,
	}
}

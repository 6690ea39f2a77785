package answers

import (
	"encoding/json"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/models"
)

// Link says what a job is about.
type Link struct {
	Kind string `json:"kind" minLength:"1" maxLength:"64" example:"submission"`
	ID   string `json:"id" minLength:"1" maxLength:"255" example:"sub_1"`
}

func linkOf(l *models.JobLink) Link { return Link{Kind: l.Kind, ID: l.ID} }

// Job is a background job.
type Job struct {
	ID             string `json:"id"`
	OrgID          string `json:"orgId"`
	Type           string `json:"type"`
	Owner          string `json:"owner,omitempty" doc:"Who owns the type, as a worker put it on record"`
	State          string `json:"state" enum:"pending,leased,completed,failed,cancelled" doc:"failed is the dead letter"`
	Priority       string `json:"priority" enum:"high,normal,low"`
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	Attempts       int    `json:"attempts" doc:"Attempts so far, the running one included"`
	MaxAttempts    int    `json:"maxAttempts,omitempty" doc:"Absent: the policy of the type's handler says"`
	// RunAt is when the job is due.
	RunAt           time.Time  `json:"runAt" doc:"When it is, or was, due next"`
	CreatedAt       time.Time  `json:"createdAt"`
	UpdatedAt       time.Time  `json:"updatedAt"`
	LastAttemptedAt *time.Time `json:"lastAttemptedAt,omitempty"`
	FinishedAt      *time.Time `json:"finishedAt,omitempty"`
	ErrorCode       string     `json:"errorCode,omitempty" doc:"The last error's code"`
	Error           string     `json:"error,omitempty"`
	Worker          string     `json:"worker,omitempty" doc:"Who works on it now"`
	TurnID          string     `json:"turnId,omitempty" doc:"The turn that has leased it"`
	CancelRequested bool       `json:"cancelRequested,omitempty" doc:"It is cancelled after the running attempt"`
	Queue           string     `json:"queue,omitempty" doc:"The named queue; absent: the queue default"`
	MinVersion      int        `json:"minVersion,omitempty" doc:"The lowest version of the type's handler that may work it; absent: any"`
	Waits           bool       `json:"waits,omitempty" doc:"It waits for its turn or for other jobs; runAt is when it is to be due after that"`
	Sequence        string     `json:"sequence,omitempty" doc:"The key of its sequence: jobs of one organization and key are worked one after the other"`
	LimitKey        string     `json:"limitKey,omitempty" doc:"What it shares the limit of its queue or its type with"`
	DebounceKey     string     `json:"debounceKey,omitempty" doc:"The key of the requests that it has gathered"`
	TraceParent     string     `json:"traceparent,omitempty" doc:"The trace of the request that made it, as W3C Trace Context writes it"`
}

// jobOf makes the answer of a background job.
func jobOf(j *models.Job, owner string) Job {
	out := Job{
		ID: j.ID, OrgID: j.OrgID, Type: j.Type, Owner: owner, State: string(j.State), Priority: Priority(j.Priority),
		IdempotencyKey: Text(j.IdempotencyKey),
		Attempts:       j.RunCount, MaxAttempts: zeroOf(j.MaxAttempts), RunAt: j.ReadyAt, CreatedAt: j.CreatedAt,
		UpdatedAt: j.UpdatedAt, LastAttemptedAt: j.LastAttemptedAt,
		FinishedAt: j.FinishedAt, ErrorCode: Text(j.LastErrorCode), Error: Text(j.LastError), Worker: Text(j.Worker),
		TurnID:          Text(j.TurnID),
		CancelRequested: j.CancelRequested, TraceParent: Text(j.TraceParent), Queue: Text(j.Queue),
		Sequence: Text(j.Sequence), MinVersion: zeroOf(j.MinVersion), DebounceKey: Text(j.DebounceKey),
		LimitKey: Text(j.LimitKey),
	}
	if j.Waits() {
		out.RunAt, out.Waits = j.FirstReadyAt, true
	}
	return out
}

// ListedJob is a job of a list, without payload and result.
type ListedJob struct {
	Job
	Links []Link `json:"links"`
}

// JobList is a page of background jobs.
type JobList struct {
	Jobs       []ListedJob `json:"jobs"`
	NextCursor string      `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// JobListOf makes the answer of a page of background jobs.
func JobListOf(p *listing.JobPage) JobList {
	return JobList{NextCursor: p.Next, Jobs: List(p.Jobs, func(j *models.Job) ListedJob {
		return ListedJob{Job: jobOf(j, p.Owners[j.Type]), Links: List(p.Links[j.ID], linkOf)}
	})}
}

// JobDetail is a background job with all that is known of it.
type JobDetail struct {
	Job
	Payload Object `json:"payload"`
	// Generation and Edits are for editJob.
	Generation int64           `json:"generation" doc:"Grows with each request for the job"`
	Edits      []JobEdit       `json:"edits,omitempty" doc:"The payloads that it had before, the first one first; absent: it has its first one"`
	Links      []Link          `json:"links"`
	WaitsFor   []WaitsFor      `json:"waitsFor,omitempty" doc:"What it waits for; absent: for nothing but its time"`
	Steps      []JobStep       `json:"steps,omitempty" doc:"Steps whose results are kept, in the order in which they were begun"`
	Result     json.RawMessage `json:"result,omitempty" doc:"What the handler left when it completed the job"`
	Progress   json.RawMessage `json:"progress,omitempty" doc:"What the handler says while it works"`
	History    []Attempt       `json:"history" doc:"A page of the attempts, the newest first"`
	// HistoryCount counts rows of the log.
	HistoryCount int64  `json:"historyCount" doc:"How many entries the whole history has"`
	NextCursor   string `json:"nextCursor,omitempty" doc:"For the next page of the history; absent: this is the last one"`
}

// JobEdit is a payload that a job had until it was edited.
type JobEdit struct {
	At       time.Time `json:"at" doc:"When it was edited"`
	By       string    `json:"by" doc:"Who edited it"`
	Attempts int       `json:"attempts" doc:"How many attempts there had been then"`
	Payload  Object    `json:"payload" doc:"What it was until then"`
}

func jobEdit(e *models.JobEdit) JobEdit {
	return JobEdit{At: e.At, By: e.By, Attempts: e.Attempts, Payload: Object(e.Payload)}
}

// JobDetailOf makes the answer of a background job with a page of its history.
func JobDetailOf(d *listing.JobDetail) JobDetail {
	out := JobDetail{
		Job: jobOf(&d.Job, d.Owner), Payload: Object(d.Payload), Links: List(d.Links, linkOf), Result: d.Result,
		Progress: d.Progress, Generation: d.Generation,
		History: List(d.Attempts, jobAttempt), HistoryCount: d.AttemptRows,
	}
	if len(d.WaitsFor) > 0 {
		out.WaitsFor = List(d.WaitsFor, waitsFor)
	}
	if len(d.Edits) > 0 {
		out.Edits = List(d.Edits, jobEdit)
	}
	if len(d.Steps) > 0 {
		out.Steps = List(d.Steps, jobStep)
	}
	if d.Older > 0 {
		out.NextCursor = cursor.Of(d.Older)
	}
	return out
}

// JobStep is a step whose result is kept for the attempts after it.
type JobStep struct {
	Name      string          `json:"name"`
	Position  int             `json:"position" doc:"The how many-th step of its attempt it was, from 1"`
	Attempt   int             `json:"attempt" doc:"The attempt that kept it last"`
	Result    json.RawMessage `json:"result" doc:"What the step returned, or where its loop stands"`
	Done      bool            `json:"done" doc:"False: a loop that has not ended"`
	Times     int             `json:"times" doc:"How often it was kept: once, or once for each round of a loop"`
	StartedAt time.Time       `json:"startedAt"`
	KeptAt    time.Time       `json:"keptAt" doc:"When it was kept last"`
}

func jobStep(s *store.Step) JobStep {
	return JobStep{
		Name: s.Name, Position: s.Position, Attempt: s.Attempt, Result: s.Result, Done: s.Done, Times: s.Times,
		StartedAt: s.StartedAt, KeptAt: s.KeptAt,
	}
}

// WaitsFor is one thing that a job waits for.
type WaitsFor struct {
	What  string         `json:"what" enum:"job,turn,callback,limit" doc:"turn: its turn in its sequence; limit: the jobs of its limitKey"`
	ID    string         `json:"id" doc:"That of the other job, for a turn that of the job which has it, the callback's name, or the limitKey"`
	State string         `json:"state,omitempty" doc:"The other job's; absent: it was removed, or there is none"`
	Until *time.Time     `json:"until,omitempty" doc:"The deadline of a callback"`
	Limit *WaitsForLimit `json:"limit,omitempty" doc:"How the limit that it waits for stands"`
}

// WaitsForLimit is how a limit by key stands for a job that waits for it.
type WaitsForLimit struct {
	Queue       string  `json:"queue,omitempty" doc:"The named queue whose limit it is; absent: that of the job's type"`
	AtWork      int     `json:"atWork" doc:"The key's jobs that run or are about to; 1000: or more"`
	Parallel    int     `json:"parallel,omitempty" doc:"How many may; absent: any number"`
	Rate        int     `json:"rate,omitempty" doc:"How many attempts of the key begin in rateSeconds at most; absent: any number"`
	RateSeconds float64 `json:"rateSeconds,omitempty" doc:"The time of rate"`
	Ahead       int     `json:"ahead" doc:"How many of the key stand before it in line; 1000: or more"`
}

func waitsFor(w *listing.WaitsFor) WaitsFor {
	out := WaitsFor{What: w.What, ID: w.ID, State: string(w.State), Until: w.Until}
	if w.What == listing.WaitsForLimit {
		out.Limit = &WaitsForLimit{
			Queue: w.Queue, AtWork: w.AtWork, Parallel: w.Parallel, Rate: w.Rate, RateSeconds: w.RateSeconds, Ahead: w.Ahead,
		}
	}
	return out
}

// TypeStats counts the background jobs of a type in a state.
type TypeStats struct {
	Type            string    `json:"type"`
	State           string    `json:"state" enum:"pending,leased,completed,failed,cancelled"`
	Count           int64     `json:"count"`
	Oldest          time.Time `json:"oldest" doc:"When the first of them was enqueued"`
	Newest          time.Time `json:"newest"`
	AverageAttempts float64   `json:"averageAttempts"`
	Estimated       bool      `json:"estimated" doc:"All of this is known from a sample: of jobs of all organizations that completed or were cancelled, where the table is large"`
}

// TypeStatsOf makes the answer of the count of a type and state.
func TypeStatsOf(s *listing.JobStat) TypeStats {
	return TypeStats{
		Type: s.Type, State: string(s.State), Count: s.Count, Oldest: s.Oldest, Newest: s.Newest,
		AverageAttempts: s.AverageAttempts, Estimated: s.Estimated,
	}
}

package answers

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/models"
)

// AccountingJob is the job of posting one document.
type AccountingJob struct {
	ID           string    `json:"id"`
	OrgID        string    `json:"orgId"`
	DocumentID   string    `json:"documentId"`
	Version      int64     `json:"version" doc:"The newest document version that was asked for"`
	State        string    `json:"state" enum:"pending,leased,completed,failed,cancelled"`
	Priority     string    `json:"priority" enum:"high,normal,low"`
	Attempts     int       `json:"attempts" doc:"Attempts since the last request that began anew, the running one included"`
	ReadyAt      time.Time `json:"readyAt" doc:"When it is, or was, due"`
	FirstReadyAt time.Time `json:"firstReadyAt" doc:"When the present request was first due, before any backoff"`
	Epoch        int       `json:"epoch,omitempty" doc:"How often it was asked to post the document anew under an unchanged version; absent: never"`
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"`
	// Pointers are left out when there is none.
	LastAttemptedAt *time.Time `json:"lastAttemptedAt,omitempty"`
	FinishedAt      *time.Time `json:"finishedAt,omitempty"`
	ErrorCode       string     `json:"errorCode,omitempty" doc:"The last error's code"`
	Error           string     `json:"error,omitempty"`
	Worker          string     `json:"worker,omitempty" doc:"Who works on it now"`
	TurnID          string     `json:"turnId,omitempty" doc:"The turn that has leased it"`
	NoEntries       string     `json:"noEntries,omitempty" enum:"zero,rule,elsewhere" doc:"Of a completed job in a list: why its document is posted without an entry. Absent: it has entries"`
	CancelRequested bool       `json:"cancelRequested,omitempty" doc:"It is cancelled after the running attempt"`
	TraceParent     string     `json:"traceparent,omitempty" doc:"The trace of the request that the next attempt answers, as W3C Trace Context writes it"`
}

// AccountingJobOf makes the answer of an accounting job.
func AccountingJobOf(j *models.AccountingJob) AccountingJob {
	return AccountingJob{
		ID: j.ID, OrgID: j.OrgID, DocumentID: j.DocumentID, Version: j.VersionHint, State: string(j.State),
		Priority: Priority(j.Priority),
		Attempts: j.RunCount, ReadyAt: j.ReadyAt, FirstReadyAt: j.FirstReadyAt, Epoch: j.Epoch, CreatedAt: j.CreatedAt,
		UpdatedAt:       j.UpdatedAt,
		LastAttemptedAt: j.LastAttemptedAt, FinishedAt: j.FinishedAt, ErrorCode: Text(j.LastErrorCode),
		Error: Text(j.LastError), Worker: Text(j.Worker),
		TurnID: Text(j.TurnID), NoEntries: string(j.NoEntries), CancelRequested: j.CancelRequested,
		TraceParent: Text(j.TraceParent),
	}
}

// AccountingJobList is a page of accounting jobs.
type AccountingJobList struct {
	Jobs       []AccountingJob `json:"jobs"`
	NextCursor string          `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// AccountingJobListOf makes the answer of a page of accounting jobs.
func AccountingJobListOf(jobs []models.AccountingJob, next string) AccountingJobList {
	return AccountingJobList{Jobs: List(jobs, AccountingJobOf), NextCursor: next}
}

// AccountingJobDetail is an accounting job with a page of its history.
type AccountingJobDetail struct {
	AccountingJob
	History    []Attempt `json:"history" doc:"A page of the attempts, the newest first"`
	NextCursor string    `json:"nextCursor,omitempty" doc:"For the next page of the history; absent: this is the last one"`
}

// AccountingJobDetailOf makes the answer of an accounting job with a page of its history.
func AccountingJobDetailOf(j *models.AccountingJob, attempts []models.Attempt, next string) AccountingJobDetail {
	return AccountingJobDetail{AccountingJob: AccountingJobOf(j), History: List(attempts, AttemptOf), NextCursor: next}
}

// PostedElsewhere is what another system has posted of a document.
type PostedElsewhere struct {
	OrgID       string           `json:"orgId"`
	DocumentID  string           `json:"documentId"`
	Version     int64            `json:"version" doc:"The newest version that is posted elsewhere; -1 is below every version"`
	Next        string           `json:"next" enum:"difference,wait,full" doc:"What Daybook does with a newer version: post the difference, wait for a person, or post all of it"`
	System      string           `json:"system" doc:"Where it is posted"`
	PostedOn    string           `json:"postedOn" format:"date"`
	LeftVersion *int64           `json:"leftVersion,omitempty" doc:"Up to this version a person decided that Daybook posts nothing; absent: no such decision"`
	OpenItem    string           `json:"openItem,omitempty" doc:"The document that stands for it here, with what was open of it (daybook import opening); absent: none does"`
	Entries     []EntryElsewhere `json:"entries" doc:"What is posted elsewhere; empty when it is not known"`
	UpdatedAt   time.Time        `json:"updatedAt"`
}

// EntryElsewhere is one entry that another system has posted.
type EntryElsewhere struct {
	Account     string  `json:"account"`
	Side        string  `json:"side" enum:"debit,credit"`
	AmountMinor Minor   `json:"amountMinor" doc:"In minor units of the currency"`
	Amount      Decimal `json:"amount" doc:"The same as a decimal number"`
	Currency    string  `json:"currency"`
}

// PostedElsewhereOf makes the answer of what another system has posted of a document.
func PostedElsewhereOf(p *models.PostedElsewhere) (PostedElsewhere, error) {
	out := PostedElsewhere{
		OrgID: p.OrgID, DocumentID: p.DocumentID, Version: p.DocumentVersion, Next: string(p.Next), System: p.System,
		PostedOn: p.PostedOn.String(), LeftVersion: p.LeftVersion, UpdatedAt: p.UpdatedAt, OpenItem: Text(p.OpenItem),
		Entries: []EntryElsewhere{},
	}
	if p.Entries == nil {
		return out, nil
	}
	var entries []models.EntryElsewhere
	if err := json.Unmarshal(p.Entries, &entries); err != nil {
		return out, fmt.Errorf("the entries elsewhere of document %s: %w", p.DocumentID, err)
	}
	out.Entries = List(entries, func(e *models.EntryElsewhere) EntryElsewhere {
		one := EntryElsewhere{Account: e.Account, Side: string(e.Side), Currency: e.Currency}
		one.AmountMinor, one.Amount = Amount64(e.Amount, e.Currency)
		return one
	})
	return out, nil
}

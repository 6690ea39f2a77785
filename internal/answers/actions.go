package answers

import (
	"encoding/json"
	"time"

	"github.com/daybook-dev/daybook/internal/store/actions"
)

// ActionTaken is what an operator did.
type ActionTaken struct {
	ID      int64           `json:"id"`
	At      time.Time       `json:"at"`
	Via     string          `json:"via" enum:"console,api,cli"`
	Action  string          `json:"action" doc:"What was done, such as jobs.retry"`
	Actor   string          `json:"actor" doc:"The token's name as it was, or the user of the operating system"`
	TokenID string          `json:"tokenId,omitempty" doc:"Absent on the command line"`
	DBRole  string          `json:"dbRole" doc:"The database's role that wrote the row"`
	OrgID   string          `json:"orgId,omitempty" doc:"Absent: it was about several organizations, or none"`
	Subject string          `json:"subject,omitempty" doc:"What it was about: a job's id, a document's, a type …"`
	Details json.RawMessage `json:"details" doc:"What was asked for, without secrets and payloads"`
	Outcome string          `json:"outcome" enum:"done,refused,failed"`
	Code    string          `json:"code,omitempty" doc:"The error's code; absent when it was done"`
}

// ActionList is a page of the log of actions.
type ActionList struct {
	Actions    []ActionTaken `json:"actions"`
	NextCursor string        `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
}

// ActionListOf makes the answer of a page of the log of actions.
func ActionListOf(list []actions.Action, next string) ActionList {
	return ActionList{NextCursor: next, Actions: List(list, func(a *actions.Action) ActionTaken {
		return ActionTaken{
			ID: a.ID, At: a.At, Via: string(a.Via), Action: a.Action, Actor: a.Actor, TokenID: Text(a.TokenID),
			DBRole: a.Role, OrgID: Text(a.OrgID), Subject: a.Subject,
			Details: a.Details, Outcome: string(a.Outcome), Code: a.Code,
		}
	})}
}

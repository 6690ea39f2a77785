// Package actions keeps the log of actions: what operators did through the console, the HTTP API
// and the command line.
//
// An action is begun before the change (Begin), written in the transaction of the change where
// there is one (Note), and otherwise directly after it (Taken.End). Actions that were refused or
// failed are written as well, with the error's code.
package actions

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Via is the way by which an action came.
type Via string

// The ways.
const (
	Console Via = "console"
	API     Via = "api"
	CLI     Via = "cli"
)

// Vias lists every way.
func Vias() []Via { return []Via{Console, API, CLI} }

// Outcome is what came of an action.
type Outcome string

// The outcomes.
const (
	Done Outcome = "done"
	// Refused: nothing was changed, because of what was asked for.
	Refused Outcome = "refused"
	// Failed: something else kept it from being done, such as a database that is unavailable.
	Failed Outcome = "failed"
)

// Outcomes lists every outcome.
func Outcomes() []Outcome { return []Outcome{Done, Refused, Failed} }

// Action is one row of the log.
type Action struct {
	ID int64
	At time.Time
	// Via is the way by which it came, Action what was done, such as jobs.retry.
	Via    Via
	Action string
	// TokenID is the caller's token; nil on the command line.
	TokenID *string
	// Actor is the token's name as it was, or the user of the operating system.
	Actor string
	// Role is the role of the database that wrote the row.
	Role string
	// OrgID is the organization that it was about; nil: several, or none.
	OrgID *string
	// Subject is what it was about: a job's id, a document's, a type …
	Subject string
	// Details are what was asked for, without secrets and payloads.
	Details json.RawMessage
	Outcome Outcome
	// Code is that of the error; empty when it was done.
	Code string
}

// Taken is an action that has begun.
type Taken struct {
	action  Action
	details map[string]any
	// noted says that a transaction wrote it; when that one is rolled back, its error leads to a row
	// of its own.
	noted bool
	// dropped says that it turned out to change nothing, as a dry run.
	dropped bool
}

type takenKey struct{}

// Begin begins an action: its Via, Action, TokenID and Actor. The context carries it to Note.
func Begin(ctx context.Context, a Action) (context.Context, *Taken) {
	t := &Taken{action: a, details: map[string]any{}}
	return context.WithValue(ctx, takenKey{}, t), t
}

// About says what the action is about, beside what was said before; empty values leave that alone.
func (t *Taken) About(org, subject string, details map[string]any) {
	if org != "" {
		t.action.OrgID = &org
	}
	t.action.Subject = cmp.Or(subject, t.action.Subject)
	maps.Copy(t.details, details)
}

// About says what the action of the context is about; without one it does nothing.
func About(ctx context.Context, org, subject string, details map[string]any) {
	if t, ok := ctx.Value(takenKey{}).(*Taken); ok {
		t.About(org, subject, details)
	}
}

// By is the actor of the action of the context, of 255 bytes at most; without one, or without a
// name, it is an operator.
func By(ctx context.Context) string {
	if t, ok := ctx.Value(takenKey{}).(*Taken); ok {
		return cmp.Or(storable(t.action.Actor, maxOrg), anOperator)
	}
	return anOperator
}

const anOperator = "an operator"

// Begun reports whether the context has an action that is to be written.
func Begun(ctx context.Context) bool {
	t, ok := ctx.Value(takenKey{}).(*Taken)
	return ok && !t.dropped
}

// Drop has the action of the context not be written: it only counted, or looked.
func Drop(ctx context.Context) {
	if t, ok := ctx.Value(takenKey{}).(*Taken); ok {
		t.dropped = true
	}
}

// Note writes the action of the context as done, in the transaction of its change: it is in the log
// if and only if the change is committed. A request that changes several organizations notes each.
// Without an action in the context it does nothing.
func Note(ctx context.Context, tx store.Querier, org, subject string, details map[string]any) error {
	t, ok := ctx.Value(takenKey{}).(*Taken)
	if !ok {
		return nil
	}
	one := Taken{action: t.action, details: maps.Clone(t.details)}
	one.About(org, subject, details)
	one.action.Outcome = Done
	if err := one.write(ctx, tx); err != nil {
		return err
	}
	t.noted = true
	return nil
}

// Written reports whether nothing is left for End to write of an action that ended with err.
func (t *Taken) Written(err error) bool { return t.dropped || err == nil && t.noted }

// writeWithin is how long the row of an action may take that is written after the change.
const writeWithin = 5 * time.Second

// End writes the action with its outcome, unless Note has written it: err is nil when it was done.
// The row is written also when the context has ended.
func (t *Taken) End(ctx context.Context, q store.Querier, err error) error {
	if t.Written(err) {
		return nil
	}
	t.action.Outcome = Done
	if err != nil {
		class := cmp.Or(store.Failure(err), failure.Internal)
		t.action.Outcome, t.action.Code = Refused, class.Code
		if class.Status >= http.StatusInternalServerError {
			t.action.Outcome = Failed
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	return t.write(ctx, q)
}

// Link is how the details of an action, as "link", say that it asked for jobs with a link. It is the
// form of the flag --link. An erasure of that link, or of that id when no kind was named, finds it.
func Link(l models.JobLink) string {
	if l.ID == "" {
		return l.Kind
	}
	return l.Kind + "=" + l.ID
}

const (
	maxOrg     = 255
	maxSubject = 1000
)

func (t *Taken) write(ctx context.Context, q store.Querier) error {
	const stmt = `
INSERT INTO daybook.actions (via, action, token_id, actor, org_id, subject, details, outcome, code)
VALUES (@via, @action, @token, @actor, NULLIF(@org, ''), @subject, @details, @outcome, @code)
RETURNING id`
	a := &t.action
	org := ""
	if a.OrgID != nil && len(*a.OrgID) <= maxOrg {
		org = storable(*a.OrgID, maxOrg)
	}
	details, err := json.Marshal(t.details)
	if err != nil {
		return store.Wrap("write the details of an action", err)
	}
	err = q.QueryRow(ctx, stmt, store.Args{
		"via": string(a.Via), "action": a.Action, "token": a.TokenID, "actor": storable(a.Actor, maxSubject), "org": org,
		"subject": storable(a.Subject, maxSubject),
		"details": strings.ReplaceAll(string(details), `\u0000`, `\ufffd`), "outcome": string(a.Outcome), "code": a.Code,
	}).Scan(&a.ID)
	return store.Wrap("write the log of actions", err)
}

// storable is a text as PostgreSQL takes it, cut to a length: what was asked for may be anything
// when it was refused.
func storable(s string, most int) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\ufffd"), "\ufffd")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

package httpapi

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// recorded begins the action of an operation; end has it written in the log of actions, unless the
// transaction of the change wrote it. An operation without an action is not in the log.
func (s *server) recorded(ctx context.Context, action string) (with context.Context, end func(error)) {
	p := caller(ctx)
	if action == "" || p == nil {
		return ctx, func(error) {}
	}
	with, taken := actions.Begin(ctx, actions.Action{Via: actions.API, Action: action, TokenID: &p.ID, Actor: p.Name})
	return with, func(err error) {
		if noted := taken.End(with, s.pool, err); noted != nil {
			s.log.Error("an action is not in the log of actions", "action", action, "token", p.ID, "error", noted)
		}
	}
}

// changed makes a change of one job, and writes its action in the same transaction.
func (s *server) changed(ctx context.Context, org, subject string, details map[string]any,
	change func(tx pgx.Tx) (queue.Response, error),
) (*changeOutput, error) {
	actions.About(ctx, org, subject, details)
	var r queue.Response
	err := store.Begin(ctx, s.pool, func(tx pgx.Tx) (err error) {
		if r, err = change(tx); err != nil {
			return err
		}
		return actions.Note(ctx, tx, "", "", map[string]any{"result": r.Result})
	})
	return requested(r, err)
}

// aboutBulk says what a request for many jobs was about. One that only counted is no action.
func aboutBulk(ctx context.Context, r *listing.BulkJobs, op *models.BulkOperation, details map[string]any) {
	if r.DryRun {
		actions.Drop(ctx)
		return
	}
	f := &r.Filter
	filter := map[string]any{}
	for name, value := range map[string]string{
		"state": string(f.State), "type": f.Type, "code": string(f.Code),
	} {
		if value != "" {
			filter[name] = value
		}
	}
	if !f.Since.IsZero() {
		filter["since"] = f.Since
	}
	if !f.Until.IsZero() {
		filter["until"] = f.Until
	}
	actions.About(ctx, f.OrgID, op.ID, map[string]any{"filter": filter, "matched": op.Matched})
	if link := actions.Link(f.Link); link != "" {
		actions.About(ctx, "", "", map[string]any{"link": link})
	}
	actions.About(ctx, "", "", details)
}

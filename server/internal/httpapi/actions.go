package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

func (s *server) actions() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listActions", Method: http.MethodGet, Path: "/api/actions", Tags: []string{tagOperators},
		Summary: "List what operators did, the newest first",
		Description: "Through the console, this API and the command line. A token of one organization sees what was " +
			"about that one alone.",
	}, s.listActions, http.StatusNotFound)
}

type listActionsInput struct {
	PageInput
	OrgID   string    `query:"orgId" maxLength:"255" doc:"Only about this organization; default that of the token"`
	Via     string    `query:"via" enum:"console,api,cli" doc:"Only by this way"`
	Action  string    `query:"action" maxLength:"100" doc:"Only this action, such as jobs.retry"`
	Actor   string    `query:"actor" maxLength:"255" doc:"Only by the token of this name, or by this user of the command line"`
	Subject string    `query:"subject" maxLength:"1000" doc:"Only about this job, document, type …"`
	Outcome string    `query:"outcome" enum:"done,refused,failed"`
	Since   time.Time `query:"since" doc:"Only since then"`
	Until   time.Time `query:"until" doc:"Only before then"`
}

type listActionsOutput struct {
	Body struct{ answers.ActionList }
}

func (s *server) listActions(ctx context.Context, in *listActionsInput) (*listActionsOutput, error) {
	org, err := caller(ctx).reach(in.OrgID)
	if err != nil {
		return nil, err
	}
	f := actions.Filter{
		OrgID: org, Via: actions.Via(in.Via), Action: in.Action, Actor: in.Actor, Subject: in.Subject,
		Outcome: actions.Outcome(in.Outcome),
		Since:   in.Since, Until: in.Until, Limit: in.Limit + 1,
	}
	if err := in.decode(&f.Before); err != nil {
		return nil, err
	}
	list, err := actions.List(ctx, s.pool, f)
	if err != nil {
		return nil, err
	}
	out := &listActionsOutput{}
	list, next := page(in.PageInput, list, func(a actions.Action) any { return a.ID })
	out.Body.ActionList = answers.ActionListOf(list, next)
	return out, nil
}

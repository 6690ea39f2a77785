package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/models"
)

// periods adds the periods, what is to be done before one is closed, and what was closed.
func (s *server) periods() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listPeriods", Method: http.MethodGet, Path: "/api/periods", Tags: []string{tagLedger},
		Summary: "List an organization's periods, the oldest first",
	}, s.listPeriods, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getClosingList", Method: http.MethodGet, Path: "/api/periods/{startsOn}/closing", Tags: []string{tagLedger},
		Summary:     "List what is to be done before a period is closed",
		Description: "Of a closed period, what is open now.",
	}, s.getClosingList, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listAdjustments", Method: http.MethodGet, Path: "/api/periods/{startsOn}/adjustments", Tags: []string{tagLedger},
		Summary:     "List what was posted of a period after it was first closed",
		Description: "An impact with several currencies has a row for each. A page has all rows of limit impacts.",
	}, s.listAdjustments, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listClosings", Method: http.MethodGet, Path: "/api/closings", Tags: []string{tagLedger},
		Summary: "List an organization's closings and openings of periods, with their hashes, the oldest first",
	}, s.listClosings, http.StatusNotFound)
}

type listPeriodsInput struct {
	OrgID string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
}

type listPeriodsOutput struct {
	Body struct {
		Periods []answers.Period `json:"periods"`
		Policy  string           `json:"policy" enum:"fail,first_open_day" doc:"What a document does whose posting date lies in a closed period"`
	}
}

func (s *server) listPeriods(ctx context.Context, in *listPeriodsInput) (*listPeriodsOutput, error) {
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	list, err := books.Periods(ctx, s.pool, org)
	if err != nil {
		return nil, err
	}
	policy, err := books.ClosedPeriodPolicy(ctx, s.pool, org)
	if err != nil {
		return nil, err
	}
	out := &listPeriodsOutput{}
	out.Body.Policy = string(policy)
	out.Body.Periods = []answers.Period{}
	for _, p := range list {
		out.Body.Periods = append(out.Body.Periods, answers.PeriodOf(p))
	}
	return out, nil
}

// PeriodInput names a period of an organization.
type PeriodInput struct {
	StartsOn string `path:"startsOn" format:"date" doc:"The period's first day"`
	OrgID    string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
}

// period reads which period of which organization is meant.
func (s *server) period(ctx context.Context, in *PeriodInput) (org string, p models.Period, err error) {
	if p.StartsOn, err = day("path.startsOn", in.StartsOn); err != nil {
		return "", p, err
	}
	org, err = s.organization(ctx, in.OrgID)
	return org, p, err
}

type closingListOutput struct {
	Body struct{ answers.ClosingList }
}

func (s *server) getClosingList(ctx context.Context, in *PeriodInput) (*closingListOutput, error) {
	org, p, err := s.period(ctx, in)
	if err != nil {
		return nil, err
	}
	p, list, err := books.ClosingList(ctx, s.pool, org, p)
	if err != nil {
		return nil, err
	}
	out := &closingListOutput{}
	out.Body.ClosingList = answers.ClosingListOf(p, list)
	return out, nil
}

type listAdjustmentsInput struct {
	PeriodInput
	PageInput
}

type listAdjustmentsOutput struct {
	Body struct{ answers.AdjustmentList }
}

func (s *server) listAdjustments(ctx context.Context, in *listAdjustmentsInput) (*listAdjustmentsOutput, error) {
	o := books.AdjustmentOptions{Limit: in.Limit}
	if err := in.decode(&o.After); err != nil {
		return nil, err
	}
	org, p, err := s.period(ctx, &in.PeriodInput)
	if err != nil {
		return nil, err
	}
	list, next, err := books.Adjustments(ctx, s.pool, org, p, o)
	if err != nil {
		return nil, err
	}
	out := &listAdjustmentsOutput{}
	out.Body.Adjustments = answers.List(list, answers.AdjustmentOf)
	if next != 0 {
		out.Body.NextCursor = cursor.Of(next)
	}
	return out, nil
}

type listClosingsInput struct {
	PageInput
	OrgID string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
}

type listClosingsOutput struct {
	Body struct {
		Closings   []answers.Closing `json:"closings"`
		NextCursor string            `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
	}
}

func (s *server) listClosings(ctx context.Context, in *listClosingsInput) (*listClosingsOutput, error) {
	var after int
	if err := in.decode(&after); err != nil {
		return nil, err
	}
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	list, err := books.Closings(ctx, s.pool, org, books.ClosingOptions{After: after, Limit: in.Limit + 1})
	if err != nil {
		return nil, err
	}
	out := &listClosingsOutput{}
	list, next := page(in.PageInput, list, func(c models.Closing) any { return c.Number })
	out.Body.NextCursor = next
	if out.Body.Closings, err = answers.ClosingsOf(list); err != nil {
		return nil, err
	}
	return out, nil
}

package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/queue"
)

// accountingElsewhere adds what another system has posted of a document, and the decision about it.
func (s *server) accountingElsewhere() {
	const path = "/api/accounting/jobs/{documentId}/elsewhere"
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getPostedElsewhere", Method: http.MethodGet, Path: path, Tags: []string{tagAccounting},
		Summary: "Get what another system has posted of a document",
	}, s.getPostedElsewhere, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "decidePostedElsewhere", Method: http.MethodPost, Path: path, Tags: []string{tagAccounting},
		Summary: "Decide what Daybook posts of a document that another system has posted",
		Description: "`difference` posts the document less what is posted elsewhere; `full` posts all of it, because the " +
			"other system has taken its posting back; " +
			"`nothing` leaves the version that is asked for to the other system. The document's job is tried again.",
		Metadata: map[string]any{exampleKey: `{"post": "difference"}`, actionKey: "accounting.elsewhere"},
	}, s.decidePostedElsewhere, http.StatusNotFound)
}

type postedElsewhereOutput struct{ Body answers.PostedElsewhere }

func (s *server) getPostedElsewhere(ctx context.Context, in *DocumentInput) (*postedElsewhereOutput, error) {
	org, err := caller(ctx).reachOne(in.OrgID, "query.orgId")
	if err != nil {
		return nil, err
	}
	known, err := s.Listing.PostedElsewhere(ctx, org, in.DocumentID)
	if err != nil {
		return nil, err
	}
	answer, err := answers.PostedElsewhereOf(&known)
	if err != nil {
		return nil, err
	}
	return &postedElsewhereOutput{answer}, nil
}

type decidePostedElsewhereInput struct {
	DocumentInput
	Body struct {
		Post string `json:"post" enum:"difference,full,nothing" doc:"What Daybook posts of the document"`
	}
}

func (s *server) decidePostedElsewhere(ctx context.Context, in *decidePostedElsewhereInput) (*changeOutput, error) {
	org, err := caller(ctx).reachOne(in.OrgID, "query.orgId")
	if err != nil {
		return nil, err
	}
	return s.changed(ctx, org, in.DocumentID, map[string]any{"post": in.Body.Post},
		func(tx pgx.Tx) (queue.Response, error) {
			r, err := ledgerdb.DecideElsewhere(ctx, tx, org, in.DocumentID, in.Body.Post)
			return queue.Response{JobID: r.JobID, Result: queue.Result(r.Result)}, err
		})
}

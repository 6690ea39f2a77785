package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// PostedElsewhere is what another system has posted of a document.
type PostedElsewhere struct {
	OrgID       string           `json:"orgId"`
	DocumentID  string           `json:"documentId"`
	Version     int64            `json:"version" doc:"The newest version that is posted elsewhere; -1 is below every version"`
	Next        string           `json:"next" enum:"difference,wait,full" doc:"What Daybook does with a newer version: post the difference, wait for a person, or post all of it"`
	System      string           `json:"system" doc:"Where it is posted"`
	PostedOn    string           `json:"postedOn" format:"date"`
	LeftVersion *int64           `json:"leftVersion,omitempty" doc:"Up to this version a person decided that Daybook posts nothing; absent: no such decision"`
	Entries     []EntryElsewhere `json:"entries" doc:"What is posted elsewhere; empty when it is not known"`
	UpdatedAt   time.Time        `json:"updatedAt"`
}

// EntryElsewhere is one entry that another system has posted.
type EntryElsewhere struct {
	Account  string `json:"account"`
	Side     string `json:"side" enum:"debit,credit"`
	Amount   int64  `json:"amount" doc:"In minor units of the currency"`
	Currency string `json:"currency"`
}

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
		Description: "`difference` posts the document less what is posted elsewhere; `full` posts all of it, because the other system has taken its posting back; " +
			"`nothing` leaves the version that is asked for to the other system. The document's job is tried again.",
		Metadata: map[string]any{exampleKey: `{"post": "difference"}`, actionKey: "accounting.elsewhere"},
	}, s.decidePostedElsewhere, http.StatusNotFound)
}

type postedElsewhereOutput struct{ Body PostedElsewhere }

func (s *server) getPostedElsewhere(ctx context.Context, in *DocumentInput) (*postedElsewhereOutput, error) {
	org, err := caller(ctx).reachOne(in.OrgID, "query.orgId")
	if err != nil {
		return nil, err
	}
	known, err := s.Listing.PostedElsewhere(ctx, org, in.DocumentID)
	if err != nil {
		return nil, err
	}
	out := &postedElsewhereOutput{PostedElsewhere{
		OrgID: known.OrgID, DocumentID: known.DocumentID, Version: known.DocumentVersion, Next: string(known.Next), System: known.System,
		PostedOn: known.PostedOn.String(), LeftVersion: known.LeftVersion, UpdatedAt: known.UpdatedAt, Entries: []EntryElsewhere{},
	}}
	if known.Entries == nil {
		return out, nil
	}
	var entries []models.EntryElsewhere
	if err := json.Unmarshal(known.Entries, &entries); err != nil {
		return nil, fmt.Errorf("the entries elsewhere of document %s: %w", in.DocumentID, err)
	}
	out.Body.Entries = convert(entries, func(e *models.EntryElsewhere) EntryElsewhere {
		return EntryElsewhere{Account: e.Account, Side: string(e.Side), Amount: e.Amount, Currency: e.Currency}
	})
	return out, nil
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
	return s.changed(ctx, org, in.DocumentID, map[string]any{"post": in.Body.Post}, func(tx pgx.Tx) (queue.Response, error) {
		r, err := ledgerdb.DecideElsewhere(ctx, tx, org, in.DocumentID, in.Body.Post)
		return queue.Response{JobID: r.JobID, Result: queue.Result(r.Result)}, err
	})
}

package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// openItems adds what is owed and paid, and which documents belong together.
func (s *server) openItems() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listOpenItems", Method: http.MethodGet, Path: "/api/open-items", Tags: []string{tagLedger},
		Summary: "List what is open of each document, by counterparty",
		Description: "Amounts are debits less credits: what a customer owes is positive, what a supplier is owed negative. They add up " +
			"to the balances of the accounts of receivables, payables and advances on the day.",
	}, s.listOpenItems, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getAgeing", Method: http.MethodGet, Path: "/api/open-items/ageing", Tags: []string{tagLedger},
		Summary: "Sum what is open by counterparty and by how long it has been due",
	}, s.getAgeing, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getCounterpartyStatement", Method: http.MethodGet, Path: "/api/open-items/statement", Tags: []string{tagLedger},
		Summary: "List what a counterparty's documents have posted, with the balance after each",
	}, s.getCounterpartyStatement, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getItemGroup", Method: http.MethodGet, Path: "/api/open-items/groups/{group}", Tags: []string{tagLedger},
		Summary: "Get a group of documents that belong together, and what is open of it",
	}, s.getItemGroup, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "matchOpenItems", Method: http.MethodPost, Path: "/api/open-items/match", Tags: []string{tagLedger},
		Summary: "Put documents together whose open items belong together",
		Description: "By the rules reference (the one refers to the other), number (a payment's texts name the other's number, and the " +
			"amount is equal) and amount (the counterparty and the amount are equal, and no other item fits). Nothing is posted.",
		Metadata: map[string]any{exampleKey: `{"orgId": "acme", "dryRun": true}`, actionKey: "open-items.match"},
	}, s.matchOpenItems, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "reconcile", Method: http.MethodPost, Path: "/api/open-items/reconcile", Tags: []string{tagLedger},
		Summary:     "Put documents that belong together into one group",
		Description: "The groups that they are in become one. Nothing is posted.",
		Metadata: map[string]any{
			exampleKey: `{"orgId": "acme", "documents": ["invoice-1", "payment-1"], "reason": "by phone"}`, actionKey: "open-items.reconcile",
		},
	}, s.reconcile, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "unreconcile", Method: http.MethodPost, Path: "/api/open-items/unreconcile", Tags: []string{tagLedger},
		Summary:     "Take documents out of their groups, or dissolve a group",
		Description: "A document that would be alone in its group leaves it, too. Nothing is posted.",
		Metadata: map[string]any{
			exampleKey: `{"orgId": "acme", "documents": ["payment-1"]}`, actionKey: "open-items.unreconcile",
		},
	}, s.unreconcile, http.StatusNotFound)
}

type listOpenItemsInput struct {
	PageInput
	OrgID        string   `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	On           string   `query:"on" format:"date" doc:"What was open on this day; default by all that is posted"`
	Counterparty string   `query:"counterparty" maxLength:"1000" doc:"Only of this counterparty"`
	Account      string   `query:"account" maxLength:"255" doc:"Only on this account"`
	Currency     currency `query:"currency" doc:"Only this currency"`
}

type listOpenItemsOutput struct {
	Body struct{ answers.OpenItemList }
}

func (s *server) listOpenItems(ctx context.Context, in *listOpenItemsInput) (*listOpenItemsOutput, error) {
	o := books.OpenItemsOptions{Account: in.Account, Currency: string(in.Currency), Limit: in.Limit + 1}
	var after ledgerdb.ItemPlace
	if err := in.decode(&after); err != nil {
		return nil, err
	}
	if after != (ledgerdb.ItemPlace{}) {
		o.After = after.Item()
	}
	if in.Counterparty != "" {
		o.Counterparty = &in.Counterparty
	}
	var err error
	if o.On, err = day("query.on", in.On); err != nil {
		return nil, err
	}
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	list, err := books.OpenItems(ctx, s.pool, org, o)
	if err != nil {
		return nil, err
	}
	out := &listOpenItemsOutput{}
	list, next := page(in.PageInput, list, func(i models.OpenItem) any { return ledgerdb.PlaceOf(&i) })
	out.Body.OpenItemList = answers.OpenItemListOf(list, next)
	return out, nil
}

type getAgeingInput struct {
	OrgID string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	On    string `query:"on" format:"date" doc:"The day; default today, in UTC"`
}

type getAgeingOutput struct {
	Body struct{ answers.Ageing }
}

func (s *server) getAgeing(ctx context.Context, in *getAgeingInput) (*getAgeingOutput, error) {
	on, err := day("query.on", in.On)
	if err != nil {
		return nil, err
	}
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	list, err := books.Ageing(ctx, s.pool, org, books.AgeingOptions{On: on})
	if err != nil {
		return nil, err
	}
	out := &getAgeingOutput{}
	out.Body.Ageing = answers.AgeingOf(on, list)
	return out, nil
}

type getCounterpartyStatementInput struct {
	OrgID        string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	Counterparty string `query:"counterparty" required:"true" minLength:"1" maxLength:"1000" doc:"The name that its documents have"`
	From         string `query:"from" format:"date" doc:"The first posting date"`
	To           string `query:"to" format:"date" doc:"The last posting date"`
}

type getCounterpartyStatementOutput struct {
	Body struct{ answers.CounterpartyStatement }
}

func (s *server) getCounterpartyStatement(ctx context.Context, in *getCounterpartyStatementInput,
) (*getCounterpartyStatementOutput, error) {
	o := books.CounterpartyOptions{Counterparty: in.Counterparty}
	var err error
	if o.From, err = day("query.from", in.From); err != nil {
		return nil, err
	}
	if o.To, err = day("query.to", in.To); err != nil {
		return nil, err
	}
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	list, err := books.CounterpartyStatement(ctx, s.pool, org, o)
	if err != nil {
		return nil, err
	}
	out := &getCounterpartyStatementOutput{}
	out.Body.CounterpartyStatement = answers.CounterpartyStatementOf(in.Counterparty, list)
	return out, nil
}

type getItemGroupInput struct {
	Group int64  `path:"group" minimum:"1"`
	OrgID string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
}

type itemGroupOutput struct {
	Body struct{ answers.ItemGroup }
}

func (s *server) getItemGroup(ctx context.Context, in *getItemGroupInput) (*itemGroupOutput, error) {
	org, err := s.organization(ctx, in.OrgID)
	if err != nil {
		return nil, err
	}
	g, err := books.Group(ctx, s.pool, org, in.Group)
	if err != nil {
		return nil, err
	}
	out := &itemGroupOutput{}
	out.Body.ItemGroup = answers.ItemGroupOf(&g)
	return out, nil
}

type matchOpenItemsInput struct {
	Body struct {
		OrgID  string             `json:"orgId,omitempty" maxLength:"255" doc:"The organization; default that of the token"`
		Rules  []models.MatchedBy `json:"rules,omitempty" maxItems:"3" enum:"reference,number,amount" doc:"Only these, in this order; default all"`
		DryRun bool               `json:"dryRun,omitempty" doc:"Change nothing, and say what would be matched"`
	}
}

type matchOpenItemsOutput struct {
	Body struct{ answers.Matched }
}

func (s *server) matchOpenItems(ctx context.Context, in *matchOpenItemsInput) (*matchOpenItemsOutput, error) {
	org, err := caller(ctx).reachOne(in.Body.OrgID, "body.orgId")
	if err != nil {
		return nil, err
	}
	if in.Body.DryRun {
		actions.Drop(ctx)
	}
	actions.About(ctx, org, "", nil)
	list, err := books.MatchOpenItems(ctx, s.pool, org, books.MatchOptions{Rules: in.Body.Rules, DryRun: in.Body.DryRun})
	if err != nil {
		return nil, err
	}
	out := &matchOpenItemsOutput{}
	out.Body.Matched = answers.MatchedOf(list, in.Body.DryRun)
	return out, nil
}

type reconcileInput struct {
	Body struct {
		OrgID     string   `json:"orgId,omitempty" maxLength:"255" doc:"The organization; default that of the token"`
		Documents []string `json:"documents" minItems:"2" maxItems:"1000" doc:"Their ids"`
		Reason    string   `json:"reason,omitempty" maxLength:"250" doc:"Why they belong together"`
	}
}

func (s *server) reconcile(ctx context.Context, in *reconcileInput) (*itemGroupOutput, error) {
	org, err := caller(ctx).reachOne(in.Body.OrgID, "body.orgId")
	if err != nil {
		return nil, err
	}
	actions.About(ctx, org, in.Body.Documents[0], nil)
	g, err := books.Reconcile(ctx, s.pool, org, in.Body.Documents, in.Body.Reason)
	if err != nil {
		return nil, err
	}
	out := &itemGroupOutput{}
	out.Body.ItemGroup = answers.ItemGroupOf(&g)
	return out, nil
}

type unreconcileInput struct {
	Body struct {
		OrgID     string   `json:"orgId,omitempty" maxLength:"255" doc:"The organization; default that of the token"`
		Documents []string `json:"documents,omitempty" maxItems:"1000" doc:"Their ids"`
		Group     int64    `json:"group,omitempty" minimum:"0" doc:"In place of documents: all of this group"`
	}
}

type unreconcileOutput struct {
	Body struct{ answers.Unreconciled }
}

func (s *server) unreconcile(ctx context.Context, in *unreconcileInput) (*unreconcileOutput, error) {
	org, err := caller(ctx).reachOne(in.Body.OrgID, "body.orgId")
	if err != nil {
		return nil, err
	}
	if (len(in.Body.Documents) == 0) == (in.Body.Group == 0) {
		return nil, invalid("body", "give either documents or a group")
	}
	var documents []string
	if in.Body.Group > 0 {
		actions.About(ctx, org, strconv.FormatInt(in.Body.Group, 10), nil)
		documents, err = books.DissolveGroup(ctx, s.pool, org, in.Body.Group)
	} else {
		actions.About(ctx, org, in.Body.Documents[0], nil)
		documents, err = books.Unreconcile(ctx, s.pool, org, in.Body.Documents)
	}
	if err != nil {
		return nil, err
	}
	out := &unreconcileOutput{}
	out.Body.Documents = append([]string{}, documents...)
	return out, nil
}

package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/cursor"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

func (s *server) ledger() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listDocuments", Method: http.MethodGet, Path: "/api/documents", Tags: []string{tagLedger},
		Summary: "List an organization's documents in the order of their ids",
	}, s.listDocuments, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getDocument", Method: http.MethodGet, Path: "/api/documents/{documentId}", Tags: []string{tagLedger},
		Summary: "Get a document with its content, and what became of it",
	}, s.getDocument, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "listEntries", Method: http.MethodGet, Path: "/api/entries", Tags: []string{tagLedger},
		Summary: "List an organization's entries, the latest posting date first",
	}, s.listEntries, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getTrialBalance", Method: http.MethodGet, Path: "/api/trial-balance", Tags: []string{tagLedger},
		Summary: "Sum an organization's entries by currency and account",
		Description: "With from or to: opening balance, what was posted in the span, closing balance, by posting dates. " +
			"Balances are debits less credits. " +
			"Sums are strings, for they may be greater than 64 bits hold.",
	}, s.getTrialBalance, http.StatusNotFound)
}

// organization returns the organization that a request about the ledger is about; it must be known.
func (s *server) organization(ctx context.Context, org string) (string, error) {
	return s.organizationAt(ctx, org, "query.orgId")
}

// organizationOf is organization of a request that names it in its body.
func (s *server) organizationOf(ctx context.Context, org string) (string, error) {
	return s.organizationAt(ctx, org, "body.orgId")
}

func (s *server) organizationAt(ctx context.Context, org, location string) (string, error) {
	org, err := caller(ctx).reachOne(org, location)
	if err != nil {
		return "", err
	}
	_, err = s.Listing.Organization(ctx, org)
	return org, err
}

type listDocumentsInput struct {
	PageInput
	OrgID    string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	Type     string `query:"type" maxLength:"100" doc:"Only of this type, such as invoice"`
	ImportID int64  `query:"importId" minimum:"0" doc:"Only those that this import wrote last"`
}

type listDocumentsOutput struct {
	Body struct {
		Documents  []answers.Document `json:"documents"`
		NextCursor string             `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
	}
}

func (s *server) listDocuments(ctx context.Context, in *listDocumentsInput) (*listDocumentsOutput, error) {
	q := ledgerdb.DocumentQuery{Type: models.DocumentType(in.Type), ImportID: in.ImportID, Limit: in.Limit}
	if err := in.decode(&q.After); err != nil {
		return nil, err
	}
	var err error
	if q.OrgID, err = s.organization(ctx, in.OrgID); err != nil {
		return nil, err
	}
	needs, err := store.NeedsOf(ctx, s.pool, []string{q.OrgID})
	if err != nil {
		return nil, err
	}
	out := &listDocumentsOutput{}
	out.Body.Documents = []answers.Document{}
	// Where few documents are of the type, a page may have fewer than were asked for, and another one
	// behind it.
	page, err := ledgerdb.FindDocuments(ctx, s.pool, q)
	if err != nil {
		return nil, err
	}
	for i := range page.Documents {
		out.Body.Documents = append(out.Body.Documents,
			answers.DocumentOf(q.OrgID, needs[q.OrgID].Source, &page.Documents[i]))
	}
	if page.Next != "" {
		out.Body.NextCursor = cursor.Of(page.Next)
	}
	return out, nil
}

type documentOutput struct {
	Body struct{ answers.DocumentDetail }
}

func (s *server) getDocument(ctx context.Context, in *DocumentInput) (*documentOutput, error) {
	org, err := caller(ctx).reachOne(in.OrgID, "query.orgId")
	if err != nil {
		return nil, err
	}
	e, err := s.Listing.ExplainPart(ctx, org, in.DocumentID, listing.ExplainLimits{Impacts: 1, Entries: 100})
	if err != nil {
		return nil, err
	}
	out := &documentOutput{}
	if out.Body.DocumentDetail, err = answers.DocumentDetailOf(&e); err != nil {
		return nil, err
	}
	return out, nil
}

type listEntriesInput struct {
	PageInput
	OrgID      string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	DocumentID string `query:"documentId" maxLength:"255" doc:"Only of this document"`
	Account    string `query:"account" maxLength:"255" doc:"Only to this account"`
}

type listEntriesOutput struct {
	Body struct{ answers.EntryList }
}

func (s *server) listEntries(ctx context.Context, in *listEntriesInput) (*listEntriesOutput, error) {
	var after listing.EntryPlace
	if err := in.decode(&after); err != nil {
		return nil, err
	}
	var err error
	f := listing.EntryFilter{DocumentID: in.DocumentID, Account: in.Account, Limit: in.Limit + 1}
	if f.OrgID, err = s.organization(ctx, in.OrgID); err != nil {
		return nil, err
	}
	lines, err := s.Listing.Entries(ctx, f, after)
	if err != nil {
		return nil, err
	}
	out := &listEntriesOutput{}
	lines, next := page(in.PageInput, lines, func(l ledgerdb.EntryLine) any { return listing.Place(&l) })
	out.Body.EntryList = answers.EntryListOf(lines, next)
	return out, nil
}

// currency is the code of a currency in a request.
type currency string

// Schema implements huma.SchemaProvider.
func (currency) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: minor.CurrencyPattern}
}

type trialBalanceInput struct {
	OrgID    string   `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	Currency currency `query:"currency" doc:"Only this currency"`
	From     string   `query:"from" format:"date" doc:"The first posting date"`
	To       string   `query:"to" format:"date" doc:"The last posting date"`
}

type trialBalanceOutput struct {
	Body struct{ answers.TrialBalance }
}

func (s *server) getTrialBalance(ctx context.Context, in *trialBalanceInput) (*trialBalanceOutput, error) {
	f := ledgerdb.BalanceFilter{Currency: string(in.Currency)}
	var err error
	if f.From, err = day("query.from", in.From); err != nil {
		return nil, err
	}
	if f.To, err = day("query.to", in.To); err != nil {
		return nil, err
	}
	if !f.From.IsZero() && !f.To.IsZero() && f.To.Time().Before(f.From.Time()) {
		return nil, invalid("query.to", "the last day is before the first")
	}
	if f.OrgID, err = s.organization(ctx, in.OrgID); err != nil {
		return nil, err
	}
	trial, err := ledgerdb.ReadTrial(ctx, s.pool, f)
	if err != nil {
		return nil, err
	}
	out := &trialBalanceOutput{}
	out.Body.TrialBalance = answers.TrialBalanceOf(&f, &trial)
	return out, nil
}

// day reads a date; none is the zero date.
func day(location, text string) (models.Date, error) {
	if text == "" {
		return models.Date{}, nil
	}
	d, err := models.ParseDate(text)
	if err != nil {
		return d, invalid(location, err.Error())
	}
	return d, nil
}

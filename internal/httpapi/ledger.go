package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/minor"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
)

// Document is a business document without its content.
type Document struct {
	OrgID     string     `json:"orgId"`
	ID        string     `json:"id"`
	Type      string     `json:"type"`
	Direction string     `json:"direction" enum:"in,out"`
	Currency  string     `json:"currency"`
	IssueDate string     `json:"issueDate" format:"date"`
	ValueDate string     `json:"valueDate,omitempty" format:"date"`
	Version   int64      `json:"version" doc:"It grows when the document is marked ready, not ready or deleted"`
	ReadyAt   *time.Time `json:"readyAt,omitempty" doc:"When it was marked ready; absent: it is not"`
	DeletedAt *time.Time `json:"deletedAt,omitempty"`
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
}

func document(d *models.Document) Document {
	out := Document{
		OrgID: d.OrgID, ID: d.ID, Type: string(d.Type), Direction: string(d.Direction), Currency: d.Currency, IssueDate: d.IssueDate.String(),
		Version: d.AccountingReadyVersion, ReadyAt: d.AccountingReadyAt, DeletedAt: d.DeletedAt, CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}
	if d.ValueDate != nil && !d.ValueDate.IsZero() {
		out.ValueDate = d.ValueDate.String()
	}
	return out
}

// Entry is one line of what was posted.
type Entry struct {
	ImpactID        int64  `json:"impactId"`
	LineNo          int    `json:"lineNo"`
	DocumentID      string `json:"documentId"`
	DocumentVersion int64  `json:"documentVersion"`
	Kind            string `json:"kind" enum:"post,reverse" doc:"Whether it posts, or takes back what was posted"`
	Account         string `json:"account"`
	Side            string `json:"side" enum:"debit,credit"`
	AmountMinor     int64  `json:"amountMinor" doc:"In minor units of the currency"`
	Amount          string `json:"amount" doc:"The same as a decimal number" example:"12.34"`
	Currency        string `json:"currency"`
	DocumentDate    string `json:"documentDate" format:"date"`
	PostingDate     string `json:"postingDate" format:"date"`
	RuleSetVersion  int64  `json:"ruleSetVersion,omitempty"`
	RuleID          string `json:"ruleId,omitempty"`
	RuleLineID      string `json:"ruleLineId,omitempty"`
	JobID           string `json:"jobId"`
	Attempt         int    `json:"attempt"`
}

func entry(l *ledgerdb.EntryLine) Entry {
	e := Entry{
		ImpactID: l.ImpactID, LineNo: l.LineNo, DocumentID: l.DocumentID, DocumentVersion: l.DocumentVersion, Kind: string(l.Kind), Account: l.Account,
		Side: string(l.Side), AmountMinor: l.Amount, Amount: minor.Decimal64(l.Amount, l.Currency), Currency: l.Currency,
		DocumentDate: l.DocumentDate.String(), PostingDate: l.PostingDate.String(), RuleID: l.RuleID, RuleLineID: l.RuleLineID, JobID: l.JobID, Attempt: l.Attempt,
	}
	if l.RuleSetVersion != nil {
		e.RuleSetVersion = *l.RuleSetVersion
	}
	return e
}

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
		Summary: "List an organization's entries, the newest impact first",
	}, s.listEntries, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getTrialBalance", Method: http.MethodGet, Path: "/api/trial-balance", Tags: []string{tagLedger},
		Summary: "Sum an organization's entries by currency and account",
		Description: "With from or to: opening balance, what was posted in the span, closing balance, by posting dates. Balances are debits less credits. " +
			"Sums are strings, for they may be greater than 64 bits hold.",
	}, s.getTrialBalance, http.StatusNotFound)
}

// organization returns the organization that a request about the ledger is about; it must be known.
func (s *server) organization(ctx context.Context, org string) (string, error) {
	org, err := caller(ctx).reachOne(org, "query.orgId")
	if err != nil {
		return "", err
	}
	_, err = s.Listing.Organization(ctx, org)
	return org, err
}

type listDocumentsInput struct {
	PageInput
	OrgID string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	Type  string `query:"type" maxLength:"100" doc:"Only of this type, such as invoice"`
}

type listDocumentsOutput struct {
	Body struct {
		Documents  []Document `json:"documents"`
		NextCursor string     `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
	}
}

func (s *server) listDocuments(ctx context.Context, in *listDocumentsInput) (*listDocumentsOutput, error) {
	f := listing.DocumentFilter{Type: models.DocumentType(in.Type), Limit: in.Limit + 1}
	if _, err := in.decode(&f.After); err != nil {
		return nil, err
	}
	var err error
	if f.OrgID, err = s.organization(ctx, in.OrgID); err != nil {
		return nil, err
	}
	documents, err := s.Listing.Documents(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &listDocumentsOutput{}
	documents, out.Body.NextCursor = page(in.PageInput, documents, func(d models.Document) any { return d.ID })
	out.Body.Documents = convert(documents, document)
	return out, nil
}

// Posting is how a document stands in the queue and the ledger.
type Posting struct {
	JobID         string `json:"jobId"`
	State         string `json:"state" enum:"pending,leased,completed,failed,cancelled" doc:"The job's"`
	Version       int64  `json:"version" doc:"The newest document version that was asked for"`
	PostedVersion *int64 `json:"postedVersion,omitempty" doc:"The version that is posted; absent: none is"`
	ImpactID      *int64 `json:"impactId,omitempty" doc:"The impact that posts it"`
	ErrorCode     string `json:"errorCode,omitempty"`
	Error         string `json:"error,omitempty"`
}

type documentOutput struct {
	Body struct {
		Document
		Content object   `json:"content" doc:"Lines, taxes and totals as the document states them, in minor units"`
		Posting *Posting `json:"posting,omitempty" doc:"Absent: it was never enqueued"`
	}
}

func (s *server) getDocument(ctx context.Context, in *DocumentInput) (*documentOutput, error) {
	org, err := caller(ctx).reachOne(in.OrgID, "query.orgId")
	if err != nil {
		return nil, err
	}
	d, err := s.Listing.Document(ctx, org, in.DocumentID)
	if err != nil {
		return nil, err
	}
	out := &documentOutput{}
	out.Body.Document = document(&d)
	if out.Body.Content, err = objectOf(d.Content); err != nil {
		return nil, err
	}
	status, err := store.ReadAccountingJobStatus(ctx, s.pool, org, in.DocumentID)
	switch {
	case errors.Is(err, store.ErrJobNotFound):
		return out, nil
	case err != nil:
		return nil, err
	}
	out.Body.Posting = &Posting{
		JobID: status.JobID, State: string(status.State), Version: status.VersionHint, PostedVersion: status.PostedVersion,
		ImpactID: status.LiveImpactID, ErrorCode: string(status.ErrorCode), Error: status.Error,
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
	Body struct {
		Entries    []Entry `json:"entries"`
		NextCursor string  `json:"nextCursor,omitempty" doc:"For the next page; absent: this is the last one"`
	}
}

func (s *server) listEntries(ctx context.Context, in *listEntriesInput) (*listEntriesOutput, error) {
	var after listing.EntryPlace
	more, err := in.decode(&after)
	if err != nil {
		return nil, err
	}
	f := listing.EntryFilter{DocumentID: in.DocumentID, Account: in.Account, Limit: in.Limit + 1}
	if f.OrgID, err = s.organization(ctx, in.OrgID); err != nil {
		return nil, err
	}
	read := s.Listing.Entries
	if more {
		read = func(ctx context.Context, f listing.EntryFilter) ([]ledgerdb.EntryLine, error) {
			return s.Listing.EntriesAfter(ctx, f, after)
		}
	}
	lines, err := read(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &listEntriesOutput{}
	lines, out.Body.NextCursor = page(in.PageInput, lines, func(l ledgerdb.EntryLine) any {
		return listing.EntryPlace{ImpactID: l.ImpactID, LineNo: l.LineNo}
	})
	out.Body.Entries = convert(lines, entry)
	return out, nil
}

// AccountBalance is what was posted to an account in a currency.
type AccountBalance struct {
	Account      string `json:"account,omitempty" doc:"Absent: the total of the currency"`
	Name         string `json:"name,omitempty"`
	Type         string `json:"type,omitempty"`
	Currency     string `json:"currency"`
	OpeningMinor string `json:"openingMinor" doc:"Before the span, in minor units" example:"0"`
	DebitMinor   string `json:"debitMinor" example:"1234"`
	CreditMinor  string `json:"creditMinor" example:"0"`
	ClosingMinor string `json:"closingMinor" doc:"After the span" example:"1234"`
	Opening      string `json:"opening" doc:"The same as decimal numbers" example:"0.00"`
	Debit        string `json:"debit" example:"12.34"`
	Credit       string `json:"credit" example:"0.00"`
	Closing      string `json:"closing" example:"12.34"`
}

func accountBalance(b *ledgerdb.SpanBalance) AccountBalance {
	return AccountBalance{
		Account: b.Account, Name: b.Name, Type: string(b.Type), Currency: b.Currency,
		OpeningMinor: b.Opening.String(), DebitMinor: b.Debit.String(), CreditMinor: b.Credit.String(), ClosingMinor: b.Closing.String(),
		Opening: minor.Decimal(b.Opening, b.Currency), Debit: minor.Decimal(b.Debit, b.Currency), Credit: minor.Decimal(b.Credit, b.Currency), Closing: minor.Decimal(b.Closing, b.Currency),
	}
}

type trialBalanceInput struct {
	OrgID    string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	Currency string `query:"currency" pattern:"^[A-Z]{3}$" doc:"Only this currency"`
	From     string `query:"from" format:"date" doc:"The first posting date"`
	To       string `query:"to" format:"date" doc:"The last posting date"`
}

type trialBalanceOutput struct {
	Body struct {
		OrgID    string           `json:"orgId"`
		Accounts []AccountBalance `json:"accounts"`
		Totals   []AccountBalance `json:"totals" doc:"A row a currency"`
		Balanced bool             `json:"balanced" doc:"Whether debits equal credits in each currency, before, in and after the span"`
	}
}

func (s *server) getTrialBalance(ctx context.Context, in *trialBalanceInput) (*trialBalanceOutput, error) {
	f := ledgerdb.BalanceFilter{Currency: in.Currency}
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
	balances, err := ledgerdb.Balances(ctx, s.pool, f)
	if err != nil {
		return nil, err
	}
	out := &trialBalanceOutput{}
	trial := ledgerdb.AddUp(balances)
	out.Body.OrgID, out.Body.Balanced = f.OrgID, trial.Balanced
	out.Body.Accounts, out.Body.Totals = convert(trial.Accounts, accountBalance), convert(trial.Totals, accountBalance)
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

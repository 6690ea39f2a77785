package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/cursor"
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
	Source    string     `json:"source" doc:"Where the organization's documents are read: daybook, or the name of a source of the application's. A document of the application's own tables has here what its job and its impacts say"`
	Type      string     `json:"type,omitempty" doc:"This and the fields up to currency are absent for a document that is not in daybook.documents"`
	Direction string     `json:"direction,omitempty" enum:"in,out"`
	Currency  string     `json:"currency,omitempty"`
	IssueDate string     `json:"issueDate,omitempty" format:"date" doc:"Absent: it is not in daybook.documents, and was never posted"`
	ValueDate string     `json:"valueDate,omitempty" format:"date"`
	Version   int64      `json:"version" doc:"It grows when the document is marked ready, not ready or deleted; of a document of the application's own tables, the newest that was asked for"`
	ReadyAt   *time.Time `json:"readyAt,omitempty" doc:"When it was marked ready; absent: it is not, or it is not in daybook.documents"`
	DeletedAt *time.Time `json:"deletedAt,omitempty"`
	CreatedAt *time.Time `json:"createdAt,omitempty"`
	UpdatedAt *time.Time `json:"updatedAt,omitempty"`
}

func documentLine(org, source string, d *ledgerdb.DocumentLine) Document {
	out := Document{
		OrgID: org, ID: d.ID, Source: source, Type: string(d.Type), Direction: string(d.Direction), Currency: d.Currency, IssueDate: d.Date.String(),
		ValueDate: d.ValueDate.String(), Version: d.Version, ReadyAt: d.ReadyAt, DeletedAt: d.DeletedAt, CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
	}
	if d.Here {
		out.Source = store.SourceDaybook
	}
	return out
}

// explained is a document as its row has it, or else as its job and its last impact do.
func explained(e *listing.Explanation) Document {
	out := Document{OrgID: e.OrgID, ID: e.DocumentID, Source: e.Source}
	if e.Job != nil {
		out.Version = e.Job.VersionHint
	}
	if n := len(e.Impacts); n > 0 {
		out.IssueDate, out.Version = e.Impacts[n-1].DocumentDate.String(), max(out.Version, e.Impacts[n-1].DocumentVersion)
	}
	d := e.Document
	if d == nil {
		return out
	}
	out = Document{
		OrgID: d.OrgID, ID: d.ID, Source: store.SourceDaybook, Type: string(d.Type), Direction: string(d.Direction), Currency: d.Currency, IssueDate: d.IssueDate.String(),
		Version: d.AccountingReadyVersion, ReadyAt: d.AccountingReadyAt, DeletedAt: d.DeletedAt, CreatedAt: &d.CreatedAt, UpdatedAt: &d.UpdatedAt,
	}
	if d.ValueDate != nil {
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
		Summary: "List an organization's entries, the latest posting date first",
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
	q := ledgerdb.DocumentQuery{Type: models.DocumentType(in.Type), Limit: in.Limit}
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
	out.Body.Documents = []Document{}
	// Where few documents are of the type, a page may have fewer than were asked for, and another one behind it.
	page, err := ledgerdb.FindDocuments(ctx, s.pool, q)
	if err != nil {
		return nil, err
	}
	for i := range page.Documents {
		out.Body.Documents = append(out.Body.Documents, documentLine(q.OrgID, needs[q.OrgID].Source, &page.Documents[i]))
	}
	if page.Next != "" {
		out.Body.NextCursor = cursor.Of(page.Next)
	}
	return out, nil
}

// Posting is how a document stands in the queue and the ledger.
type Posting struct {
	JobID         string `json:"jobId,omitempty" doc:"Absent, as the state: the job was removed, and the ledger has what it posted"`
	State         string `json:"state,omitempty" enum:"pending,leased,completed,failed,cancelled" doc:"The job's"`
	Version       int64  `json:"version" doc:"The newest document version that was asked for"`
	PostedVersion *int64 `json:"postedVersion,omitempty" doc:"The version that is posted; absent: none is"`
	ImpactID      *int64 `json:"impactId,omitempty" doc:"The impact that posts it"`
	ErrorCode     string `json:"errorCode,omitempty"`
	Error         string `json:"error,omitempty"`
}

type documentOutput struct {
	Body struct {
		Document
		Content object   `json:"content,omitempty" doc:"Lines, taxes and totals as the document states them, in minor units; absent: it is not in daybook.documents"`
		Posting *Posting `json:"posting,omitempty" doc:"Absent: it was never enqueued"`
	}
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
	out.Body.Document = explained(&e)
	if e.Document != nil {
		if out.Body.Content, err = objectOf(e.Document.Content); err != nil {
			return nil, err
		}
	}
	status, err := store.ReadAccountingJobStatus(ctx, s.pool, org, in.DocumentID)
	switch {
	case errors.Is(err, store.ErrJobNotFound):
		out.Body.Posting = withoutJob(&e)
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

// withoutJob is what the ledger alone says of a document; nil: nothing.
func withoutJob(e *listing.Explanation) *Posting {
	n := len(e.Impacts)
	if n == 0 {
		return nil
	}
	version := e.Impacts[n-1].DocumentVersion
	for _, c := range e.Impacts[n-1].Confirmations {
		version = max(version, c.DocumentVersion)
	}
	p := &Posting{Version: version, ImpactID: e.LiveImpactID}
	if e.LiveImpactID != nil {
		p.PostedVersion = &version
	}
	return p
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
	lines, out.Body.NextCursor = page(in.PageInput, lines, func(l ledgerdb.EntryLine) any { return listing.Place(&l) })
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
	trial, err := ledgerdb.ReadTrial(ctx, s.pool, f)
	if err != nil {
		return nil, err
	}
	out := &trialBalanceOutput{}
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

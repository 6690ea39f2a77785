package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/store/actions"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/server/internal/statementfile"
)

// statements adds the statements and the year-end close.
func (s *server) statements() {
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getBalanceSheet", Method: http.MethodGet, Path: "/api/statements/balance", Tags: []string{tagLedger},
		Summary: "Make the balance sheet at the end of a day",
		Description: "Each currency by itself, with the totals of sections and types. Income less expense that no year-end close " +
			"has moved is a line of equity, so that assets equal liabilities and equity.",
	}, s.getBalanceSheet, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getIncomeStatement", Method: http.MethodGet, Path: "/api/statements/income", Tags: []string{tagLedger},
		Summary:     "Make the income statement of a span of posting dates",
		Description: "Each currency by itself, with the totals of sections and types. What a year-end close moved is left out.",
	}, s.getIncomeStatement, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getCashStatement", Method: http.MethodGet, Path: "/api/statements/cash", Tags: []string{tagLedger},
		Summary: "Sum up what came in and went out of accounts with the role cash",
	}, s.getCashStatement, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getVatSummary", Method: http.MethodGet, Path: "/api/statements/vat", Tags: []string{tagLedger},
		Summary: "Sum up taxes: as documents state them, as they are posted, and the difference",
		Description: "By direction, country, category, code and rate as documents state them; by account with the role tax as they " +
			"are posted; and at most 100 of the documents that cause a difference.",
	}, s.getVATSummary, http.StatusNotFound)
	operation(s, tokens.ScopeRead, huma.Operation{
		OperationID: "getStatementFile", Method: http.MethodGet, Path: "/api/statements/{kind}/file", Tags: []string{tagLedger},
		Summary: "Make a statement as CSV or PDF; a balance sheet is that of the last day",
		Responses: map[string]*huma.Response{"200": {Content: map[string]*huma.MediaType{
			statementfile.CSV: {Schema: &huma.Schema{Type: huma.TypeString}},
			statementfile.PDF: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}}},
	}, s.getStatementFile, http.StatusNotFound)
	operation(s, tokens.ScopeOperate, huma.Operation{
		OperationID: "closeYear", Method: http.MethodPost, Path: "/api/years/{year}/close", Tags: []string{tagLedger},
		Summary: "Move a year's income and expense to an account of equity, or take that back",
		Description: "Writes the journal year-end:YEAR, dated on the year's last day, which must be open; a worker posts it. A second " +
			"request writes what has changed since. With undo the document is deleted, and a worker reverses what is posted.",
		Metadata: map[string]any{exampleKey: `{"to": "2900"}`, actionKey: "years.close"},
	}, s.closeYear, http.StatusNotFound, http.StatusConflict)
}

// StatementInput says what a statement counts.
type StatementInput struct {
	OrgID      string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	Compare    string `query:"compare" enum:"previous,year" doc:"Add a column of the span before, or of a year before; it needs the days"`
	By         string `query:"by" maxLength:"255" doc:"A dimension whose values are the columns"`
	WhereKey   string `query:"whereKey" maxLength:"255" doc:"Only entries count that have a value of this dimension"`
	WhereValue string `query:"whereValue" maxLength:"255" doc:"The value; empty: the entries count that have none"`
}

// spanInput is an organization and a span of posting dates.
type spanInput struct {
	OrgID string `query:"orgId" maxLength:"255" doc:"The organization; default that of the token"`
	From  string `query:"from" format:"date" doc:"The first posting date"`
	To    string `query:"to" format:"date" doc:"The last posting date"`
}

// span reads the organization and the days.
func (s *server) span(ctx context.Context, org, first, last string) (_ string, from, to models.Date, err error) {
	if from, err = day("query.from", first); err != nil {
		return "", from, to, err
	}
	if to, err = day("query.to", last); err != nil {
		return "", from, to, err
	}
	if !from.IsZero() && !to.IsZero() && to.Before(from) {
		return "", from, to, invalid("query.to", "the last day is before the first")
	}
	org, err = s.organization(ctx, org)
	return org, from, to, err
}

// options reads what a statement counts.
func (s *server) options(ctx context.Context, in *StatementInput, first, last string,
) (string, books.StatementOptions, error) {
	o := books.StatementOptions{
		Compare: books.Compare(in.Compare), By: in.By, WhereKey: in.WhereKey, WhereValue: in.WhereValue,
	}
	org, from, to, err := s.span(ctx, in.OrgID, first, last)
	o.From, o.To = from, to
	return org, o, err
}

type statementOutput struct {
	Body struct{ answers.Statement }
}

// BalanceSheetInput says what a balance sheet counts.
type BalanceSheetInput struct {
	StatementInput
	On string `query:"on" format:"date" doc:"The day; default: all that is posted"`
}

func (s *server) getBalanceSheet(ctx context.Context, in *BalanceSheetInput) (*statementOutput, error) {
	org, o, err := s.options(ctx, &in.StatementInput, "", in.On)
	if err != nil {
		return nil, err
	}
	sheet, err := books.BalanceSheet(ctx, s.pool, org, o)
	if err != nil {
		return nil, err
	}
	out := &statementOutput{}
	out.Body.Statement = answers.StatementOf(&sheet)
	return out, nil
}

// IncomeStatementInput says what an income statement counts.
type IncomeStatementInput struct {
	StatementInput
	From string `query:"from" format:"date" doc:"The first posting date"`
	To   string `query:"to" format:"date" doc:"The last posting date"`
}

func (s *server) getIncomeStatement(ctx context.Context, in *IncomeStatementInput) (*statementOutput, error) {
	org, o, err := s.options(ctx, &in.StatementInput, in.From, in.To)
	if err != nil {
		return nil, err
	}
	income, err := books.IncomeStatement(ctx, s.pool, org, o)
	if err != nil {
		return nil, err
	}
	out := &statementOutput{}
	out.Body.Statement = answers.StatementOf(&income)
	return out, nil
}

type cashStatementOutput struct {
	Body struct{ answers.CashStatement }
}

func (s *server) getCashStatement(ctx context.Context, in *spanInput) (*cashStatementOutput, error) {
	org, from, to, err := s.span(ctx, in.OrgID, in.From, in.To)
	if err != nil {
		return nil, err
	}
	cash, err := books.CashStatement(ctx, s.pool, org, books.CashOptions{From: from, To: to})
	if err != nil {
		return nil, err
	}
	out := &cashStatementOutput{}
	out.Body.CashStatement = answers.CashStatementOf(&cash)
	return out, nil
}

// VATSummaryOutput is a VAT summary.
type VATSummaryOutput struct {
	Body struct{ answers.VATSummary }
}

func (s *server) getVATSummary(ctx context.Context, in *spanInput) (*VATSummaryOutput, error) {
	org, from, to, err := s.span(ctx, in.OrgID, in.From, in.To)
	if err != nil {
		return nil, err
	}
	vat, err := books.VATSummary(ctx, s.pool, org, books.VATOptions{From: from, To: to})
	if err != nil {
		return nil, err
	}
	out := &VATSummaryOutput{}
	out.Body.VATSummary = answers.VATSummaryOf(&vat)
	return out, nil
}

type statementFileInput struct {
	IncomeStatementInput
	Kind   string `path:"kind" enum:"balance,income,cash,vat"`
	Format string `query:"format" enum:"csv,pdf" default:"csv"`
}

type statementFileOutput struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

func (s *server) getStatementFile(ctx context.Context, in *statementFileInput) (*statementFileOutput, error) {
	org, o, err := s.options(ctx, &in.StatementInput, in.From, in.To)
	if err != nil {
		return nil, err
	}
	file, err := statementfile.Make(ctx, s.pool, models.StatementKind(in.Kind), org, o, in.Format, time.Now())
	if err != nil {
		return nil, err
	}
	return &statementFileOutput{file.Type, file.Disposition, file.Bytes}, nil
}

type closeYearInput struct {
	Year int `path:"year" minimum:"1900" maximum:"2999"`
	Body struct {
		OrgID string `json:"orgId,omitempty" maxLength:"255" doc:"The organization; default that of the token"`
		To    string `json:"to,omitempty" maxLength:"64" doc:"The account of equity; required unless undo is set"`
		Undo  bool   `json:"undo,omitempty" doc:"Take the close back"`
	}
}

type closeYearOutput struct {
	Body struct{ answers.YearEnd }
}

func (s *server) closeYear(ctx context.Context, in *closeYearInput) (*closeYearOutput, error) {
	org, err := s.organizationOf(ctx, in.Body.OrgID)
	if err != nil {
		return nil, err
	}
	actions.About(ctx, org, "", nil)
	done, err := books.CloseYear(ctx, s.pool, org, in.Year, books.CloseYearOptions{To: in.Body.To, Undo: in.Body.Undo})
	actions.About(ctx, org, done.DocumentID, map[string]any{"result": done.Result, "to": in.Body.To})
	if err != nil {
		return nil, err
	}
	out := &closeYearOutput{}
	out.Body.YearEnd = answers.YearEndOf(&done)
	return out, nil
}

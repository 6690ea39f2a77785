package console

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/report"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/server/internal/statementfile"
)

var statementsPage = view{
	Title: "Statements", Template: "statements", Nav: "statements",
	Lead: "The balance sheet, the income statement and the statement of cash, each currency by itself.",
}

var vatPage = view{
	Title: "VAT", Template: "vat", Nav: "vat",
	Lead: "Taxes as documents state them, as they are posted to accounts with the role tax, and the difference.",
}

// statements adds the pages of statements, their files, and the year-end close.
func (c *console) statements() {
	c.addToMenu(
		menuEntry{Group: "Ledger", Name: "Statements", Path: "statements"}, menuEntry{Group: "Ledger", Name: "VAT", Path: "vat"},
	)
	c.ledgerPage("GET "+Root+"statements", statementsPage, c.statementPage)
	c.ledgerPage("GET "+Root+"vat", vatPage, c.vatPage)
	c.handle("GET "+Root+"statements/file", c.statementFile)
	c.action(Root+"statements/close-year", tokens.ScopeOperate, "years.close", c.closeYear)
}

// statementParameters are those of the address of a statement.
var statementParameters = []string{"kind", "period", "from", "to", "compare", "by", "where"}

// statementOf reads the options of a statement from the address.
func statementOf(r *request, org string, kind models.StatementKind) (books.StatementOptions, error) {
	f, err := balanceFilter(r, org)
	o := books.StatementOptions{
		From: f.From, To: f.To, Compare: books.Compare(r.FormValue("compare")), By: strings.TrimSpace(r.FormValue("by")),
	}
	switch kind {
	case models.StatementBalance, models.StatementIncome, models.StatementCash, models.StatementVAT:
	default:
		return o, wrongParameter("there is no statement %q", kind)
	}
	if where := strings.TrimSpace(r.FormValue("where")); where != "" && err == nil {
		var found bool
		if o.WhereKey, o.WhereValue, found = strings.Cut(where, "="); !found || o.WhereKey == "" {
			err = wrongParameter("%q: want a dimension and its value, such as cost_centre=sales", where)
		}
	}
	if err == nil {
		err = statementfile.Check(kind, o)
	}
	return o, err
}

// statementKind is the statement that the address asks for.
func statementKind(r *request) models.StatementKind {
	return models.StatementKind(cmp.Or(r.FormValue("kind"), string(models.StatementBalance)))
}

// statementFields are the inputs of statementOf.
func statementFields(kind models.StatementKind) []field {
	fields := []field{
		{Name: "period", Label: "Month or year", Placeholder: "2026-03"},
		{Name: "from", Label: "or posted from", Type: "date"},
		{Name: "to", Label: "to", Type: "date"},
	}
	if kind == models.StatementVAT {
		return fields
	}
	return append([]field{{
		Name: "kind", Label: "Statement", Options: []option{
			{string(models.StatementBalance), models.StatementBalance.Title()},
			{string(models.StatementIncome), models.StatementIncome.Title()},
			{string(models.StatementCash), models.StatementCash.Title()},
		},
	}}, append(fields,
		field{Name: "compare", Label: "Compared with", Options: []option{
			{"", "nothing"}, {string(books.ComparePrevious), "the days before"}, {string(books.CompareYear), "the year before"},
		}},
		field{Name: "by", Label: "Split by", Placeholder: "cost_centre"},
		field{Name: "where", Label: "Only", Placeholder: "cost_centre=sales"})...)
}

// statementData is what both pages show, and the options of the statement.
func statementData(r *request, org, path string, kind models.StatementKind) (map[string]any, books.StatementOptions, error) {
	form := r.filter(filters{
		Action: Root + path, Hidden: r.keptOrg(), Clear: r.withoutFilters(statementParameters...), Fields: statementFields(kind),
	})
	o, err := statementOf(r, org, kind)
	pairs := []string{"org", org}
	for _, name := range statementParameters {
		pairs = append(pairs, name, r.FormValue(name))
	}
	file := func(format string) string {
		return r.link("statements/file", append(slices.Clip(pairs), "kind", string(kind), "format", format)...)
	}
	return map[string]any{
		"Org": org, "From": o.From, "To": o.To, "Kind": kind, "CSV": file("csv"), "JSON": file("json"), "PDF": file("pdf"),
		"Filters": form,
	}, o, err
}

func (c *console) statementPage(ctx context.Context, r *request, org string) (*view, error) {
	kind := statementKind(r)
	if kind == models.StatementVAT {
		return &view{To: r.link("vat", append([]string{"org", org}, keep(r, statementParameters[1:]...)...)...)}, nil
	}
	data, o, err := statementData(r, org, "statements", kind)
	if err != nil {
		return nil, err
	}
	hidden := []field{{Name: "org", Value: org}}
	data["CloseYear"] = button{
		Action: Root + "statements/close-year", Label: "Close the year", Hidden: hidden, Next: r.URL.RequestURI(),
		Confirm: "A document is written, dated the last day of the year, that moves what was earned and spent to the account. A worker " +
			"posts it. “Take the close back” reverses it.",
		Fields: []field{
			{Name: "year", Label: "Year", Placeholder: "2025"},
			{Name: "account", Label: "Account of equity", Placeholder: "2900"},
		},
	}
	data["UndoYear"] = button{
		Action: Root + "statements/close-year", Label: "Take the close back", Tone: "quiet", Next: r.URL.RequestURI(),
		Confirm: "The close of the year is deleted, and a worker reverses what is posted of it.",
		Hidden:  append(hidden[:1:1], field{Name: "undo", Value: "true"}),
		Fields:  []field{{Name: "year", ID: "f-undo-year", Label: "Year", Placeholder: "2025"}},
	}
	v := &view{Title: kind.Title(), Data: data}
	switch kind {
	case models.StatementCash:
		data["Cash"], err = books.CashStatement(ctx, c.Pool, org, books.CashOptions{From: o.From, To: o.To})
		return v, err
	case models.StatementIncome:
		var s models.Statement
		s, err = books.IncomeStatement(ctx, c.Pool, org, o)
		data["Tables"], data["Columns"] = statementTables(&s)
		return v, err
	case models.StatementBalance, models.StatementVAT:
	}
	s, err := books.BalanceSheet(ctx, c.Pool, org, o)
	data["Tables"], data["Columns"] = statementTables(&s)
	return v, err
}

// statementTable is the part of a statement in one currency.
type statementTable struct {
	Currency string
	Lines    []models.StatementLine
}

// statementTables are the tables of a statement, and the headings of its columns.
func statementTables(s *models.Statement) (tables []statementTable, columns []string) {
	for _, l := range s.Lines {
		if n := len(tables); n == 0 || tables[n-1].Currency != l.Currency {
			tables = append(tables, statementTable{Currency: l.Currency})
		}
		last := &tables[len(tables)-1]
		last.Lines = append(last.Lines, l)
	}
	for _, column := range s.Columns {
		columns = append(columns, report.ColumnTitle(s, column))
	}
	return tables, columns
}

func (c *console) vatPage(ctx context.Context, r *request, org string) (*view, error) {
	data, o, err := statementData(r, org, "vat", models.StatementVAT)
	if err != nil {
		return nil, err
	}
	data["Summary"], err = books.VATSummary(ctx, c.Pool, org, books.VATOptions{From: o.From, To: o.To})
	return &view{Data: data}, err
}

// statementFile answers with a statement as CSV, JSON or PDF.
func (c *console) statementFile(w http.ResponseWriter, raw *http.Request) {
	r, ok := c.signedIn(w, raw, tokens.ScopeRead)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(raw.Context(), pageTimeout)
	defer cancel()
	file, err := c.fileOf(ctx, r)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", file.Type)
	w.Header().Set("Content-Disposition", file.Disposition)
	_, _ = w.Write(file.Bytes)
}

// fileOf makes the file that a request asks for.
func (c *console) fileOf(ctx context.Context, r *request) (file statementfile.File, err error) {
	if err = r.ParseForm(); err != nil {
		return file, unreadableForm(err)
	}
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return file, err
	}
	kind := statementKind(r)
	o, err := statementOf(r, org, kind)
	if err != nil {
		return file, err
	}
	if r.FormValue("format") != "json" {
		return statementfile.Make(ctx, c.Pool, kind, org, o, r.FormValue("format"), c.now())
	}
	var answer any
	switch kind {
	case models.StatementVAT:
		s, failed := books.VATSummary(ctx, c.Pool, org, books.VATOptions{From: o.From, To: o.To})
		answer, err = answers.VATSummaryOf(&s), failed
	case models.StatementCash:
		s, failed := books.CashStatement(ctx, c.Pool, org, books.CashOptions{From: o.From, To: o.To})
		answer, err = answers.CashStatementOf(&s), failed
	case models.StatementIncome:
		s, failed := books.IncomeStatement(ctx, c.Pool, org, o)
		answer, err = answers.StatementOf(&s), failed
	case models.StatementBalance:
		s, failed := books.BalanceSheet(ctx, c.Pool, org, o)
		answer, err = answers.StatementOf(&s), failed
	}
	if err != nil {
		return file, err
	}
	file.Type, file.Disposition = "application/json", "attachment; filename="+string(kind)+".json"
	file.Bytes, err = json.MarshalIndent(answer, "", "  ")
	return file, err
}

// closeYear closes a year, or takes that back.
func (c *console) closeYear(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	year, err := strconv.Atoi(strings.TrimSpace(r.PostFormValue("year")))
	if err != nil {
		return done{}, wrongParameter("the year is no number, such as 2025")
	}
	o := books.CloseYearOptions{To: strings.TrimSpace(r.PostFormValue("account")), Undo: r.PostFormValue("undo") == "true"}
	y, err := books.CloseYear(ctx, c.Pool, org, year, o)
	text := map[models.YearEndResult]string{
		models.YearEndWritten:   "The close of the year is written. A worker posts it.",
		models.YearEndDeleted:   "The close of the year is taken back. A worker reverses what is posted of it.",
		models.YearEndUnchanged: "Nothing was changed: the year is closed already.",
		models.YearEndNothing:   "Nothing was changed: there is nothing to move, or to take back.",
	}[y.Result]
	return done{
		Org: org, Subject: y.DocumentID, Text: text, Details: map[string]any{"result": y.Result, "to": o.To},
	}, err
}

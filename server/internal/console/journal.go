package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/internal/text/minor"
	"github.com/daybook-dev/daybook/models"
)

const (
	// journalsShown is how many journals the page lists.
	journalsShown = 50
	// journalLines is how many empty lines a form begins with, and how many more it is given.
	journalLines = 4
	// maxJournalLines is how many lines a form may have.
	maxJournalLines = 500
)

var journalPage = view{
	Title: "Journal", Template: "journal", Nav: "journal",
	Lead: "Entries that a person decides, with the reason: they are posted without a rule, and reversed when the journal is " +
		"deleted.",
}

// journal adds the page on which journals are written, and what it does.
func (c *console) journal() {
	c.addToMenu(menuEntry{Group: "Ledger", Name: "Journal", Path: "journal"})
	c.ledgerPage("GET "+Root+"journal", journalPage, c.writeJournal)
	// It is a POST because a journal may be long; nothing is changed by it.
	c.ledgerPage("POST "+Root+"journal/check", journalPage, c.checkJournal)
	c.action(Root+"journal/post", tokens.ScopeOperate, "journals.put", c.postJournal)
	c.action(Root+"journal/delete", tokens.ScopeOperate, "journals.delete", c.deleteJournal)
}

// journalForm is the form of a journal, and what became of it.
type journalForm struct {
	Org, ID, Date, Number, Counterparty, Currency, Dimensions, Reason string
	Lines                                                             []journalLine
	// Problem is why it cannot be posted.
	Problem string
	// Checked says that it can be posted: Posts are its entries and Day is the day.
	Checked bool
	Posts   []entryLine
	Day     models.Date
	// Accounts are suggested.
	Accounts []models.Account
	Journals []shownJournal
	Next     string
}

// journalLine is a line of the form.
type journalLine struct {
	Account, Name, Debit, Credit, Currency, Note, Dimensions string
	// Wrong is what is wrong with it.
	Wrong string
}

func (l *journalLine) empty() bool {
	return l.Account == "" && l.Debit == "" && l.Credit == "" && l.Currency == "" && l.Note == "" && l.Dimensions == ""
}

// shownJournal is a journal in the list.
type shownJournal struct {
	models.Document
	Debits []models.Money
	Delete button
}

// writeJournal shows an empty form and the latest journals.
func (c *console) writeJournal(ctx context.Context, r *request, org string) (*view, error) {
	id, err := ledgerdb.NewJournalID(ctx, c.Pool)
	if err != nil {
		return nil, err
	}
	f := &journalForm{Org: org, ID: id, Date: c.now().UTC().Format("2006-01-02"), Lines: make([]journalLine, journalLines)}
	list, err := books.Journals(ctx, c.Pool, org, books.JournalsOptions{Before: r.FormValue("before"), Limit: journalsShown + 1})
	if err != nil {
		return nil, err
	}
	if len(list) > journalsShown {
		list = list[:journalsShown]
		f.Next = r.here("before", list[journalsShown-1].ID)
	}
	for i := range list {
		d := list[i]
		f.Journals = append(f.Journals, shownJournal{d, d.Content.Journal.Debits(d.Currency), deleteButton(org, &d)})
	}
	return c.journalView(ctx, f)
}

// deleteButton deletes a journal, after a question.
func deleteButton(org string, d *models.Document) button {
	return button{
		Action: Root + "journal/delete", Label: "Delete", Tone: "danger",
		Hidden: []field{{Name: "org", Value: org}, {Name: "document", Value: d.ID}},
		Confirm: "The journal is deleted, and a worker reverses what is posted of it: on the same day, or the first open day " +
			"after it.",
	}
}

// journalView makes the page of a form.
func (c *console) journalView(ctx context.Context, f *journalForm) (*view, error) {
	all, err := books.Accounts(ctx, c.Pool, f.Org)
	if err != nil {
		return nil, err
	}
	f.Accounts = all[:min(len(all), accountsShown)]
	names := make(map[string]string, len(all))
	for _, a := range all {
		names[a.Code] = a.Name
	}
	for i := range f.Lines {
		f.Lines[i].Name = names[f.Lines[i].Account]
	}
	for i := range f.Posts {
		f.Posts[i].Name = names[f.Posts[i].Account]
	}
	return &view{Data: f}, nil
}

// readJournal reads the form. What is wrong is beside its line, or the Problem.
func readJournal(r *request, org string) (*journalForm, books.Journal) {
	value := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	f := &journalForm{
		Org: org, ID: value("id"), Date: value("date"), Number: value("number"), Counterparty: value("counterparty"),
		Currency: strings.ToUpper(value("currency")), Dimensions: value("dimensions"), Reason: value("reason"),
	}
	j := books.Journal{
		ID: f.ID, Number: f.Number, Counterparty: f.Counterparty, Currency: f.Currency, Reason: f.Reason, By: r.Token.Name,
	}
	at := func(name string, i int) string {
		if all := r.PostForm[name]; i < len(all) {
			return strings.TrimSpace(all[i])
		}
		return ""
	}
	for i := range min(len(r.PostForm["account"]), maxJournalLines+journalLines) {
		l := journalLine{
			Account: at("account", i), Debit: at("debit", i), Credit: at("credit", i),
			Currency: strings.ToUpper(at("line_currency", i)), Note: at("note", i), Dimensions: at("line_dimensions", i),
		}
		if l.empty() {
			continue
		}
		e, err := l.entry(f.Currency)
		if err != nil {
			l.Wrong = err.Error()
			f.Problem = "a line is wrong"
		}
		f.Lines, j.Entries = append(f.Lines, l), append(j.Entries, e)
	}
	var err error
	if j.Dimensions, err = models.ParseDimensions(f.Dimensions); err != nil {
		f.Problem = err.Error()
	}
	if j.Date, err = models.ParseDate(f.Date); err != nil {
		f.Problem = fmt.Sprintf("the date is %q; write it as 2026-03-31", f.Date)
	}
	if f.Reason == "" {
		f.Problem = "the reason is missing: say why it is posted"
	}
	if len(r.PostForm["account"]) > maxJournalLines+journalLines {
		f.Problem = fmt.Sprintf("a form takes %d lines at most: write the journal by the API", maxJournalLines)
	}
	return f, j
}

// entry reads a line.
func (l *journalLine) entry(currency string) (e models.JournalEntry, err error) {
	e = models.JournalEntry{Account: l.Account, Currency: l.Currency, Note: l.Note}
	currency = cmp.Or(l.Currency, currency)
	switch {
	case l.Account == "":
		return e, errors.New("the account is missing")
	case (l.Debit == "") == (l.Credit == ""):
		return e, errors.New("give a debit or a credit")
	case currency == "":
		return e, errors.New("the currency is missing")
	}
	if e.Amount, err = minor.Parse(l.Debit+l.Credit, currency); err != nil {
		return e, err
	}
	if l.Credit != "" {
		e.Amount = -e.Amount
	}
	e.Dimensions, err = models.ParseDimensions(l.Dimensions)
	return e, err
}

// checkJournal shows what a journal would post, or why it cannot be posted.
func (c *console) checkJournal(ctx context.Context, r *request, org string) (*view, error) {
	f, j := readJournal(r, org)
	more := r.PostFormValue("more") != ""
	if more {
		f.Problem = ""
		for i := range f.Lines {
			f.Lines[i].Wrong = ""
		}
	}
	if !more && f.Problem == "" {
		day, err := books.CheckJournal(ctx, c.Pool, org, j)
		switch wrong, ok := errors.AsType[*models.JobError](err); {
		case ok:
			f.Problem = wrong.Message
		case errors.Is(err, books.ErrInvalid), errors.Is(err, books.ErrJournal), errors.Is(err, books.ErrPeriodClosed):
			f.Problem = err.Error()
		case err != nil:
			return nil, err
		default:
			f.Checked, f.Day = true, day
			for _, e := range j.Entries {
				f.Posts = append(f.Posts, journalEntryLine(e, f.Currency, j.Dimensions))
			}
		}
	}
	blank := 1
	if more || len(f.Lines) == 0 {
		blank = journalLines
	}
	f.Lines = append(f.Lines, make([]journalLine, blank)...)
	v, err := c.journalView(ctx, f)
	if v != nil {
		v.Trail = []trail{{"Journal", r.link("journal")}}
	}
	return v, err
}

// journalEntryLine is an entry of a journal as entries are shown.
func journalEntryLine(e models.JournalEntry, currency string, of models.Dimensions) entryLine {
	l := entryLine{
		Account: e.Account, Side: models.Debit, Amount: e.Amount, Currency: cmp.Or(e.Currency, currency),
		Dimensions: of.With(e.Dimensions).String(), Note: e.Note,
	}
	if l.Amount < 0 {
		l.Side, l.Amount = models.Credit, -l.Amount
	}
	return l
}

// postJournal writes a journal.
func (c *console) postJournal(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	f, j := readJournal(r, org)
	if f.Problem != "" {
		return done{Org: org, Subject: f.ID}, store.Refuse(books.ErrJournal, f.Problem, "go back and check it")
	}
	change, err := books.PutJournal(ctx, c.Pool, org, j)
	if err != nil {
		return done{Org: org, Subject: f.ID}, err
	}
	d := done{
		To: documentAddress(r.chosenOrg(), change.DocumentID), Org: org, Subject: change.DocumentID,
		Text: "The journal is written. A worker posts it on " + change.PostingDate.String() + ".",
	}
	d.unless(change.Changed, "the journal is there already")
	return d, nil
}

func (c *console) deleteJournal(ctx context.Context, r *request) (done, error) {
	org, err := c.ofLedger(ctx, r)
	if err != nil {
		return done{}, err
	}
	id := r.PostFormValue("document")
	d := done{To: documentAddress(r.chosenOrg(), id), Org: org, Subject: id}
	change, err := books.DeleteJournal(ctx, c.Pool, org, id)
	if err != nil {
		return d, err
	}
	d.Text = "The journal is deleted. A worker reverses what is posted of it."
	d.unless(change.Changed, "the journal is deleted already")
	return d, nil
}

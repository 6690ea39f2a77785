package console

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/daybook-dev/daybook/admin/books"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/models"
)

const (
	// impactsShown is how many impacts of a document's chain its page reads, the last ones, and
	// entriesRead how many entries of each.
	impactsShown = 10
	entriesRead  = 2000
	// entriesShown is how many entries of an impact are shown, linesShown how many lines of the
	// document at a time.
	entriesShown = 100
	linesShown   = 100
	lastAttempts = 10
)

// documentView is a document's page.
type documentView struct {
	listing.Explanation
	Document *models.Document
	State    string
	// Lines are those from First (counted from 1) on, of all Total.
	Lines        []models.Line
	First, Total int
	LinePager    pager
	// Chain are the impacts, the last one first; Posted is the live one, nil: none is.
	Chain    []shownImpact
	Posted   *shownImpact
	Compared *comparedImpacts
	// EntriesElsewhere are what another system has posted of it.
	EntriesElsewhere []models.EntryElsewhere
	// Decisions are what a person may decide about it.
	Decisions []button
	// Code is the failed job's; it says what to do.
	Code models.ErrorCode
	// Open are its items, and the group that it is in. Names are those of their accounts.
	Open  books.DocumentItems
	Names map[string]string
	// Posts are the lines of the document's journal, as far as they are shown; Delete takes it back. Nil:
	// there is none.
	Posts  []entryLine
	Delete *button
}

// shownImpact is an impact with as many of its entries as are shown.
type shownImpact struct {
	*listing.ExplainedImpact
	Live  bool
	Lines []entryLine
	// Run is the address of the workflow run in Temporal's own UI; empty: it is not known.
	Run string
	// Previous is the impact that posted the version before; 0: there is none, or it is not shown.
	Previous int64
}

// comparedImpacts are two postings of a document side by side.
type comparedImpacts struct {
	Old, New           *listing.ExplainedImpact
	OldLines, NewLines []entryLine
	Entries            comparison
	// Cut says that one of them has more entries than were read.
	Cut bool
}

func (c *console) documentPage(ctx context.Context, r *request, org, id string) (*view, error) {
	e, err := c.Listing.ExplainPart(ctx, org, id, listing.ExplainLimits{Impacts: impactsShown, Entries: entriesRead})
	if err != nil {
		return nil, err
	}
	d := documentView{Explanation: e, Document: e.Document, State: documentState(e.Document)}
	if e.Document != nil {
		d.page(r)
	}
	if e.Elsewhere != nil && e.Elsewhere.Entries != nil {
		if err := json.Unmarshal(e.Elsewhere.Entries, &d.EntriesElsewhere); err != nil {
			return nil, err
		}
	}
	d.Decisions = elsewhereButtons(&e)
	if len(d.Attempts) > lastAttempts {
		d.Attempts, d.MoreAttempts = d.Attempts[:lastAttempts], true
	}
	if e.Job != nil {
		maskError(&e.Job.LastError)
	}
	for i := range d.Attempts {
		maskError(&d.Attempts[i].Error)
	}
	if e.Job != nil && e.Job.State == models.JobFailed && e.Job.LastErrorCode != nil {
		d.Code = *e.Job.LastErrorCode
	}
	d.chain(r.FormValue("compare"))
	if d.Open, err = books.OpenItemsOf(ctx, c.Pool, org, id); err != nil {
		return nil, err
	}
	if err := c.nameLines(ctx, &d); err != nil {
		return nil, err
	}
	if e.Document != nil && e.Document.Content.Journal != nil && e.Document.DeletedAt == nil {
		d.Delete = new(deleteButton(org, e.Document))
	}
	for i := range d.Chain {
		d.Chain[i].Run = c.runAddress(d.Chain[i].WorkflowRunID)
		if d.Chain[i].Live {
			d.Posted = &d.Chain[i]
		}
	}
	return &view{
		Title: "Document " + id, Template: "document", Data: d,
		Trail: []trail{{"Documents", r.link("documents")}},
	}, nil
}

// nameLines gives the lines of the page the names of their accounts.
func (c *console) nameLines(ctx context.Context, d *documentView) error {
	var lists [][]entryLine
	for i := range d.Chain {
		lists = append(lists, d.Chain[i].Lines)
	}
	if p := d.Compared; p != nil {
		lists = append(lists, p.OldLines, p.NewLines)
	}
	if d.Document != nil && d.Document.Content.Journal != nil {
		all := d.Document.Content.Journal.Entries
		for _, e := range all[:min(len(all), entriesShown)] {
			d.Posts = append(d.Posts, journalEntryLine(e, d.Document.Currency, d.Document.Content.Dimensions))
		}
		lists = append(lists, d.Posts)
	}
	if err := c.nameAccounts(ctx, d.OrgID, lists...); err != nil {
		return err
	}
	codes := make([]string, 0, len(d.Open.Items))
	for _, i := range d.Open.Items {
		codes = append(codes, i.Account)
	}
	var err error
	if d.Names, err = ledgerdb.AccountNames(ctx, c.Pool, d.OrgID, codes); err != nil {
		return err
	}
	if p := d.Compared; p != nil {
		p.Entries = compareLines(p.OldLines, p.NewLines, comparedLines)
	}
	return nil
}

func documentState(d *models.Document) string {
	switch {
	case d == nil:
		return ""
	case d.DeletedAt != nil:
		return "deleted"
	case d.AccountingReadyAt == nil:
		return "not ready"
	}
	return "ready"
}

// page picks the lines to show.
func (d *documentView) page(r *request) {
	all := d.Document.Content.Lines
	d.First, d.Total = 1, len(all)
	if n, err := strconv.Atoi(r.FormValue("line")); err == nil && n > 1 && n <= d.Total {
		d.First = n
		d.LinePager.First = r.here("line", "")
	}
	last := min(d.First-1+linesShown, d.Total)
	d.Lines = all[d.First-1 : last]
	if last < d.Total {
		d.LinePager.Next = r.here("line", strconv.Itoa(last+1))
	}
}

// chain prepares the impacts, and puts two of them side by side: the one that is asked for, or else
// the last one that posts, and the one that posted before it.
func (d *documentView) chain(wanted string) {
	var before *listing.ExplainedImpact
	pairs := map[string]*comparedImpacts{}
	newest := ""
	for i := range d.Impacts {
		m := &d.Impacts[i]
		shown := shownImpact{
			ExplainedImpact: m, Live: d.LiveImpactID != nil && *d.LiveImpactID == m.ID,
			Lines: linesOfEntries(m.Entries[:min(len(m.Entries), entriesShown)]),
		}
		if m.Kind == models.ImpactPost {
			if before != nil {
				shown.Previous = before.ID
				newest = strconv.FormatInt(m.ID, 10)
				pairs[newest] = &comparedImpacts{Old: before, New: m}
			}
			before = m
		}
		d.Chain = append(d.Chain, shown)
	}
	slices.Reverse(d.Chain)
	if d.Compared = pairs[wanted]; d.Compared == nil {
		d.Compared = pairs[newest]
	}
	if p := d.Compared; p != nil {
		p.OldLines, p.NewLines = linesOfEntries(p.Old.Entries), linesOfEntries(p.New.Entries)
		p.Cut = len(p.Old.Entries) < p.Old.EntryCount || len(p.New.Entries) < p.New.EntryCount
	}
}

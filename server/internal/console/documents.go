package console

import (
	"context"
	"strconv"
	"time"

	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

const (
	// documentsListed is how many documents a page of the list has.
	documentsListed = 100
	// documentsSearch is how long a page goes on looking for documents that match its filter.
	documentsSearch = time.Second
)

var documentsPage = view{
	Title: "Documents", Template: "documents", Nav: "documents",
	Lead: "What was written, and whether it is posted.",
}

// documents adds the list of documents and a document's page.
func (c *console) documents() {
	c.addToMenu(menuEntry{Group: "Ledger", Name: "Documents", Path: "documents"})
	c.documentsElsewhere()
	c.ledgerPage("GET "+Root+"documents", documentsPage,
		func(ctx context.Context, r *request, org string) (*view, error) {
			// A document is a parameter, and not a part of the path: browsers take an id of dots or slashes
			// for folders.
			if id := r.FormValue("document"); id != "" {
				return c.documentPage(ctx, r, org, id)
			}
			return c.documentList(ctx, r, org)
		})
}

// documentStates are the choices of the list's filter: how a document stands in the ledger or in
// the queue.
var documentStates = []option{
	{Value: "", Label: "Any"},
	{Value: "posted", Label: "Posted"},
	{Value: "unposted", Label: "Not posted"},
	{Value: string(models.JobFailed), Label: "Failed"},
	{Value: string(models.JobPending), Label: "Pending"},
	{Value: string(models.JobLeased), Label: "Leased"},
	{Value: string(models.JobCancelled), Label: "Cancelled"},
}

func (c *console) documentList(ctx context.Context, r *request, org string) (*view, error) {
	form := r.filter(filters{
		Action: Root + "documents", Hidden: r.keptOrg(),
		Clear: r.withoutFilters("id", "type", "state", "from", "to", "import", "after"),
		Fields: []field{
			{Name: "id", Label: "Id begins with", Type: "search"},
			{Name: "type", Label: "Type", Suggestions: []string{
				string(models.DocumentInvoice), string(models.DocumentCreditNote), string(models.DocumentPayment),
				string(models.DocumentRefund),
				string(models.DocumentPayout), string(models.DocumentDelivery),
			}},
			{Name: "state", Label: "State", Options: documentStates},
			{Name: "from", Label: "Dated from", Type: "date"},
			{Name: "to", Label: "to", Type: "date"},
			{Name: "import", Label: "Import", Type: "number"},
		},
	})
	q := ledgerdb.DocumentQuery{
		OrgID: org, Prefix: r.FormValue("id"), Type: models.DocumentType(r.FormValue("type")), After: r.FormValue("after"),
		Limit: documentsListed,
	}
	var err error
	if q.From, q.To, err = spanParameters(r); err != nil {
		return nil, err
	}
	switch state := r.FormValue("state"); state {
	case "":
	case "posted", "unposted":
		q.Posted = new(state == "posted")
	default:
		if q.State, err = models.ParseJobState(state); err != nil {
			return nil, wrongParameter("state: %v", err)
		}
	}
	if text := r.FormValue("import"); text != "" {
		if q.ImportID, err = strconv.ParseInt(text, 10, 64); err != nil || q.ImportID < 1 {
			return nil, wrongParameter("import: %q is no number of an import", text)
		}
	}
	page, err := c.findDocuments(ctx, q)
	if err != nil {
		return nil, err
	}
	p := pagerBy(r, "after", page.Next)
	return &view{Data: map[string]any{
		"Documents": page.Documents,
		"More":      page.Next != "",
		"Failed":    q.State == models.JobFailed,
		"Org":       org,
		"Pager":     p,
		"Filters":   form,
	}}, nil
}

// findDocuments reads a page of the list. Where few documents match it looks at some after others,
// for as long as documentsSearch.
func (c *console) findDocuments(ctx context.Context, q ledgerdb.DocumentQuery) (ledgerdb.DocumentPage, error) {
	var found ledgerdb.DocumentPage
	for began := time.Now(); ; {
		page, err := ledgerdb.FindDocuments(ctx, c.Pool, q)
		if err != nil {
			return found, err
		}
		found.Documents, found.Next = append(found.Documents, page.Documents...), page.Next
		if q.After, q.Limit = page.Next, documentsListed-len(found.Documents); q.After == "" || q.Limit == 0 ||
			time.Since(began) > documentsSearch {
			return found, nil
		}
	}
}

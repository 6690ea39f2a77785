package console

import (
	"context"
	"strconv"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// maxSearch is how long a text that is searched for may be: ids and keys have 255 bytes at most.
const maxSearch = 255

// search adds the search of the bar.
func (c *console) search() {
	c.page("GET "+Root+"search", tokens.ScopeRead, c.find)
}

// find looks for a text as the id of a job, an idempotency key, a document's id, also of a document
// whose job was removed, and a task's id. One that is found is shown at once.
func (c *console) find(ctx context.Context, r *request) (*view, error) {
	q := value(r, "q")
	org, err := r.org()
	if err != nil {
		return nil, err
	}
	if len(q) > maxSearch {
		return nil, store.Invalid("ids and keys have %d bytes at most", maxSearch)
	}
	found := listing.Finds{}
	if q != "" {
		if found, err = c.Listing.Find(ctx, org, q, r.Token.OrgID == nil); err != nil {
			return nil, err
		}
	}
	hits := c.hits(r, found)
	if len(hits) == 1 && !found.More {
		return &view{To: hits[0].Address}, nil
	}
	return &view{Title: "Search", Template: "search", Data: map[string]any{"Query": q, "Hits": hits, "More": found.More}},
		nil
}

// hit is something that a search found.
type hit struct {
	Kind, Name, Address, Org, Type, State, Why string
}

func (c *console) hits(r *request, found listing.Finds) []hit {
	var hits []hit
	for _, j := range found.Jobs {
		why := "its id"
		if j.ID != value(r, "q") {
			why = "its idempotency key"
		}
		hits = append(hits, hit{"Job", j.ID, r.link("jobs/" + joinPath(j.ID)), j.OrgID, j.Type, string(j.State), why})
	}
	for _, j := range found.Accounting {
		why := "its id"
		if j.ID != value(r, "q") {
			why = "its document"
		}
		hits = append(hits, hit{
			"Accounting job", j.DocumentID, r.link("accounting/" + joinPath(j.ID)), j.OrgID, "",
			string(j.State), why,
		})
	}
	for _, d := range found.Documents {
		hits = append(hits, hit{
			"Document", d.ID, r.link("documents", "org", d.OrgID, "document", d.ID), d.OrgID, "", "",
			"its id",
		})
	}
	for _, t := range found.Tasks {
		hits = append(hits, hit{
			"Task", strconv.FormatInt(t.ID, 10), r.link("tasks/" + strconv.FormatInt(t.ID, 10)), "",
			t.Type, string(t.State), "its id",
		})
	}
	return hits
}

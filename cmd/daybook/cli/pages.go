package cli

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/cursor"
)

// PageFlags say which page of a list is shown.
type PageFlags struct {
	Limit  int
	Cursor string
}

// Add adds the flags; what are the rows, such as "jobs".
func (p *PageFlags) Add(c *cobra.Command, what string, limit int) {
	c.Flags().IntVar(&p.Limit, "limit", limit, "how many "+what+" at most")
	c.Flags().StringVar(&p.Cursor, "cursor", "", "go on where a list with the same flags ended")
}

// Check refuses flags that no list can have.
func (p *PageFlags) Check() error {
	if p.Limit < 1 {
		return Usagef("--limit must be at least 1")
	}
	return nil
}

// Read checks the flags and reads the place of the cursor.
func (p *PageFlags) Read(place any) error {
	if err := p.Check(); err != nil || p.Cursor == "" {
		return err
	}
	if err := cursor.Read(p.Cursor, place); err != nil {
		return Tagged(store.ErrInvalid, "the cursor is not one of this list: leave it out to begin anew")
	}
	return nil
}

// History reads the flags of a page of attempts, the newest first.
func (p *PageFlags) History() (listing.HistoryPage, error) {
	h := listing.HistoryPage{Limit: p.Limit}
	err := p.Read(&h.Before)
	return h, err
}

// More says how a list goes on, unless next is empty.
func (a *App) More(next string) {
	if next != "" {
		a.Say("There are more: raise --limit, or add --cursor %s", next)
	}
}

package main

import (
	"github.com/spf13/cobra"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/text/cursor"
)

// pageFlags say which page of a list is shown.
type pageFlags struct {
	limit  int
	cursor string
}

// add adds the flags; what are the rows, such as "jobs".
func (p *pageFlags) add(c *cobra.Command, what string, limit int) {
	c.Flags().IntVar(&p.limit, "limit", limit, "how many "+what+" at most")
	c.Flags().StringVar(&p.cursor, "cursor", "", "go on where a list with the same flags ended")
}

// check refuses flags that no list can have.
func (p *pageFlags) check() error {
	if p.limit < 1 {
		return usagef("--limit must be at least 1")
	}
	return nil
}

// read checks the flags and reads the place of the cursor.
func (p *pageFlags) read(place any) error {
	if err := p.check(); err != nil || p.cursor == "" {
		return err
	}
	if err := cursor.Read(p.cursor, place); err != nil {
		return tagged(store.ErrInvalid, "the cursor is not one of this list: leave it out to begin anew")
	}
	return nil
}

// history reads the flags of a page of attempts, the newest first.
func (p *pageFlags) history() (listing.HistoryPage, error) {
	h := listing.HistoryPage{Limit: p.limit}
	err := p.read(&h.Before)
	return h, err
}

// more says how a list goes on, unless next is empty.
func (a *app) more(next string) {
	if next != "" {
		a.say("There are more: raise --limit, or add --cursor %s", next)
	}
}

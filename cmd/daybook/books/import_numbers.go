package books

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/terminal"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/internal/text/phrase"
)

// numbersShown is how many numbers that are there twice an import lists.
const numbersShown = 20

// numbersTwice are the numbers that an import wrote and other documents have as well.
type numbersTwice struct {
	// Numbers are the first of Count.
	Numbers []ledgerdb.NumberTwice `json:"numbers"`
	Count   int64                  `json:"count"`
	// Unknown says that it took too long to look for them.
	Unknown bool `json:"unknown,omitempty"`
}

// lookForNumbers looks whether documents that were written since a moment have the number of
// another document: the same bill may have come twice. Nothing is refused for it.
func (i *Importer) lookForNumbers(ctx context.Context, since time.Time) error {
	r := i.Result
	if r.Inserted+r.Changed == 0 {
		return nil
	}
	orgs := slices.Sorted(maps.Keys(i.known))
	var found numbersTwice
	err := store.Begin(ctx, i.pool, func(tx pgx.Tx) (err error) {
		found.Numbers, found.Count, err = ledgerdb.NumbersTwice(ctx, tx, orgs, since, numbersShown)
		return err
	})
	if store.SQLState(err) == "57014" && ctx.Err() == nil {
		found, err = numbersTwice{Numbers: []ledgerdb.NumberTwice{}, Unknown: true}, nil
	}
	if found.Count > 0 || found.Unknown {
		r.Twice = &found
	}
	return err
}

// print writes the numbers for people.
func (n numbersTwice) print(w io.Writer) error {
	for _, t := range n.Numbers {
		others := strings.Join(t.Documents, ", ")
		if more := t.Count - int64(len(t.Documents)); more > 0 {
			others += fmt.Sprintf(" and %d more", more)
		}
		whose := ""
		if t.Counterparty != "" {
			whose = " of " + t.Counterparty
		}
		line := fmt.Sprintf("organization %s has %d documents with the number %s%s (%s, %s): %s", t.OrgID, t.Count,
			t.Number, whose, t.Type, t.Direction, others)
		if _, err := fmt.Fprintf(w, "warning  %s\n", terminal.OneLine(line)); err != nil {
			return err
		}
	}
	var err error
	switch more := n.Count - int64(len(n.Numbers)); {
	case n.Unknown:
		_, err = fmt.Fprintln(w, "warning  it was not looked for numbers that several documents have, which takes more "+
			"than five seconds: `daybook audit --all-orgs` lists them")
	case more > 0:
		_, err = fmt.Fprintf(w, "warning  %s more: `daybook audit --all-orgs` lists them\n",
			phrase.Plural(more, "number", "numbers"))
	}
	return err
}

package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// Key names a document.
type Key = accounting.Key

// Found is what a DocumentSource says of a key, and FoundState in one word.
type (
	Found      = accounting.Found
	FoundState = accounting.State
)

// The answers of a DocumentSource.
const (
	DocumentHere    = accounting.Here
	DocumentLocked  = accounting.Locked
	DocumentDeleted = accounting.Deleted
	DocumentUnknown = accounting.Unknown
	DocumentLater   = accounting.Later
)

// Where documents are read; package accounting says what a source must do.
type (
	DocumentSource = accounting.Source
	Sources        = accounting.Sources
)

// ownDocuments is daybook.documents, for one chunk. A row that is deleted has a time in deleted_at; a row that is not there is unknown.
type ownDocuments struct {
	// keys are those that LockAndRead was asked for, places where their rows are.
	keys   []Key
	places []pgtype.TID
}

// LockAndRead implements DocumentSource.
func (o *ownDocuments) LockAndRead(ctx context.Context, tx pgx.Tx, keys []Key) (found []Found, err error) {
	found, o.places, err = ledgerdb.LockDocuments(ctx, tx, keys)
	o.keys = keys
	return found, err
}

// SetPosted implements DocumentSource. Its keys are in the order of those that were asked for.
func (o *ownDocuments) SetPosted(ctx context.Context, tx pgx.Tx, keys []Key, live []bool) error {
	places := make([]pgtype.TID, len(keys))
	next := 0
	for i, k := range o.keys {
		if next < len(keys) && keys[next] == k {
			places[next] = o.places[i]
			next++
		}
	}
	return ledgerdb.SetImpactCreated(ctx, tx, keys, places, live)
}

// source returns the source of a name; nil: the ledger has none.
func (c *chunk) source(name string) DocumentSource {
	s := c.ledger.sources[name]
	if s == nil && name == store.SourceDaybook {
		return &c.own
	}
	return s
}

// covered reports whether the ledger reads the organization's source and has its hooks.
func (c *chunk) covered(org string) bool {
	needs := c.needs[org]
	if c.source(needs.Source) == nil {
		return false
	}
	return !slices.ContainsFunc(needs.Hooks, func(name string) bool { return c.ledger.hooks[name] == nil })
}

// bySource returns the positions of the keys of each source, in the order of the sources' names.
func (c *chunk) bySource(keys []Key) (names []string, positions map[string][]int) {
	positions = map[string][]int{}
	for i, k := range keys {
		if c.usable[""] && c.usable[k.OrgID] && c.covered(k.OrgID) {
			source := c.needs[k.OrgID].Source
			positions[source] = append(positions[source], i)
		}
	}
	return slices.Sorted(maps.Keys(positions)), positions
}

// ask has each source lock and read its documents. What a source does not know may have been deleted on record.
func (c *chunk) ask(ctx context.Context) error {
	c.found = make([]Found, len(c.keys))
	var unknown []Key
	var places []int
	names, positions := c.bySource(c.keys)
	for _, name := range names {
		keys := pick(c.keys, positions[name])
		found, err := c.source(name).LockAndRead(ctx, c.tx, keys)
		if err != nil {
			return err
		}
		if len(found) != len(keys) {
			return fmt.Errorf("the document source %s answered for %d of %d keys: it must answer for each, in order", name, len(found), len(keys))
		}
		for i, place := range positions[name] {
			c.found[place] = found[i]
			if found[i].State == DocumentUnknown {
				unknown, places = append(unknown, keys[i]), append(places, place)
			}
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	deleted, err := ledgerdb.DeletedOnRecord(ctx, c.tx, unknown)
	for i, place := range places {
		if err == nil && deleted[i] {
			c.found[place] = Found{State: DocumentDeleted}
		}
	}
	return err
}

// answer checks the source's answer for job i.
func (c *chunk) answer(i int) error {
	key, f := c.keys[i], c.found[i]
	source := c.needs[key.OrgID].Source
	switch {
	case f.State < DocumentHere || f.State > DocumentLater:
		return models.Errorf(models.CodeProcessorError, "the document source %s did not answer for document %s of organization %s: it must set State for each key",
			source, key.ID, key.OrgID)
	case f.State == DocumentHere && f.Document == nil && f.Err == nil:
		return models.Errorf(models.CodeProcessorError, "the document source %s says that document %s of organization %s is here, and gave no document: it must set Document",
			source, key.ID, key.OrgID)
	case f.Document != nil && (f.Document.OrgID != key.OrgID || f.Document.ID != key.ID):
		return models.Errorf(models.CodeProcessorError, "the document source %s answered for document %s of organization %s with document %q of organization %q: it must answer in the keys' order",
			source, key.ID, key.OrgID, f.Document.ID, f.Document.OrgID)
	}
	return nil
}

// tellSources tells each source which of its documents are posted now.
func (c *chunk) tellSources(ctx context.Context, b *builder) error {
	names, positions := c.bySource(b.keys)
	for _, name := range names {
		if err := c.source(name).SetPosted(ctx, c.tx, pick(b.keys, positions[name]), pick(b.live, positions[name])); err != nil {
			return err
		}
	}
	return nil
}

// pick returns the elements at the positions; all of them are returned as they are.
func pick[T any](all []T, positions []int) []T {
	if len(positions) == len(all) {
		return all
	}
	some := make([]T, len(positions))
	for i, p := range positions {
		some[i] = all[p]
	}
	return some
}

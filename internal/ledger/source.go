package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

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

// ownDocuments is daybook.documents, for one chunk. A row that is deleted has a time in deleted_at;
// a row that is not there is unknown.
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

// ask has each source lock and read its documents. What a source does not know may have been
// deleted on record.
func (c *chunk) ask(ctx context.Context) error {
	c.found = make([]Found, len(c.keys))
	var unknown []Key
	var places []int
	names, positions := c.bySource(c.keys)
	for _, name := range names {
		keys := pick(c.keys, positions[name])
		found, err := c.lockAndRead(ctx, name, keys)
		if err != nil {
			return err
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

// lockAndRead asks the source of a name.
func (c *chunk) lockAndRead(ctx context.Context, name string, keys []Key) (found []Found, err error) {
	err = c.call(name, func(s DocumentSource) (err error) {
		if found, err = s.LockAndRead(ctx, c.tx, keys); err == nil && len(found) != len(keys) {
			err = models.Errorf(models.CodeSourceInvalid, "it answered for %d of %d keys, and must answer for each, in order",
				len(found), len(keys))
		}
		return err
	})
	return found, err
}

// call calls the source of a name. What is wrong with the source, and not with a document or the
// database, is said with SOURCE_INVALID.
func (c *chunk) call(name string, f func(DocumentSource) error) (err error) {
	s := c.source(name)
	if s == DocumentSource(&c.own) {
		return f(s)
	}
	defer func() {
		if p := recover(); p != nil {
			err = sourceInvalid(name, fmt.Errorf("it panicked: %v\n%s", p, debug.Stack()))
		}
	}()
	if err = f(s); isProgramming(err) {
		return sourceInvalid(name, err)
	}
	return err
}

// sourceError is the error of a source that its program has to mend.
type sourceError struct {
	*models.JobError
	cause error
}

func (e *sourceError) Unwrap() []error { return []error{e.JobError, e.cause} }

func sourceInvalid(name string, cause error) error {
	text := cause.Error()
	if own, ok := errors.AsType[*models.JobError](cause); ok && own != nil {
		// The code stands before the whole text.
		text = strings.Replace(text, own.Error(), own.Message, 1)
	}
	return &sourceError{models.Errorf(models.CodeSourceInvalid, "the document source %s: %s", name, text), cause}
}

// shapes are the driver's words of rows that a program reads into other fields, or into another
// number of them.
var shapes = []string{
	"struct doesn't have corresponding row field", "cannot find field ",
	"number of field descriptions must equal number of ",
}

// isProgramming reports whether a source fails in whatever document it is asked for: its statement
// is wrong (SQLSTATE class 42, but for a right that is lacking), or its rows are not what it reads
// them into.
func isProgramming(err error) bool {
	if err == nil || store.FaultOf(err) != store.NoFault {
		return false
	}
	if own, ok := errors.AsType[*models.JobError](err); ok && own != nil {
		return own.Code == models.CodeSourceInvalid
	}
	if state := store.SQLState(err); state != "" {
		return strings.HasPrefix(state, "42") && state != "42501" && !store.IsRaised(err)
	}
	if _, ok := errors.AsType[pgx.ScanArgError](err); ok {
		return true
	}
	return slices.ContainsFunc(shapes, func(s string) bool { return strings.Contains(err.Error(), s) })
}

// answer checks the source's answer for job i.
func (c *chunk) answer(i int) error {
	key, f := c.keys[i], c.found[i]
	source := c.needs[key.OrgID].Source
	switch {
	case f.State < DocumentHere || f.State > DocumentLater:
		return models.Errorf(models.CodeSourceInvalid,
			"the document source %s did not answer for document %s of organization %s: it must set State for each key",
			source, key.ID, key.OrgID)
	case f.State == DocumentHere && f.Document == nil && f.Err == nil:
		return models.Errorf(models.CodeSourceInvalid, "the document source %s says that document %s of organization %s "+
			"is here, and gave no document: it must set Document",
			source, key.ID, key.OrgID)
	case f.Document != nil && (f.Document.OrgID != key.OrgID || f.Document.ID != key.ID):
		return models.Errorf(models.CodeSourceInvalid, "the document source %s answered for document %s of organization "+
			"%s with document %q of organization %q: it must answer in the keys' order",
			source, key.ID, key.OrgID, f.Document.ID, f.Document.OrgID)
	}
	return nil
}

// tellSources tells each source which of its documents are posted now.
func (c *chunk) tellSources(ctx context.Context, b *builder) error {
	names, positions := c.bySource(b.keys)
	for _, name := range names {
		err := c.call(name, func(s DocumentSource) error {
			return s.SetPosted(ctx, c.tx, pick(b.keys, positions[name]), pick(b.live, positions[name]))
		})
		if err != nil {
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

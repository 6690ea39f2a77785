package queue

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
)

// SourceDaybook is the name of the source of organizations that name none, unless SetDefaultSource
// changed that: the table daybook.documents.
const SourceDaybook = store.SourceDaybook

// SetSource puts on record which source an organization's documents are read from. Only workers
// that read it work the organization's jobs. Empty: the default (SetDefaultSource). It reports
// whether that changed anything.
//
// An application whose documents are in its own tables calls SetSource in the transaction that
// enqueues the first of them, or when it starts. If the record says so already, the call takes no
// lock. Otherwise it waits for transactions that still post by the old record, and makes failed
// jobs pending again whose documents the old source did not know.
//
// Errors: ErrEmptyID, ErrIDTooLong, ErrInvalidText, ErrInvalid (a name that cannot be one),
// ErrNoQuerier, ErrNoTransaction (a GORM handle outside of one).
func SetSource(ctx context.Context, q Querier, org, source string) (changed bool, err error) {
	if err := checkNames(org, source); err != nil {
		return false, err
	}
	if err := check(q); err != nil {
		return false, err
	}
	set, err := store.SetSource(ctx, q, org, source)
	return set.Changed, err
}

// SetHooks puts on record which hooks are called with an organization's postings. Only workers that
// have all of them work the organization's jobs. nil: those of the default (SetDefaultHooks);
// empty: none. Otherwise it works as SetSource does, with its errors.
func SetHooks(ctx context.Context, q Querier, org string, hooks []string) (changed bool, err error) {
	if err := checkNames(org, hooks...); err != nil {
		return false, err
	}
	if err := check(q); err != nil {
		return false, err
	}
	set, err := store.SetHooks(ctx, q, org, hooks)
	return set.Changed, err
}

// SetDefaultSource is SetSource for every organization that names none, also for those without a
// row. It needs the rights of the schema's owner.
func SetDefaultSource(ctx context.Context, q Querier, source string) (changed bool, err error) {
	if err := store.CheckName(source); err != nil {
		return false, err
	}
	if err := check(q); err != nil {
		return false, err
	}
	set, err := store.SetDefaultSource(ctx, q, source)
	return set.Changed, err
}

// SetDefaultHooks is SetHooks for every organization that names none. It needs the rights of the
// schema's owner.
func SetDefaultHooks(ctx context.Context, q Querier, hooks []string) (changed bool, err error) {
	for _, h := range hooks {
		if err := store.CheckName(h); err != nil {
			return false, err
		}
	}
	if err := check(q); err != nil {
		return false, err
	}
	set, err := store.SetDefaultHooks(ctx, q, hooks)
	return set.Changed, err
}

// errNoOrg is ErrEmptyID where there is no document.
var errNoOrg = orgError{
	"the organization id must not be empty: name the organization, or change the default of all",
	ErrEmptyID,
}

// checkNames checks an organization's id, and names of which an empty one is left out.
func checkNames(org string, names ...string) error {
	switch {
	case org == "":
		return errNoOrg
	case len(org) > MaxIDBytes:
		return errLongOrg
	}
	if err := checkText("organization id", org); err != nil {
		return err
	}
	for i, n := range names {
		if n == "" && i == 0 && len(names) == 1 {
			continue
		}
		if err := store.CheckName(n); err != nil {
			return err
		}
	}
	return nil
}

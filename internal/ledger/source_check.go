package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/internal/store"
)

// checkLimit bounds the check of one source.
const checkLimit = 10 * time.Second

// errChecked ends the transaction of a check: nothing of it is kept.
var errChecked = errors.New("checked")

// CheckSources says what is wrong with the programs of the sources: with their statements, where
// they say so themselves (accounting.Checker), and with what they answer for a document on record,
// if there is one. What is wrong with that document alone is no error. It returns an error that is
// transient when the database could not be asked.
func CheckSources(ctx context.Context, db store.Beginner, sources Sources) error {
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, checkLimit)
			defer cancel()
			return store.Begin(ctx, db, func(tx pgx.Tx) error {
				c := &chunk{ledger: New(Sources{name: sources[name]}), tx: tx}
				if err := c.check(ctx, name); err != nil {
					return err
				}
				return errChecked
			})
		}()
		if !errors.Is(err, errChecked) &&
			(isProgramming(err) || store.IsTransient(err) && !errors.Is(err, context.DeadlineExceeded)) {
			return fmt.Errorf("check the source: %w", err)
		}
	}
	return nil
}

// BeginSources checks the sources, as CheckSources does, and makes the documents pending again that
// failed because a program could not read them. It returns how many.
func BeginSources(ctx context.Context, pool *pgxpool.Pool, sources Sources) (int, error) {
	if len(sources) == 0 {
		return 0, nil
	}
	if err := CheckSources(ctx, pool, sources); err != nil {
		return 0, err
	}
	return store.ReturnSourceInvalid(ctx, pool, slices.Sorted(maps.Keys(sources)))
}

// check asks the source of a name.
func (c *chunk) check(ctx context.Context, name string) error {
	if checker, ok := c.source(name).(accounting.Checker); ok {
		if err := c.call(name, func(DocumentSource) error { return checker.Check(ctx, c.tx) }); err != nil {
			return err
		}
	}
	org, id, found, err := store.DocumentOf(ctx, c.tx, name)
	if err != nil || !found {
		return err
	}
	_, err = c.lockAndRead(ctx, name, []Key{{OrgID: org, ID: id}})
	return err
}

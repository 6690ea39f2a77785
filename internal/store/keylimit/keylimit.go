// Package keylimit changes limits by key for people: the command line and the HTTP API. Each change
// and its row in the log of actions are one transaction.
package keylimit

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/actions"
)

// Set gives a type or a queue a limit, or, when that bounds nothing, takes it away. changed is false
// where it is so already. It returns store.ErrInvalid for a limit that cannot be, and
// store.ErrQueueNotFound.
func Set(ctx context.Context, pool *pgxpool.Pool, l store.KeyLimit) (changed bool, err error) {
	actions.About(ctx, "", l.String(), nil)
	err = store.Begin(ctx, pool, func(tx pgx.Tx) (err error) {
		if changed, err = store.SetKeyLimit(ctx, tx, l); err != nil {
			return err
		}
		return actions.Note(ctx, tx, "", l.String(), map[string]any{"changed": changed})
	})
	return changed && err == nil, err
}

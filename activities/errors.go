package activities

import (
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/internal/store"
)

// Types of the application errors that activities return.
const (
	// ErrTypeDatabaseAway: the database cannot be reached or asks to try again; the activity is retried for ever.
	ErrTypeDatabaseAway = "DATABASE_AWAY"
	// ErrTypeLeaseLost: the worker did not run for a while, and what it held was reclaimed; the activity begins anew.
	ErrTypeLeaseLost = "LEASE_LOST"
	// ErrTypeInternal: something that should not happen; retried all the same, because a job must not be lost for it.
	ErrTypeInternal = "INTERNAL"
)

// translateError is the one place that decides what Temporal makes of an error. Nothing that an activity meets ends the
// workflow: jobs have their own states, and an outage passes.
func translateError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return temporal.NewCanceledError()
	case store.IsLost(err):
		return temporal.NewApplicationError("this worker was not running for a while, and what it held was reclaimed: "+store.Explain(err), ErrTypeLeaseLost)
	case store.IsOutage(err):
		return temporal.NewApplicationError("the database is away: "+store.Explain(err), ErrTypeDatabaseAway)
	}
	return temporal.NewApplicationErrorWithCause(err.Error(), ErrTypeInternal, err)
}

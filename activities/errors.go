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
	case store.IsOutage(err):
		return temporal.NewApplicationErrorWithCause("the database is away: "+err.Error(), ErrTypeDatabaseAway, err)
	}
	return temporal.NewApplicationErrorWithCause(err.Error(), ErrTypeInternal, err)
}

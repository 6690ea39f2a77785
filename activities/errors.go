package activities

import (
	"cmp"
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/internal/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

// translateError says what Temporal makes of an error that a turn meets: the type of the application error is the code of the
// error's class, and the activity is tried again for ever. Nothing ends the workflow: jobs have their own states, an outage passes,
// and a job must not be lost for what should not happen.
func translateError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return temporal.NewCanceledError()
	}
	class := cmp.Or(store.Failure(err), failure.Internal)
	switch class {
	case failure.LeaseLost:
		return temporal.NewApplicationError("this worker was not running for a while, and what it held was reclaimed: "+store.Explain(err), class.Code)
	case failure.DatabaseUnavailable:
		return temporal.NewApplicationError("the database is unavailable: "+store.Explain(err), class.Code)
	}
	return temporal.NewApplicationErrorWithCause(err.Error(), class.Code, err)
}

// translateRefusal is translateError for an activity that may be refused: one that cannot succeed however often it is tried ends.
func translateRefusal(ctx context.Context, err error) error {
	if class := store.Failure(err); class != nil && !class.Retryable {
		return temporal.NewNonRetryableApplicationError(err.Error(), class.Code, err)
	}
	return translateError(ctx, err)
}

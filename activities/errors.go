package activities

import (
	"cmp"
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

// translateError makes an application error of an error that a turn meets. Its type is the code of
// the error's class, and Temporal tries the activity again for ever. No error ends the workflow:
// jobs have their own states, an outage passes, and no job may be lost because of an unexpected
// error.
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
		return temporal.NewApplicationError("this worker was not running for a while, and what it held was reclaimed: "+
			store.Explain(err), class.Code)
	case failure.DatabaseUnavailable:
		return temporal.NewApplicationError("the database is unavailable: "+store.Explain(err), class.Code)
	}
	return temporal.NewApplicationErrorWithCause(err.Error(), class.Code, err)
}

// translateRefusal is translateError for an activity that may be refused: an error that trying
// again cannot help ends the activity.
func translateRefusal(ctx context.Context, err error) error {
	if class := store.Failure(err); class != nil && !class.Retryable {
		return temporal.NewNonRetryableApplicationError(err.Error(), class.Code, err)
	}
	return translateError(ctx, err)
}

package engine

import (
	"context"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// review has the handlers say how an attempt ends that failed, where they are a Reviewer.
func (e *Engine) review(ctx context.Context, j store.Job, a Attempt) Attempt {
	if e.reviewer == nil || a.Outcome != models.OutcomeRetried && a.Outcome != models.OutcomeFailed {
		return a
	}
	reviewed := e.reviewer.Review(ctx, j, a)
	reviewed.took = a.took
	return reviewed
}

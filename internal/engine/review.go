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
	reviewed := a
	err := inOwnGoroutine(func() error {
		reviewed = e.reviewer.Review(ctx, j, a)
		return nil
	})
	if err != nil {
		e.options.Log.Error("the error handler has failed: the attempt ends as if there were none", "job", j.ID, "org", j.OrgID, "type", j.Type, "error", err)
		return a
	}
	reviewed.took = a.took
	return reviewed
}

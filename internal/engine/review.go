package engine

import (
	"context"
	"fmt"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// review has the handlers say how an attempt ends that failed, where they are a Reviewer.
func (e *Engine) review(ctx context.Context, j store.Job, a Attempt) Attempt {
	if e.reviewer == nil || a.Outcome != models.OutcomeRetried && a.Outcome != models.OutcomeFailed {
		return a
	}
	reviewed := a
	err := apart(func() error {
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

// failed has the handlers say how an attempt ends that failed with err, whatever err's own methods do.
func (e *Engine) failed(j store.Job, err error) (a Attempt) {
	defer func() {
		if p := recover(); p != nil {
			a = e.handlers.Failed(j, fmt.Errorf("the error that the handler returned panicked when it was asked for its text or its code (is it a nil pointer?): %v", p))
		}
	}()
	return e.handlers.Failed(j, err)
}

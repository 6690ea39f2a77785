package engine

import (
	"errors"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// UnstoredError says why what a handler leaves as its result cannot be stored. The work is done: the job is completed
// without it, and its row and its attempt say why.
type UnstoredError struct{ Why string }

func (e *UnstoredError) Error() string {
	return "the job is completed, and its result is not stored: " + e.Why
}

// Leave sets the result that an attempt leaves. Where err is an UnstoredError it leaves none, and says why; it returns
// every other error.
func (a *Attempt) Leave(result []byte, err error) error {
	a.Result = result
	if a.Outcome != models.OutcomeCompleted {
		return err
	}
	a.Code, a.Message = "", ""
	unstored, ok := errors.AsType[*UnstoredError](err)
	if !ok {
		return err
	}
	a.Result, a.Code, a.Message = nil, models.CodeResultNotStored, unstored.Error()
	return nil
}

// sayUnstored logs which jobs were completed without their results.
func (r *runner) sayUnstored(completions []store.Completion) {
	for i := range completions {
		if c := &completions[i]; c.Code == models.CodeResultNotStored && c.Outcome == models.OutcomeCompleted {
			r.engine.options.Log.Warn(c.Message, "job", c.Job.ID, "org", c.Job.OrgID, "type", c.Job.Type)
		}
	}
}

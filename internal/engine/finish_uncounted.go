package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// notCompletedError says that the completing transaction of a job failed each time that it was
// tried.
type notCompletedError struct {
	tries int
	cause error
}

func (e *notCompletedError) Error() string {
	return fmt.Sprintf("the transaction that completes the job failed %d times, the last time with: %v",
		e.tries, e.cause)
}

func (e *notCompletedError) Unwrap() error { return e.cause }

// ErrorCode is DATABASE_ERROR.
func (*notCompletedError) ErrorCode() models.ErrorCode { return models.CodeDatabaseError }

// notCompleted is the attempt at a job whose completing transaction failed with err. It is not
// counted when the job is not to blame.
func (t *turn) notCompleted(work context.Context, j store.Job, err error) Attempt {
	var always *notCompletedError
	counted := t.engine.failed(j, err)
	if counted.Unavailable {
		return t.uncounted(work, j, counted.Message, counted)
	}
	if errors.As(err, &always) || !errors.Is(err, store.ErrRowHeld) && !isTransient(err) {
		return counted
	}
	return t.uncounted(work, j, store.Advised(err), counted)
}

// uncounted puts an attempt off that the database failed, without counting it. After maxUncounted
// of them in a row it returns counted: what looks like an outage each time may be the job's own
// fault, and must end.
func (t *turn) uncounted(work context.Context, j store.Job, message string, counted Attempt) Attempt {
	n, err := t.engine.kind.PutOff(context.WithoutCancel(work), j.ID, j.Attempt)
	if err != nil || n < maxUncounted {
		return Attempt{
			Outcome: models.OutcomeRescheduled, Code: models.CodeDatabaseError, Message: message,
			Delay: uncountedDelay, InTx: counted.InTx, Hide: counted.Hide,
		}
	}
	counted.Code = models.CodeDatabaseError
	counted.Message = fmt.Sprintf("the attempt was put off %d times because of the database, the last time with: %s",
		n, message)
	return counted
}

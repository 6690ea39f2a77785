package engine

import (
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// stoppedError says that an attempt ended because its process was stopped.
type stoppedError struct{ ran time.Duration }

func (e *stoppedError) Error() string {
	return fmt.Sprintf("the worker was stopped, and its grace period was over, when the attempt had run for %s; an attempt that long is counted",
		e.ran.Round(time.Second))
}

// ErrorCode is the code of the attempt.
func (e *stoppedError) ErrorCode() models.ErrorCode { return models.CodeWorkerLost }

// stopped says how an attempt ends that ran for ran when its process was stopped. A short one is uncounted: back is true, and the job is
// given back at the end of the turn. A long one is counted, because a job that takes longer than processes live would otherwise be begun
// anew for ever.
func (s *stream) stopped(j store.Job, ran time.Duration) (a Attempt, back bool) {
	if ran < s.engine.options.CountStopped {
		return Attempt{}, true
	}
	return s.engine.handlers.Failed(j, &stoppedError{ran}), false
}

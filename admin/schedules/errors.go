package schedules

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/failure"
)

// Errors of schedules; compare with errors.Is. When the job itself is wrong, the error is one of
// package queue.
var (
	// ErrExists: there is a schedule with this id already.
	ErrExists = failure.New(failure.ScheduleExists, "there is such a schedule already")
	// ErrNotFound: there is no schedule with this id, or Daybook did not make it.
	ErrNotFound = failure.New(failure.ScheduleNotFound, "no such schedule")
	// ErrNoClient: a function was given no client of Temporal.
	ErrNoClient = failure.New(failure.Misuse, "the client is nil: pass one that is connected to Temporal")
	// ErrUnavailable: Temporal did not take the request for half a minute, as when many programs
	// change one schedule: try again.
	ErrUnavailable = failure.New(failure.TemporalUnavailable, "Temporal does not take the request now")
	// ErrInvalid: a field is out of range, Temporal refuses when the schedule is to fire, or it would
	// never fire.
	ErrInvalid = failure.New(failure.InvalidSchedule, "the schedule is invalid")
)

// scheduleError gives a message the meaning of a sentinel without repeating the sentinel's words.
type scheduleError struct {
	is      error
	message string
}

func (e *scheduleError) Error() string { return e.message }
func (e *scheduleError) Unwrap() error { return e.is }

func errorf(is error, format string, args ...any) error {
	return &scheduleError{is, fmt.Sprintf(format, args...)}
}

// translate says in our words what Temporal answered.
func translate(err error, id string) error {
	var missing *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument
	var exists *serviceerror.AlreadyExists
	switch {
	case err == nil, errors.Is(err, ErrExists), errors.Is(err, ErrUnavailable):
		return err
	case errors.Is(err, temporal.ErrScheduleAlreadyRunning), errors.As(err, &exists):
		return errorf(ErrExists, "schedule %s exists already: Replace changes it; or choose another ID", id)
	case errors.As(err, &missing):
		return errorf(ErrNotFound, "there is no schedule %s", id)
	case errors.As(err, &invalid):
		return errorf(ErrInvalid, "Temporal refuses schedule %s: %s", id,
			strings.TrimPrefix(invalid.Error(), "Invalid schedule spec: "))
	case errors.Is(err, context.DeadlineExceeded):
		// The client says this itself when its time is over before Temporal has answered.
		return errorf(ErrUnavailable, "schedule %s: Temporal has not answered in time", id)
	}
	return fmt.Errorf("schedule %s: %w", id, err)
}

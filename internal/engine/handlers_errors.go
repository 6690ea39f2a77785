package engine

import (
	"context"
	"errors"
	"iter"

	"github.com/daybook-dev/daybook/internal/disposition"
	"github.com/daybook-dev/daybook/models"
)

// Chain yields err and what it wraps, from the outside in. Of joined errors it yields one after the
// other, each with what that one wraps, as errors.Is looks at them.
func Chain(err error) iter.Seq[error] {
	return func(yield func(error) bool) { walk(err, yield) }
}

func walk(err error, yield func(error) bool) bool {
	for err != nil {
		if !yield(err) {
			return false
		}
		switch wraps := err.(type) { //nolint:errorlint // this is what unwraps
		case interface{ Unwrap() error }:
			err = wraps.Unwrap()
		case interface{ Unwrap() []error }:
			for _, one := range wraps.Unwrap() {
				if !walk(one, yield) {
					return false
				}
			}
			return true
		default:
			return true
		}
	}
	return true
}

// CodeOf returns the outermost code that err, or what it wraps, says that it has (a method
// ErrorCode), or else CodeHandlerError. A deadline by itself is no CodeTimeout: it may be one of
// the handler's own.
func CodeOf(err error) models.ErrorCode {
	for each := range Chain(err) {
		if code := OwnCode(each); code != "" {
			return code
		}
	}
	return models.CodeHandlerError
}

// OwnCode is the code that an error says it has itself, not what it wraps; empty: it says none.
func OwnCode(err error) models.ErrorCode {
	if coded, ok := err.(interface{ ErrorCode() models.ErrorCode }); ok {
		return coded.ErrorCode()
	}
	return ""
}

// timeoutError says that an attempt took longer than its policy allows.
type timeoutError struct{}

func (timeoutError) Error() string               { return disposition.NotFinished + " in time" }
func (timeoutError) ErrorCode() models.ErrorCode { return models.CodeTimeout }
func (timeoutError) Is(target error) bool        { return target == context.DeadlineExceeded }

// errTimeout is also the cause (context.Cause) with which the context of such an attempt ends.
var errTimeout error = timeoutError{}

// TimedOut reports whether ctx, an attempt's own, has ended because the attempt took longer than
// its policy allows. A deadline that a handler sets on a context of its own does not end this one.
func TimedOut(ctx context.Context) bool {
	return context.Cause(ctx) == errTimeout //nolint:errorlint // it is not wrapped
}

// UnstoredError says why what a handler leaves as its result cannot be stored. The work is done:
// the job is completed without it, and its row and its attempt say why.
type UnstoredError struct{ Why string }

func (e *UnstoredError) Error() string {
	return "the job is completed, and its result is not stored: " + e.Why
}

// Leave sets the result that an attempt leaves. Where err is an UnstoredError it leaves none, and
// says why; it returns every other error.
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

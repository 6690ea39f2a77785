package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// failure is why an attempt failed, and what becomes of the job.
type failure struct {
	code models.ErrorCode
	// final says that no attempt comes after, whatever the code says.
	final bool
	// after is when the next attempt comes, unless it is final; 0: as the policy says.
	after time.Duration
	// unsure says that what was asked for has perhaps been done: the request went out, and no answer
	// says what became of it.
	unsure bool
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// ErrorCode is the code that a task's error_handler is told.
func (f *failure) ErrorCode() models.ErrorCode { return f.code }

// fail is a failure of which its code says what becomes of the job.
func fail(code models.ErrorCode, format string, args ...any) *failure {
	return &failure{code: code, err: fmt.Errorf(format, args...)}
}

// failFinally is a failure without a code of its own after which no attempt comes.
func failFinally(format string, args ...any) *failure {
	f := fail(models.CodeHandlerError, format, args...)
	f.final = true
	return f
}

// invalid is a payload that no attempt can work.
func invalid(format string, args ...any) *failure {
	return fail(models.CodePayloadInvalid, format, args...)
}

// outcome is err as an error of package jobs.
func outcome(err error) error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	coded := jobs.WithCode(f.code, err)
	switch {
	case f.final:
		return jobs.Final(coded)
	case f.after > 0 && !models.JobErrorIsFinal(f.code):
		return jobs.RetryAfter(f.after, coded)
	default:
		return coded
	}
}

// isTimeout reports whether err says that a deadline passed.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &timeout) && timeout.Timeout())
}

// maxErrorText is how many bytes an error repeats of a text that comes from elsewhere.
const maxErrorText = 300

// clip is the beginning of a text, in one line, as an error may repeat it.
func clip(s string) string {
	s = oneLine(s)
	if len(s) <= maxErrorText {
		return s
	}
	cut := maxErrorText
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

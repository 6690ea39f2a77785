package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/models"
)

// outcome is an error of a handler that says what becomes of the job.
type outcome struct {
	kind  outcomeKind
	delay time.Duration
	code  models.ErrorCode
	cause error
}

type outcomeKind int

const (
	coded outcomeKind = iota
	snoozed
	cancelled
	retriedAfter
	final
)

func (o *outcome) Error() string {
	if o.cause == nil {
		return "no cause was given"
	}
	return o.cause.Error()
}
func (o *outcome) Unwrap() error { return o.cause }

// ErrorCode is the code that WithCode has given; empty: this is no such error.
func (o *outcome) ErrorCode() models.ErrorCode {
	if o.kind == coded {
		return o.code
	}
	return ""
}

// What errors say of a job is read from the outside in, and the outermost word counts: Snooze,
// Cancel, RetryAfter, Final, or a code that is final (WithCode). So Final around a Snooze makes a
// dead letter, and a middleware overrules what it wraps. The code is the outermost one as well; a
// code that is not final leaves the fate to what it wraps. Of joined errors (errors.Join, several
// %w) the first that says something counts.

// Snooze puts the job off for d, at least a second. No attempt is counted.
func Snooze(d time.Duration) error {
	d = max(d, time.Second)
	return &outcome{kind: snoozed, delay: d, code: models.CodeSnoozed, cause: errors.New("snoozed for " + d.String())}
}

// Cancel ends the job as cancelled, because there is nothing left to do.
func Cancel(reason string) error {
	return &outcome{kind: cancelled, code: models.CodeJobCancelled, cause: errors.New(reason)}
}

// CancelRequested reports whether ctx, which a handler of single jobs was given, has ended because
// a request cancelled its job. Then the job is cancelled, whatever the handler returns and whatever
// it wanted to commit, unless a later request takes that back before it returns: so a handler may
// undo what it has begun elsewhere, under a context of its own, and returns.
func CancelRequested(ctx context.Context) bool {
	return engine.CancelRequested(ctx)
}

// RetryAfter fails the attempt with err. The next attempt, if one is left, begins after d instead
// of the policy's delay, whatever err says itself.
func RetryAfter(d time.Duration, err error) error {
	return &outcome{kind: retriedAfter, delay: max(d, 0), cause: err}
}

// Final makes the job a dead letter with err, even if attempts are left, and whatever err says
// itself.
func Final(err error) error { return &outcome{kind: final, cause: err} }

// WithCode gives err an error code. The code decides whether the job is tried again (docs/jobs.md),
// unless it stands within a Snooze, Cancel, RetryAfter or Final, and jobs can be searched by it. It
// is of 1 to MaxCodeBytes capital letters, digits and '_'. Any other text, and a code that is
// reserved (models.JobCodeIsReserved), is a HANDLER_ERROR whose message begins with it; the empty
// one is no code.
func WithCode(code models.ErrorCode, err error) error {
	return &outcome{kind: coded, code: code, cause: err}
}

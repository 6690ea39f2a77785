package models

import (
	"fmt"
	"math"
	"time"
)

// MaxAttempts is how often an accounting job is tried before it is failed.
const MaxAttempts = 6

// DefaultRetryBase is the delay after the first attempt that failed; each later one is three times as long.
const DefaultRetryBase = 5 * time.Minute

// MaxBackoff caps the delay between two attempts.
const MaxBackoff = 6 * time.Hour

// StaleAfter is the age at which a lease expires that its holder has not renewed: then any worker reclaims it.
const StaleAfter = 10 * time.Second

// RenewEvery is the pause between two renewals of a lease.
const RenewEvery = 3 * time.Second

// Backoff is the delay after the attempt-th attempt (from 1): base × 3^(attempt-1), at most MaxBackoff.
// A base of zero or less means DefaultRetryBase.
func Backoff(base time.Duration, attempt int) time.Duration {
	if base <= 0 {
		base = DefaultRetryBase
	}
	d := base
	for range attempt - 1 {
		if d > MaxBackoff/3 {
			return MaxBackoff
		}
		d *= 3
	}
	return min(d, MaxBackoff)
}

const (
	notReadyDelay    = 30 * time.Second
	notReadySlowFrom = 10
	notReadySlowest  = 15 * time.Minute
	mismatchDelay    = 5 * time.Second
	lockedDelay      = time.Second
)

// notReadyBackoff is the delay after the reads-th read (from 1) of a document that is not ready: 30 s for ten reads,
// then doubling up to 15 min.
func notReadyBackoff(reads int) time.Duration {
	if reads <= notReadySlowFrom {
		return notReadyDelay
	}
	factor := math.Pow(2, float64(min(reads-notReadySlowFrom, 10)))
	return min(time.Duration(factor)*notReadyDelay, notReadySlowest)
}

// JobError is why an attempt did not complete its job. What follows is decided by its Code alone.
type JobError struct {
	Code    ErrorCode
	Message string
	// Version is the version that the document has, for CodeVersionMismatch.
	Version int64
}

// Error implements error. A nil JobError that was returned as an error, which is easily done, says so.
func (e *JobError) Error() string {
	if e == nil {
		return "nil *models.JobError"
	}
	return string(e.Code) + ": " + e.Message
}

// Errorf returns a JobError with a formatted message.
func Errorf(code ErrorCode, format string, args ...any) *JobError {
	return &JobError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Treatment is what an error code does to a job.
type Treatment int

const (
	// TreatBackoff: again after Backoff; failed when the attempts are used up.
	TreatBackoff Treatment = iota
	// TreatPermanent: failed at once, because trying again cannot help until its cause is gone.
	TreatPermanent
	// TreatReschedule: again after a short delay, and the attempt is not counted.
	TreatReschedule
	// TreatCancel: the job is cancelled.
	TreatCancel
	// TreatLost: the attempt ended with its worker; the job goes on elsewhere at once.
	TreatLost
)

// CodeInfo is one row of the error table.
type CodeInfo struct {
	Code      ErrorCode
	Treatment Treatment
	// Then says in words what happens.
	Then string
}

// ErrorTable is every code of the accounting kind and what it does to a job; docs/states.md is tested against it.
func ErrorTable() []CodeInfo { return errorTable }

var errorTable = []CodeInfo{
	{CodeDocumentDeleted, TreatCancel, "`cancelled`; a live impact is reversed"},
	{CodeDocumentUnknown, TreatPermanent, "`failed` at once, and the ledger is left alone; comes back when the organization's source is changed, or by a person's retry"},
	{CodeDocumentNotReady, TreatReschedule, "again in 30 s, uncounted; after ten reads slower, up to 15 min; marking it ready pulls it forward; a live impact is reversed"},
	{CodeVersionMismatch, TreatReschedule, "again in 5 s with the document's version, uncounted"},
	{CodeDocumentLocked, TreatReschedule, "another transaction holds the document: again in 1 s, uncounted, without an attempt in the log"},
	{CodeConfigurationLocked, TreatReschedule, "another transaction is changing the organization's rules, accounts or periods: its jobs are left as they are and tried again after 100 ms, each time in a row twice as late, up to 5 s; uncounted, without an attempt in the log"},
	{CodeNoMatchingRule, TreatPermanent, "`failed` at once; comes back when a rule set is activated"},
	{CodeAmbiguousRule, TreatPermanent, "`failed` at once; comes back when a rule set is activated"},
	{CodeUnknownAccount, TreatPermanent, "`failed` at once; comes back when an account is added or a rule set is activated"},
	{CodeUnbalanced, TreatPermanent, "`failed` at once; comes back with a new version, or by a person's retry"},
	{CodePeriodClosed, TreatPermanent, "`failed` at once; comes back when the period is opened or the policy changes"},
	{CodeDocumentInvalid, TreatPermanent, "`failed` at once; comes back with a new version, or by a person's retry"},
	{CodeDatabaseError, TreatBackoff, "backoff; the sixth is `failed`"},
	{CodeTimeout, TreatBackoff, "backoff; the sixth is `failed`"},
	{CodeProcessorError, TreatBackoff, "backoff; the sixth is `failed`"},
	{CodeRowUnreadable, TreatPermanent, "`failed` at once, without an attempt: the job's row cannot be read or leased, and would keep others from being worked; what its columns may not hold is replaced; comes back with a request, or by a person's retry"},
	{CodeWorkerLost, TreatLost, "at once elsewhere; the sixth is `failed`"},
}

// Treat returns what code does to a job; an unknown code is treated as CodeProcessorError.
func Treat(code ErrorCode) Treatment {
	for _, c := range errorTable {
		if c.Code == code {
			return c.Treatment
		}
	}
	return TreatBackoff
}

// Verdict is how an attempt is to end.
type Verdict struct {
	Outcome Outcome
	// Delay is until the next attempt, for OutcomeRetried and OutcomeRescheduled.
	Delay time.Duration
}

// Judge says how the attempt-th attempt (from 1) ends that returned err; nil is success. reads counts how
// often the document was found not ready, this time included. base is the first backoff.
func Judge(err *JobError, attempt, reads int, base time.Duration) Verdict {
	if err == nil {
		return Verdict{Outcome: OutcomeCompleted}
	}
	switch Treat(err.Code) {
	case TreatPermanent:
		return Verdict{Outcome: OutcomeFailed}
	case TreatCancel:
		return Verdict{Outcome: OutcomeCancelled}
	case TreatReschedule:
		delay := lockedDelay
		switch err.Code {
		case CodeDocumentNotReady:
			delay = notReadyBackoff(reads)
		case CodeVersionMismatch:
			delay = mismatchDelay
		default: // something is locked
		}
		return Verdict{Outcome: OutcomeRescheduled, Delay: delay}
	case TreatBackoff, TreatLost:
	}
	if attempt >= MaxAttempts {
		return Verdict{Outcome: OutcomeFailed}
	}
	if err.Code == CodeWorkerLost {
		return Verdict{Outcome: OutcomeRetried}
	}
	return Verdict{Outcome: OutcomeRetried, Delay: Backoff(base, attempt)}
}

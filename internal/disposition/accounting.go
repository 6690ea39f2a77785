// Package disposition says what becomes of an accounting job by the error code of its attempt.
package disposition

import (
	"math"
	"time"

	"github.com/daybook-dev/daybook/models"
)

const (
	notReadyDelay    = 30 * time.Second
	notReadySlowFrom = 10
	notReadySlowest  = 15 * time.Minute
	mismatchDelay    = 5 * time.Second
	lockedDelay      = time.Second
)

// notReadyBackoff is the delay after the reads-th read (from 1) of a document that is not ready: 30
// s for ten reads, then doubling up to 15 min.
func notReadyBackoff(reads int) time.Duration {
	if reads <= notReadySlowFrom {
		return notReadyDelay
	}
	factor := math.Pow(2, float64(min(reads-notReadySlowFrom, 10)))
	return min(time.Duration(factor)*notReadyDelay, notReadySlowest)
}

// Treatment is what an error code does to a job.
type Treatment int

const (
	// TreatBackoff: again after models.Backoff; failed when the attempts are used up.
	TreatBackoff Treatment = iota
	// TreatPermanent: failed at once, because trying again cannot help until its cause is gone.
	TreatPermanent
	// TreatReschedule: again after a short delay, and the attempt is not counted.
	TreatReschedule
	// TreatCancel: the job is cancelled.
	TreatCancel
	// TreatLost: the attempt ended with its worker; another worker tries the job again at once.
	TreatLost
)

// Row is one row of the error table.
type Row struct {
	Code      models.ErrorCode
	Treatment Treatment
	// Then says in words what happens.
	Then string
}

// Table is every code of the accounting kind and what it does to a job; docs/states.md is tested
// against it.
func Table() []Row { return table }

var table = []Row{
	{models.CodeDocumentDeleted, TreatCancel, "`cancelled`; a live impact is reversed"},
	{models.CodeDocumentUnknown, TreatPermanent, "`failed` at once, and the ledger is left alone; comes back when the " +
		"organization's source is changed, or by a person's retry"},
	{models.CodeSourceInvalid, TreatPermanent, "`failed` at once, and the ledger is left alone; comes back when a " +
		"worker starts whose source of that name passes its check, when the organization's source is changed, or by a " +
		"person's retry"},
	{models.CodeDocumentNotReady, TreatReschedule, "again in 30 s, uncounted; after ten reads slower, up to 15 min; " +
		"marking it ready pulls it forward; a live impact is reversed"},
	{models.CodeVersionMismatch, TreatReschedule, "again in 5 s with the document's version, uncounted"},
	{
		models.CodeDocumentLocked, TreatReschedule,
		"another transaction holds the document: again in 1 s, uncounted, without an attempt in the log",
	},
	{models.CodeConfigurationLocked, TreatReschedule, "another transaction is changing the organization's rules, " +
		"accounts or periods: its jobs are left as they are and tried again after 100 ms, each time in a row twice as " +
		"late, up to 5 s; uncounted, without an attempt in the log"},
	{models.CodeNoMatchingRule, TreatPermanent, "`failed` at once; comes back when a rule set is activated"},
	{models.CodeAmbiguousRule, TreatPermanent, "`failed` at once; comes back when a rule set is activated"},
	{
		models.CodeUnknownAccount, TreatPermanent,
		"`failed` at once; comes back when an account is added or a rule set is activated",
	},
	{models.CodeUnbalanced, TreatPermanent, "`failed` at once; comes back with a new version, or by a person's retry"},
	{
		models.CodePeriodClosed, TreatPermanent,
		"`failed` at once; comes back when a period is opened or added, or the policy changes",
	},
	{
		models.CodeDocumentInvalid, TreatPermanent,
		"`failed` at once; comes back with a new version, or by a person's retry",
	},
	{
		models.CodeAmountNotRead, TreatPermanent,
		"`failed` at once; comes back when a rule set is activated, with a new version, or by a person's retry",
	},
	{
		models.CodeAmountMissing, TreatPermanent,
		"`failed` at once; comes back when a rule set is activated, with a new version, or by a person's retry",
	},
	{models.CodeAmountSign, TreatPermanent, "`failed` at once; comes back with a new version, or by a person's retry"},
	{
		models.CodeTotalsDiffer, TreatPermanent,
		"`failed` at once; comes back when a rule set is activated, with a new version, or by a person's retry",
	},
	{models.CodePostedElsewhere, TreatPermanent, "`failed` at once, and the ledger is left alone: another system has " +
		"posted an earlier version; comes back with a person's decision (`daybook accounting elsewhere`), a new version, " +
		"or a retry"},
	{models.CodeFailedElsewhere, TreatPermanent, "`failed` in the queue that it was [adopted](adopting.md) from; comes " +
		"back with a new version, or by a person's retry"},
	{models.CodeDatabaseError, TreatBackoff, "backoff; the sixth is `failed`"},
	{models.CodeTimeout, TreatBackoff, "backoff; the sixth is `failed`"},
	{models.CodeProcessorError, TreatBackoff, "backoff; the sixth is `failed`"},
	{models.CodeRowUnreadable, TreatPermanent, "`failed` at once, without an attempt: the job's row cannot be read or " +
		"leased, and would keep others from being worked; what its columns may not hold is replaced; comes back with a " +
		"request, or by a person's retry"},
	{models.CodeWorkerLost, TreatLost, "at once elsewhere; the sixth is `failed`"},
}

// Treat returns what code does to a job; an unknown code is treated as models.CodeProcessorError.
func Treat(code models.ErrorCode) Treatment {
	for _, c := range table {
		if c.Code == code {
			return c.Treatment
		}
	}
	return TreatBackoff
}

// Verdict is how an attempt is to end.
type Verdict struct {
	Outcome models.Outcome
	// Delay is until the next attempt, for models.OutcomeRetried and models.OutcomeRescheduled.
	Delay time.Duration
}

// Judge says how attempt number attempt (from 1) ends when it returned err; nil is success. reads
// counts how often the document was found not ready, this time included. base is the first backoff;
// zero or less means DefaultRetryBase.
func Judge(err *models.JobError, attempt, reads int, base time.Duration) Verdict {
	if err == nil {
		return Verdict{Outcome: models.OutcomeCompleted}
	}
	switch Treat(err.Code) {
	case TreatPermanent:
		return Verdict{Outcome: models.OutcomeFailed}
	case TreatCancel:
		return Verdict{Outcome: models.OutcomeCancelled}
	case TreatReschedule:
		delay := lockedDelay
		switch err.Code {
		case models.CodeDocumentNotReady:
			delay = notReadyBackoff(reads)
		case models.CodeVersionMismatch:
			delay = mismatchDelay
		default: // the document or the configuration is locked
		}
		return Verdict{Outcome: models.OutcomeRescheduled, Delay: delay}
	case TreatBackoff, TreatLost:
	}
	if attempt >= models.MaxAttempts {
		return Verdict{Outcome: models.OutcomeFailed}
	}
	if err.Code == models.CodeWorkerLost {
		return Verdict{Outcome: models.OutcomeRetried}
	}
	return Verdict{Outcome: models.OutcomeRetried, Delay: models.Backoff(base, attempt)}
}

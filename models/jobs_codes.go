package models

// The codes of background jobs, besides CodeTimeout, CodeDatabaseError, CodeRowUnreadable and
// CodeWorkerLost. What each leads to is the table in docs/jobs.md.
const (
	// CodeRateLimited: the called server asked for fewer calls. Tried again after the delay that it
	// asked for, or by the policy.
	CodeRateLimited ErrorCode = "RATE_LIMITED"
	// CodeUpstream5xx: a server answered that it cannot answer. Tried again by the policy.
	CodeUpstream5xx ErrorCode = "UPSTREAM_5XX"
	// CodeNetworkError: a server was not reached, or the connection broke. Tried again by the policy.
	CodeNetworkError ErrorCode = "NETWORK_ERROR"
	// CodeHandlerError: the handler returned an error without a code, or panicked. Tried again by the
	// policy.
	CodeHandlerError ErrorCode = "HANDLER_ERROR"
	// CodePayloadInvalid: the payload is not what its type's schema asks for, or too deep, or has too
	// many keys. Final.
	CodePayloadInvalid ErrorCode = "PAYLOAD_INVALID"
	// CodePayloadTooLarge: the payload is larger than MaxPayloadBytes. Such a job is not enqueued.
	CodePayloadTooLarge ErrorCode = "PAYLOAD_TOO_LARGE"
	// CodeAuthenticationFailed: a server refused the credentials. Final.
	CodeAuthenticationFailed ErrorCode = "AUTHENTICATION_FAILED"
	// CodeNotFound: what the job is about does not exist. Final.
	CodeNotFound ErrorCode = "NOT_FOUND"
	// CodeHandlerMissing: no worker that lives has a handler for the job's type. Final until a worker
	// starts that has one.
	CodeHandlerMissing ErrorCode = "HANDLER_MISSING"
	// CodeReclaimed: the attempt's lease expired and was reclaimed, because its worker did not renew
	// it.
	CodeReclaimed ErrorCode = "JOB_LOCK_TIMEOUT_RECLAIMED"
	// CodeSnoozed: the handler put the job off. No attempt is counted.
	CodeSnoozed ErrorCode = "SNOOZED"
	// CodeAwaitingCallback: the handler asked for a callback, and the job waits for it. No attempt is
	// counted.
	CodeAwaitingCallback ErrorCode = "AWAITING_CALLBACK"
	// CodeAwaitedCancelled: a job that this one waited for was cancelled or removed. Final: tried
	// again, this one is worked without it.
	CodeAwaitedCancelled ErrorCode = "AWAITED_CANCELLED"
	// CodeReplaced: a newer request with the same debounce key has made a job that takes this one's
	// place. The job is cancelled.
	CodeReplaced ErrorCode = "REPLACED"
	// CodeResultNotStored: the job is completed, and the database cannot hold its result.
	CodeResultNotStored ErrorCode = "RESULT_NOT_STORED"
	// CodeNotEncrypted: members of the payload are plain that its type encrypts. Final.
	CodeNotEncrypted ErrorCode = "PAYLOAD_NOT_ENCRYPTED"
	// CodeKeyUnknown: the worker does not have the key under which the payload was encrypted. Tried
	// again by the policy, because the key may be on its way.
	CodeKeyUnknown ErrorCode = "KEY_UNKNOWN"
	// CodeStepInvalid: a step was asked for that cannot be: its name is wrong or was used before, or
	// there are too many. Tried again by the policy.
	CodeStepInvalid ErrorCode = "STEP_INVALID"
	// CodeStepNotStored: the database cannot hold the result of a step. Tried again by the policy.
	CodeStepNotStored ErrorCode = "STEP_NOT_STORED"
	// CodeStepChanged: what an earlier attempt has kept of a step does not fit the program any more.
	// Tried again by the policy.
	CodeStepChanged ErrorCode = "STEP_CHANGED"
	// CodeActivityNotStandalone: the Temporal server starts no activity without a workflow around it. A
	// dead letter.
	CodeActivityNotStandalone ErrorCode = "ACTIVITY_NOT_STANDALONE"
	// CodeJobCancelled: the handler said that there is nothing left to do. The job is cancelled.
	CodeJobCancelled ErrorCode = "JOB_CANCELLED"
)

// JobCodeIsReserved says whether only Daybook gives a background job the code: it treats the job by
// it. A handler that says it has failed with CodeHandlerError. daybook.job_code_is_reserved has the
// same list.
func JobCodeIsReserved(code ErrorCode) bool {
	switch code {
	case CodeSnoozed, CodeAwaitingCallback, CodeAwaitedCancelled, CodeReplaced, CodeHandlerMissing,
		CodeRowUnreadable, CodeResultNotStored:
		return true
	default:
		return false
	}
}

// JobErrorIsFinal says whether a background job that failed with the code is a dead letter at once:
// trying again cannot help. Every other code is tried again by the policy of the job's type.
// daybook.job_error_is_final has the same list.
func JobErrorIsFinal(code ErrorCode) bool {
	switch code {
	case CodePayloadInvalid, CodePayloadTooLarge, CodeAuthenticationFailed, CodeNotFound, CodeHandlerMissing,
		CodeRowUnreadable, CodeAwaitedCancelled, CodeNotEncrypted:
		return true
	default:
		return false
	}
}

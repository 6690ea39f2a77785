package models

// The codes of the accounting kind. What each leads to is the table in docs/states.md.
const (
	// CodeDocumentDeleted: the document was deleted, explicitly. The job is cancelled, a live impact
	// reversed.
	CodeDocumentDeleted ErrorCode = "DOCUMENT_DELETED"
	// CodeDocumentUnknown: the organization's source does not know the document, and no record says
	// that it was deleted. The ledger is not changed.
	CodeDocumentUnknown ErrorCode = "DOCUMENT_UNKNOWN"
	// CodeSourceInvalid: the program that reads the source's documents is wrong: a column is missing
	// or of another type, a statement names what does not exist, an answer breaks its contract, or
	// the source panicked.
	CodeSourceInvalid ErrorCode = "SOURCE_INVALID"
	// CodeDocumentNotReady: the document is not marked ready. It is read again later, uncounted.
	CodeDocumentNotReady ErrorCode = "DOCUMENT_NOT_READY"
	// CodeVersionMismatch: the job names another version than the document has. The job is tried
	// again with the document's, uncounted.
	CodeVersionMismatch ErrorCode = "VERSION_MISMATCH"
	// CodeNoMatchingRule: no rule, or no row of an account map, matches the document.
	CodeNoMatchingRule ErrorCode = "NO_MATCHING_RULE"
	// CodeAmbiguousRule: two rules match the document.
	CodeAmbiguousRule ErrorCode = "AMBIGUOUS_RULE"
	// CodeUnknownAccount: a rule names an account that the organization's chart does not have.
	CodeUnknownAccount ErrorCode = "UNKNOWN_ACCOUNT"
	// CodeUnbalanced: debits and credits differ by more than the rounding limit.
	CodeUnbalanced ErrorCode = "UNBALANCED"
	// CodePeriodClosed: the posting date lies in a closed period, or in none and before a closed one.
	CodePeriodClosed ErrorCode = "PERIOD_CLOSED"
	// CodeDocumentInvalid: the document's content cannot be read or lacks what a rule needs.
	CodeDocumentInvalid ErrorCode = "DOCUMENT_INVALID"
	// CodeAmountNotRead: the document states an amount, and its rule makes no entry of it.
	CodeAmountNotRead ErrorCode = "AMOUNT_NOT_READ"
	// CodeAmountMissing: the document does not state the amount that it is about.
	CodeAmountMissing ErrorCode = "AMOUNT_MISSING"
	// CodeAmountSign: an amount has a sign that its document's type does not allow.
	CodeAmountSign ErrorCode = "AMOUNT_SIGN"
	// CodeTotalsDiffer: the document's total is not what is payable and prepaid.
	CodeTotalsDiffer ErrorCode = "TOTALS_DIFFER"
	// CodeDatabaseError: the database refused a statement of this job. An outage of the database is
	// charged to no job.
	CodeDatabaseError ErrorCode = "DATABASE_ERROR"
	// CodeTimeout: the job's processor did not finish before its deadline.
	CodeTimeout ErrorCode = "TIMEOUT"
	// CodeProcessorError: the processor returned an error or panicked.
	CodeProcessorError ErrorCode = "PROCESSOR_ERROR"
	// CodeWorkerLost: the worker died, or lost its lease, while it worked on the job.
	CodeWorkerLost ErrorCode = "WORKER_LOST"
	// CodeDocumentLocked: another transaction holds the document. The job is tried again shortly,
	// uncounted.
	CodeDocumentLocked ErrorCode = "DOCUMENT_LOCKED"
	// CodeRowUnreadable: the job's row cannot be leased or read. The job fails, so that it does not
	// keep others from being worked.
	CodeRowUnreadable ErrorCode = "ROW_UNREADABLE"
	// CodeConfigurationLocked: another transaction is changing the organization's rules, accounts or
	// periods. The job is tried again shortly, uncounted.
	CodeConfigurationLocked ErrorCode = "CONFIGURATION_LOCKED"
	// CodePostedElsewhere: another system has posted an earlier version of the document, and a person
	// decides what Daybook posts (`daybook accounting elsewhere`). The ledger is not changed.
	CodePostedElsewhere ErrorCode = "POSTED_ELSEWHERE"
	// CodeFailedElsewhere: the job had failed in the queue that it was adopted from (`daybook adopt
	// accounting-queue`).
	CodeFailedElsewhere ErrorCode = "FAILED_ELSEWHERE"
)

package failure

import "net/http"

// What is wrong with a call: the same call cannot succeed.
var (
	Usage = row(Class{
		Code: "USAGE", Title: "The command is wrong", Status: http.StatusBadRequest,
		Exit: ExitUsage,
	})
	Invalid = row(Class{
		Code: "INVALID", Title: "The request is invalid", Status: http.StatusUnprocessableEntity,
		Exit: ExitUsage,
	})
	DocumentRefused = row(Class{
		Code: "DOCUMENT_REFUSED", Title: "The document is refused",
		Status: http.StatusUnprocessableEntity, Exit: ExitUsage,
	})
	InvalidInput = row(Class{
		Code: "INVALID_INPUT", Title: "The workflow's input is invalid",
		Status: http.StatusUnprocessableEntity, Exit: ExitUsage,
	})
	InvalidRules = row(Class{
		Code: "INVALID_RULES", Title: "The rules are invalid",
		Status: http.StatusUnprocessableEntity, Exit: ExitUsage,
	})
	InvalidSchedule = row(Class{
		Code: "INVALID_SCHEDULE", Title: "The schedule is invalid",
		Status: http.StatusUnprocessableEntity, Exit: ExitUsage,
	})
	PayloadInvalid = row(Class{
		Code: "PAYLOAD_INVALID", Title: "The payload is invalid",
		Status: http.StatusUnprocessableEntity, Exit: ExitUsage,
	})
	PayloadTooLarge = row(Class{
		Code: "PAYLOAD_TOO_LARGE", Title: "The payload is too large",
		Status: http.StatusRequestEntityTooLarge, Exit: ExitUsage,
	})
	NoDatabase = row(Class{
		Code: "NO_DATABASE", Title: "No database is named", Status: http.StatusInternalServerError,
		Exit: ExitUsage, Instead: internalDetail,
	})
	DirectAddressNeeded = row(Class{
		Code: "DIRECT_ADDRESS_NEEDED", Title: "The database is needed past its pooler",
		Status: http.StatusInternalServerError, Exit: ExitUsage, Instead: internalDetail,
	})

	ConfirmationRequired = row(Class{
		Code: "CONFIRMATION_REQUIRED", Title: "Confirmation required",
		Status: http.StatusUnprocessableEntity, Exit: ExitUsage,
	})
)

// What a request over HTTP may lack.
var (
	Malformed = row(Class{
		Code: "MALFORMED", Title: "The request cannot be read",
		Status: http.StatusBadRequest, Exit: ExitUsage,
	})
	Unauthorized = row(Class{
		Code: "UNAUTHORIZED", Title: "A token is needed", Status: http.StatusUnauthorized,
		Exit: ExitFailure,
	})
	Forbidden = row(Class{
		Code: "FORBIDDEN", Title: "The token does not allow this",
		Status: http.StatusForbidden, Exit: ExitFailure,
	})
	TypeNotAllowed = row(Class{
		Code: "TYPE_NOT_ALLOWED", Title: "The token does not allow this type",
		Status: http.StatusForbidden, Exit: ExitFailure,
	})
	NotFound = row(Class{
		Code: "NOT_FOUND", Title: "No such address", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	MethodNotAllowed = row(Class{
		Code: "METHOD_NOT_ALLOWED", Title: "No such method",
		Status: http.StatusMethodNotAllowed, Exit: ExitUsage,
	})
	RequestTimeout = row(Class{
		Code: "REQUEST_TIMEOUT", Title: "The request did not arrive in time",
		Status: http.StatusRequestTimeout, Exit: ExitUnavailable, Retryable: true,
	})
	BodyTooLarge = row(Class{
		Code: "BODY_TOO_LARGE", Title: "The request is too large",
		Status: http.StatusRequestEntityTooLarge, Exit: ExitUsage,
	})
	UnsupportedMediaType = row(Class{
		Code: "UNSUPPORTED_MEDIA_TYPE", Title: "Only JSON is understood",
		Status: http.StatusUnsupportedMediaType, Exit: ExitUsage,
	})
	RateLimited = row(Class{
		Code: "RATE_LIMITED", Title: "Too many requests", Status: http.StatusTooManyRequests,
		Exit: ExitUnavailable, Retryable: true,
	})
	NoRunner = row(Class{
		Code: "NO_RUNNER", Title: "This server runs no jobs", Status: http.StatusNotImplemented,
		Exit: ExitFailure,
	})
)

// What does not exist.
var (
	JobNotFound = row(Class{
		Code: "JOB_NOT_FOUND", Title: "No such job", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	TaskNotFound = row(Class{
		Code: "TASK_NOT_FOUND", Title: "No such task", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	OperationNotFound = row(Class{
		Code: "OPERATION_NOT_FOUND", Title: "No such bulk operation",
		Status: http.StatusNotFound, Exit: ExitNotFound,
	})
	DocumentNotFound = row(Class{
		Code: "DOCUMENT_NOT_FOUND", Title: "No such document", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	ImportNotFound = row(Class{
		Code: "IMPORT_NOT_FOUND", Title: "No such import", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	GroupNotFound = row(Class{
		Code: "GROUP_NOT_FOUND", Title: "No such group of documents", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	OrganizationNotFound = row(Class{
		Code: "ORGANIZATION_NOT_FOUND", Title: "No such organization",
		Status: http.StatusNotFound, Exit: ExitNotFound,
	})
	PeriodNotFound = row(Class{
		Code: "PERIOD_NOT_FOUND", Title: "No such period", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	DimensionNotFound = row(Class{
		Code: "DIMENSION_NOT_FOUND", Title: "No entry has that dimension", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	AccountNotFound = row(Class{
		Code: "ACCOUNT_NOT_FOUND", Title: "No such account", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	TokenNotFound = row(Class{
		Code: "TOKEN_NOT_FOUND", Title: "No such token", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	ScheduleNotFound = row(Class{
		Code: "SCHEDULE_NOT_FOUND", Title: "No such schedule", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	WorkflowNotRunning = row(Class{
		Code: "WORKFLOW_NOT_RUNNING", Title: "The workflow does not run",
		Status: http.StatusNotFound, Exit: ExitNotFound,
	})
	NoRuleSet = row(Class{
		Code: "NO_RULE_SET", Title: "No active rule set", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	QueueNotFound = row(Class{
		Code: "QUEUE_NOT_FOUND", Title: "No such named queue", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	CallbackNotFound = row(Class{
		Code: "CALLBACK_NOT_FOUND", Title: "No such callback", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	TableNotFound = row(Class{
		Code: "TABLE_NOT_FOUND", Title: "No such table", Status: http.StatusNotFound,
		Exit: ExitNotFound,
	})
	FileNotFound = row(Class{
		Code: "FILE_NOT_FOUND", Title: "No such file", Status: http.StatusInternalServerError,
		Exit: ExitNotFound, Instead: internalDetail,
	})
)

// What the present state does not allow.
var (
	KeyReused = row(Class{
		Code: "KEY_REUSED", Title: "The idempotency key was used for something else",
		Status: http.StatusConflict, Exit: ExitConflict,
	})
	KeyUnknown = row(Class{
		Code: "KEY_UNKNOWN", Title: "The key of an encrypted value is not here",
		Status: http.StatusConflict, Exit: ExitConflict,
	})
	CallbackUsed = row(Class{
		Code: "CALLBACK_USED", Title: "The callback came before with other data",
		Status: http.StatusConflict, Exit: ExitConflict,
	})
	CallbackExpired = row(Class{
		Code: "CALLBACK_EXPIRED", Title: "Nothing waits for the callback any more",
		Status: http.StatusGone, Exit: ExitConflict,
	})
	JobCompleted = row(Class{
		Code: "JOB_COMPLETED", Title: "The job is completed", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
	JobRunning = row(Class{
		Code: "JOB_RUNNING", Title: "The job is being worked", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
	JobChanged = row(Class{
		Code: "JOB_CHANGED", Title: "The job was changed meanwhile", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
	JobDuplicate = row(Class{
		Code: "JOB_DUPLICATE", Title: "Another open job has the payload", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
	DocumentDeleted = row(Class{
		Code: "DOCUMENT_DELETED", Title: "The document is deleted", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
	ImportUndone = row(Class{
		Code: "IMPORT_UNDONE", Title: "The import was undone meanwhile", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
	AccountInUse = row(Class{
		Code: "ACCOUNT_IN_USE", Title: "The account has entries", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
	RulesChanged = row(Class{
		Code: "RULES_CHANGED", Title: "The rules were changed meanwhile",
		Status: http.StatusConflict, Exit: ExitConflict,
	})
	ScheduleExists = row(Class{
		Code: "SCHEDULE_EXISTS", Title: "There is such a schedule already",
		Status: http.StatusConflict, Exit: ExitConflict,
	})
	StackInUse = row(Class{
		Code: "STACK_IN_USE", Title: "A dev stack is already running",
		Status: http.StatusConflict, Exit: ExitConflict,
	})
	PortTaken = row(Class{
		Code: "PORT_TAKEN", Title: "The port is taken", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
	FileExists = row(Class{
		Code: "FILE_EXISTS", Title: "The file exists already", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
	AdoptionRefused = row(Class{
		Code: "ADOPTION_REFUSED", Title: "The legacy queue cannot be adopted",
		Status: http.StatusConflict, Exit: ExitConflict,
	})
	QueueExists = row(Class{
		Code: "QUEUE_EXISTS", Title: "There is such a named queue already",
		Status: http.StatusConflict, Exit: ExitConflict,
	})
	QueueNotEmpty = row(Class{
		Code: "QUEUE_NOT_EMPTY", Title: "The named queue has open jobs",
		Status: http.StatusConflict, Exit: ExitConflict,
	})
	UnpostedDocuments = row(Class{
		Code: "UNPOSTED_DOCUMENTS", Title: "Documents are not posted",
		Status: http.StatusConflict, Exit: ExitConflict,
	})
	PeriodClosed = row(Class{
		Code: "PERIOD_CLOSED", Title: "The day is closed", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
	NotEmpty = row(Class{
		Code: "NOT_EMPTY", Title: "The database is in use", Status: http.StatusConflict,
		Exit: ExitConflict,
	})
)

// What is out of order for a while.
var (
	DatabaseUnavailable = row(Class{
		Code: "DATABASE_UNAVAILABLE", Title: "The database is unavailable", Status: http.StatusServiceUnavailable,
		Exit: ExitUnavailable, Retryable: true,
		Instead: "the database cannot be reached or asks to try again: the same request may succeed later",
	})
	SplitBrain = row(Class{
		Code: "SPLIT_BRAIN", Title: "Two servers of the database take writes", Status: http.StatusServiceUnavailable,
		Exit: ExitUnavailable, Retryable: true,
		Instead: "two servers of the database take writes, and what the wrong one takes is lost: nothing is changed " +
			"until one of them has stopped",
	})
	TemporalUnavailable = row(Class{
		Code: "TEMPORAL_UNAVAILABLE", Title: "Temporal is unavailable", Status: http.StatusServiceUnavailable,
		Exit: ExitUnavailable, Retryable: true,
		Instead: "Temporal cannot be reached: the same request may succeed later",
	})
	NoWorker = row(Class{
		Code: "NO_WORKER", Title: "No worker answers", Status: http.StatusServiceUnavailable, Exit: ExitUnavailable,
		Retryable: true,
		Instead:   "no worker answers for the workflow: the same request may succeed later",
	})
	LeaseLost = row(Class{
		Code: "LEASE_LOST", Title: "What was held was reclaimed", Status: http.StatusServiceUnavailable,
		Exit: ExitUnavailable, Retryable: true,
		Instead: "this process was not running for a while: the same request may succeed now",
	})
	SchemaOld = row(Class{
		Code: "SCHEMA_OLD", Title: "The database's schema is older than the program",
		Status: http.StatusServiceUnavailable, Exit: ExitSchema, Retryable: true, Instead: schemaDetail,
	})
	SchemaNew = row(Class{
		Code: "SCHEMA_NEW", Title: "The database's schema is newer than the program",
		Status: http.StatusServiceUnavailable, Exit: ExitSchema, Retryable: true, Instead: schemaDetail,
	})
	SchemaDifferent = row(Class{
		Code: "SCHEMA_DIFFERENT", Title: "The database was made by other migrations",
		Status: http.StatusServiceUnavailable, Exit: ExitSchema, Retryable: true, Instead: schemaDetail,
	})
	SchemaIncomplete = row(Class{
		Code: "SCHEMA_INCOMPLETE", Title: "The database's schema is incomplete",
		Status: http.StatusServiceUnavailable, Exit: ExitSchema, Retryable: true, Instead: schemaDetail,
	})
	Interrupted = row(Class{
		Code: "INTERRUPTED", Title: "A signal ended the command",
		Status: http.StatusServiceUnavailable, Exit: ExitInterrupted, Retryable: true,
	})
)

// What went wrong otherwise.
var (
	NotSound = row(Class{
		Code: "NOT_SOUND", Title: "The ledger is not sound",
		Status: http.StatusInternalServerError, Exit: ExitFailure,
	})
	FoundWarnings = row(Class{
		Code: "FOUND_WARNINGS", Title: "Doctor found warnings",
		Status: http.StatusInternalServerError, Exit: ExitWarnings,
	})
	FoundCritical = row(Class{
		Code: "FOUND_CRITICAL", Title: "Doctor found that work is not done",
		Status: http.StatusInternalServerError, Exit: ExitCritical,
	})
	PeriodNotReady = row(Class{
		Code: "PERIOD_NOT_READY", Title: "Something is to be done before the period is closed",
		Status: http.StatusInternalServerError, Exit: ExitFailure,
	})
	OutOfBalance = row(Class{
		Code: "OUT_OF_BALANCE", Title: "Debits and credits differ",
		Status: http.StatusInternalServerError, Exit: ExitFailure,
	})
	NotAsExpected = row(Class{
		Code: "NOT_AS_EXPECTED", Title: "The result is not the expected one",
		Status: http.StatusInternalServerError, Exit: ExitFailure,
	})
	PartlyFailed = row(Class{
		Code: "PARTLY_FAILED", Title: "Not everything was done",
		Status: http.StatusInternalServerError, Exit: ExitFailure,
	})
	TemporalRefuses = row(Class{
		Code: "TEMPORAL_REFUSES", Title: "Temporal refuses the worker",
		Status: http.StatusInternalServerError, Exit: ExitFailure, Instead: internalDetail,
	})
	DatabaseRefuses = row(Class{
		Code: "DATABASE_REFUSES", Title: "The database refuses the connection",
		Status: http.StatusInternalServerError, Exit: ExitFailure, Instead: internalDetail,
	})
	RoleLacksRight = row(Class{
		Code: "ROLE_LACKS_RIGHT", Title: "The database's role lacks a right",
		Status: http.StatusInternalServerError, Exit: ExitFailure, Instead: internalDetail,
	})
	// Misuse is a mistake of the program that calls a package, such as a handle without a
	// transaction.
	Misuse = row(Class{
		Code: "MISUSE", Title: "The program calls a function wrongly",
		Status: http.StatusInternalServerError, Exit: ExitFailure, Instead: internalDetail,
	})
	// Failure is what the command line says of an error without a class, Internal what the HTTP API
	// and the activities say of it: an activity is tried again, because a job must not be lost for
	// it.
	Failure = row(Class{
		Code: "FAILURE", Title: "Something went wrong", Status: http.StatusInternalServerError,
		Exit: ExitFailure, Retryable: true, Instead: internalDetail,
	})
	Internal = row(Class{
		Code: "INTERNAL", Title: "Something went wrong", Status: http.StatusInternalServerError,
		Exit: ExitFailure, Retryable: true, Instead: internalDetail,
	})
)

const (
	internalDetail = "something went wrong that is not the caller's fault; the server's log says what, by the " +
		"request's id"
	schemaDetail = "the database's schema is not the one of this server: its operator has to see to it"
)

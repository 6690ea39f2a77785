package store

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store/direct"
	"github.com/daybook-dev/daybook/internal/store/hosts"
	"github.com/daybook-dev/daybook/models"
)

// Errors that a request can lead to. They are compared with errors.Is; the database's own words are
// wrapped.
var (
	// ErrInvalid: the request itself is wrong (empty or long id, negative version, unknown priority).
	ErrInvalid = failure.New(failure.Invalid, "invalid request")
	// ErrInvalidText: a text is not UTF-8, or has the character NUL, which PostgreSQL cannot hold.
	ErrInvalidText = failure.New(failure.Invalid, "a text must be UTF-8 and must not have the character NUL")
	// ErrJobNotFound: there is no job for the document; enqueue it first.
	ErrJobNotFound = failure.New(failure.JobNotFound, "no such job")
	// ErrTaskNotFound: there is no task with that id; it may have been removed, with its facts in the
	// archive.
	ErrTaskNotFound = failure.New(failure.TaskNotFound, "no such task")
	// ErrTokenNotFound: there is no token with that id; `daybook tokens list` shows those there are.
	ErrTokenNotFound = failure.New(failure.TokenNotFound, "no such token")
	// ErrJobCompleted: the job is completed and cannot be cancelled; mark the document not ready or
	// deleted instead.
	ErrJobCompleted = failure.New(failure.JobCompleted, "job is completed")
	// ErrJobRunning: the job is being worked, and cannot be edited until its attempt has ended.
	ErrJobRunning = failure.New(failure.JobRunning, "job is being worked")
	// ErrJobChanged: the job was changed after it was read.
	ErrJobChanged = failure.New(failure.JobChanged, "job was changed meanwhile")
	// ErrJobDuplicate: another job is open that has the payload or schedule of this one, which is to
	// be the only one.
	ErrJobDuplicate = failure.New(failure.JobDuplicate, "another open job has the payload")
	// ErrDocumentNotFound: there is no such document; write it in the same transaction first.
	ErrDocumentNotFound = failure.New(failure.DocumentNotFound, "no such document")
	// ErrDocumentDeleted: the document is deleted and cannot be marked ready.
	ErrDocumentDeleted = failure.New(failure.DocumentDeleted, "document is deleted")
	// ErrPayloadTooLarge: a background job's payload has more than models.MaxPayloadBytes.
	ErrPayloadTooLarge = models.ErrPayloadTooLarge
	// ErrPayloadInvalid: a background job's payload is no JSON object, is nested too deep, or has too
	// many keys.
	ErrPayloadInvalid = models.ErrPayloadInvalid
	// ErrKeyReused: the idempotency key was used before with another type or payload.
	ErrKeyReused = failure.New(failure.KeyReused, "the idempotency key was used for other input")
	// ErrQueueNotFound: there is no named queue of that name. ErrQueueNotEmpty: a named queue that is
	// to be deleted has open jobs.
	ErrQueueNotFound = failure.New(failure.QueueNotFound, "no such named queue")
	ErrQueueNotEmpty = failure.New(failure.QueueNotEmpty, "the named queue has open jobs")
	// ErrCallbackNotFound: no job has asked for a callback with that token, or the job was purged.
	ErrCallbackNotFound = failure.New(failure.CallbackNotFound, "there is no such callback")
	// ErrCallbackExpired: the callback came after its deadline, or its job has ended.
	ErrCallbackExpired = failure.New(failure.CallbackExpired, "nothing waits for the callback any more")
	// ErrCallbackUsed: the callback came before, with other data.
	ErrCallbackUsed = failure.New(failure.CallbackUsed, "the callback came before with other data")
	// ErrImportNotFound: there is no such import, or it is another organization's.
	ErrImportNotFound = failure.New(failure.ImportNotFound, "no such import")
	// ErrPeriodClosed: the day on which something is to be posted is closed.
	ErrPeriodClosed = failure.New(failure.PeriodClosed, "its day is closed")
	// ErrDimensionNotFound: no entry of the organization has that dimension.
	ErrDimensionNotFound = failure.New(failure.DimensionNotFound, "no entry has that dimension")
	// ErrNotMigrated: the database lacks Daybook's schema, or a part of it.
	ErrNotMigrated = failure.New(failure.SchemaOld,
		"the database lacks Daybook's schema, or has an older one: run `daybook migrate up` with its address")
	// ErrLeaseLost: a row that was to be completed is no longer the turn's; the transaction is rolled
	// back.
	ErrLeaseLost = failure.New(failure.LeaseLost, "lease lost")
	// ErrRowHeld: another transaction holds the row of a job that was to be completed locked, or the
	// job is no longer the turn's.
	ErrRowHeld = failure.New(failure.DatabaseUnavailable, "another transaction holds the job's row locked")
	// ErrCommitCut: it is not known whether a transaction was committed.
	ErrCommitCut = failure.New(failure.DatabaseUnavailable, "the commit was cut off, and may have succeeded")
)

const (
	stateTableReplaced = "DB030"
	stateLeaseLost     = "DB031"

	stateLockNotAvailable = "55P03"
	stateCanceled         = "57014"
	stateNoSavepoint      = "3B001"
	stateDiskFull         = "53100"
	// stateReadOnly is that of a statement that would write in a session that only reads.
	stateReadOnly = "25006"
	stateIdleInTx = "25P03"
	// stateNotText is PostgreSQL's, of a text that it cannot hold.
	stateNotText = "22021"
)

// sentinels are the errors of the SQLSTATEs that Daybook's own functions and triggers raise.
var sentinels = map[string]error{
	"DB010": ErrInvalid,
	"DB011": ErrJobNotFound,
	"DB012": ErrJobCompleted,
	"DB013": ErrDocumentNotFound,
	"DB014": ErrDocumentDeleted,
	"DB015": ErrImportNotFound,
	"DB016": ErrPeriodClosed,
	"DB017": ErrDimensionNotFound,
	"DB020": ErrPayloadTooLarge,
	"DB021": ErrPayloadInvalid,
	"DB022": ErrKeyReused,
	"DB023": ErrQueueNotFound,
	"DB025": ErrQueueNotEmpty,
	"DB026": ErrCallbackNotFound,
	"DB027": ErrCallbackExpired,
	"DB028": ErrCallbackUsed,
	"DB040": ErrJobRunning,
	"DB041": ErrJobChanged,
	"DB042": ErrJobDuplicate,
}

// Wrap adds what was being done, and the sentinel of one of Daybook's own SQLSTATEs.
func Wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	if pg := pgError(err); pg != nil {
		if sentinel, ok := sentinels[pg.Code]; ok {
			return &requestError{sentinel: sentinel, message: pg.Message, hint: pg.Hint}
		}
		if pg.Code == stateNotText {
			return &textError{doing, err}
		}
		if lacksSchema(pg) {
			return fmt.Errorf("%s: %w (%w)", doing, ErrNotMigrated, err)
		}
		if pg.Code == "42P05" || pg.Code == "26000" {
			return fmt.Errorf("%s: %w (%s)", doing, err, direct.PreparedAdvice)
		}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// lacksSchema reports whether a name of Daybook's schema is not there.
func lacksSchema(pg *pgconn.PgError) bool {
	switch pg.Code {
	case "3F000", "42P01", "42883", "42704": // schema, table, function, type
		for _, schema := range []string{"daybook", "queues", "internal"} {
			if strings.Contains(pg.Message, schema+".") || strings.Contains(pg.Message, `"`+schema+`"`) {
				return true
			}
		}
	}
	return false
}

// requestError speaks the database function's words and is the sentinel of its SQLSTATE.
type requestError struct {
	sentinel      error
	message, hint string
}

func (e *requestError) Error() string {
	if e.hint == "" {
		return e.message
	}
	return e.message + ": " + e.hint
}

func (e *requestError) Unwrap() error { return e.sentinel }

// textError is ErrInvalidText, and an ErrInvalid, in place of the database's words.
type textError struct {
	doing string
	cause error
}

func (e *textError) Error() string   { return e.doing + ": " + ErrInvalidText.Error() }
func (e *textError) Unwrap() []error { return []error{ErrInvalidText, ErrInvalid, e.cause} }

// Refuse says what is wrong with a request and what to do. It is the sentinel, and does not say its
// words.
func Refuse(sentinel error, message, hint string) error {
	return &requestError{sentinel, message, hint}
}

// Invalid is ErrInvalid that says what is wrong with a request, and does not say the sentinel's
// words beside it.
func Invalid(format string, args ...any) error {
	return Refuse(ErrInvalid, fmt.Sprintf(format, args...), "")
}

// pgError returns the database's error in err, or nil.
func pgError(err error) *pgconn.PgError {
	pg, _ := errors.AsType[*pgconn.PgError](err)
	return pg
}

// isConnectError reports whether no connection could be made, whatever the reason: while a database
// is dropped and made anew, there is none of its name.
func isConnectError(err error) bool {
	_, ok := errors.AsType[*pgconn.ConnectError](err)
	return ok || hosts.IsNone(err)
}

// ValidText reports whether PostgreSQL can hold a text: it is UTF-8, and has no NUL.
func ValidText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// SQLState returns the SQLSTATE of a database error, or the empty string.
func SQLState(err error) string {
	if pg := pgError(err); pg != nil {
		return pg.Code
	}
	return ""
}

// IsLockTimeout reports whether a statement waited for a lock until its lock timeout.
func IsLockTimeout(err error) bool { return SQLState(err) == stateLockNotAvailable }

// IsTransactionTimeout reports whether PostgreSQL has ended a session because a transaction took
// longer than transaction_timeout.
func IsTransactionTimeout(err error) bool { return SQLState(err) == "25P04" }

// IsTableLock reports whether a statement waited in vain for a lock on a whole table, as LOCK
// TABLE, ALTER TABLE and a restore take it. For a lock on a row PostgreSQL names the tuple.
func IsTableLock(err error) bool {
	return IsLockTimeout(err) && !strings.Contains(pgError(err).Where, "tuple (")
}

// refusals are the codes of an impact that the database refuses: it does not balance, the chart
// lacks one of its accounts, or its posting date lies in a closed period.
var refusals = map[string]models.ErrorCode{
	"DB001": models.CodeUnbalanced, "DB003": models.CodeUnknownAccount,
	"DB005": models.CodePeriodClosed,
}

// RefusedAs returns the code of an impact that the database has refused, models.CodeDatabaseError
// for another error of the database, or "".
func RefusedAs(err error) models.ErrorCode {
	state := SQLState(err)
	if state == "" {
		return ""
	}
	return cmp.Or(refusals[state], models.CodeDatabaseError)
}

// IsUnstorable reports whether err says that the database refuses a value: what it is given is to
// blame, not the statement.
func IsUnstorable(err error) bool {
	if state := SQLState(err); state != "" {
		// Data exceptions, violated constraints, limits of the database.
		return strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23") || strings.HasPrefix(state, "54")
	}
	return err != nil && !IsTransient(err) // it did not come to the database
}

// IsTransient reports whether err says that the database as a whole is unavailable or asks to try
// again: then no job is to blame, and none is charged.
func IsTransient(err error) bool {
	if err == nil {
		return false
	}
	if IsSchemaMismatch(err) || errors.Is(err, hosts.ErrSplit) || isConnectError(err) || FaultOf(err) != NoFault {
		return true
	}
	if SQLState(err) != "" {
		return false
	}
	network, ok := errors.AsType[net.Error](err)
	// A number of the operating system is a connection's in a net.OpError, and by itself a file's.
	_, file := network.(syscall.Errno)
	return ok && !file || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, ErrLeaseLost) || pgconn.SafeToRetry(err) ||
		errors.Is(err, driver.ErrBadConn) || strings.Contains(err.Error(), "conn closed")
}

// Explain puts an error of the database into words for a log: the cause first, once, then the
// address, then what was being done, then what to do if the server says what it lacks. A pool names
// each address twice, and what it connected as before the cause.
func Explain(err error) string {
	if err == nil {
		return ""
	}
	cause, where := hosts.Cause(err)
	if cause == "" || hosts.IsNone(err) {
		return err.Error()
	}
	if where != "" {
		cause += " (" + where + ")"
	}
	if doing, _, wrapped := strings.Cut(err.Error(), ": "); wrapped && !strings.HasPrefix(err.Error(), "dial ") &&
		len(doing) < 60 &&
		!strings.Contains(doing, "failed to connect") && !strings.HasPrefix(err.Error(), "ERROR") {
		cause += ": " + doing
	}
	if advice := Advice(err); advice != "" {
		cause += ". " + advice
	}
	return cause
}

// Failure returns the class of an error: its own, or what the database's state, or the way to the
// database, makes of it; nil: the error has none.
func Failure(err error) *failure.Class {
	if class := failure.Of(err); class != nil {
		return class
	}
	switch {
	case errors.Is(err, ErrLeaseLost), SQLState(err) == stateIdleInTx: // the process itself did not run for a while
		return failure.LeaseLost
	case IsTransient(err):
		return failure.DatabaseUnavailable
	case IsForbidden(err):
		return failure.RoleLacksRight
	}
	return nil
}

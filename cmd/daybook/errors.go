package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgconn"
	"go.temporal.io/api/serviceerror"

	"github.com/daybook-dev/daybook/internal/devstack"
	"github.com/daybook-dev/daybook/internal/importer"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/posting"
	"github.com/daybook-dev/daybook/queue"
)

// Exit codes; docs/cli.md lists them.
const (
	exitOK = 0
	// exitFailure: something went wrong that has no code of its own, or part of an import failed.
	exitFailure = 1
	// exitUsage: the command, a flag or a file is wrong; the same call cannot succeed.
	exitUsage = 2
	// exitNotFound: the job, document, organization or file does not exist.
	exitNotFound = 3
	// exitAway: the database or Temporal cannot be reached; try again later.
	exitAway = 4
	// exitSchema: the database's schema is not the one of this program.
	exitSchema = 5
	// exitConflict: the present state does not allow it.
	exitConflict = 6
	// exitInterrupted: a signal ended the command before it was done.
	exitInterrupted = 130
)

// Errors of the command line itself.
var (
	errUsage         = errors.New("usage")
	errNoDatabaseURL = errors.New("no database is named: set DAYBOOK_DATABASE_URL to postgres://user:password@host:5432/database, " +
		"or run `daybook dev`, which starts one and prints its address")
	errBadDatabaseURL = errors.New("the database's address (DAYBOOK_DATABASE_URL or --database-url) cannot be read: want postgres://user:password@host:5432/database, " +
		"special characters of the password percent-encoded")
	errPartlyFailed  = errors.New("not everything was done")
	errOutOfBalance  = errors.New("debits and credits differ")
	errTemporalAway  = errors.New("Temporal cannot be reached")
	errTemporalSetup = errors.New("Temporal refuses the worker")
	errNotEmpty      = errors.New("the database is in use")
	errNotSound      = errors.New("the ledger is not sound")
	errNoAccount     = errors.New("no such account")
	errNotAsExpected = errors.New("the result is not what it must be")
)

// errorTable is the one place that gives an error its code for programs and its exit code. The first match counts.
var errorTable = []struct {
	is   error
	code string
	exit int
}{
	{errUsage, "USAGE", exitUsage},
	{errNoDatabaseURL, "NO_DATABASE", exitUsage},
	{errBadDatabaseURL, "NO_DATABASE", exitUsage},
	{queue.ErrEmptyID, "INVALID", exitUsage},
	{queue.ErrIDTooLong, "INVALID", exitUsage},
	{queue.ErrNegativeVersion, "INVALID", exitUsage},
	{queue.ErrInvalidPriority, "INVALID", exitUsage},
	{queue.ErrNegativeDelay, "INVALID", exitUsage},
	{queue.ErrInvalidJobType, "INVALID", exitUsage},
	{queue.ErrKeyTooLong, "INVALID", exitUsage},
	{queue.ErrInvalidMaxAttempts, "INVALID", exitUsage},
	{queue.ErrInvalidLink, "INVALID", exitUsage},
	{queue.ErrInvalidRetryMode, "INVALID", exitUsage},
	{queue.ErrPayloadTooLarge, "PAYLOAD_TOO_LARGE", exitUsage},
	{queue.ErrPayloadInvalid, "PAYLOAD_INVALID", exitUsage},
	{store.ErrInvalid, "INVALID", exitUsage},
	{importer.ErrInvalid, "INVALID_DOCUMENT", exitUsage},
	{store.ErrJobNotFound, "JOB_NOT_FOUND", exitNotFound},
	{store.ErrDocumentNotFound, "DOCUMENT_NOT_FOUND", exitNotFound},
	{store.ErrOrganizationNotFound, "ORGANIZATION_NOT_FOUND", exitNotFound},
	{store.ErrPeriodNotFound, "PERIOD_NOT_FOUND", exitNotFound},
	{errNoAccount, "ACCOUNT_NOT_FOUND", exitNotFound},
	{store.ErrTokenNotFound, "TOKEN_NOT_FOUND", exitNotFound},
	{store.ErrOperationNotFound, "OPERATION_NOT_FOUND", exitNotFound},
	{store.ErrNoRuleSet, "NO_RULE_SET", exitNotFound},
	{errScheduleInvalid, "INVALID_SCHEDULE", exitUsage},
	{errScheduleNotFound, "SCHEDULE_NOT_FOUND", exitNotFound},
	{errScheduleExists, "SCHEDULE_EXISTS", exitConflict},
	{fs.ErrNotExist, "FILE_NOT_FOUND", exitNotFound},
	{errTemporalAway, "TEMPORAL_AWAY", exitAway},
	{errTemporalSetup, "TEMPORAL_REFUSES", exitFailure},
	{migrations.ErrPending, "SCHEMA_OLD", exitSchema},
	{store.ErrNotMigrated, "SCHEMA_OLD", exitSchema},
	{migrations.ErrNewer, "SCHEMA_NEW", exitSchema},
	{migrations.ErrDifferent, "SCHEMA_DIFFERENT", exitSchema},
	{migrations.ErrIncomplete, "SCHEMA_INCOMPLETE", exitSchema},
	{store.ErrJobCompleted, "JOB_COMPLETED", exitConflict},
	{store.ErrDocumentDeleted, "DOCUMENT_DELETED", exitConflict},
	{queue.ErrKeyReused, "KEY_REUSED", exitConflict},
	{devstack.ErrInUse, "STACK_IN_USE", exitConflict},
	{devstack.ErrPortTaken, "PORT_TAKEN", exitConflict},
	{errNotEmpty, "NOT_EMPTY", exitConflict},
	{errNotSound, "NOT_SOUND", exitFailure},
	{errPartlyFailed, "PARTLY_FAILED", exitFailure},
	{errOutOfBalance, "OUT_OF_BALANCE", exitFailure},
	{errNotAsExpected, "NOT_AS_EXPECTED", exitFailure},
}

// classify returns an error's code for programs and its exit code.
func classify(ctx context.Context, err error) (code string, exit int) {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return "INTERRUPTED", exitInterrupted
	}
	for _, row := range errorTable {
		if errors.Is(err, row.is) {
			return row.code, row.exit
		}
	}
	var rules *posting.CompileError
	var connect *pgconn.ConnectError
	var unavailable *serviceerror.Unavailable
	switch {
	case errors.As(err, &rules):
		return "INVALID_RULES", exitUsage
	case errors.As(err, &unavailable):
		return "TEMPORAL_AWAY", exitAway
	case errors.As(err, &connect), store.IsOutage(err):
		return "DATABASE_AWAY", exitAway
	}
	return "FAILURE", exitFailure
}

// report tells the error to whoever called, and returns the exit code.
func (a *app) report(ctx context.Context, err error, command string) int {
	code, exit := classify(ctx, err)
	message := err.Error()
	switch code {
	case "USAGE":
		message += "\nSee `" + command + " --help`."
	case "DATABASE_AWAY":
		message += "\nCheck that PostgreSQL runs and that DAYBOOK_DATABASE_URL names it, then try again."
	case "INTERRUPTED":
		message = "interrupted"
	}
	if a.json {
		encoder := json.NewEncoder(a.stderr)
		_ = encoder.Encode(map[string]any{"error": map[string]any{"code": code, "message": err.Error(), "exit": exit}})
		return exit
	}
	a.say("daybook: %s", message)
	return exit
}

// usagef returns an error of usage.
func usagef(format string, args ...any) error {
	return &taggedError{tag: errUsage, message: fmt.Sprintf(format, args...)}
}

// tagged gives a message the code of a sentinel without repeating the sentinel's words.
func tagged(tag error, format string, args ...any) error {
	return &taggedError{tag: tag, message: fmt.Sprintf(format, args...)}
}

type taggedError struct {
	tag     error
	message string
}

func (e *taggedError) Error() string { return e.message }
func (e *taggedError) Unwrap() error { return e.tag }

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/temporalwait"
)

// Errors of the command line itself.
var (
	errUsage         = failure.New(failure.Usage, "usage")
	errNoDatabaseURL = failure.New(failure.NoDatabase, "no database is named: set DAYBOOK_DATABASE_URL to postgres://user:password@host:5432/database, "+
		"or run `daybook dev`, which starts one and prints its address")
	errBadDatabaseURL = failure.New(failure.NoDatabase, "the database's address (DAYBOOK_DATABASE_URL or --database-url) cannot be read: want postgres://user:password@host:5432/database, "+
		"special characters of the password percent-encoded")
	errRoleLacksRight      = failure.New(failure.RoleLacksRight, "the database's role lacks a right")
	errPartlyFailed        = failure.New(failure.PartlyFailed, "not everything was done")
	errOutOfBalance        = failure.New(failure.OutOfBalance, "debits and credits differ")
	errTemporalUnavailable = failure.New(failure.TemporalUnavailable, "Temporal cannot be reached")
	errTemporalSetup       = failure.New(failure.TemporalRefuses, "Temporal refuses the worker")
	errNoWorkflow          = failure.New(failure.WorkflowNotRunning, "the workflow does not run")
	errNoWorkerAnswers     = failure.New(failure.NoWorker, "no worker answers")
	errNotEmpty            = failure.New(failure.NotEmpty, "the database is in use")
	errFileExists          = failure.New(failure.FileExists, "the file exists already")
	errNotSound            = failure.New(failure.NotSound, "the ledger is not sound")
	errWarnings            = failure.New(failure.FoundWarnings, "there are warnings")
	errCritical            = failure.New(failure.FoundCritical, "work that is due is not done")
	errNoAccount           = failure.New(failure.AccountNotFound, "no such account")
	errNoArchived          = failure.New(failure.FileNotFound, "no such file of the archive")
	errNotAsExpected       = failure.New(failure.NotAsExpected, "the result is not the expected one")
)

// classify returns what an error means to the program that called.
func classify(ctx context.Context, err error) *failure.Class {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return failure.Interrupted
	}
	if class := failure.Of(err); class != nil {
		return class
	}
	if store.RefusesConnection(err) {
		return failure.DatabaseRefuses
	}
	if class := store.Failure(err); class != nil {
		return class
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failure.FileNotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENAMETOOLONG):
		return failure.Usage // it names a file that cannot be used so
	}
	if temporalwait.Unavailable(err) {
		return failure.TemporalUnavailable
	}
	return failure.Failure
}

// report writes the error for the caller, and returns the exit code.
func (a *app) report(ctx context.Context, err error, command string) int {
	class := classify(ctx, err)
	message := err.Error()
	switch class {
	case failure.Usage:
		message += "\nSee `" + command + " --help`."
	case failure.DatabaseUnavailable:
		if advice := store.Advice(err); advice != "" {
			message += "\n" + advice
			break
		}
		message += "\nCheck that PostgreSQL runs and that DAYBOOK_DATABASE_URL names it, then try again."
	case failure.DatabaseRefuses:
		message += "\nCheck the user, the password and the database's name in DAYBOOK_DATABASE_URL."
	case failure.RoleLacksRight:
		message += "\n" + roleAdvice(command)
	case failure.Interrupted:
		if !a.json { // a program is told what is left to do
			message = "interrupted"
			if errors.Is(err, store.ErrCommitCut) {
				message += ": " + store.ErrCommitCut.Error()
			}
		}
	}
	if a.json {
		encoder := json.NewEncoder(a.stderr)
		_ = encoder.Encode(map[string]any{"error": map[string]any{"code": class.Code, "message": message, "exit": class.Exit}})
		return class.Exit
	}
	a.say("daybook: %s", message)
	return class.Exit
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

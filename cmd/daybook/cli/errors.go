package cli

import (
	"fmt"

	"github.com/daybook-dev/daybook/failure"
)

// Errors of the command line itself.
var (
	ErrUsage         = failure.New(failure.Usage, "usage")
	ErrNoDatabaseURL = failure.New(failure.NoDatabase,
		"no database is named: set DAYBOOK_DATABASE_URL to postgres://user:password@host:5432/database, "+
			"or run `daybook dev`, which starts one and prints its address")
	ErrBadDatabaseURL = failure.New(failure.NoDatabase, "the database's address (DAYBOOK_DATABASE_URL or "+
		"--database-url, or the direct one) cannot be read: want postgres://user:password@host:5432/database, "+
		"special characters of the password percent-encoded")
	ErrRoleLacksRight      = failure.New(failure.RoleLacksRight, "the database's role lacks a right")
	ErrTemporalUnavailable = failure.New(failure.TemporalUnavailable, "Temporal cannot be reached")
	ErrTemporalSetup       = failure.New(failure.TemporalRefuses, "Temporal refuses the worker")
	ErrNotAsExpected       = failure.New(failure.NotAsExpected, "the result is not the expected one")
)

// Usagef returns an error of usage.
func Usagef(format string, args ...any) error {
	return &taggedError{tag: ErrUsage, message: fmt.Sprintf(format, args...)}
}

// Tagged gives a message the code of a sentinel without repeating the sentinel's words.
func Tagged(tag error, format string, args ...any) error {
	return &taggedError{tag: tag, message: fmt.Sprintf(format, args...)}
}

type taggedError struct {
	tag     error
	message string
}

func (e *taggedError) Error() string { return e.message }

func (e *taggedError) Unwrap() error { return e.tag }

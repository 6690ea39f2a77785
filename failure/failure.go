// Package failure is the one table of what errors mean to the program that called: the code, the
// HTTP status, the exit code, and whether trying again may help.
//
// An error is declared with its class, once, where it belongs:
//
//	var ErrJobNotFound = failure.New(failure.JobNotFound, "no such job")
//
// The HTTP API, the command line and the activities answer from the class; docs/errors.md is tested
// against the table. A new class is a row of classes.go and of docs/errors.md; make api lists it.
//
// What an attempt at a job ends with is another matter: those codes and what they do to the job are
// the table of models.
package failure

import (
	"errors"
	"slices"
)

// Exit codes of the command line; docs/cli.md lists them.
const (
	ExitOK = 0
	// ExitFailure: something went wrong that has no code of its own, or part of an import failed.
	ExitFailure = 1
	// ExitUsage: the command, a flag or a file is wrong; the same call cannot succeed.
	ExitUsage = 2
	// ExitNotFound: the job, document, organization or file does not exist.
	ExitNotFound = 3
	// ExitUnavailable: the database or Temporal cannot be reached; try again later.
	ExitUnavailable = 4
	// ExitSchema: the database's schema is not the one of this program.
	ExitSchema = 5
	// ExitConflict: the present state does not allow it.
	ExitConflict = 6
	// ExitWarnings: doctor found warnings, and nothing worse.
	ExitWarnings = 7
	// ExitCritical: doctor found that work which is due is not done.
	ExitCritical = 8
	// ExitInterrupted: a signal ended the command before it was done.
	ExitInterrupted = 130
)

// Class is a row of the table.
type Class struct {
	// Code is the stable name, for programs.
	Code string
	// Title is the code in words; the same for the same code.
	Title string
	// Status is the HTTP status that the API answers with.
	Status int
	// Exit is the exit code of a command.
	Exit int
	// Retryable says that the same call may succeed later, without a change of what it asks for. An
	// activity that may be refused is tried again only then.
	Retryable bool
	// Instead is what the HTTP API says in place of the error's own words, which are for the log:
	// they would tell the caller of servers and statements that are not the caller's. Empty: the
	// error's own words.
	Instead string
}

// Error is a sentinel error that has a class. It is compared with errors.Is.
type Error struct {
	class *Class
	text  string
}

// New declares an error of a class.
func New(class *Class, text string) error { return &Error{class, text} }

// Error implements error.
func (e *Error) Error() string { return e.text }

// Of returns the class of the first error in err's tree that has one; nil: none has.
func Of(err error) *Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.class
	}
	return nil
}

// Classes are the rows of the table, in the order in which classes.go has them.
func Classes() []*Class { return slices.Clone(classes) }

var classes []*Class

// row adds a row to the table.
func row(c Class) *Class {
	classes = append(classes, &c)
	return &c
}

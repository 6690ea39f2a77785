package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"syscall"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/temporalwait"
	"github.com/daybook-dev/daybook/migrations"
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
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR),
		errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENAMETOOLONG):
		return failure.Usage // it names a file that cannot be used so
	}
	if temporalwait.Unavailable(err) {
		return failure.TemporalUnavailable
	}
	return failure.Failure
}

// report writes the error for the caller, and returns the exit code.
func report(ctx context.Context, a *cli.App, err error, command string) int {
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
		message += "\n" + store.RefusalAdvice(err)
	case failure.RoleLacksRight:
		// These two say what to do.
		if !errors.Is(err, migrations.ErrNoAdminOption) && !errors.Is(err, migrations.ErrMayNotCreateRoles) {
			message += "\n" + roleAdvice(command)
		}
	case failure.Interrupted:
		if !a.JSON { // a program is told what is left to do
			message = "interrupted"
			if errors.Is(err, store.ErrCommitCut) {
				message += ": " + store.ErrCommitCut.Error()
			}
		}
	}
	if a.JSON {
		encoder := json.NewEncoder(a.Stderr)
		_ = encoder.Encode(map[string]any{"error": map[string]any{
			"code": class.Code, "message": message,
			"exit": class.Exit,
		}})
		return class.Exit
	}
	a.Say("daybook: %s", message)
	return class.Exit
}

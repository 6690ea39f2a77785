package handlers

import (
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// failed says what a workflow that ended without a result leads to. Each text names the run (reported).
func (h *TemporalHandler) failed(run client.WorkflowRun, err error) error {
	name := "run " + run.GetRunID() + " of the workflow " + h.c.Workflow
	if own, ok := errors.AsType[*temporal.WorkflowExecutionError](err); ok {
		switch own.Unwrap().(type) { //nolint:errorlint // the workflow itself was ended so, not one of its steps
		case *temporal.CanceledError:
			return jobs.Cancel(name + " was cancelled")
		case *temporal.TerminatedError:
			return failFinally("%s was terminated", name)
		}
	}
	if said, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		f := fail(models.CodeHandlerError, "%s failed: %s: %s", name, clip(said.Type()), clip(said.Message()))
		if code := models.ErrorCode(said.Type()); functionCode.MatchString(said.Type()) && !engineCodes[code] {
			f.code = code
		}
		f.final = said.NonRetryable()
		if !f.final && !models.JobErrorIsFinal(f.code) {
			f.after = min(said.NextRetryDelay(), time.Hour)
		}
		return f
	}
	if _, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return fail(models.CodeTimeout, "%s took longer than it may", name)
	}
	return fail(models.CodeHandlerError, "%s failed: %s", name, clip(err.Error()))
}

// unended says what becomes of a job of which is not known how its workflow ended: it goes on, or Temporal cannot be reached. Neither counts an attempt.
func (h *TemporalHandler) unended(err error) error {
	if _, ok := errors.AsType[*serviceerror.PermissionDenied](err); ok {
		return fail(models.CodeAuthenticationFailed, "Temporal does not let the worker start the workflow %s: %s", h.c.Workflow, clip(err.Error()))
	}
	if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return failFinally("Temporal refuses the workflow %s: %s", h.c.Workflow, clip(err.Error()))
	}
	return jobs.Snooze(h.c.Pause)
}

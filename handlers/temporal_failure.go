package handlers

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// outermost is how the workflow or the standalone activity itself ended, not one of its steps; nil:
// err does not say that it has.
func outermost(err error) error {
	if own, ok := errors.AsType[*temporal.WorkflowExecutionError](err); ok {
		return own.Unwrap()
	}
	if own, ok := errors.AsType[standaloneError](err); ok {
		return own.Unwrap()
	}
	return nil
}

// failed says what a workflow that ended without a result leads to. Each text names the run
// (reported).
func (h *TemporalHandler) failed(run string, err error) error {
	name := "run " + run + " of the workflow " + h.c.Workflow
	if h.c.Activity != "" {
		name = "run " + run + " of the activity " + h.c.Activity
	}
	switch outermost(err).(type) { //nolint:errorlint // as above
	case *temporal.CanceledError:
		return jobs.Cancel(name + " was cancelled")
	case *temporal.TerminatedError:
		return failFinally("%s was terminated", name)
	}
	if said, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		f := fail(models.CodeHandlerError, "%s failed: %s: %s%s", name, clip(said.Type()), clip(said.Message()),
			details(said))
		if code := models.ErrorCode(said.Type()); functionCode.MatchString(said.Type()) && !engineCodes[code] {
			f.code = code
		}
		f.final = said.NonRetryable()
		if !f.final && !models.JobErrorIsFinal(f.code) {
			f.after = min(said.NextRetryDelay(), time.Hour)
		}
		return f
	}
	if late, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		if late.TimeoutType() == enums.TIMEOUT_TYPE_HEARTBEAT {
			return fail(models.CodeTimeout, "%s sent no heartbeat for longer than it may", name)
		}
		return fail(models.CodeTimeout, "%s took longer than it may", name)
	}
	return fail(models.CodeHandlerError, "%s failed: %s", name, clip(err.Error()))
}

// details are what an application error has besides its message, if that is JSON.
func details(said *temporal.ApplicationError) string {
	var first converter.RawValue
	if !said.HasDetails() || said.Details(&first) != nil {
		return ""
	}
	text, ok := plainJSON(first)
	if !ok {
		return ""
	}
	return " (details: " + clip(string(text)) + ")"
}

// plainJSON is the JSON of a value; false: it is nothing, or was written otherwise.
func plainJSON(v converter.RawValue) (json.RawMessage, bool) {
	switch p := v.Payload(); string(p.GetMetadata()[converter.MetadataEncoding]) {
	case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
		return p.GetData(), true
	default:
		return nil, false
	}
}

// unended says what becomes of a job of which is not known how its workflow ended: it goes on, or
// Temporal cannot be reached. Neither counts an attempt.
func (h *TemporalHandler) unended(err error) error {
	if _, ok := errors.AsType[*serviceerror.Unimplemented](err); ok && h.c.Standalone {
		f := fail(models.CodeActivityNotStandalone, "the Temporal server starts no standalone activity (%s): have it run "+
			"Server 1.32 or newer with them on, or leave out standalone, and a workflow of Daybook's runs the activity",
			clip(err.Error()))
		f.final = true
		return f
	}
	if _, ok := errors.AsType[*serviceerror.PermissionDenied](err); ok {
		return fail(models.CodeAuthenticationFailed, "Temporal does not let the worker start the %s: %s",
			h.started(), clip(err.Error()))
	}
	if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return failFinally("Temporal refuses the %s: %s", h.started(), clip(err.Error()))
	}
	return jobs.Snooze(h.c.Pause)
}

// started names what an attempt starts.
func (h *TemporalHandler) started() string {
	if h.c.Standalone {
		return "activity " + h.c.Activity
	}
	return "workflow " + cmp.Or(h.c.Workflow, ActivityWorkflow)
}

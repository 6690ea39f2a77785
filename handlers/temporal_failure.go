package handlers

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// outermost is how the workflow itself ended, not one of its steps.
func outermost(err error) error {
	own, ok := errors.AsType[*temporal.WorkflowExecutionError](err)
	if !ok {
		return nil
	}
	return own.Unwrap()
}

// failed says what a workflow that ended without a result leads to. Each text names the run
// (reported).
func (h *TemporalHandler) failed(run client.WorkflowRun, err error) error {
	name := "run " + run.GetRunID() + " of the workflow " + h.c.Workflow
	if h.c.Activity != "" {
		name = "run " + run.GetRunID() + " of the activity " + h.c.Activity
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
	if _, ok := errors.AsType[*serviceerror.PermissionDenied](err); ok {
		return fail(models.CodeAuthenticationFailed, "Temporal does not let the worker start the workflow %s: %s",
			cmp.Or(h.c.Workflow, ActivityWorkflow), clip(err.Error()))
	}
	if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); ok {
		return failFinally("Temporal refuses the workflow %s: %s", cmp.Or(h.c.Workflow, ActivityWorkflow),
			clip(err.Error()))
	}
	return jobs.Snooze(h.c.Pause)
}

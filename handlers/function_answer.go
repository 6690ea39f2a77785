package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"

	"github.com/daybook-dev/daybook/internal/payload" //nolint:depguard // what a server answers is measured as what an application enqueues is
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// FunctionError is what a function may say of a job that it could not work: the body of an answer
// that is no success, or the member error of a callback. Each member may be left out.
type FunctionError struct {
	// Code is the job's error code: upper-case letters, digits and _.
	Code models.ErrorCode `json:"code"`
	// Message is for people.
	Message string `json:"message"`
	// Final says whether no attempt comes after. Without it the code of the answer says.
	Final *bool `json:"final"`
	// RetryAfterSeconds is after how many seconds the next attempt comes, an hour at most. Without it the
	// answer's header Retry-After says, or the policy. An answer that has it is tried again, unless
	// Final or the code says otherwise.
	RetryAfterSeconds float64 `json:"retryAfterSeconds"`
}

// functionCode is what a code of a function's looks like.
var functionCode = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// engineCodes are those by which Daybook says what became of an attempt, besides the reserved ones.
var engineCodes = map[models.ErrorCode]bool{
	models.CodeReclaimed: true, models.CodeWorkerLost: true, models.CodeDatabaseError: true,
}

// conclude says what an answer leads to: a result, or a failure.
func (h *FunctionHandler) conclude(job *jobs.Job[queue.RawPayload], answer reply) error {
	if answer.ok() {
		return h.result(job, answer.body)
	}
	to := &http.Request{URL: h.to}
	var said FunctionError
	if json.Unmarshal(answer.body, &said) != nil {
		return judge(to, answer, "")
	}
	return said.apply(judge(to, answer, said.Message))
}

// apply has what the function says decide about a failure.
func (said FunctionError) apply(f *failure) *failure {
	if functionCode.MatchString(string(said.Code)) && !engineCodes[said.Code] && !models.JobCodeIsReserved(said.Code) {
		f.code = said.Code
	}
	if after := boundedWait(said.RetryAfterSeconds, longestWait); after > 0 {
		f.after, f.final = after, false
	}
	if said.Final != nil {
		f.final = *said.Final
		if !f.final && models.JobErrorIsFinal(f.code) {
			f.code = models.CodeHandlerError
		}
	}
	return f
}

// result makes the body the job's result. An empty one is none. What is not JSON is no answer of a
// function's: a page of a server on the way to it, for instance, says nothing of the job.
func (h *FunctionHandler) result(job *jobs.Job[queue.RawPayload], body []byte) error {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && !beginsAsJSON(body) {
		return failFinally("%s answered what is not JSON: an answer of success must be JSON, or empty", origin(h.to))
	}
	setAnswer(job, body, h.c.MaxResult, origin(h.to))
	return nil
}

// beginsAsJSON reports whether a body is one value of JSON, or the beginning of one.
func beginsAsJSON(body []byte) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		return errors.Is(err, io.ErrUnexpectedEOF)
	}
	return !d.More()
}

// storable reports whether JSON is such that the database can hold it.
func storable(body []byte) bool { return payload.CheckResult(body) == nil }

// resume goes on with a job that has waited for a callback. done is false when the function is to
// be asked, with a callback of that name.
//
// Each name is a round: it ends with an answer that says error, or at its deadline, and the failure
// is then counted. Within a round the function may be asked several times, because its answer was
// lost or the worker ended; each token of the round is valid, and so are those of earlier rounds if
// what comes is a result.
func (h *FunctionHandler) resume(ctx context.Context,
	job *jobs.Job[queue.RawPayload],
) (round string, done bool, err error) {
	var last *jobs.Callback
	for n := 1; ; n++ {
		round = "function/" + strconv.Itoa(n)
		c, err := job.Callback(ctx, round)
		if err != nil {
			return "", false, err
		}
		if c == nil {
			break
		}
		if c.Data != nil && callbackError(c.Data) == nil {
			return "", true, h.result(job, c.Data)
		}
		last = c
	}
	if last == nil {
		return round, false, nil
	}
	if last.Data == nil && !last.Expired {
		return "", false, jobs.AwaitCallback(last) // the function was asked, and has taken it
	}
	switch waited, err := waitedForCallback(ctx, job); {
	case err != nil:
		return "", false, err
	case !waited:
		return round, false, nil // its failure was counted
	case last.Data != nil:
		said := callbackError(last.Data)
		text := said.Message
		if text == "" {
			text = "it gave no message"
		}
		return "", false, said.apply(fail(models.CodeHandlerError, "%s called back with an error: %s", origin(h.to),
			clip(text)))
	}
	return "", false, fail(models.CodeTimeout, "%s did not call back within %s", origin(h.to), h.c.Callback)
}

// callbackError is what a callback says went wrong; nil: it is a result.
func callbackError(data json.RawMessage) *FunctionError {
	var c struct {
		Error *FunctionError `json:"error"`
	}
	if json.Unmarshal(data, &c) != nil {
		return nil
	}
	return c.Error
}

// waitedForCallback reports whether the attempt before this one ended by waiting for a callback.
// Attempts that were lost with their worker said nothing.
func waitedForCallback(ctx context.Context, job *jobs.Job[queue.RawPayload]) (bool, error) {
	earlier, err := job.EarlierAttempts(ctx)
	for _, a := range earlier {
		if a.Outcome != models.OutcomeLost {
			return a.Code == models.CodeAwaitingCallback, err
		}
	}
	return false, err
}

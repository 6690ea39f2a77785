package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
)

// Errors of the API itself.
var (
	errNoToken     = failure.New(failure.Unauthorized, "no token: send the header Authorization: Bearer dbk_…")
	errScope       = failure.New(failure.Forbidden, "the token lacks a scope")
	errNoRunner    = failure.New(failure.NoRunner, "this server runs no jobs")
	errUnconfirmed = failure.New(failure.ConfirmationRequired, "confirmation required")
	errNoRoute     = failure.New(failure.NotFound,
		"there is nothing under this address; /openapi.json lists what there is")
	errTooMany    = failure.New(failure.RateLimited, "too many requests")
	errMethod     = failure.New(failure.MethodNotAllowed, "the address does not know this method")
	errBadRequest = failure.New(failure.Invalid, "the request is invalid")
)

// statusTable has the class of each status with which huma refuses a request before a handler is
// called.
var statusTable = map[int]*failure.Class{
	http.StatusBadRequest:            failure.Malformed,
	http.StatusRequestTimeout:        failure.RequestTimeout,
	http.StatusRequestEntityTooLarge: failure.BodyTooLarge,
	http.StatusUnsupportedMediaType:  failure.UnsupportedMediaType,
	http.StatusUnprocessableEntity:   failure.Invalid,
}

// Problem is an error as RFC 9457 wants it (application/problem+json), with Daybook's stable code.
type Problem struct { //nolint:errname // the schema in the OpenAPI document has its name
	Type      string        `json:"type" format:"uri" doc:"Where the code is explained"`
	Title     string        `json:"title" doc:"The code in words; the same for the same code"`
	Status    int           `json:"status" doc:"The HTTP status"`
	Detail    string        `json:"detail" doc:"What went wrong this time, and what to do"`
	Code      string        `json:"code" doc:"The stable name of what went wrong, for programs" example:"JOB_NOT_FOUND"`
	RequestID string        `json:"requestId,omitempty" doc:"The request's id in the server's log"`
	Errors    []ProblemPart `json:"errors,omitempty" doc:"What is wrong with which part of the request"`

	header http.Header
	cause  error
}

// ProblemPart says what is wrong with one part of a request. It does not repeat the part: that may
// be secret.
type ProblemPart struct {
	Location string `json:"location,omitempty" doc:"The part, such as body.runAt or query.limit"`
	Message  string `json:"message" doc:"What is wrong with it"`
	Code     string `json:"code,omitempty" doc:"The code with which a document's job would fail, such as TOTALS_DIFFER"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Unwrap returns the cause, which is for the log and not for the caller.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// problemType is the beginning of Problem.Type: the code's line of the documentation.
const problemType = "https://github.com/daybook-dev/daybook/blob/main/docs/errors.md#"

func newProblem(class *failure.Class, detail string) *Problem {
	p := &Problem{
		Type: problemType + strings.ToLower(class.Code), Title: class.Title, Status: class.Status,
		Detail: cmp.Or(class.Instead, detail), Code: class.Code,
		header: http.Header{},
	}
	switch class.Status {
	case http.StatusUnauthorized:
		p.header.Set("WWW-Authenticate", `Bearer realm="daybook"`)
	case http.StatusServiceUnavailable:
		p.header.Set("Retry-After", "5")
	}
	return p
}

// problemOf makes a problem of any error. One whose class has other words for callers keeps its own
// for the log; one without a class is INTERNAL.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	class := store.Failure(err)
	if state := store.SQLState(err); class == nil && (strings.HasPrefix(state, "22") || state == "54001") {
		// Daybook's own checks let it through: a text with a NUL, a number out of range, a document too
		// deep for the parser.
		return problemOfClass(failure.Invalid, err)
	}
	p := newProblem(cmp.Or(class, failure.Internal), err.Error())
	if p.Detail != err.Error() {
		p.cause = err
	}
	if wrong, ok := errors.AsType[*payload.Error](err); ok {
		p.Errors = []ProblemPart{{Location: wrong.Location(), Message: wrong.Says()}}
	}
	return p
}

// problemOfClass makes a problem that is told in the class's own words; the cause is for the log.
func problemOfClass(class *failure.Class, cause error) *Problem {
	p := newProblem(class, strings.ToLower(class.Title[:1])+class.Title[1:])
	p.cause = cause
	return p
}

// invalid returns the problem of one wrong part of a request.
func invalid(location, message string) error {
	p := problemOf(errBadRequest)
	p.Detail = message
	p.Errors = []ProblemPart{{Location: location, Message: message}}
	return p
}

// cannotRead is what huma says, with status 500, of a body that ends early or is not framed as HTTP
// wants it.
const cannotRead = "cannot read request body"

// problemOfHuma makes a problem of what huma itself refuses.
func problemOfHuma(status int, message string, errs ...error) huma.StatusError {
	if status == http.StatusInternalServerError && message == cannotRead {
		status = http.StatusBadRequest
	}
	class, ok := statusTable[status]
	if !ok {
		return problemOfClass(failure.Internal, errors.Join(append([]error{errors.New(message)}, errs...)...))
	}
	p := newProblem(class, message)
	// A missing confirmation comes first in the answer, before other mistakes.
	unsaid := status == http.StatusUnprocessableEntity && errors.Is(errors.Join(errs...), errUnconfirmed)
	if unsaid {
		p = problemOf(errUnconfirmed)
	}
	for _, err := range errs {
		part := ProblemPart{}
		if d, ok := err.(huma.ErrorDetailer); ok {
			detail := d.ErrorDetail()
			part = ProblemPart{Location: detail.Location, Message: inWords(detail.Message)}
			if unsaid && errors.Is(err, errUnconfirmed) {
				p.Detail = detail.Message
			}
		} else if err != nil {
			part.Message = inWords(err.Error())
		}
		p.Errors = append(p.Errors, part)
	}
	if len(p.Errors) > 0 && !unsaid {
		p.Detail = strings.TrimPrefix(p.Errors[0].Location+": "+p.Errors[0].Message, ": ")
	}
	return p
}

// bodyMissing is huma's message for a request without the body that its operation wants;
// fieldMissing is how its message for a missing field begins.
const (
	bodyMissing  = "request body is required"
	fieldMissing = "expected required property "
)

// problemOfRequest is problemOfHuma for a request whose operation is known: it says what to send to
// a caller that left it out.
func problemOfRequest(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
	err := problemOfHuma(status, message, errs...)
	p, ok := err.(*Problem)
	if !ok || ctx == nil || ctx.Operation() == nil {
		return err
	}
	example, ok := ctx.Operation().Metadata[exampleKey].(string)
	if ok && (message == bodyMissing || len(p.Errors) > 0 && strings.HasPrefix(p.Errors[0].Message, fieldMissing)) {
		p.Detail += ": send for instance " + example
	}
	return p
}

// inWords replaces huma's message for a parameter that is no time, which shows Go's layout of
// times, and the one of encoding/json for a number that is out of range, which repeats it.
func inWords(message string) string {
	switch {
	case strings.HasPrefix(message, "invalid date/time for format "):
		return "expected a time as RFC 3339, such as 2026-01-31T09:00:00Z"
	case strings.Contains(message, "cannot unmarshal number "):
		return "a number is out of range"
	}
	return message
}

// huma keeps in package variables how errors are made, from which it derives their schema too, and
// whether lists may be null: here they never are.
func init() {
	huma.NewError = problemOfHuma
	huma.NewErrorWithContext = problemOfRequest
	huma.DefaultArrayNullable = false
}

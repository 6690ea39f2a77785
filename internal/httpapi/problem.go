package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/internal/payload"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/queue"
)

// Errors of the API itself.
var (
	errNoToken    = errors.New("no token: send the header Authorization: Bearer dbk_…")
	errScope      = errors.New("the token lacks a scope")
	errNoRunner   = errors.New("this server runs no jobs")
	errNotAll     = errors.New("all is not said")
	errNoRoute    = errors.New("there is nothing under this address; /openapi.json lists what there is")
	errTooMany    = errors.New("the token is used too often")
	errType       = errors.New("the token may not enqueue this type")
	errMethod     = errors.New("the address does not know this method")
	errBadRequest = errors.New("the request is invalid")
	errInternal   = errors.New("something went wrong that is not the caller's fault; the server's log says what, by the request's id")
)

// problemTable is the one place that gives an error its code, its HTTP status and its title. The first match counts;
// docs/http-api.md is tested against it.
var problemTable = []struct {
	is     error
	code   string
	status int
	title  string
}{
	{errNoToken, "UNAUTHORIZED", http.StatusUnauthorized, "A token is needed"},
	{store.ErrTokenRefused, "UNAUTHORIZED", http.StatusUnauthorized, "A token is needed"},
	{errScope, "FORBIDDEN", http.StatusForbidden, "The token does not allow this"},
	{errType, "TYPE_NOT_ALLOWED", http.StatusForbidden, "The token does not allow this type"},
	{errTooMany, "RATE_LIMITED", http.StatusTooManyRequests, "Too many requests"},
	{errNoRoute, "NOT_FOUND", http.StatusNotFound, "No such address"},
	{errMethod, "METHOD_NOT_ALLOWED", http.StatusMethodNotAllowed, "No such method"},
	{errNoRunner, "NO_RUNNER", http.StatusNotImplemented, "This server runs no jobs"},
	{errNotAll, "ALL_NOT_SAID", http.StatusUnprocessableEntity, "Say that all are meant"},
	{queue.ErrPayloadTooLarge, "PAYLOAD_TOO_LARGE", http.StatusRequestEntityTooLarge, "The payload is too large"},
	{queue.ErrPayloadInvalid, "PAYLOAD_INVALID", http.StatusUnprocessableEntity, "The payload is invalid"},
	{queue.ErrKeyReused, "KEY_REUSED", http.StatusConflict, "The idempotency key was used for something else"},
	{store.ErrJobNotFound, "JOB_NOT_FOUND", http.StatusNotFound, "No such job"},
	{store.ErrOperationNotFound, "OPERATION_NOT_FOUND", http.StatusNotFound, "No such bulk operation"},
	{store.ErrDocumentNotFound, "DOCUMENT_NOT_FOUND", http.StatusNotFound, "No such document"},
	{store.ErrOrganizationNotFound, "ORGANIZATION_NOT_FOUND", http.StatusNotFound, "No such organization"},
	{store.ErrJobCompleted, "JOB_COMPLETED", http.StatusConflict, "The job is completed"},
	{store.ErrDocumentDeleted, "DOCUMENT_DELETED", http.StatusConflict, "The document is deleted"},
	{store.ErrInvalid, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{queue.ErrEmptyID, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{queue.ErrIDTooLong, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{queue.ErrNegativeVersion, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{queue.ErrInvalidPriority, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{queue.ErrNegativeDelay, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{queue.ErrInvalidJobType, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{queue.ErrKeyTooLong, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{queue.ErrInvalidMaxAttempts, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{queue.ErrInvalidLink, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{queue.ErrInvalidRetryMode, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{errBadRequest, "INVALID", http.StatusUnprocessableEntity, "The request is invalid"},
	{errAway, "DATABASE_AWAY", http.StatusServiceUnavailable, "The database is away"},
	{errInternal, "INTERNAL", http.StatusInternalServerError, "Something went wrong"},
}

// errAway stands for every error of store.IsOutage.
var errAway = errors.New("the database cannot be reached or asks to try again: the same request may succeed later")

// statusTable names what huma refuses before a handler is called.
var statusTable = map[int]struct{ code, title string }{
	http.StatusBadRequest:            {"MALFORMED", "The request cannot be read"},
	http.StatusRequestTimeout:        {"REQUEST_TIMEOUT", "The request did not arrive in time"},
	http.StatusRequestEntityTooLarge: {"BODY_TOO_LARGE", "The request is too large"},
	http.StatusUnsupportedMediaType:  {"UNSUPPORTED_MEDIA_TYPE", "Only JSON is understood"},
	http.StatusUnprocessableEntity:   {"INVALID", "The request is invalid"},
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

// ProblemPart says what is wrong with one part of a request. It does not repeat the part: that may be secret.
type ProblemPart struct {
	Location string `json:"location,omitempty" doc:"The part, such as body.runAt or query.limit"`
	Message  string `json:"message" doc:"What is wrong with it"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Unwrap returns what the log should know and the caller should not.
func (p *Problem) Unwrap() error { return p.cause }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// problemType is the beginning of Problem.Type: the code's line of the documentation.
const problemType = "https://github.com/daybook-dev/daybook/blob/main/docs/http-api.md#"

func newProblem(code string, status int, title, detail string) *Problem {
	p := &Problem{
		Type: problemType + strings.ToLower(code), Title: title, Status: status, Detail: detail, Code: code, header: http.Header{},
	}
	switch status {
	case http.StatusUnauthorized:
		p.header.Set("WWW-Authenticate", `Bearer realm="daybook"`)
	case http.StatusServiceUnavailable:
		p.header.Set("Retry-After", "5")
	}
	return p
}

// problemOf makes a problem of any error. What the table does not know is told as INTERNAL, without its words.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	for _, row := range problemTable {
		if errors.Is(err, row.is) {
			p := newProblem(row.code, row.status, row.title, err.Error())
			if wrong, ok := errors.AsType[*payload.Error](err); ok {
				p.Errors = []ProblemPart{{Location: "body.payload" + strings.ReplaceAll(wrong.Field, "/", "."), Message: wrong.Message}}
			}
			return p
		}
	}
	known := errInternal
	switch state := store.SQLState(err); {
	case strings.HasPrefix(state, "22"), state == "54001":
		// A text with a NUL, a number out of range, a document too deep for the parser: what no check of ours saw.
		known = errBadRequest
	case store.IsOutage(err), errors.Is(err, context.DeadlineExceeded):
		known = errAway
	}
	p := problemOf(known)
	p.cause = err
	return p
}

// invalid returns the problem of one wrong part of a request.
func invalid(location, message string) error {
	p := problemOf(errBadRequest)
	p.Detail = message
	p.Errors = []ProblemPart{{Location: location, Message: message}}
	return p
}

// cannotRead is what huma says, with status 500, of a body that ends early or is not framed as HTTP wants it.
const cannotRead = "cannot read request body"

// problemOfHuma makes a problem of what huma itself refuses.
func problemOfHuma(status int, message string, errs ...error) huma.StatusError {
	if status == http.StatusInternalServerError && message == cannotRead {
		status = http.StatusBadRequest
	}
	row, ok := statusTable[status]
	if !ok {
		p := problemOf(errInternal)
		p.cause = errors.Join(append([]error{errors.New(message)}, errs...)...)
		return p
	}
	p := newProblem(row.code, status, row.title, message)
	// Whoever does not say that all are meant is told so first, whatever else is wrong with the request.
	unsaid := status == http.StatusUnprocessableEntity && errors.Is(errors.Join(errs...), errNotAll)
	if unsaid {
		p = problemOf(errNotAll)
	}
	for _, err := range errs {
		part := ProblemPart{}
		if d, ok := err.(huma.ErrorDetailer); ok {
			detail := d.ErrorDetail()
			part = ProblemPart{Location: detail.Location, Message: inWords(detail.Message)}
			if unsaid && errors.Is(err, errNotAll) {
				p.Detail = detail.Message
			}
		} else if err != nil {
			part.Message = err.Error()
		}
		p.Errors = append(p.Errors, part)
	}
	if len(p.Errors) > 0 && !unsaid {
		p.Detail = strings.TrimPrefix(p.Errors[0].Location+": "+p.Errors[0].Message, ": ")
	}
	return p
}

// bodyMissing is what huma says of a request without the body that its operation wants, and fieldMissing how it begins to say
// that a field is missing.
const (
	bodyMissing  = "request body is required"
	fieldMissing = "expected required property "
)

// problemOfRequest is problemOfHuma for a request whose operation is known: it says what to send to whoever leaves it out.
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

// inWords says without Go's layout of a time what huma says of a parameter that is none.
func inWords(message string) string {
	if strings.HasPrefix(message, "invalid date/time for format ") {
		return "expected a time as RFC 3339, such as 2026-01-31T09:00:00Z"
	}
	return message
}

// huma has one place for the shape of its errors, from which it takes their schema as well, and one for lists, which are never
// null here.
func init() {
	huma.NewError = problemOfHuma
	huma.NewErrorWithContext = problemOfRequest
	huma.DefaultArrayNullable = false
}

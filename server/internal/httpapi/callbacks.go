package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/queue"
)

// callbackPath is followed by the token of a callback, which the log does not name.
const callbackPath = "/api/callbacks/"

// secretInPath is what may be the token of a callback: the path may be misspelt, and have the prefix of
// a proxy.
var secretInPath = regexp.MustCompile(`(?is)(callbacks?/+).+`)

// loggedPath is the path of a request without what is secret in it.
func loggedPath(path string) string { return secretInPath.ReplaceAllString(path, "${1}…") }

// callbacks adds the address at which other systems answer jobs. It needs no other token than the
// callback's: 256 random bits, of which the database knows the hash.
func (s *server) callbacks(mux *http.ServeMux) {
	mux.HandleFunc("POST "+callbackPath+"{token}", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
		defer cancel()
		n := note(ctx)
		address := s.limits.address(r)
		if err := address.callback(); err != nil {
			writeProblem(w, n, problemOf(err))
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
		if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
			writeProblem(w, n, problemOfClass(failure.BodyTooLarge, nil))
			return
		}
		if err != nil || len(body) > 0 && !json.Valid(body) {
			writeProblem(w, n, problemOfClass(failure.Malformed, err))
			return
		}
		if len(body) == 0 {
			body = []byte("{}")
		}
		if err := s.hosts.Check(ctx); err != nil {
			writeProblem(w, n, problemOf(err))
			return
		}
		done, err := queue.CompleteCallback(ctx, s.pool, r.PathValue("token"), json.RawMessage(body))
		if errors.Is(err, queue.ErrCallbackNotFound) {
			address.refused()
		}
		if err != nil {
			writeProblem(w, n, problemOf(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(CompleteCallbackResponse{Result: string(done.Result)})
	})
}

// CompleteCallbackResponse says what a callback did.
type CompleteCallbackResponse struct {
	Result string `json:"result" enum:"received,unchanged" doc:"unchanged: the same answer came before"`
}

// describeCallbacks adds the address to the OpenAPI document. Its operation wants no token, and is
// lenient about the content type, so it is not one of the others.
func (s *server) describeCallbacks() {
	api := s.api.OpenAPI()
	schemas := api.Components.Schemas
	op := &huma.Operation{
		OperationID: "completeCallback", Method: http.MethodPost, Path: callbackPath + "{token}", Tags: []string{tagJobs},
		Summary: "Answer a job that waits for a callback",
		Description: "Needs no token but the callback's own, which the job has given away. The same answer may be sent " +
			"again. " +
			"Counted by the address that it comes from, wrong tokens apart.",
		Security:   []map[string][]string{{}},
		Parameters: []*huma.Param{{Name: "token", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}},
		RequestBody: &huma.RequestBody{
			Description: "The answer, a JSON object; nothing is {}",
			Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{
				Type:                 huma.TypeObject,
				AdditionalProperties: true,
			}}},
		},
		Responses: map[string]*huma.Response{"200": {
			Description: http.StatusText(http.StatusOK),
			Content:     map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeFor[CompleteCallbackResponse](), true, "")}},
		}},
	}
	problem := schemas.Schema(reflect.TypeFor[Problem](), true, "")
	for _, status := range []int{
		http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusRequestEntityTooLarge,
		http.StatusUnprocessableEntity,
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
	} {
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem}},
		}
	}
	api.AddOperation(op)
}

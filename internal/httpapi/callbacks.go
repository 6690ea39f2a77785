package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/daybook-dev/daybook/internal/failure"
	"github.com/daybook-dev/daybook/queue"
)

// callbackPath is followed by the token of a callback, which the log does not name.
const callbackPath = "/api/callbacks/"

// loggedPath is the path of a request without what is secret in it.
func loggedPath(path string) string {
	if strings.HasPrefix(path, callbackPath) {
		return callbackPath + "…"
	}
	return path
}

// callbacks adds the address at which other systems answer jobs. It needs no other token than the callback's: 256 random bits, of which the
// database knows the hash.
func (s *server) callbacks(mux *http.ServeMux) {
	mux.HandleFunc("POST "+callbackPath+"{token}", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
		defer cancel()
		n := note(ctx)
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
		done, err := queue.CompleteCallback(ctx, s.pool, r.PathValue("token"), json.RawMessage(body))
		if err != nil {
			writeProblem(w, n, problemOf(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"result": string(done.Result)})
	})
}

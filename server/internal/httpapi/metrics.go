package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// metrics adds /metrics. It wants a token, because a proxy in front of the server may let the whole
// world reach its addresses.
func (s *server) metrics(mux *http.ServeMux) {
	if s.Metrics == nil {
		return
	}
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		p, err := s.authorize(r.Context(), r.Header.Get("Authorization"), tokens.ScopeRead)
		if err == nil && p.OrgID != nil {
			err = fmt.Errorf("%w: metrics are of all organizations, and this token reaches one: create one without --org",
				errScope)
		}
		if err != nil {
			writeProblem(w, note(r.Context()), problemOf(err))
			return
		}
		s.Metrics.ServeHTTP(w, r)
	})
}

// tellRequest tells of a request that was answered.
func (s *server) tellRequest(r *http.Request, a *answer) {
	if s.Requested == nil {
		return
	}
	route := r.Pattern
	if _, path, found := strings.Cut(route, " "); found {
		route = path
	}
	s.Requested(route, r.Method, a.status)
}

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daybook-dev/daybook/failure"
)

// plain adds the addresses that need no token: /openapi.json, /healthz and /readyz.
func (s *server) plain(mux *http.ServeMux) {
	document, err := s.document()
	if err != nil {
		panic(fmt.Errorf("encode the OpenAPI document: %w", err)) // the same for every start
	}
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json;version=3.1")
		_, _ = w.Write(document)
	})
	ok := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{\"status\":\"ok\"}\n"))
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { ok(w) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), pingTimeout)
		defer cancel()
		if err := s.pool.Ping(ctx); err != nil {
			writeProblem(w, note(r.Context()), problemOfClass(failure.DatabaseUnavailable, err))
			return
		}
		ok(w)
	})
}

// document is the OpenAPI document.
func (s *server) document() ([]byte, error) {
	openAnswers(s.api.OpenAPI())
	return json.Marshal(s.api.OpenAPI())
}

// openAnswers lets answers have further fields, so that new ones break no client. Requests may not:
// an unknown field is a mistake.
func openAnswers(api *huma.OpenAPI) {
	schemas := api.Components.Schemas.Map()
	sent := map[string]bool{}
	var note func(schema *huma.Schema)
	note = func(schema *huma.Schema) {
		if schema == nil {
			return
		}
		if name := path.Base(schema.Ref); schema.Ref != "" && !sent[name] {
			sent[name] = true
			note(schemas[name])
		}
		note(schema.Items)
		for _, property := range schema.Properties {
			note(property)
		}
	}
	for _, item := range api.Paths {
		for _, operation := range []*huma.Operation{item.Post, item.Put} {
			if operation == nil || operation.RequestBody == nil {
				continue
			}
			for _, content := range operation.RequestBody.Content {
				note(content.Schema)
			}
		}
	}
	for name, schema := range schemas {
		if !sent[name] && schema.AdditionalProperties == false {
			schema.AdditionalProperties = true
		}
	}
}

// literalPaths are the methods of the addresses that have no parameter in them.
func literalPaths(api *huma.OpenAPI) map[string][]string {
	paths := map[string][]string{}
	for address, item := range api.Paths {
		if strings.Contains(address, "{") {
			continue
		}
		for method, operation := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post, http.MethodPut: item.Put,
		} {
			if operation != nil {
				paths[address] = append(paths[address], method)
			}
		}
		if item.Get != nil {
			paths[address] = append(paths[address], http.MethodHead)
		}
		slices.Sort(paths[address])
	}
	return paths
}

// routed answers with a problem where the mux would refuse a request in plain text. A literal
// address is never the value of another one's parameter: GET /api/jobs/retry does not ask for a job
// with the id "retry".
func routed(mux *http.ServeMux, literal map[string][]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := mux.Handler(r)
		if methods := literal[r.URL.Path]; methods != nil && !slices.Contains(methods, r.Method) {
			problem := problemOf(errMethod)
			problem.header["Allow"] = []string{strings.Join(methods, ", ")}
			writeProblem(w, note(r.Context()), problem)
			return
		}
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refusal := &discarded{header: http.Header{}}
		handler.ServeHTTP(refusal, r)
		problem := problemOf(errNoRoute)
		if refusal.status == http.StatusMethodNotAllowed {
			problem = problemOf(errMethod)
			problem.header["Allow"] = refusal.header["Allow"]
		}
		writeProblem(w, note(r.Context()), problem)
	})
}

// discarded is a ResponseWriter that keeps the header and the status of an answer.
type discarded struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (d *discarded) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (d *discarded) WriteHeader(status int) { d.status = status }

// Write implements http.ResponseWriter.
func (d *discarded) Write(data []byte) (int, error) { return len(data), nil }

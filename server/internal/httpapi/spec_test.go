package httpapi_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/server/internal/statementfile"
)

// spec is the server's OpenAPI document, with what it takes to hold answers against it.
type spec struct {
	document map[string]any
	routes   []route
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	// used are the operations and statuses that were answered.
	used map[string]bool
}

// route is one operation of the document.
type route struct {
	method, path string
	pattern      *regexp.Regexp
	operation    map[string]any
}

const specURL = "https://daybook.test/openapi.json"

var pathParameter = regexp.MustCompile(`\\\{[^}]+\\\}`)

func readSpec(tb testing.TB, client *http.Client, url string) *spec {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url+"/openapi.json", nil)
	require.NoError(tb, err)
	response, err := client.Do(r)
	require.NoError(tb, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(tb, err)
	require.Equal(tb, http.StatusOK, response.StatusCode)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(tb, err)
	s := &spec{document: document.(map[string]any), compiler: jsonschema.NewCompiler(), used: map[string]bool{}}
	s.compiler.AssertFormat()
	require.NoError(tb, s.compiler.AddResource(specURL, document))
	for path, item := range s.document["paths"].(map[string]any) {
		pattern := regexp.MustCompile("^" + pathParameter.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
		for method, operation := range item.(map[string]any) {
			s.routes = append(s.routes, route{strings.ToUpper(method), path, pattern, operation.(map[string]any)})
		}
	}
	return s
}

// find returns the operation that a request is for; a path without parameters comes before one with
// some, whatever its methods.
func (s *spec) find(r *http.Request) *route {
	var found *route
	literal := slices.ContainsFunc(s.routes, func(c route) bool { return c.path == r.URL.EscapedPath() })
	for i := range s.routes {
		c := &s.routes[i]
		if c.method == r.Method && c.pattern.MatchString(r.URL.EscapedPath()) &&
			(!literal || c.path == r.URL.EscapedPath()) && (found == nil || !strings.Contains(c.path, "{")) {
			found = c
		}
	}
	return found
}

// secured are the operations that want a token.
func (s *spec) secured() []route {
	return slices.DeleteFunc(slices.Clone(s.routes), func(r route) bool {
		security, _ := r.operation["security"].([]any)
		return len(security) == 1 && len(security[0].(map[string]any)) == 0
	})
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// check holds an answer against the document: its status and content type are announced, and its
// body is what the schema says.
func (s *spec) check(tb testing.TB, r *http.Request, a answer) {
	tb.Helper()
	found := s.find(r)
	if found == nil || a.header.Get("Location") != "" {
		return // not the document's, or sent on to the address without dots
	}
	status := strconv.Itoa(a.status)
	responses := found.operation["responses"].(map[string]any)
	response, ok := responses[status].(map[string]any)
	if !assert.True(tb, ok, "%s %s: status %s is not in the document: %s", found.method, found.path, status, a.body) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[found.operation["operationId"].(string)+" "+status] = true
	if a.status == http.StatusNoContent {
		assert.Empty(tb, a.body, "%s %s", found.method, found.path)
		return
	}
	contentType := a.header.Get("Content-Type")
	if !assert.Contains(tb, response["content"], contentType, "%s %s: %s", found.method, found.path, status) {
		return
	}
	if contentType == statementfile.CSV || contentType == statementfile.PDF {
		return // no JSON
	}
	schema, err := s.compiler.Compile(specURL + "#/paths/" + pointerEscape.Replace(found.path) + "/" +
		strings.ToLower(found.method) +
		"/responses/" + status + "/content/" + pointerEscape.Replace(contentType) + "/schema")
	require.NoError(tb, err)
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.body))
	require.NoError(tb, err, string(a.body))
	assert.NoError(tb, schema.Validate(body), "%s %s: %s", found.method, found.path, a.body)
}

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	s := setup(t).spec
	assert.Equal(t, "3.1.0", s.document["openapi"])
	ids := map[string]bool{}
	schemes := s.document["components"].(map[string]any)["securitySchemes"].(map[string]any)
	docs, err := os.ReadFile("../../../docs/http-api.md")
	require.NoError(t, err)
	for _, r := range s.routes {
		name := r.method + " " + r.path
		assert.Contains(t, string(docs), "`"+name+"`", "docs/http-api.md")
		id, _ := r.operation["operationId"].(string)
		assert.NotEmpty(t, id, name)
		assert.False(t, ids[id], "%s: %s is there twice", name, id)
		ids[id] = true
		assert.NotEmpty(t, r.operation["summary"], name)
		description, _ := r.operation["description"].(string)
		assert.Equal(t, strings.TrimSpace(description), description, name)
		assert.Len(t, r.operation["tags"], 1, name)
		for _, security := range r.operation["security"].([]any) {
			for scheme, scopes := range security.(map[string]any) {
				assert.Contains(t, schemes, scheme, name)
				assert.Len(t, scopes, 1, name)
			}
		}
		declared := map[string]bool{}
		parameters, _ := r.operation["parameters"].([]any)
		for _, p := range parameters {
			parameter := p.(map[string]any)
			if parameter["in"] == "path" {
				declared[parameter["name"].(string)] = true
				assert.Equal(t, true, parameter["required"], name)
			}
		}
		for _, m := range regexp.MustCompile(`\{([^}]+)\}`).FindAllStringSubmatch(r.path, -1) {
			assert.True(t, declared[m[1]], "%s: %s is not declared", name, m[1])
		}
	}
	// Every schema is one, and every reference leads to one.
	walk(s.document, "#", func(place string, v map[string]any) {
		if ref, ok := v["$ref"].(string); ok {
			_, err := s.compiler.Compile(specURL + ref)
			assert.NoError(t, err, place)
		}
		if _, ok := v["schema"]; ok {
			_, err := s.compiler.Compile(specURL + place + "/schema")
			assert.NoError(t, err, place)
		}
	})
}

// walk visits every object of a document.
func walk(v any, place string, visit func(place string, v map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(place, v)
		for key, child := range v {
			walk(child, place+"/"+pointerEscape.Replace(key), visit)
		}
	case []any:
		for i, child := range v {
			walk(child, place+"/"+strconv.Itoa(i), visit)
		}
	}
}

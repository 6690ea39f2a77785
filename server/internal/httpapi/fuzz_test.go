package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

// FuzzBodies sends arbitrary bodies to every operation that takes one: whatever is wrong with them
// is the caller's fault, and said as the document says.
func FuzzBodies(f *testing.F) {
	b := setup(f)
	for _, body := range []string{
		``, `{}`, `null`, `[]`, `{"all":true,"mode":"now"}`, `{"mode":"later","delaySeconds":1e308}`,
		`{"orgId":"acme","type":"t","payload":{"a":[1,{"b":"\u0000"}]},"runAt":"2024-01-15T10:30:00Z","priority":"normal","links":[{"kind":"a","id":"b"}]}`,
		`{"orgId":"acme","documentId":"d","version":9223372036854775807}`,
		`{"filter":{"since":"0000-01-01T00:00:00Z"},"dryRun":true,"mode":"reset"}`,
		`{"orgId":"acme","type":"t","payload":{"n":1e99999}}`, `{"orgId":"\ud800","type":"t","payload":{}}`, nested(200),
		"\xff", `{"orgId":"a","type":"t","payload":{},"runAt":"9999-12-31T23:59:59.999999999Z"}`,
	} {
		f.Add(body)
	}
	var routes []route
	for _, r := range b.spec.routes {
		if r.method == http.MethodPost || r.method == http.MethodPut {
			routes = append(routes, r)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		b := b.as(t)
		for _, r := range routes {
			a := b.send(b.everything, r.method, r.address(), body)
			if a.status >= http.StatusInternalServerError && a.code() != "NO_RUNNER" {
				t.Fatalf("%s %s: %d: %s\n%s", r.method, r.path, a.status, a.body, b.log)
			}
		}
	})
}

// FuzzQueries does the same with parameters and ids.
func FuzzQueries(f *testing.F) {
	b := setup(f)
	for _, value := range []string{
		"", "a", "%00", "%ff", "a/b", "..", "2026-01-01", "2026-01-01T00:00:00Z", "-1", "1e9",
		"failed", "Y3VyIA", "YyB4", "ZiAxIHg", "WzEsMl0", "EUR",
	} {
		f.Add(value)
	}
	var routes []route
	for _, r := range b.spec.routes {
		if r.method == http.MethodGet {
			routes = append(routes, r)
		}
	}
	f.Fuzz(func(t *testing.T, value string) {
		b := b.as(t)
		if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' || r == '?' }) {
			t.Skip("no address")
		}
		for _, r := range routes {
			parameters, _ := r.operation["parameters"].([]any)
			for _, p := range parameters {
				parameter := p.(map[string]any)
				name, _ := parameter["name"].(string)
				path := r.address() + "?" + name + "=" + value
				if parameter["in"] == "path" {
					path = strings.NewReplacer("{"+name+"}", value).Replace(r.path) + "?orgId=acme"
				}
				if name != "orgId" && parameter["in"] != "path" {
					path += "&orgId=acme"
				}
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+path, nil)
				if err != nil {
					t.Skip("no address")
				}
				request.Header.Set("Authorization", "Bearer "+b.everything)
				if a := b.do(request); a.status >= http.StatusInternalServerError {
					t.Fatalf("%s: %d: %s\n%s", path, a.status, a.body, b.log)
				}
			}
		}
	})
}

// as returns the bundle for another test.
func (b *bundle) as(t *testing.T) *bundle {
	c := *b
	c.t = t
	return &c
}

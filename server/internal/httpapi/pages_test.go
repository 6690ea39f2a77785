package httpapi_test

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// TestCurlOfThePages sends what curl would send. The server's answers are checked against the OpenAPI
// document as well.
func TestCurlOfThePages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, "acme")
	token := b.token("acme", tokens.ScopeEnqueue, tokens.ScopeRead)
	commands, err := pages.Commands("curl")
	require.NoError(t, err)
	sent := 0
	for _, c := range commands {
		if c.Whole { // others fetch what is installed
			sent++
			a := b.do(b.curl(c, token))
			assert.Less(t, a.status, 300, "%s:%d: %d %s", c.Page, c.Line, a.status, a.body)
		}
	}
	assert.Equal(t, 2, sent)
}

// curl is the request that a command line makes.
func (b *bundle) curl(c pages.Command, token string) *http.Request {
	b.t.Helper()
	header, method, address, body := http.Header{}, http.MethodGet, "", ""
	for words := c.Words[1:]; len(words) > 0; words = words[1:] {
		switch words[0] {
		case "-H":
			name, value, _ := strings.Cut(strings.ReplaceAll(words[1], "$TOKEN", token), ": ")
			header.Set(name, value)
			words = words[1:]
		case "-d", "--data-binary":
			method, body = http.MethodPost, words[1]
			if body == "@bill.xml" {
				text, err := os.ReadFile("../../../internal/moving/importer/testdata/invoice.ubl.xml")
				require.NoError(b.t, err)
				body = string(text)
			}
			words = words[1:]
		default:
			require.Empty(b.t, address, "%s:%d: the test does not know what %s is", c.Page, c.Line, words[0])
			address = words[0]
		}
	}
	u, err := url.Parse(address)
	require.NoError(b.t, err)
	require.Equal(b.t, "http://127.0.0.1:8080", u.Scheme+"://"+u.Host, "%s:%d", c.Page, c.Line)
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+u.RequestURI(), strings.NewReader(body))
	require.NoError(b.t, err)
	r.Header = header
	if body != "" && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl does
	}
	return r
}

// TestRequestsOfThePages sends the requests that blocks show, and looks for those that sentences and
// tables name in the OpenAPI document.
func TestRequestsOfThePages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	blocks, err := pages.Of("", "http")
	require.NoError(t, err)
	require.NotEmpty(t, blocks)
	request := regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) (/api/\S*)(?: +(\{.*))?$`)
	for _, block := range blocks {
		for line := range strings.Lines(block.Text) {
			m := request.FindStringSubmatch(strings.TrimSpace(line))
			require.NotEmpty(t, m, line)
			a := b.send(b.everything, m[1], m[2], m[3])
			assert.Less(t, a.status, 300, "%s: %s: %s", block.Page, line, a.body)
		}
	}
	spans, err := pages.Spans()
	require.NoError(t, err)
	named := 0
	for _, s := range spans {
		if m := request.FindStringSubmatch(s.Text); m != nil && !strings.Contains(m[2], "…") {
			named++
			path, _, _ := strings.Cut(m[2], "?")
			assert.True(t, slices.ContainsFunc(b.spec.routes, func(r route) bool {
				return r.method == m[1] && (r.path == path || r.pattern.MatchString(path))
			}), "%s:%d: there is no %s", s.Page, s.Line, s.Text)
		}
	}
	assert.Greater(t, named, 50)
}

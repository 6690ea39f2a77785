package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/tokens"
)

// TestTheFirstPageIsSmall loads the overview with all that it names, as a browser does.
func TestTheFirstPageIsSmall(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	_, body := s.get("/console/")
	total := len(body)
	named := regexp.MustCompile(`(?:href|src)="(/console/static/[^"]+)"`).FindAllStringSubmatch(body, -1)
	require.NotEmpty(t, named)
	loaded := map[string]bool{}
	for _, m := range named {
		if loaded[m[1]] {
			continue
		}
		loaded[m[1]] = true
		status, file := s.get(m[1])
		require.Equal(t, http.StatusOK, status, m[1])
		total += len(file)
	}
	require.Less(t, total, 100_000)
	t.Logf("%d bytes in all, without compression", total)
}

// TestPagesRunNothingOfTheirOwn: the policy forbids inline scripts and styles, and pages have none.
func TestPagesRunNothingOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/console/sign-in", nil)
	require.NoError(t, err)
	answer, err := s.client.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	policy := answer.Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	s.signIn("", tokens.Scopes()...)
	_, body := s.get("/console/")
	require.NotRegexp(t, `(?i)<style|\sstyle=|\son[a-z]+=|<script>|javascript:`, body)
}

// TestTheOrganizationStaysInTheAddress: a token of all organizations looks at one, and links of the
// frame keep it.
func TestTheOrganizationStaysInTheAddress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	_, body := s.get("/console/?org=a%26b")
	require.Contains(t, body, `href="/console/?org=a%26b"`)
	require.Contains(t, body, `value="a&amp;b"`)

	s.signIn("acme", tokens.ScopeRead)
	_, body = s.get("/console/")
	require.NotContains(t, body, `name="org"`, "a token of one organization has nothing to choose")
	require.Contains(t, body, ">acme<")
	status, body := s.get("/console/?org=other")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "ORGANIZATION_NOT_FOUND")
}

// TestALivePageIsReadInParts: what the script asks for is the content alone.
func TestALivePageIsReadInParts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/console/", nil)
	require.NoError(t, err)
	r.Header.Set("X-Daybook-Live", "1")
	_, body := s.do(r)
	require.True(t, strings.HasPrefix(strings.TrimSpace(body), "<h1>"), body)
	require.NotContains(t, body, "<nav class=\"menu\"")
}

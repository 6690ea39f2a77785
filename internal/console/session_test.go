package console_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store/tokens"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	s := newSite(t)

	status, body := s.get("/console/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "daybook tokens create", "who is not signed in is asked for a token")

	status, body = s.post("/console/sign-in", url.Values{"token": {"dbk_wrong"}})
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, body, "unknown or revoked")

	status, body = s.post("/console/sign-in", url.Values{"token": {s.token("", tokens.ScopeEnqueue)}})
	require.Equal(t, http.StatusForbidden, status)
	require.Contains(t, body, "scope read")

	s.signIn("", tokens.ScopeRead)
	status, body = s.get("/console/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "Overview")

	status, body = s.get("/console/nothing-here")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "NOT_FOUND")

	_, _ = s.post("/console/sign-out", nil)
	_, body = s.get("/console/")
	require.Contains(t, body, "daybook tokens create")
}

func TestOtherSitesPostNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)

	r := s.postRequest("/console/sign-out", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	status, _ := s.do(r)
	require.Equal(t, http.StatusForbidden, status)
	_, body := s.get("/console/")
	require.Contains(t, body, "Overview", "the caller is still signed in")
}

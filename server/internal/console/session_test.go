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

// TestOtherSitesPostNothing sends what browsers send for a form of another site, and what a browser
// sends that says nothing of it.
func TestOtherSitesPostNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.signIn("", tokens.ScopeRead)
	for name, c := range map[string]struct {
		site, origin, referer string
		allowed               bool
	}{
		"another site":                  {site: "cross-site"},
		"another host of the same site": {site: "same-site"},
		"another origin":                {origin: "https://evil.example"},
		"nothing":                       {},
		"a page of another site":        {referer: "https://evil.example/console/"},
		"a page of this server":         {referer: s.server.URL + "/console/", allowed: true},
	} {
		r := s.postRequest("/console/sign-in", url.Values{"token": {"dbk_wrong"}})
		r.Header.Del("Sec-Fetch-Site")
		for header, value := range map[string]string{"Sec-Fetch-Site": c.site, "Origin": c.origin, "Referer": c.referer} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		status, body := s.do(r)
		if c.allowed {
			require.Equal(t, http.StatusUnauthorized, status, name)
			continue
		}
		require.Equal(t, http.StatusForbidden, status, name)
		require.Contains(t, body, "nothing was done", name)
	}
}

// TestASessionEnds signs out, revokes the token and lets the time pass: each ends the session in
// the database, whatever the browser keeps.
func TestASessionEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *site, id string){
		"signing out": func(s *site, _ string) { _, _ = s.post("/console/sign-out", nil) },
		"being revoked": func(s *site, id string) {
			_, _, err := tokens.Revoke(s.t.Context(), s.Pool, id)
			require.NoError(s.t, err)
		},
		"the time being over": func(s *site, _ string) {
			_, err := s.Pool.Exec(s.t.Context(), `UPDATE daybook.console_sessions SET expires_at = clock_timestamp()`)
			require.NoError(s.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			token, secret, err := tokens.Create(t.Context(), s.Pool,
				tokens.NewToken{Name: "test", Scopes: []tokens.Scope{tokens.ScopeRead}})
			require.NoError(t, err)
			s.post("/console/sign-in", url.Values{"token": {secret}})
			address, err := url.Parse(s.server.URL)
			require.NoError(t, err)
			kept := s.client.Jar.Cookies(address)
			require.Len(t, kept, 1)
			require.NotContains(t, kept[0].Value, secret)
			require.NotContains(t, secret, kept[0].Value)
			_, body := s.get("/console/")
			require.Contains(t, body, "Sign out")

			end(s, token.ID)
			s.client.Jar.SetCookies(address, kept)
			_, body = s.get("/console/")
			require.Contains(t, body, "daybook tokens create", "the old cookie is worth nothing")
		})
	}
}

// TestCookiesBehindTLS: over TLS, also that of a proxy, only this very host can have set the
// cookie.
func TestCookiesBehindTLS(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r := s.postRequest("/console/sign-in", url.Values{"token": {s.token("", tokens.ScopeRead)}})
	r.Header.Set("X-Forwarded-Proto", "https")
	answer, err := s.client.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	cookie := answer.Cookies()[0]
	require.Equal(t, "__Host-daybook_session", cookie.Name)
	require.Equal(t, "/", cookie.Path)
	require.Empty(t, cookie.Domain)
	require.True(t, cookie.Secure && cookie.HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, cookie.SameSite)
	require.Equal(t, 12*60*60, cookie.MaxAge)
}

func TestAttemptsToSignInAreLimited(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	secret := s.token("", tokens.ScopeRead)
	for range 12 { // those that succeed are not counted
		status, _ := s.post("/console/sign-in", url.Values{"token": {secret}})
		require.Equal(t, http.StatusOK, status)
	}
	for range 10 {
		status, _ := s.post("/console/sign-in", url.Values{"token": {"dbk_wrong"}})
		require.Equal(t, http.StatusUnauthorized, status)
	}
	status, body := s.post("/console/sign-in", url.Values{"token": {secret}})
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, body, "RATE_LIMITED")
}

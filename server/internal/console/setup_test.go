package console_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/console"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

// site is a console on a database of its own, and a browser of the plainest kind: it keeps cookies
// and follows redirects.
type site struct {
	*pgtest.DB
	t      *testing.T
	server *httptest.Server
	client *http.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteWith(t, func(*console.Options) {})
}

// newSiteOn is newSite with Temporal.
func newSiteOn(t *testing.T, temporal client.Client) *site {
	t.Helper()
	return newSiteWith(t, func(o *console.Options) { o.Temporal = temporal })
}

// newSiteWith is newSite with options that change adjusts.
func newSiteWith(t *testing.T, change func(*console.Options)) *site {
	t.Helper()
	db := pgtest.New(t)
	list, err := listing.New(db.Pool)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, list.Close()) })
	o := console.Options{Pool: db.Pool, Listing: list}
	change(&o)
	server := httptest.NewServer(console.New(o))
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &site{DB: db, t: t, server: server, client: &http.Client{Jar: jar}}
}

// token makes a token for an organization, or for all when org is empty, and returns its secret.
func (s *site) token(org string, scopes ...tokens.Scope) string {
	s.t.Helper()
	_, secret := s.limited(org, tokens.Limits{}, scopes...)
	return secret
}

// limited is token with limits; it returns the token as well.
func (s *site) limited(org string, limits tokens.Limits, scopes ...tokens.Scope) (token tokens.Token, secret string) {
	s.t.Helper()
	token, secret, err := tokens.Create(s.t.Context(), s.Pool,
		tokens.NewToken{OrgID: org, Name: "test", Scopes: scopes, Limits: limits})
	require.NoError(s.t, err)
	return token, secret
}

// signIn signs in with a new token.
func (s *site) signIn(org string, scopes ...tokens.Scope) {
	s.t.Helper()
	s.signInWith(s.token(org, scopes...))
}

// signInWith signs in with a token's secret.
func (s *site) signInWith(secret string) {
	s.t.Helper()
	status, body := s.post("/console/sign-in", url.Values{"token": {secret}})
	require.Equal(s.t, http.StatusOK, status, body)
}

func (s *site) get(path string) (status int, body string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.server.URL+path, nil)
	require.NoError(s.t, err)
	return s.do(r)
}

func (s *site) post(path string, form url.Values) (status int, body string) {
	s.t.Helper()
	return s.do(s.postRequest(path, form))
}

func (s *site) postRequest(path string, form url.Values) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.server.URL+path,
		strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin") // as browsers do
	return r
}

func (s *site) do(r *http.Request) (status int, body string) {
	s.t.Helper()
	answer, err := s.client.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return answer.StatusCode, string(b)
}

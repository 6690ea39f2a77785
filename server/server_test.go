package server_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/tokens"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/server"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestPoolIsRequired(t *testing.T) {
	t.Parallel()
	_, err := server.New(t.Context(), server.Options{})
	require.ErrorContains(t, err, "Options.Pool is required")
}

// A key that cannot sign closings is refused at the start, and not when a period is closed.
func TestClosingKeyIsChecked(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, err = server.New(t.Context(), server.Options{Pool: new(pgxpool.Pool), ClosingKey: key})
	require.ErrorIs(t, err, models.ErrClosingKey)
	require.ErrorContains(t, err, "Options.ClosingKey")
}

// ask sends a request, and returns the answer's status and body.
func ask(t *testing.T, address, token string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text)
}

// TestHandlerBesideOtherPages: the console and the API answer as a handler, and work for tokens alone.
func TestHandlerBesideOtherPages(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s, err := server.New(t.Context(), server.Options{Pool: db.Pool, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	serving := httptest.NewServer(s)
	defer serving.Close()
	_, secret, err := tokens.Create(t.Context(), db.Pool, tokens.New{Name: "test", Scopes: []tokens.Scope{tokens.Read}})
	require.NoError(t, err)

	status, body := ask(t, serving.URL+server.ConsoleRoot, "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "Sign in")
	status, _ = ask(t, serving.URL+"/api/queues", "")
	assert.Equal(t, http.StatusUnauthorized, status)
	status, _ = ask(t, serving.URL+"/api/queues", secret)
	assert.Equal(t, http.StatusOK, status)

	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "a second time")
}

// TestTokensOnTheConsole: a request of the console is logged with its token, as one of the API is, and
// counts for the same rate.
func TestTokensOnTheConsole(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var log bytes.Buffer
	s, err := server.New(t.Context(), server.Options{Pool: db.Pool, Log: slog.New(slog.NewJSONHandler(&log, nil))})
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	create := func(perMinute int, scope tokens.Scope) (id, secret string) {
		token, secret, err := tokens.Create(t.Context(), db.Pool,
			tokens.New{Name: "test", Scopes: []tokens.Scope{scope}, Limits: tokens.Limits{RequestsPerMinute: perMinute}})
		require.NoError(t, err)
		return token.ID, secret
	}
	id, secret := create(0, tokens.Read)
	session := ""
	visit := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(url.Values{"token": {secret}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set("Cookie", session)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	signIn := func() *httptest.ResponseRecorder { return visit(http.MethodPost, server.ConsoleRoot+"sign-in") }
	in := signIn()
	require.Equal(t, http.StatusSeeOther, in.Code, in.Body)
	session = in.Header().Get("Set-Cookie")
	require.Equal(t, http.StatusOK, visit(http.MethodGet, server.ConsoleRoot+"queues").Code)
	require.Equal(t, http.StatusForbidden, visit(http.MethodPost, server.ConsoleRoot+"queues").Code)
	lines := 0
	for line := range strings.Lines(log.String()) {
		lines++
		assert.Contains(t, line, `"token":"`+id+`"`)
	}
	assert.Equal(t, 3, lines)

	// One request a minute: the sign-in is it.
	_, secret = create(1, tokens.Read)
	in = signIn()
	require.Equal(t, http.StatusSeeOther, in.Code, in.Body)
	session = in.Header().Get("Set-Cookie")
	page := visit(http.MethodGet, server.ConsoleRoot+"queues")
	assert.Equal(t, http.StatusTooManyRequests, page.Code)
	assert.Contains(t, page.Body.String(), "RATE_LIMITED")
	assert.NotEmpty(t, page.Header().Get("Retry-After"))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/queues", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	assert.Equal(t, http.StatusTooManyRequests, w.Code, "one rate for both")

	// What is refused counts too.
	_, secret = create(1, tokens.Enqueue)
	assert.Equal(t, http.StatusForbidden, signIn().Code)
	assert.Equal(t, http.StatusTooManyRequests, signIn().Code)
}

// TestServeEndsWithItsContext: a server that is told to stop returns nil.
func TestServeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s, err := server.New(t.Context(), server.Options{Pool: db.Pool, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	status, _ := ask(t, "http://"+l.Addr().String()+"/readyz", "")
	assert.Equal(t, http.StatusOK, status)
	stop()
	require.NoError(t, <-ended)
}

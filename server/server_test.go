package server_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/tokens"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/server"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestPoolIsRequired(t *testing.T) {
	t.Parallel()
	_, err := server.New(t.Context(), server.Options{})
	require.ErrorContains(t, err, "Options.Pool is required")
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

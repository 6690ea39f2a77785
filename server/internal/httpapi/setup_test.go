package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// bundle is a server on a database of its own, called over TCP. Every answer is checked against the
// OpenAPI document.
type bundle struct {
	*pgtest.DB
	t      testing.TB
	url    string
	client *http.Client
	log    *logged
	spec   *spec
	// stop asks the server to end; the test's end does so as well.
	stop context.CancelFunc
	// everything is the secret of a token with all scopes for all organizations.
	everything string
}

func setup(tb testing.TB) *bundle {
	tb.Helper()
	return setupWith(tb, nil)
}

// setupWith starts a server whose options change adjusts.
func setupWith(tb testing.TB, change func(*httpapi.Options)) *bundle {
	tb.Helper()
	b := &bundle{DB: pgtest.New(tb), t: tb, log: &logged{}}
	listing, err := listing.New(b.Pool)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = listing.Close() })
	o := httpapi.Options{
		Pool: b.Pool, Listing: listing,
		Log: slog.New(slog.NewJSONHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&o)
	}
	handler := httpapi.New(o)
	var config net.ListenConfig
	l, err := config.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	b.url = "http://" + l.Addr().String()
	var ctx context.Context
	ctx, b.stop = context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- httpapi.Serve(ctx, l, handler, o.Log) }()
	b.client = &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 100},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	tb.Cleanup(func() {
		b.client.CloseIdleConnections()
		b.stop()
		require.NoError(tb, <-ended)
	})
	b.spec = readSpec(tb, b.client, b.url)
	b.everything = b.token("", tokens.Scopes()...)
	return b
}

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// token makes a token and returns its secret.
func (b *bundle) token(org string, scopes ...tokens.Scope) string {
	b.t.Helper()
	_, secret, err := tokens.Create(b.t.Context(), b.Pool, tokens.NewToken{OrgID: org, Name: "test", Scopes: scopes})
	require.NoError(b.t, err)
	return secret
}

// limited makes a token with limits and returns its secret.
func (b *bundle) limited(org string, limits tokens.Limits, scopes ...tokens.Scope) string {
	b.t.Helper()
	_, secret, err := tokens.Create(b.t.Context(), b.Pool,
		tokens.NewToken{OrgID: org, Name: "test", Scopes: scopes, Limits: limits})
	require.NoError(b.t, err)
	return secret
}

// answer is what the server answered.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// into decodes the body.
func (a answer) into(tb testing.TB, v any) {
	tb.Helper()
	require.NoError(tb, json.Unmarshal(a.body, v), string(a.body))
}

// code returns a problem's code.
func (a answer) code() string {
	var p struct{ Code string }
	_ = json.Unmarshal(a.body, &p)
	return p.Code
}

// send sends a request and checks the answer against the OpenAPI document. body is sent as it is if
// it is a string.
func (b *bundle) send(token, method, path string, body any) answer {
	b.t.Helper()
	var reader io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(v)
	default:
		data, err := json.Marshal(v)
		require.NoError(b.t, err)
		reader = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, reader)
	require.NoError(b.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return b.do(r)
}

func (b *bundle) do(r *http.Request) answer {
	b.t.Helper()
	response, err := b.client.Do(r)
	require.NoError(b.t, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	a := answer{status: response.StatusCode, header: response.Header, body: data}
	b.spec.check(b.t, r, a)
	return a
}

// get sends a request that must succeed and decodes the answer.
func (b *bundle) get(into any, path string) {
	b.t.Helper()
	a := b.send(b.everything, http.MethodGet, path, nil)
	require.Equal(b.t, http.StatusOK, a.status, string(a.body))
	a.into(b.t, into)
}

// post is get for requests with a body.
func (b *bundle) post(into any, path string, body any) {
	b.t.Helper()
	a := b.send(b.everything, http.MethodPost, path, body)
	require.Less(b.t, a.status, 300, "%s\n%s", a.body, b.log)
	a.into(b.t, into)
}

type object = map[string]any

// testLog writes to the test's own log.
func testLog(tb testing.TB) *slog.Logger {
	tb.Helper()
	return slog.New(slog.NewTextHandler(tb.Output(), nil))
}

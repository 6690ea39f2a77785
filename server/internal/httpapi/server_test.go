package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/healthz", "/readyz"} {
		a := b.send("", http.MethodGet, path, nil)
		assert.Equal(t, http.StatusOK, a.status, path)
		assert.JSONEq(t, `{"status":"ok"}`, string(a.body), path)
	}
	b.Pool.Close()
	assert.Equal(t, http.StatusOK, b.send("", http.MethodGet, "/healthz", nil).status, "the program runs all the same")
	a := b.send("", http.MethodGet, "/readyz", nil)
	assert.Equal(t, http.StatusServiceUnavailable, a.status)
	assert.Equal(t, "DATABASE_UNAVAILABLE", a.code())
	assert.NotEmpty(t, a.header.Get("Retry-After"))
}

func TestUnknownAddressesAndMethods(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/", "/api", "/api/nothing", "/api/jobs/1/2/3", "/docs"} {
		a := b.send(b.everything, http.MethodGet, path, nil)
		assert.Equal(t, http.StatusNotFound, a.status, path)
		assert.Equal(t, "NOT_FOUND", a.code(), path)
		assert.Equal(t, "application/problem+json", a.header.Get("Content-Type"), path)
	}
	a := b.send(b.everything, http.MethodDelete, "/api/jobs", nil)
	assert.Equal(t, http.StatusMethodNotAllowed, a.status)
	assert.Equal(t, "METHOD_NOT_ALLOWED", a.code())
	assert.Equal(t, "GET, HEAD", a.header.Get("Allow"))
}

func TestJSONIsAnsweredWhateverIsAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, accept := range []string{"", "*/*", "application/json", "application/xml", "text/html;q=0.9"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/api/jobs", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+b.everything)
		r.Header.Set("Accept", accept)
		a := b.do(r)
		assert.Equal(t, http.StatusOK, a.status, accept)
		assert.Equal(t, "application/json", a.header.Get("Content-Type"), accept)
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for given, kept := range map[string]bool{"": false, "abc-123": true, "a b": false, strings.Repeat("x", 101): false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/api/jobs", nil)
		require.NoError(t, err)
		if given != "" {
			r.Header.Set("X-Request-Id", given)
		}
		a := b.do(r)
		id := a.header.Get("X-Request-Id")
		assert.NotEmpty(t, id)
		assert.Equal(t, kept, id == given, given)
		var p struct{ RequestID string }
		a.into(t, &p)
		assert.Equal(t, id, p.RequestID)
		assert.Contains(t, b.log.String(), `"request":"`+id+`"`)
	}
}

func TestTheLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.send(b.everything, http.MethodGet, "/api/jobs?code=geheim", nil)
	b.send(b.everything, http.MethodPost, "/api/jobs/enqueue",
		`{"orgId":"acme","type":"t","payload":{"password":"geheim"}}`)
	b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", `{"password":"geheim"`)
	a := b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", `{"orgId":"acme","type":"t","payload":"geheim"}`)
	assert.NotContains(t, string(a.body), "geheim", "errors do not repeat what was sent")
	for _, body := range []string{
		`{"orgId":"acme","type":"t","payload":{"a":31415e9999}}`, `{"orgId":"acme","type":"t","payload":{},"priority":31415e9999}`,
		`{"orgId":"acme","type":"t","payload":{},"minVersion":3141531415314153141531415}`,
	} {
		a = b.send(b.everything, http.MethodPost, "/api/jobs/enqueue", body)
		assert.GreaterOrEqual(t, a.status, 400, body)
		assert.NotContains(t, string(a.body), "31415", body)
	}
	b.send(b.everything+"x", http.MethodGet, "/api/jobs", nil)
	for _, path := range []string{
		"/api/callbacks/", "//api/callbacks/", "/api//callbacks/", "/./api/callbacks/", "/api/callbacks//", "/prefix/api/callbacks/",
		"/API/callbacks/", "/api/Callbacks/", "/api/callback/",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+path+"geheim", nil)
		require.NoError(t, err)
		response, err := b.client.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	log := b.log.String()
	assert.GreaterOrEqual(t, strings.Count(strings.ToLower(log), "callbacks/"), 8)
	assert.Contains(t, log, "/api/jobs/enqueue")
	assert.NotContains(t, log, "geheim")
	assert.NotContains(t, log, strings.TrimPrefix(b.everything, "dbk_")[:20])
}

// runner stands for a worker.
type runner struct {
	limit int
	run   func(ctx context.Context) (httpapi.Report, error)
}

func (r *runner) RunDue(ctx context.Context, limit int) (httpapi.Report, error) {
	r.limit = limit
	return r.run(ctx)
}

// withRunner starts a server that runs jobs by run.
func withRunner(t *testing.T, run func(ctx context.Context) (httpapi.Report, error)) (*bundle, *runner) {
	t.Helper()
	r := &runner{run: run}
	return setupWith(t, func(o *httpapi.Options) { o.Runner = r }), r
}

func TestRun(t *testing.T) {
	t.Parallel()
	b, r := withRunner(t, func(ctx context.Context) (httpapi.Report, error) {
		deadline, ok := ctx.Deadline()
		assert.True(t, ok)
		assert.Greater(t, time.Until(deadline), 40*time.Second)
		return httpapi.Report{Processed: 15, Completed: 1, Retried: 2, Rescheduled: 3, Failed: 4, Cancelled: 5, Running: 6},
			nil
	})
	var out map[string]int
	b.post(&out, "/api/jobs/run", nil)
	assert.Equal(t, map[string]int{
		"processed": 15, "completed": 1, "retried": 2, "rescheduled": 3, "failed": 4,
		"cancelled": 5, "running": 6,
	}, out)
	assert.Equal(t, 100, r.limit)
	b.post(&out, "/api/jobs/run?limit=7", nil)
	assert.Equal(t, 7, r.limit)
	assert.Equal(t, http.StatusForbidden,
		b.send(b.token("acme", "operate"), http.MethodPost, "/api/jobs/run", nil).status,
		"what runs may be another organization's")
}

func TestRunWithoutARunner(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.send(b.everything, http.MethodPost, "/api/jobs/run", nil)
	assert.Equal(t, http.StatusNotImplemented, a.status)
	assert.Equal(t, "NO_RUNNER", a.code())
}

func TestPanicsAndUnknownErrorsAreOurs(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(context.Context) (httpapi.Report, error){
		"panic": func(context.Context) (httpapi.Report, error) { panic("geheim") },
		"error": func(context.Context) (httpapi.Report, error) { return httpapi.Report{}, errors.New("geheim") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := withRunner(t, run)
			a := b.send(b.everything, http.MethodPost, "/api/jobs/run", nil)
			assert.Equal(t, http.StatusInternalServerError, a.status)
			assert.Equal(t, "INTERNAL", a.code())
			assert.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
			assert.NotContains(t, string(a.body), "geheim")
			assert.Contains(t, b.log.String(), "geheim", "the log says what went wrong")
			assert.Contains(t, b.log.String(), a.header.Get("X-Request-Id"))
		})
	}
}

func TestTheDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	b := setupWith(t, func(o *httpapi.Options) {
		unreachable, err := pgxpool.New(t.Context(), "postgres://unknown@127.0.0.1:1/nothing?connect_timeout=2")
		require.NoError(t, err)
		t.Cleanup(unreachable.Close)
		o.Pool = unreachable
	})
	a := b.send(b.everything, http.MethodGet, "/api/jobs", nil)
	assert.Equal(t, http.StatusServiceUnavailable, a.status)
	assert.Equal(t, "DATABASE_UNAVAILABLE", a.code())
}

// TestShutdown stops a server while it answers: the answer still comes, and nothing new is
// accepted.
func TestShutdown(t *testing.T) {
	t.Parallel()
	begun, finish := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-finish
		_, _ = w.Write([]byte("done"))
	})
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- httpapi.Serve(ctx, l, handler, testLog(t)) }()
	var dialer net.Dialer
	c, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
	require.NoError(t, err)
	<-begun
	stop()
	require.Eventually(t, func() bool {
		other, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
		if err == nil {
			_ = other.Close()
		}
		return err != nil
	}, pgtest.Patience, time.Millisecond)
	close(finish)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	assert.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, <-ended)
}

func TestARunEndsWhenTheServerStops(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	b, _ := withRunner(t, func(ctx context.Context) (httpapi.Report, error) {
		close(begun)
		<-ctx.Done()
		return httpapi.Report{Processed: 1, Completed: 1}, nil
	})
	answered := make(chan answer, 1)
	go func() { answered <- b.send(b.everything, http.MethodPost, "/api/jobs/run", nil) }()
	<-begun
	b.stop()
	a := <-answered
	assert.Equal(t, http.StatusOK, a.status, string(a.body))
}

// TestABodyThatEndsEarly is the caller's fault, though what is read of it fails like a connection.
func TestABodyThatEndsEarly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var dialer net.Dialer
	c, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(b.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = c.Write([]byte("POST /api/jobs/enqueue HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + b.everything +
		"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"orgId\""))
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
}

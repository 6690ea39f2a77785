package otlp_test

import (
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/otlp"
	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/server"
	"github.com/daybook-dev/daybook/workers"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	traceID     = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan = "00f067aa0ba902b7"
)

// receiver takes spans by OTLP over HTTP, as a collector does.
type receiver struct {
	mu    sync.Mutex
	spans map[string]*tracepb.Span
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var sent collectorpb.ExportTraceServiceRequest
	if err != nil || q.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range sent.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				if hex.EncodeToString(s.GetTraceId()) == traceID {
					r.spans[s.GetName()] = s
				}
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// TestOneTraceFromTheRequestToTheWebhook follows a request to the HTTP API by the spans that a
// collector gets, to the webhook that a server gets. It is alone in tracing this process.
func TestOneTraceFromTheRequestToTheWebhook(t *testing.T) {
	collector := &receiver{spans: map[string]*tracepb.Span{}}
	collecting := httptest.NewServer(collector)
	defer collecting.Close()
	hooked := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
		q *http.Request,
	) {
		hooked <- q.Header.Get("Traceparent")
	}))
	defer hook.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collecting.URL)
	stop, err := otlp.Start(t.Context(), "daybook-test", "dev", slog.New(slog.DiscardHandler))
	require.NoError(t, err)

	db := pgtest.New(t)
	pages, err := server.New(t.Context(), server.Options{Pool: db.Pool, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { _ = pages.Close() }()
	_, secret, err := tokens.Create(t.Context(), db.Pool, tokens.NewToken{Name: "test", Scopes: tokens.Scopes()})
	require.NoError(t, err)
	api := httptest.NewServer(pages)
	defer api.Close()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api.URL+"/api/jobs/enqueue",
		strings.NewReader(`{"orgId": "acme", "type": "webhook", "payload": {"url": "`+hook.URL+`"}}`))
	require.NoError(t, err)
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+secret)
	q.Header.Set("Traceparent", "00-"+traceID+"-"+callersSpan+"-01")
	answer, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Less(t, answer.StatusCode, 300)

	registry := jobs.NewRegistry()
	builtin, err := handlers.Register(registry,
		handlers.Config{Pool: db.Pool, Environment: map[string]string{"DAYBOOK_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8"}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, builtin.Close()) }()
	due, err := workers.NewDueJobs(workers.DueJobsOptions{Pool: db.Pool, Registry: registry})
	require.NoError(t, err)
	defer due.Close()
	report, err := due.Run(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 1, report.Completed)
	stop()

	collector.mu.Lock()
	defer collector.mu.Unlock()
	id := func(name string) string {
		require.Contains(t, collector.spans, name)
		return hex.EncodeToString(collector.spans[name].GetSpanId())
	}
	parents := map[string]string{}
	for name, s := range collector.spans {
		parents[name] = hex.EncodeToString(s.GetParentSpanId())
	}
	const request = "POST /api/jobs/enqueue"
	assert.Equal(t, map[string]string{
		request: callersSpan, "attempt webhook": id(request), "send webhook": id("attempt webhook"),
		"complete and commit": id(request),
	}, parents)
	assert.Equal(t, "00-"+traceID+"-"+id("send webhook")+"-01", <-hooked)
}

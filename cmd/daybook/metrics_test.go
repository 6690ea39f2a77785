package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/workflows"
)

// logged runs a command until the test ends, and returns the addresses that it logs with the
// messages.
func logged(t *testing.T, b *bundle, messages []string, args ...string) (addresses map[string]string, stop func()) {
	t.Helper()
	return loggedTo(t, b, &lines{next: make(chan string, 1000)}, messages, args...)
}

// loggedTo is logged, and log keeps all that the command logs.
func loggedTo(t *testing.T, b *bundle, log *lines, messages []string, args ...string) (addresses map[string]string,
	stop func(),
) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"--database-url", b.URL}, args...), strings.NewReader(""), io.Discard, log)
	}()
	stop = func() {
		cancel()
		assert.Equal(t, failure.ExitOK, <-ended)
	}
	addresses = map[string]string{}
	for _, message := range messages {
		for addresses[message] == "" {
			select {
			case line := <-log.next:
				var said struct{ Msg, Address string }
				require.NoError(t, json.Unmarshal([]byte(line), &said), line)
				addresses[said.Msg] = said.Address
			case <-time.After(time.Minute):
				require.Fail(t, "it does not say", message)
			}
		}
	}
	return addresses, stop
}

func get(t *testing.T, address, token string) (status int, body string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// TestMetricsOfWorkerAndServer reads what both expose while the worker posts documents.
func TestMetricsOfWorkerAndServer(t *testing.T) {
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	inNamespace(t, server, namespace)
	b := setup(t)
	for _, org := range []string{"de", "es", "jp"} {
		b.sample(org)
	}
	b.ok("import", "ndjson", "dev/documents.ndjson", "--create")
	c := server.Client(t, namespace)
	_, err := c.ExecuteWorkflow(t.Context(),
		client.StartWorkflowOptions{ID: cli.AccountingLoop.ID, TaskQueue: workflows.AccountingTaskQueue},
		workflows.AccountingWorkflow, workflows.Input{})
	require.NoError(t, err)

	worker, stopWorker := logged(t, b, []string{"showing metrics"}, "worker", "--metrics-listen", "127.0.0.1:0")
	var text string
	for _, want := range []string{
		`daybook_job_outcomes_total{code="",kind="accounting",outcome="completed",type=""} 10`,
		`daybook_job_latency_seconds_count{kind="accounting",type=""} 10`,
		`daybook_rule_evaluation_seconds_count `,
		`daybook_lanes{kind="accounting",state="idle"}`,
		`daybook_workflow_running{kind="accounting"} 1`,
		`daybook_temporal_up 1`,
		`daybook_workers{kind="accounting"} `,
		`daybook_queue_jobs{kind="accounting",state="due",type=""}`,
		`daybook_pool_connections{state="max"} `,
		`daybook_sampled_timestamp_seconds `,
		`temporal_worker_start_total{`,
	} {
		require.Eventually(t, func() bool {
			_, text = get(t, worker["showing metrics"], "")
			return strings.Contains(text, want)
		}, time.Minute, 100*time.Millisecond, "%s", want)
	}

	serving, stopServer := logged(t, b, []string{"showing metrics", "serving"}, "serve", "--listen", "127.0.0.1:0",
		"--metrics-listen", "127.0.0.1:0")
	all := strings.TrimSpace(b.ok("tokens", "create", "--name", "prometheus", "--scope", "read", "--all-orgs"))
	one := strings.TrimSpace(b.ok("tokens", "create", "--name", "shop", "--scope", "read", "--org", "de"))
	for token, want := range map[string]int{"": http.StatusUnauthorized, one: http.StatusForbidden, all: http.StatusOK} {
		status, _ := get(t, serving["serving"]+"/metrics", token)
		assert.Equal(t, want, status)
	}
	_, text = get(t, serving["showing metrics"], "")
	assert.Contains(t, text, `daybook_http_requests_total{method="GET",route="/metrics",status="401"} 1`)
	assert.NotContains(t, text, "daybook_queue_jobs", "the worker samples")

	stopWorker()
	stopServer()
	bars, err := figures.History(t.Context(), b.Pool,
		figures.Filter{Since: time.Now().Add(-time.Hour), Kind: "accounting", Outcome: "completed"})
	require.NoError(t, err)
	require.Len(t, bars, 1)
	assert.EqualValues(t, 10, bars[0].Count, "a worker adds what it did before it ends")
	g, err := figures.ReadGauges(t.Context(), b.Pool)
	require.NoError(t, err)
	assert.True(t, g.Kind("accounting").Workflow.Running)
}

// TestMetricsListen refuses an address that is none, and organizations that are not said in a way
// that is known.
func TestMetricsListen(t *testing.T) {
	b := setup(t)
	r := b.run("serve", "--listen", "127.0.0.1:0", "--metrics-listen", "9464")
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.err, "want an address such as 127.0.0.1:9464")
	t.Setenv("DAYBOOK_METRICS_ORGANIZATIONS", "many")
	r = b.run("serve", "--listen", "127.0.0.1:0")
	assert.Equal(t, failure.ExitUsage, r.exit)
	assert.Contains(t, r.err, "DAYBOOK_METRICS_ORGANIZATIONS")
}

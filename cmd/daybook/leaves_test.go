package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"github.com/daybook-dev/daybook/activities"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workflows"
)

// received is a server that keeps what it is sent.
type received struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// ServeHTTP answers a request to /refused as a careless server does: with what it was sent.
func (r *received) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.all, "%s %s %v %s\n", q.Method, q.URL, q.Header, body)
	if strings.HasPrefix(q.URL.Path, "/refused") {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(body)
	}
}

func (r *received) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

// TestNothingOfAPayloadLeavesTheDatabase has a worker with everything on work documents, jobs and
// tasks that are done and that fail, and searches what Temporal, the log, the metrics, the spans
// and the tables of what was done have of their contents. Temporal has those of schedules alone.
func TestNothingOfAPayloadLeavesTheDatabase(t *testing.T) {
	const mark = "Geheimrat"
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	inNamespace(t, server, namespace)
	hook, collector := &received{}, &received{}
	hooked, collecting := httptest.NewServer(hook), httptest.NewServer(collector)
	defer hooked.Close()
	defer collecting.Close()
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": collecting.URL, "DAYBOOK_METRICS_ORGANIZATIONS": "1", "DAYBOOK_NOTIFY_EVENTS": "1",
		"DAYBOOK_METRICS_SAMPLE_EVERY": "1s", "DAYBOOK_LOG_ENQUEUE": "1", "DAYBOOK_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
	} {
		t.Setenv(name, value)
	}
	b := setup(t)
	fixture.Organization(t, b.Pool, "acme")
	posted, failed := fixture.Invoice("acme", "inv-posted", 1000), fixture.Unbalanced("acme", "inv-failed")
	for _, d := range []*models.Document{posted, failed} {
		d.Content.Counterparty, d.Content.Lines[0].Description = mark, mark
		d.Content.Attributes = map[string]string{"note": mark}
	}
	fixture.Ready(t, b.Pool, posted, failed)
	for i, address := range []string{"/taken/" + mark, "/refused/" + mark} {
		b.ok("jobs", "enqueue", "webhook", "--org", "acme", "--key", fmt.Sprint("key-", i), "--payload",
			`{"url": "`+hooked.URL+address+`?q=`+mark+`", "headers": {"X-Note": "`+mark+`"}, "data": {"note": "`+mark+`"}}`)
	}
	for _, stmt := range []string{
		`SELECT daybook.enqueue_job('acme', 'report', jsonb_build_object('report', $1::text))`,
		`SELECT queues.enqueue('email', jsonb_build_object('to', $1::text))`,
		`SELECT queues.enqueue('db_function', jsonb_build_object('db_function', 'public.none', 'note', $1::text))`,
	} {
		_, err := b.Pool.Exec(t.Context(), stmt, mark)
		require.NoError(t, err, stmt)
	}

	log := &lines{next: make(chan string, 1000)}
	addresses, stop := loggedTo(t, b, log, []string{"showing metrics"}, "worker", "--metrics-listen", "127.0.0.1:0")
	c := server.Client(t, namespace)
	historyOf := func(id, run string) []byte {
		var history []byte
		events := c.GetWorkflowHistory(t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			require.NoError(t, err)
			raw, err := proto.Marshal(event)
			require.NoError(t, err)
			history = append(history, raw...)
		}
		return history
	}

	// The one exception: a schedule's payload, and the id of the job that a firing enqueued.
	b.ok("schedules", "create", "plan", "--org", "acme", "--type", "webhook", "--payload",
		`{"url": "`+hooked.URL+`/taken/`+mark+`"}`, "--every", "24h")
	b.ok("schedules", "trigger", "plan")
	var firing client.ScheduleWorkflowExecution
	require.Eventually(t, func() bool {
		d, err := c.ScheduleClient().GetHandle(t.Context(), "plan").Describe(t.Context())
		if err == nil && len(d.Info.RecentActions) > 0 {
			firing = *d.Info.RecentActions[0].StartWorkflowResult
		}
		return firing.WorkflowID != ""
	}, time.Minute, 20*time.Millisecond)
	var fired activities.EnqueueScheduledOutput
	require.NoError(t, c.GetWorkflow(t.Context(), firing.WorkflowID, firing.FirstExecutionRunID).Get(t.Context(), &fired))
	ofFiring := string(historyOf(firing.WorkflowID, firing.FirstExecutionRunID))
	assert.Contains(t, ofFiring, mark)
	assert.Contains(t, ofFiring, fired.JobID)

	rows, err := b.Pool.Query(t.Context(), `SELECT id FROM daybook.jobs`)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, ids, fired.JobID)
	ids = append(ids, "key-1", "inv-posted", "inv-failed")
	for queue, kind := range map[string]string{
		workflows.AccountingTaskQueue: workflows.AccountingWorkflow, workflows.JobsTaskQueue: workflows.JobsWorkflow,
		workflows.TasksTaskQueue: workflows.TasksWorkflow,
	} {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, kind,
			workflows.Input{ExitWhenEmpty: true})
		require.NoError(t, err)
		require.NoError(t, run.Get(t.Context(), nil))
	}
	var metrics string
	require.Eventually(t, func() bool {
		_, metrics = get(t, addresses["showing metrics"], "")
		return strings.Contains(metrics, `code="HANDLER_ERROR"`)
	}, time.Minute, 100*time.Millisecond)
	stop()

	said := map[string]string{"log": log.whole.String(), "metrics": metrics, "spans and metrics by OTLP": collector.text()}
	for _, queue := range []string{workflows.AccountingTaskQueue, workflows.JobsTaskQueue, workflows.TasksTaskQueue} {
		described, err := c.DescribeWorkflow(t.Context(), queue, "")
		require.NoError(t, err)
		raw, err := proto.Marshal(described.RawResponse)
		require.NoError(t, err)
		history := string(append(raw, historyOf(queue, "")...))
		said["history of "+queue] = history
		for _, id := range ids {
			assert.NotContains(t, history, id)
		}
	}
	var done string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT concat((SELECT array_agg(x) FROM daybook.actions x), (SELECT array_agg(x) FROM daybook.attempt_log x),
              (SELECT array_agg(x) FROM daybook.gauges x))`).Scan(&done))
	said["actions, attempts and figures"] = done

	assert.Contains(t, hook.text(), mark, "the handler has it")
	for name, known := range map[string]string{
		"log": "HANDLER_ERROR", "metrics": `org="acme"`, "spans and metrics by OTLP": "attempt webhook",
		"history of " + workflows.JobsTaskQueue: "ProcessBatch", "actions, attempts and figures": "HANDLER_ERROR",
	} {
		assert.Contains(t, said[name], known, "%s is what it should be", name)
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		for line := range strings.Lines(said[name]) {
			assert.NotContains(t, line, mark, name)
		}
	}
}

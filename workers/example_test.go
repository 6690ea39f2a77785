package workers_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/daybook-dev/daybook/accounting"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers"
)

// Ping is a payload.
type Ping struct {
	Host string `json:"host"`
}

// JobType implements queue.Payload.
func (Ping) JobType() string { return "ping" }

// A worker is made once the options are checked. Client and Pool are required; Run works until its
// context ends, and drains.
func ExampleNewJobs() {
	_, err := workers.NewJobs(workers.JobsOptions{Registry: jobs.NewRegistry()})
	fmt.Println(err)
	// Output: workers: Client, Pool and Registry are required
}

// Spans go to the TracerProvider that the program has set (otel.SetTracerProvider).
func ExampleEnableTracing() {
	workers.EnableTracing()
	fmt.Println("spans are made")
	// Output: spans are made
}

// The options of the accounting queue are checked as well.
func ExampleNewAccounting() {
	_, err := workers.NewAccounting(workers.AccountingOptions{})
	fmt.Println(err)
	// Output: workers: Client and Pool are required
}

// A worker of tasks has a registry of processors, in which db_function is always there.
func ExampleNewTasks() {
	_, err := workers.NewTasks(workers.TasksOptions{Registry: tasks.NewRegistry()})
	fmt.Println(err)
	// Output: workers: Client, Pool and Registry are required
}

// A program that cron calls works what is due, without Temporal, and ends.
func ExampleNewDueJobs() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	if _, err := queue.EnqueueJob(ctx, pool, "acme", Ping{Host: "example.com"}, queue.JobOptions{}); err != nil {
		panic(err)
	}

	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[Ping]) error {
		fmt.Println("ping", job.Payload.Host)
		return nil
	})
	due, err := workers.NewDueJobs(workers.DueJobsOptions{
		Pool: pool, Registry: registry,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	defer due.Close()
	report, err := due.Run(ctx, 100)
	fmt.Println(report.Completed, err)
	// Output:
	// ping example.com
	// 1 <nil>
}

// A program that embeds workers shows their metrics to Prometheus.
func ExampleNewMetrics() {
	e := pgtest.NewExample()
	defer e.Close()
	metrics, err := workers.NewMetrics(e.Context(), workers.MetricsOptions{Pool: e.Pool, Service: "shop"})
	if err != nil {
		panic(err)
	}
	answer := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(e.Context(), http.MethodGet, "/metrics", nil))
	fmt.Println(answer.Code, strings.Contains(answer.Body.String(), "daybook_pool_connections"))
	// Output: 200 true
}

// The audit proves the ledger sound, with the documents of an application's own sources.
func ExampleAudit() {
	e := pgtest.NewExample()
	defer e.Close()
	ctx, pool := e.Context(), e.Pool
	fixture.Organization(e, pool, "acme")
	fixture.Ready(e, pool, fixture.Invoice("acme", "inv-1", 10000))
	queuetest.DrainAccounting(e, pool, queuetest.AccountingOptions{}) // a worker does the same

	report, err := workers.Audit(ctx, pool, accounting.Sources{}, accounting.AuditOptions{OrgID: "acme"})
	fmt.Println(report.Figures.Live, report.Wrong(), err)
	// Output: 1 0 <nil>
}

// What the Temporal client says again and again while its server is unavailable is one line in the
// log.
func ExampleFoldRepeats() {
	var lines bytes.Buffer
	log := slog.New(workers.FoldRepeats(slog.NewTextHandler(&lines, nil)))
	for range 100 {
		log.Warn("cannot reach the server")
	}
	fmt.Println(bytes.Count(lines.Bytes(), []byte("\n")))
	// Output: 1
}

package workers_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

func TestMain(m *testing.M) {
	if os.Getenv(envWorkerProcess) != "" {
		workerProcess()
		return
	}
	pgtest.Main(m, temporaltest.Stop)
}

const org = "org_1"

// bundle is a database and a Temporal namespace of the test's own.
type bundle struct {
	*pgtest.DB
	t         *testing.T
	server    *temporaltest.Server
	namespace string
	client    client.Client
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{DB: pgtest.New(t), t: t, server: temporaltest.Shared(t)}
	b.namespace = b.server.Namespace(t)
	b.client = b.server.Client(t, b.namespace)
	fixture.Organization(t, b.Pool, org)
	return b
}

// setupTemporal is setup with a Temporal server of the test's own, which has these settings, and
// without an organization.
func setupTemporal(t *testing.T, settings ...string) *bundle {
	t.Helper()
	server, err := devstack.Start(t.Context(),
		devstack.Options{NoPostgres: true, NoUI: true, InMemory: true, Private: true, DynamicConfig: settings})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	c, err := client.DialContext(t.Context(),
		client.Options{
			HostPort: server.TemporalAddress, Namespace: devstack.Namespace,
			Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &bundle{DB: pgtest.New(t), t: t, client: c}
}

// start runs a worker until the test, or the returned function, ends it.
func (b *bundle) start(o workers.AccountingOptions) (stop func()) {
	b.t.Helper()
	o.Client, o.Pool = b.client, b.Pool
	w, err := workers.NewAccounting(o)
	require.NoError(b.t, err)
	return b.runWorker(w)
}

// runWorker runs a worker until the test, or the returned function, ends it.
func (b *bundle) runWorker(w *workers.Worker) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		assert.NoError(b.t, <-done)
		w.Close()
	}
	b.t.Cleanup(stop)
	return stop
}

// cli runs the Temporal CLI in the test's namespace and returns what it prints.
func (b *bundle) cli(args ...string) string {
	b.t.Helper()
	if b.server.CLI == "" {
		b.t.Skip("the Temporal server is not this test's own, so neither is its CLI")
	}
	args = append(args, "--address", b.server.Address, "--namespace", b.namespace)
	out, err := exec.CommandContext(b.t.Context(), b.server.CLI, args...).CombinedOutput()
	require.NoError(b.t, err, "temporal %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// run starts the workflow with the input as JSON and returns its id.
func (b *bundle) run(input string) string {
	b.t.Helper()
	id := temporaltest.Unique("accounting-queue-worker")
	_, err := b.client.ExecuteWorkflow(b.t.Context(),
		client.StartWorkflowOptions{ID: id, TaskQueue: workflows.AccountingTaskQueue},
		workflows.AccountingWorkflow, json.RawMessage(input))
	require.NoError(b.t, err)
	return id
}

// drainOnce runs the workflow until nothing is due and returns its counts.
func (b *bundle) drainOnce() models.RunCounts {
	b.t.Helper()
	var counts models.RunCounts
	require.NoError(b.t, b.client.GetWorkflow(b.t.Context(), b.run(`{"exitWhenEmpty": true}`), "").Get(b.t.Context(),
		&counts))
	return counts
}

func (b *bundle) status(id string) models.RunStatus {
	b.t.Helper()
	v, err := b.client.QueryWorkflow(b.t.Context(), id, "", models.QueryStatus)
	require.NoError(b.t, err)
	var s models.RunStatus
	require.NoError(b.t, v.Get(&s))
	return s
}

// states counts the jobs by state.
func (b *bundle) states() map[models.JobState]int {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(),
		`SELECT state::text, count(*) FROM daybook.accounting_work_queue GROUP BY state`)
	require.NoError(b.t, err)
	counts := map[models.JobState]int{}
	var state string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		counts[models.JobState(state)] = n
		return nil
	})
	require.NoError(b.t, err)
	return counts
}

// eventually polls until the condition holds.
func (b *bundle) eventually(what string, within time.Duration, condition func() bool) {
	b.t.Helper()
	require.Eventually(b.t, condition, within, 20*time.Millisecond, what)
}

// TestSeedCommand starts the queue worker with the command that the seed document prints, and asks
// the database with the operators' queries as they are printed there.
func TestSeedCommand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-1", 1000), fixture.Unbalanced(org, "inv-2"))

	b.cli("workflow", "start",
		"--task-queue", "accounting-queue",
		"--type", "syncAccountingQueueWorkflow",
		"--workflow-id", "accounting-queue-worker-production",
		"--input", `{"batchSize": 50, "pollIntervalSeconds": 10}`)

	b.eventually("both jobs have ended", 20*time.Second, func() bool {
		return b.states()[models.JobCompleted] == 1 && b.states()[models.JobFailed] == 1
	})
	status := b.status("accounting-queue-worker-production")
	assert.Equal(t, models.RunSettings{BatchSize: 50, PollIntervalSeconds: 10, Concurrency: 3}, status.Settings)

	// A domain transaction that commits now is picked up without waiting for the poll interval.
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv-3", 500))
	b.eventually("the third job has ended", 9*time.Second, func() bool { return b.states()[models.JobCompleted] == 2 })

	for query, rows := range map[string]int{
		"SELECT COUNT(*) FROM accounting_work_queue WHERE state = 'pending';":                                               1,
		"SELECT * FROM accounting_work_queue WHERE state = 'failed' ORDER BY updated_at DESC;":                              1,
		"SELECT * FROM accounting_work_queue WHERE state = 'leased' AND last_attempted_at < NOW() - INTERVAL '15 minutes';": 0,
		"SELECT state, COUNT(*) FROM accounting_work_queue GROUP BY state;":                                                 2,
		"SELECT * FROM accounting_work_queue\nWHERE state = 'leased'\n  AND last_attempted_at < NOW() - INTERVAL '15 " +
			"minutes';": 0,
	} {
		got, err := b.Pool.Query(t.Context(), query)
		require.NoError(t, err, query)
		n := 0
		for got.Next() {
			n++
		}
		require.NoError(t, got.Err(), query)
		assert.Equal(t, rows, n, query)
	}
	b.cli("workflow", "cancel", "--workflow-id", "accounting-queue-worker-production")
	err := b.client.GetWorkflow(t.Context(), "accounting-queue-worker-production", "").Get(t.Context(), nil)
	require.ErrorContains(t, err, "canceled")
	assert.Zero(t, b.states()[models.JobLeased])
}

// TestTemporalCommandsOfThePages does to a run what the pages do by the Temporal CLI, in their order;
// of commands that they only name, the CLI knows the help.
func TestTemporalCommandsOfThePages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	commands, err := pages.Commands("temporal")
	require.NoError(t, err)
	slices.SortStableFunc(commands, func(x, y pages.Command) int { // what is typed comes before what is asked
		return cmp.Compare(strconv.FormatBool(y.Whole), strconv.FormatBool(x.Whole))
	})
	var done []string
	for _, c := range commands {
		if slices.Contains(done, c.String()) || len(c.Words) == 1 {
			continue
		}
		done = append(done, c.String())
		if c.Whole || len(c.Words) > 4 || c.Words[1] == "operator" {
			b.cli(c.Words[1:]...)
			continue
		}
		help, err := exec.CommandContext(t.Context(), b.server.CLI, append(c.Words[1:], "--help")...).CombinedOutput()
		require.NoError(t, err, "%s:%d: %s", c.Page, c.Line, help)
		assert.Contains(t, string(help), "\n  "+c.String()+" [flags]", "%s:%d", c.Page, c.Line)
	}
	assert.Greater(t, len(done), 6)
	const id = "accounting-queue-worker-production"
	assert.Equal(t, models.RunSettings{BatchSize: 200, PollIntervalSeconds: 10, Concurrency: 3}, b.status(id).Settings)
	assert.False(t, b.status(id).Paused)
}

// TestDrains works a backlog with the default three lanes and ends by itself.
func TestDrains(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(workers.AccountingOptions{})
	fixture.ManyReady(t, b.Pool, org, "inv-", 5000)

	counts := b.drainOnce()

	assert.EqualValues(t, 5000, counts.Completed)
	assert.Equal(t, map[models.JobState]int{models.JobCompleted: 5000}, b.states())
	assert.Equal(t, 5000, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
	assert.Equal(t, 5000, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts`))
}

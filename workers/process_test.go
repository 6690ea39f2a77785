package workers_test

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers"
)

// Environment of a worker that is a process of its own: this test program, started again.
const (
	envWorkerProcess = "DAYBOOK_TEST_WORKER_PROCESS"
	envNamespace     = "DAYBOOK_TEST_NAMESPACE"
	envTemporal      = "DAYBOOK_TEST_TEMPORAL"
	envDatabase      = "DAYBOOK_TEST_DATABASE"
	// envTasks has the variables of a worker of tasks, as JSON; with envNaps the process works
	// background jobs that do not end; without either it works documents.
	envTasks = "DAYBOOK_TEST_TASK_VARIABLES"
	envNaps  = "DAYBOOK_TEST_NAPS"
)

// workerProcess is the main function of a worker process; it ends by being killed.
func workerProcess() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv(envDatabase))
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.Dial(client.Options{HostPort: os.Getenv(envTemporal), Namespace: os.Getenv(envNamespace)})
	if err != nil {
		log.Fatal(err)
	}
	w, err := processWorker(c, pool)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(w.Run(ctx))
}

// processWorker makes the worker that the environment asks for.
func processWorker(c client.Client, pool *pgxpool.Pool) (*workers.Worker, error) {
	name := os.Getenv(envWorkerProcess)
	if os.Getenv(envNaps) != "" {
		return workers.NewJobs(workers.JobsOptions{Client: c, Pool: pool, Registry: naps(name), Name: name})
	}
	if os.Getenv(envTasks) == "" {
		return workers.NewAccounting(workers.AccountingOptions{Client: c, Pool: pool, Name: name})
	}
	var variables map[string]string
	if err := json.Unmarshal([]byte(os.Getenv(envTasks)), &variables); err != nil {
		return nil, err
	}
	registry := tasks.NewRegistry()
	if _, err := handlers.RegisterTasks(registry, handlers.Config{Environment: variables}); err != nil {
		return nil, err
	}
	return workers.NewTasks(workers.TasksOptions{Client: c, Pool: pool, Registry: registry, Name: name})
}

// taskProcess starts a process that works tasks. It is killed when the test ends.
func (b *bundle) taskProcess(name string, variables map[string]string) *os.Process {
	b.t.Helper()
	text, err := json.Marshal(variables)
	require.NoError(b.t, err)
	return b.process(name, envTasks+"="+string(text))
}

// process starts a worker process. It is killed when the test ends.
func (b *bundle) process(name string, more ...string) *os.Process {
	b.t.Helper()
	self, err := os.Executable()
	require.NoError(b.t, err)
	cmd := exec.CommandContext(context.WithoutCancel(b.t.Context()), self)
	cmd.Env = append(os.Environ(), envWorkerProcess+"="+name, envNamespace+"="+b.namespace,
		envTemporal+"="+b.server.Address, envDatabase+"="+b.URL+"&application_name="+name)
	cmd.Env = append(cmd.Env, more...)
	require.NoError(b.t, cmd.Start())
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process
}

// kill kills a process that process started, and waits until the server has ended its sessions:
// what it was sent before it may still commit.
func (b *bundle) kill(p *os.Process, name string) {
	b.t.Helper()
	require.NoError(b.t, p.Kill())
	b.eventually("its sessions have ended", time.Minute, func() bool {
		return fixture.Count(b.t, b.Pool,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`, name) == 0
	})
}

// inHand returns the ids of the jobs that workers hold: those that are leased, and those whose rows
// are locked because they are picked.
func (b *bundle) inHand() []string {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), `
WITH free AS MATERIALIZED (SELECT id FROM daybook.accounting_work_queue WHERE state = 'pending' FOR UPDATE SKIP LOCKED)
SELECT id FROM daybook.accounting_work_queue WHERE state = 'leased' OR state = 'pending' AND id NOT IN (SELECT id FROM free)`)
	require.NoError(b.t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return ids
}

// assertExactlyOnce checks that n documents were posted, each once, by one completed attempt.
func (b *bundle) assertExactlyOnce(n int) {
	b.t.Helper()
	assert.Equal(b.t, map[models.JobState]int{models.JobCompleted: n}, b.states())
	assert.Equal(b.t, n, fixture.Count(b.t, b.Pool, `SELECT count(*) FROM daybook.impacts`), "impacts")
	assert.Equal(b.t, n, fixture.Count(b.t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE outcome = 'completed'`),
		"completed attempts")
	assert.Equal(b.t, n*3, fixture.Count(b.t, b.Pool, `SELECT count(*) FROM daybook.entries`), "entries")
	assert.Equal(b.t, n, fixture.Count(b.t, b.Pool,
		`SELECT count(*) FROM daybook.accounting_work_queue WHERE run_count = 1`), "jobs charged once")
}

// backlog is large enough, at the pace of ready, that a worker is in the middle of a turn, after
// some refills and in the second turn of a lane, when a few thousand are done.
const backlog = 24_000

// ready marks n documents ready, and has each chunk take a little: otherwise all would be done
// before the test looks.
func (b *bundle) ready(n int) {
	b.t.Helper()
	fixture.ManyReady(b.t, b.Pool, org, "inv-", n)
	_, err := b.Pool.Exec(b.t.Context(), `
CREATE FUNCTION take_time() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.4); RETURN NULL; END $$;
CREATE TRIGGER take_time AFTER INSERT ON daybook.impacts FOR EACH STATEMENT EXECUTE FUNCTION take_time()`)
	require.NoError(b.t, err)
}

// inMidTurn waits until the worker has refilled its turns many times and has jobs in hand.
func (b *bundle) inMidTurn(worker string) {
	b.t.Helper()
	b.eventually(worker+" is in mid-turn", 60*time.Second, func() bool {
		return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE worker = $1`, worker) > 1000 &&
			len(b.inHand()) > 0
	})
}

// TestKilledWorkersTurnGoesOnElsewhere kills a worker in mid-turn: within 15 seconds another has
// completed every job that it held.
func TestKilledWorkersTurnGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ready(backlog)
	victim := b.process("victim")
	id := b.run(`{"exitWhenEmpty": true}`)
	b.inMidTurn("victim")
	b.process("survivor")

	var held []string
	b.eventually("jobs are in hand", 60*time.Second, func() bool { held = b.inHand(); return len(held) > 0 })
	require.NoError(t, victim.Signal(syscall.SIGKILL))
	killed, crowd := time.Now(), watchCrowd(t)

	b.eventually("what the victim held is completed", 60*time.Second, func() bool {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM daybook.accounting_work_queue WHERE id = ANY ($1) AND state = 'completed'`,
			held) == len(held)
	})
	took := time.Since(killed)
	assert.Less(t, took, crowd.within(15*time.Second))
	t.Logf("%d jobs of the victim's turns were completed within %s", len(held), took.Round(100*time.Millisecond))
	require.NoError(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	b.assertExactlyOnce(backlog)
}

// TestDeadWorkerDelaysPickUpLittle kills a worker that has all of the workflow's lanes, while it
// waits for work.
func TestDeadWorkerDelaysPickUpLittle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	victim := b.process("victim")
	id := b.run(`{"pollIntervalSeconds": 3600}`)
	b.eventually("it waits for work", 60*time.Second, func() bool { return b.status(id).IdleSince != nil })
	b.start(workers.AccountingOptions{Name: "survivor"})

	require.NoError(t, victim.Signal(syscall.SIGKILL))
	fixture.ManyReady(t, b.Pool, org, "inv-", 200)
	killed, crowd := time.Now(), watchCrowd(t)
	b.eventually("the survivor has worked", 60*time.Second, func() bool { return b.states()[models.JobCompleted] == 200 })
	// Two seconds on a machine that does nothing else; it was more than ten.
	took := time.Since(killed)
	assert.Less(t, took, crowd.within(8*time.Second))
	t.Logf("what came after the kill was completed within %s", took.Round(100*time.Millisecond))
}

// TestDeadWorkersTurnsAreReplaced kills a worker while all lanes are in a turn there: what comes
// next does not wait for what it held.
func TestDeadWorkersTurnsAreReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ready(backlog)
	victim := b.process("victim")
	id := b.run(`{}`)
	b.inMidTurn("victim")
	b.start(workers.AccountingOptions{Name: "survivor"})
	// A workflow task that the victim has in hand is given to another worker after ten seconds, and
	// the lanes wait for it.
	b.eventually("it has no workflow task in hand, but turns", 60*time.Second, func() bool {
		run, err := b.client.DescribeWorkflow(t.Context(), id, "")
		return err == nil && run.RawResponse.GetPendingWorkflowTask() == nil &&
			slices.ContainsFunc(run.RawResponse.GetPendingActivities(), func(a *workflowpb.PendingActivityInfo) bool {
				return a.GetActivityType().GetName() == "ProcessBatch"
			})
	})

	require.NoError(t, victim.Signal(syscall.SIGKILL))
	killed, crowd := time.Now(), watchCrowd(t)
	b.eventually("the survivor works", 60*time.Second, func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE worker = 'survivor'`) > 0
	})
	took := time.Since(killed)
	assert.Less(t, took, crowd.within(8*time.Second))
	t.Logf("the survivor worked after %s", took.Round(100*time.Millisecond))
}

// TestSleepingWorkerCommitsNothing stops a worker's process past its heartbeat timeout and wakes it
// again.
func TestSleepingWorkerCommitsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ready(backlog)
	sleeper := b.process("sleeper")
	id := b.run(`{"exitWhenEmpty": true}`)
	b.inMidTurn("sleeper")
	require.NoError(t, sleeper.Signal(syscall.SIGSTOP))
	held := b.inHand()
	done := fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE worker = 'sleeper'`)
	b.process("survivor")

	b.eventually("others have the sleeper's jobs", 60*time.Second, func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE id = ANY ($1) AND state <> 'completed'`, held) == 0
	})
	require.NoError(t, sleeper.Signal(syscall.SIGCONT))

	require.NoError(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	b.assertExactlyOnce(backlog)
	assert.GreaterOrEqual(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE worker = 'sleeper'`),
		done)
}

// TestStoppedWorkerDrains ends a worker in mid-turn by its context, as SIGTERM does: what it holds
// is finished or given back at once.
func TestStoppedWorkerDrains(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ready(backlog)
	stop := b.start(workers.AccountingOptions{Name: "first"})
	id := b.run(`{"exitWhenEmpty": true}`)
	// What a lane has fetched and not begun to process stays with its turn; here all three lanes are
	// in mid-turn.
	b.eventually("all lanes work", 60*time.Second, func() bool {
		return fixture.Count(t, b.Pool, `SELECT count(DISTINCT turn_id) FROM daybook.attempts WHERE worker = 'first'`) == 3
	})

	stop()

	assert.Zero(t, b.states()[models.JobLeased])
	assert.NotZero(t, b.states()[models.JobPending])
	b.start(workers.AccountingOptions{Name: "second"})
	require.NoError(t, b.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	b.assertExactlyOnce(backlog)
}

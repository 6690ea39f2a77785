package engine_test

import (
	"context"
	"encoding/json"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// Environment of a worker of tasks that is a process of its own: this test program, started again.
const (
	envTaskWorker   = "DAYBOOK_TEST_TASK_WORKER"
	envTaskDatabase = "DAYBOOK_TEST_TASK_DATABASE"
	envTaskCrashed  = "DAYBOOK_TEST_TASK_CRASHED"
	// envTaskShared has tasks share transactions.
	envTaskShared = "DAYBOOK_TEST_TASK_SHARED"
	// envTasks is how many tasks the killed workers have; default 400.
	envTasks = "DAYBOOK_TEST_TASKS"
)

func init() {
	if slot := os.Getenv(envTaskWorker); slot != "" {
		log.Fatal(workTasks(context.Background(), slot))
	}
}

// workTasks works tasks until the process is killed.
func workTasks(ctx context.Context, slot string) error {
	pool, err := pgxpool.New(ctx, os.Getenv(envTaskDatabase))
	if err != nil {
		return err
	}
	e := engine.NewOn(engine.Tasks(store.NewTaskQueue(pool, "db_function")), functionTasks{pool},
		engine.Options{Log: slog.New(slog.DiscardHandler)})
	for crashed := os.Getenv(envTaskCrashed) != ""; ; crashed = false {
		_, err := e.Process(ctx, engine.TurnRequest{
			Turn: store.Turn{ID: "run/" + slot + "/1", Worker: "worker " + slot, WorkflowRunID: "run"}, Batch: 50,
			Length: 2 * time.Second, Linger: true, Crashed: crashed,
		})
		if err != nil {
			return err
		}
	}
}

// functionTasks works tasks of the type db_function: it notes the attempt, and calls the function
// in the transaction that completes the task.
type functionTasks struct{ pool *pgxpool.Pool }

func (functionTasks) Handling(jobType string) (engine.Handling, bool) {
	shared := os.Getenv(envTaskShared) != ""
	return engine.Handling{Parallel: 20, Timeout: time.Minute, Charged: true, Shared: shared}, jobType == "db_function"
}

func (h functionTasks) Work(ctx context.Context, j store.Job, _ *engine.Running) engine.Attempt {
	if _, err := h.pool.Exec(ctx, `SELECT business.begin($1, $2)`, j.ID, j.Attempt); err != nil {
		return h.Failed(j, err)
	}
	var n struct {
		Function string `json:"db_function"`
	}
	if err := json.Unmarshal(j.Payload, &n); err != nil {
		return h.Failed(j, err)
	}
	call := &engine.Call{
		Function: n.Function, FunctionCall: store.FunctionCall{Payload: j.Payload},
		Returned: func(context.Context, pgx.Tx, json.RawMessage) error { return nil },
	}
	return engine.Attempt{Outcome: models.OutcomeCompleted, Call: call, InTx: func(ctx context.Context, tx pgx.Tx) ([]byte, error) {
		_, err := tx.Exec(ctx, `SELECT internal.run_function($1::jsonb ->> 'db_function', $1::jsonb)`, string(j.Payload))
		return nil, err
	}}
}

func (functionTasks) Prepare(ctx context.Context, run string, jobs []store.Job) (engine.BulkCommit, error) {
	return namedTasks{}.Prepare(ctx, run, jobs)
}

func (functionTasks) Failed(j store.Job, err error) engine.Attempt {
	return namedTasks{}.Failed(j, err)
}

// business is a function that tasks name, with the rights of its owner, and a note of each attempt.
const business = `
CREATE SCHEMA business;
CREATE TABLE business.begun (task text, attempt integer);
CREATE TABLE business.effects (n integer, tx bigint DEFAULT txid_current());
CREATE TABLE business.root (id integer PRIMARY KEY);
CREATE TABLE business.runs (n integer, locked timestamptz, ended timestamptz);
INSERT INTO business.root VALUES (1);
CREATE FUNCTION business.begin(task text, attempt integer) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ INSERT INTO business.begun VALUES (task, attempt) $$;
CREATE FUNCTION business.effect(_payload jsonb) RETURNS jsonb LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ INSERT INTO business.effects (n) VALUES ((_payload ->> 'n')::integer); SELECT '{"status": "succeeded"}'::jsonb $$;
CREATE FUNCTION business.supervisor(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    locked timestamptz;
BEGIN
    PERFORM FROM business.root WHERE id = 1 FOR UPDATE;
    locked := clock_timestamp();
    PERFORM pg_sleep(0.005);
    IF NOT EXISTS (SELECT FROM business.effects) THEN
        INSERT INTO business.effects VALUES (1);
    END IF;
    INSERT INTO business.runs VALUES ((_payload ->> 'n')::integer, locked, clock_timestamp());
    RETURN '{"status": "succeeded"}';
END
$$;
GRANT USAGE ON SCHEMA business TO worker_service_user;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA business FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA business TO worker_service_user`

// enqueueFunctions asks for n tasks that call a function of schema business.
func (b *bundle) enqueueFunctions(function string, n int) {
	b.t.Helper()
	b.exec(business)
	b.exec(`SELECT count(queues.enqueue('db_function', jsonb_build_object('db_function', 'business.' || $1::text, 'n', i))::text) FROM generate_series(1, $2::int) AS i`, function, n)
}

// taskProcess starts a process that works tasks as the worker's role.
func (b *bundle) taskProcess(slot int, crashed bool, env ...string) *exec.Cmd {
	b.t.Helper()
	self, err := os.Executable()
	require.NoError(b.t, err)
	cmd := exec.CommandContext(context.WithoutCancel(b.t.Context()), self)
	login := b.As(b.t, "worker_service_user").Config().ConnConfig
	cmd.Env = append(os.Environ(), envTaskWorker+"="+strconv.Itoa(slot), envTaskDatabase+"="+login.ConnString())
	cmd.Env = append(cmd.Env, env...)
	if crashed {
		cmd.Env = append(cmd.Env, envTaskCrashed+"=yes")
	}
	require.NoError(b.t, cmd.Start())
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// TestTasksOfKilledWorkers kills one of three workers again and again while they work tasks: each
// task is completed once, with its effect, and each attempt at one has a lease on record.
func TestTasksOfKilledWorkers(t *testing.T) {
	t.Parallel()
	t.Run("own transactions", func(t *testing.T) {
		t.Parallel()
		killWorkers(t)
	})
	t.Run("shared transactions", func(t *testing.T) {
		t.Parallel()
		killWorkers(t, envTaskShared+"=yes")
	})
}

func killWorkers(t *testing.T, env ...string) {
	t.Helper()
	n, _ := strconv.Atoi(os.Getenv(envTasks))
	if n == 0 {
		n = 400
	}
	const processes, kills = 3, 15
	b := setup(t)
	b.enqueueFunctions("effect", n)
	completed := func() int { return fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.task_completed`) }
	var working [processes]*exec.Cmd
	for i := range working {
		working[i] = b.taskProcess(i, false, env...)
	}
	for k := range kills {
		require.Eventually(t, func() bool { return completed() >= (k+1)*n/(kills+2) }, 3*time.Minute, 2*time.Millisecond)
		i := rand.N(processes)
		require.NoError(t, working[i].Process.Kill())
		_ = working[i].Wait()
		working[i] = b.taskProcess(i, true, env...)
	}
	require.Eventually(t, func() bool { return completed() == n }, 5*time.Minute, 20*time.Millisecond)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.open_task`))
	assert.Equal(t, n, fixture.Count(t, b.Pool, `SELECT count(DISTINCT n) FROM business.effects`))
	assert.Equal(t, n, fixture.Count(t, b.Pool, `SELECT count(*) FROM business.effects`),
		"an effect of the completing transaction is there once")
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.error`))
	assert.Zero(t, fixture.Count(t, b.Pool, `
SELECT count(*) FROM business.begun g WHERE g.attempt > (SELECT count(*) FROM queues.task_lease l WHERE l.task_id = g.task::bigint AND l.renews IS NULL)`), "attempts without a lease")
	assert.Positive(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM business.begun WHERE attempt > 1`),
		"some were worked again")
	if len(env) > 0 {
		assert.Less(t, fixture.Count(t, b.Pool, `SELECT count(DISTINCT tx) FROM business.effects`), n*3/4)
	}
}

// TestRunsOfOneSupervisorSerialise has many tasks of one process run at once, in three workers: one
// at a time has the root row.
func TestRunsOfOneSupervisorSerialise(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueueFunctions("supervisor", 60)
	for i := range 3 {
		b.taskProcess(i, false)
	}
	require.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM queues.task_completed`) == 60
	}, 2*time.Minute, 20*time.Millisecond)
	assert.Equal(t, 60, fixture.Count(t, b.Pool, `SELECT count(*) FROM business.runs`))
	assert.Zero(t, fixture.Count(t, b.Pool, `
SELECT count(*) FROM business.runs a JOIN business.runs b ON a.n < b.n AND a.locked < b.ended AND b.locked < a.ended`),
		"runs that overlap")
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM business.effects`))
}

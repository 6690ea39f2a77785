package tasks_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/tasks"
)

// long is more than a test takes.
const long = time.Minute

// setupSharing is setup with a function app.note, which notes its payload's name and, if that is
// special, does what else the test says. Tasks share transactions however slow the machine is.
func setupSharing(t *testing.T, special string) *bundle {
	t.Helper()
	b := setup(t)
	b.exec(`ALTER TABLE app.facts ADD tx bigint NOT NULL DEFAULT txid_current(), ADD at timestamptz NOT NULL DEFAULT now()`)
	b.exec(`CREATE SEQUENCE app.calls`)
	b.registry.SetDBFunctionPolicy(tasks.Policy{SharedTransaction: true})
	b.function("note", fmt.Sprintf(`
    INSERT INTO app.facts (what, body) VALUES (_payload ->> 'name', _payload);
    IF _payload ->> 'name' = 'special' THEN
        PERFORM nextval('app.calls');
        %s
    END IF;
    RETURN '{"status": "succeeded"}';`, special))
	return b
}

// neighbours enqueues n tasks, a special one among them.
func (b *bundle) neighbours(n int) {
	b.t.Helper()
	b.exec(`SELECT queues.enqueue('db_function', jsonb_build_object('db_function', 'app.note', 'name', CASE i WHEN $1::int / 2 THEN 'special' ELSE 'task ' || i END),
       clock_timestamp() - interval '1 minute' + i * interval '1 ms') FROM generate_series(1, $1::int) i`, n)
}

// together works the tasks once n have begun, so that they are ready at the same time.
type together struct {
	engine.Handlers
	n     int32
	begun atomic.Int32
	all   chan struct{}
}

func (h *together) Work(ctx context.Context, job store.Job, p *engine.Running) engine.Attempt {
	if h.begun.Add(1) == h.n {
		close(h.all)
	}
	<-h.all
	return h.Handlers.Work(ctx, job, p)
}

// another returns an engine on a pool that works n tasks together.
func (b *bundle) another(pool *pgxpool.Pool, n int) *engine.Engine {
	e := engine.NewOn(engine.Tasks(store.NewTaskQueue(pool, b.registry.Names()...)),
		&together{Handlers: b.handlers, n: int32(n), all: make(chan struct{})},
		engine.Options{Log: slog.New(slog.NewTextHandler(b.log, nil)), GatherShared: long, ShareFor: long})
	b.t.Cleanup(e.Close)
	return e
}

// process works n tasks together.
func (b *bundle) process(n int) engine.Report {
	b.t.Helper()
	r, err := b.another(b.worker, n).Process(b.t.Context(), sharedTurn)
	require.NoError(b.t, err)
	return r
}

var sharedTurn = engine.TurnRequest{
	Turn: store.Turn{ID: "run/0/1", Worker: "test", WorkflowRunID: "run"}, Batch: 50, Length: time.Minute,
}

func (b *bundle) count(query string) int { return fixture.Count(b.t, b.Pool, query) }

// assertNeighbours asserts that all tasks but the special one are completed by their first leases,
// with one effect each and no error, and that some have shared a transaction.
func (b *bundle) assertNeighbours(n int) {
	b.t.Helper()
	const others = ` WHERE t.payload ->> 'name' <> 'special'`
	assert.Equal(b.t, n-1, b.count(`SELECT count(*) FROM queues.task t JOIN queues.task_completed USING (task_id)`+others))
	assert.Equal(b.t, n-1, b.count(`SELECT count(*) FROM queues.task t JOIN queues.task_lease USING (task_id)`+others))
	assert.Zero(b.t, b.count(`SELECT count(*) FROM queues.task t JOIN queues.error USING (task_id)`+others))
	assert.Equal(b.t, n-1, b.count(`SELECT count(*) FROM app.facts WHERE what <> 'special'`))
	assert.Equal(b.t, n-1, b.count(`SELECT count(DISTINCT what) FROM app.facts WHERE what <> 'special'`))
	assert.Zero(b.t, b.open())
}

// transactions counts those in which facts were noted, specials the effects of the special one.
func (b *bundle) transactions() int { return b.count(`SELECT count(DISTINCT tx) FROM app.facts`) }

func (b *bundle) specials() int {
	return b.count(`SELECT count(*) FROM app.facts WHERE what = 'special'`)
}

// TestSharedTransaction: what functions do is committed with the completions, in transactions that
// at most 32 tasks share.
func TestSharedTransaction(t *testing.T) {
	t.Parallel()
	b := setupSharing(t, `NULL;`)
	b.neighbours(40)
	assert.Equal(t, 40, b.process(40).Completed)
	b.assertNeighbours(40)
	assert.Equal(t, 1, b.specials())
	assert.Less(t, b.transactions(), 20)
	assert.LessOrEqual(t, b.count(`SELECT max(n) FROM (SELECT count(*) AS n FROM app.facts GROUP BY tx) s`), 32)
	assert.Equal(t, b.transactions(), b.count(`SELECT count(DISTINCT at) FROM app.facts`), "now() is the transaction's")
}

// TestSharedAnswers: what a function answers that is no success is noted with its task, in the
// transaction that has its effect.
func TestSharedAnswers(t *testing.T) {
	t.Parallel()
	b := setupSharing(t, `RETURN '{"success": false, "error": "no such thing"}';`)
	b.neighbours(10)
	assert.Equal(t, 10, b.process(10).Completed)
	b.assertNeighbours(10)
	assert.Equal(t, []string{"HANDLER_ERROR: app.note: no such thing"}, b.errors())
	assert.Equal(t, 1, b.specials())
	assert.Equal(t, 1, b.count(`SELECT last_value FROM app.calls`))
	assert.Equal(t, 1, b.transactions())
}

// TestSharedFunctionThatFails: it is called again alone, and fails its own task alone.
func TestSharedFunctionThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ special, says string }{
		"raises":     {`RAISE 'no luck';`, "HANDLER_ERROR: app.note: no luck (SQLSTATE P0001)"},
		"asserts":    {`ASSERT false, 'not so';`, "HANDLER_ERROR: app.note: not so (SQLSTATE P0004)"},
		"an outage?": {`RAISE 'as if' USING ERRCODE = '57P01';`, "HANDLER_ERROR: app.note: as if (SQLSTATE 57P01)"},
		"cancelled?": {`RAISE 'as if' USING ERRCODE = '57014';`, "HANDLER_ERROR: app.note: as if (SQLSTATE 57014)"},
		"divides":    {`PERFORM 1 / 0;`, "HANDLER_ERROR: app.note: division by zero (SQLSTATE 22012)"},
		"leaves what a constraint refuses": {
			`INSERT INTO app.fond VALUES ('stranger');`, `violates foreign key constraint "fond_name_fkey"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupSharing(t, c.special)
			b.exec(`CREATE TABLE app.people (name text PRIMARY KEY)`)
			b.exec(`CREATE TABLE app.fond (name text REFERENCES app.people DEFERRABLE INITIALLY DEFERRED)`)
			b.neighbours(10)
			assert.Equal(t, 9, b.process(10).Completed)
			b.assertNeighbours(10)
			require.Len(t, b.errors(), 1)
			assert.Contains(t, b.errors()[0], c.says)
			assert.Zero(t, b.specials())
			assert.Less(t, b.transactions(), 9)
		})
	}
}

// TestSharedConstraintsAreDeferred: a function may leave what is refused for a moment, after another
// one whose constraints were checked.
func TestSharedConstraintsAreDeferred(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.registry.SetDBFunctionPolicy(tasks.Policy{SharedTransaction: true})
	b.exec(`CREATE TABLE app.people (name text PRIMARY KEY);
CREATE TABLE app.fond (name text REFERENCES app.people DEFERRABLE INITIALLY DEFERRED)`)
	b.function("note", `INSERT INTO app.fond VALUES (_payload ->> 'name'); INSERT INTO app.people VALUES (_payload ->> 'name');
RETURN '{"status": "succeeded"}';`)
	b.neighbours(10)
	assert.Equal(t, 10, b.process(10).Completed)
	assert.Empty(t, b.errors())
	assert.Equal(t, 10, b.count(`SELECT count(*) FROM app.fond`))
	assert.Equal(t, 10, b.count(`SELECT count(DISTINCT xmin::text) FROM app.fond`), "each call has a savepoint")
}

// TestSharedFaultChargesNone: what a neighbour or a limit may have done to a function fails no task.
func TestSharedFaultChargesNone(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]string{
		"deadlock":      `RAISE 'as if' USING ERRCODE = '40P01';`,
		"serialization": `RAISE 'as if' USING ERRCODE = '40001';`,
		"lock":          `RAISE 'as if' USING ERRCODE = '55P03';`,
		"cancelled":     `RAISE 'as if' USING ERRCODE = '57014';`,
		"takes long":    `PERFORM pg_sleep(10);`,
		"table":         `CREATE TEMPORARY TABLE mine (); CREATE TEMPORARY TABLE mine ();`,
		"session":       `PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10);`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupSharing(t, `IF (SELECT last_value FROM app.calls) = 1 THEN `+fault+` END IF;`)
			b.neighbours(10)
			assert.Equal(t, 10, b.process(10).Completed)
			b.assertNeighbours(10)
			assert.Equal(t, 1, b.specials())
			assert.Empty(t, b.errors())
			assert.Equal(t, 2, b.count(`SELECT last_value FROM app.calls`))
		})
	}
}

// TestSharedFunctionThatIsBlocked: it gives up soon, its neighbours commit, and it waits alone.
func TestSharedFunctionThatIsBlocked(t *testing.T) {
	t.Parallel()
	b := setupSharing(t, `UPDATE app.counters SET n = n + 1;`)
	b.exec(`CREATE TABLE app.counters (n integer); INSERT INTO app.counters VALUES (0)`)
	blocking, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = blocking.Exec(t.Context(), `UPDATE app.counters SET n = n + 1`)
	require.NoError(t, err)
	b.neighbours(10)
	over := make(chan engine.Report)
	go func() { over <- b.process(10) }()
	require.Eventually(t, func() bool { return b.open() == 1 }, long, 5*time.Millisecond)
	require.NoError(t, blocking.Commit(t.Context()))
	assert.Equal(t, 10, (<-over).Completed)
	b.assertNeighbours(10)
	assert.Equal(t, 1, b.specials())
	assert.Empty(t, b.errors())
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM app.counters WHERE n = 2`))
}

// TestSharedCommitThatFails: a constraint refuses what functions have written together. Each alone
// may write it.
func TestSharedCommitThatFails(t *testing.T) {
	t.Parallel()
	b := setupSharing(t, `NULL;`)
	b.exec(`CREATE FUNCTION app.alone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
  IF current_setting('statement_timeout') = '0' AND (SELECT count(*) FROM app.facts WHERE tx = txid_current()) > 1 THEN RAISE 'not together'; END IF;
  RETURN NULL;
END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER alone AFTER INSERT ON app.facts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.alone()`)
	b.neighbours(10)
	assert.Equal(t, 10, b.process(10).Completed)
	b.assertNeighbours(10)
	assert.Equal(t, 10, b.transactions())
	assert.Empty(t, b.errors())
}

// TestSharedFunctionThatChangesASetting shares no transaction any more in this process.
func TestSharedFunctionThatChangesASetting(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"TimeZone":            `PERFORM set_config('TimeZone', 'Asia/Tokyo', true);`,
		"transaction_timeout": `PERFORM set_config('transaction_timeout', '1h', true);`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupSharing(t, change)
			if b.count(`SELECT count(*) FROM pg_settings WHERE name = '`+name+`'`) == 0 {
				t.Skipf("the server has no %s: PostgreSQL has it from version 17 on", name)
			}
			b.function("other", `INSERT INTO app.facts (what) VALUES ('other'); RETURN '{"status": "succeeded"}';`)
			b.neighbours(10)
			b.exec(`SELECT queues.enqueue('db_function', '{"db_function": "app.other"}') FROM generate_series(1, 5)`)
			assert.Equal(t, 15, b.process(15).Completed)
			assert.Empty(t, b.errors())
			assert.Equal(t, 10, b.count(`SELECT count(DISTINCT tx) FROM app.facts WHERE what <> 'other'`))
			assert.Equal(t, 1, b.count(`SELECT count(DISTINCT tx) FROM app.facts WHERE what = 'other'`))
			assert.Equal(t, 1, strings.Count(b.log.String(), "event=transaction_unshared"))
			assert.Contains(t, b.log.String(), "function=app.note")
		})
	}
}

// TestSharedFunctionThatHidesErrors: a supervisor notes what it meets, and so must meet nothing that
// it would not meet alone: no limit on waiting for locks, no table or cursor of a neighbour.
func TestSharedFunctionThatHidesErrors(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]string{
		"a lock":   `UPDATE app.counters SET n = n + 1;`,
		"a table":  `CREATE TEMPORARY TABLE mine ON COMMIT DROP AS SELECT 1;`,
		"a cursor": `DECLARE mine refcursor := 'mine'; BEGIN OPEN mine FOR SELECT 1; END;`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.registry.SetDBFunctionPolicy(tasks.Policy{SharedTransaction: true})
			b.exec(`CREATE TABLE app.counters (n integer); INSERT INTO app.counters VALUES (0)`)
			b.function("note", `BEGIN `+does+` EXCEPTION WHEN OTHERS THEN RETURN jsonb_build_object('success', false, 'error', SQLERRM); END;
RETURN '{"status": "succeeded"}';`)
			blocking, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			_, err = blocking.Exec(t.Context(), `UPDATE app.counters SET n = n + 1`)
			require.NoError(t, err)
			time.AfterFunc(time.Second, func() { _ = blocking.Commit(context.WithoutCancel(t.Context())) })
			b.neighbours(10)
			assert.Equal(t, 10, b.process(10).Completed)
			assert.Empty(t, b.errors())
		})
	}
}

// TestSharedFunctionThatIsNotGranted: run_functions refuses what run_function does.
func TestSharedFunctionThatIsNotGranted(t *testing.T) {
	t.Parallel()
	b := setupSharing(t, `NULL;`)
	b.exec(`REVOKE EXECUTE ON FUNCTION app.note FROM ` + workerRole + `; GRANT EXECUTE ON FUNCTION app.note TO PUBLIC`)
	b.neighbours(3)
	b.process(3)
	assert.Empty(t, b.facts())
	require.Len(t, b.errors(), 3)
	assert.Contains(t, b.errors()[0], "function app.note is not granted to worker_service_user (SQLSTATE 42501)")
	_, err := b.worker.Exec(t.Context(), `SELECT * FROM internal.run_functions('app.note', ARRAY['{}'::jsonb], ARRAY[''], '1 s')`)
	require.NoError(t, err)
	assert.Empty(t, b.facts())
}

// TestSharedTraces: what a function enqueues belongs to its own task's trace, not to a neighbour's.
func TestSharedTraces(t *testing.T) {
	t.Parallel()
	b := setupSharing(t, `NULL;`)
	b.exec(`ALTER TABLE app.facts ADD trace text DEFAULT current_setting('daybook.traceparent', true)`)
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	b.exec(`SELECT set_config('daybook.traceparent', $1, true),
       queues.enqueue('db_function', '{"db_function": "app.note", "name": "traced"}', clock_timestamp() - interval '1 hour')`, trace)
	b.neighbours(3)
	assert.Equal(t, 4, b.process(4).Completed)
	assert.Equal(t, 1, b.transactions())
	assert.Equal(t, []string{"traced"}, b.texts(`SELECT what FROM app.facts WHERE trace = '`+trace+`'`))
	assert.Equal(t, 3, b.count(`SELECT count(*) FROM app.facts WHERE trace = ''`))
}

// TestSharedTransactionOfADeadWorker: the worker dies while tasks share a transaction. Nothing of it
// is committed, and each task is done once by the next worker, also when the dead one comes back.
func TestSharedTransactionOfADeadWorker(t *testing.T) {
	t.Parallel()
	b := setupSharing(t, `PERFORM pg_advisory_xact_lock(7);`)
	holding, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = holding.Exec(t.Context(), `SELECT pg_advisory_xact_lock(7)`)
	require.NoError(t, err)
	b.neighbours(10)
	request := sharedTurn
	dying, die := context.WithCancel(t.Context())
	dead := b.another(b.As(t, workerRole), 10)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = dead.Process(dying, request)
	}()
	require.Eventually(t, func() bool {
		return b.count(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) > 0
	}, long, time.Millisecond)
	b.exec(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	require.NoError(t, holding.Rollback(t.Context()))
	request.Crashed = true
	_, err = b.another(b.worker, 1).Process(t.Context(), request)
	require.NoError(t, err)
	die()
	<-over
	require.Eventually(t, func() bool { return b.open() == 0 }, long, 5*time.Millisecond)
	assert.Equal(t, 10, b.count(`SELECT count(*) FROM app.facts`))
	assert.Equal(t, 10, b.count(`SELECT count(DISTINCT what) FROM app.facts`))
	assert.Empty(t, b.errors())
}

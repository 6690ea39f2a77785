package workers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/handlers"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/tasks"
	"github.com/daybook-dev/daybook/workers"
	"github.com/daybook-dev/daybook/workflows"
)

const taskRole = "worker_service_user"

// business is an application whose functions note what they are given as facts, and that enqueues
// three messages from its supervisor.
const business = `
CREATE SCHEMA app;
CREATE TABLE app.facts (n bigint GENERATED ALWAYS AS IDENTITY, what text, body jsonb);
CREATE FUNCTION app.supervise(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO app.facts (what, body) VALUES ('supervise', _payload);
    PERFORM queues.enqueue(t, jsonb_build_object('task_type', t, 'attempt_id', 7, 'before_handler', 'app.prepare', 'success_handler', 'app.succeed', 'error_handler', 'app.fail'))
       FROM jsonb_array_elements_text(_payload -> 'channels') AS t;
    RETURN '{"status": "succeeded"}';
END $$;
CREATE FUNCTION app.prepare(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN jsonb_build_object('success', true, 'payload', jsonb_build_object('to_address', 'ada@example.com', 'subject', 'Hello', 'text', 'Hello Ada',
        'to_number', '+4915112345678', 'body', 'Hello', 'bucket', 'recordings', 'object_key', 'a/1.ogg'));
END $$;
CREATE FUNCTION app.succeed(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO app.facts (what, body) VALUES ('succeed ' || (_payload -> 'original_payload' ->> 'task_type'), _payload);
    RETURN '{"success": true}';
END $$;
CREATE FUNCTION app.fail(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO app.facts (what, body) VALUES ('fail ' || (_payload -> 'original_payload' ->> 'task_type'), _payload);
    RETURN '{"success": true}';
END $$;
CREATE FUNCTION app.secret(_payload jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT _payload';
REVOKE ALL ON FUNCTION app.supervise, app.prepare, app.succeed, app.fail, app.secret FROM PUBLIC;
GRANT USAGE ON SCHEMA app TO worker_service_user;
GRANT EXECUTE ON FUNCTION app.supervise, app.prepare, app.succeed, app.fail TO worker_service_user`

// providers are real servers on this machine: for mail, for text messages, and for files with a
// service that signs their addresses.
type providers struct {
	http     *httptest.Server
	mailPort int
	// status is what the server of text messages answers.
	status int
	// hold, if it is there, holds up its answers until it is closed; asked is told of each request
	// that is held up.
	hold, asked chan struct{}

	mu  sync.Mutex
	got []string
}

func (p *providers) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, what)
}

func (p *providers) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.got...)
}

// mailSession is a connection to the server of mail.
type mailSession struct {
	to string
	p  *providers
}

func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	s.p.note("mail to " + s.to)
	return err
}
func (*mailSession) Reset()        {}
func (*mailSession) Logout() error { return nil }

func serveProviders(t *testing.T) *providers {
	t.Helper()
	p := &providers{status: http.StatusCreated}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.mailPort = listener.Addr().(*net.TCPAddr).Port
	mail := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{p: p}, nil }))
	mail.Domain = "localhost"
	go func() { _ = mail.Serve(listener) }()
	t.Cleanup(func() { _ = mail.Close() })
	p.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		p.note(r.Method + " " + r.URL.RequestURI())
		switch {
		case r.URL.Path == "/sign":
			_, _ = fmt.Fprintf(w, `{"url": "http://%s/recordings/a/1.ogg?signature=s3cret"}`, r.Host)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		default:
			if p.hold != nil {
				p.asked <- struct{}{}
				<-p.hold
			}
			w.WriteHeader(p.status)
			_, _ = io.WriteString(w, `{"sid": "SM1", "status": "queued"}`)
		}
	}))
	t.Cleanup(p.http.Close)
	return p
}

// waitAsked waits until a text message is asked for. A test that fails ends what is held up.
func (p *providers) waitAsked(t *testing.T, within time.Duration) {
	t.Helper()
	select {
	case <-p.asked:
	case <-time.After(within):
		close(p.hold)
		require.Fail(t, "the provider was not asked", "within %s", within)
	}
}

// variables configure the types of tasks.
func (p *providers) variables() map[string]string {
	return map[string]string{
		"DAYBOOK_SMTP_HOST": "127.0.0.1", "DAYBOOK_SMTP_PORT": fmt.Sprint(p.mailPort), "DAYBOOK_SMTP_TLS": "none",
		"DAYBOOK_SMTP_FROM":          "Shop <shop@example.com>",
		"DAYBOOK_TWILIO_ACCOUNT_SID": "AC1", "DAYBOOK_TWILIO_AUTH_TOKEN": "t0psecret", "DAYBOOK_SMS_FROM": "Shop",
		"DAYBOOK_TWILIO_URL":       p.http.URL,
		"DAYBOOK_FILES_SIGNER_URL": p.http.URL + "/sign",
	}
}

// startTasks runs a worker of tasks that is logged in as worker_service_user until the test, or the
// returned function, ends it.
func (b *bundle) startTasks(pool *pgxpool.Pool, variables map[string]string) (stop func()) {
	b.t.Helper()
	registry := tasks.NewRegistry()
	builtin, err := handlers.RegisterTasks(registry, handlers.Config{Environment: variables})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { assert.NoError(b.t, builtin.Close()) })
	w, err := workers.NewTasks(workers.TasksOptions{
		Client: b.client, Pool: pool, Registry: registry, Name: "worker",
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(b.t, err)
	return b.runWorker(w)
}

// runTasks starts the workflow of tasks with the input as JSON and returns its id.
func (b *bundle) runTasks(input string) string {
	b.t.Helper()
	id := temporaltest.Unique("task-queue-worker")
	_, err := b.client.ExecuteWorkflow(b.t.Context(),
		client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TasksTaskQueue}, workflows.TasksWorkflow,
		json.RawMessage(input))
	require.NoError(b.t, err)
	return id
}

func (b *bundle) enqueueTask(taskType, payload string) {
	b.t.Helper()
	b.exec(`SELECT queues.enqueue($1, $2::jsonb)`, taskType, payload)
}

// completedTasks counts the tasks that are completed.
func (b *bundle) completedTasks() int {
	b.t.Helper()
	return fixture.Count(b.t, b.Pool, `SELECT count(*) FROM queues.task_completed`)
}

func (b *bundle) texts(query string) []string {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), query)
	require.NoError(b.t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(b.t, err)
	return all
}

// TestTasksByTheWorkersRole: the whole main path, started as the documentation says, by a worker
// that is logged in as worker_service_user: a supervisor, and a message by each channel, sent to
// real servers, with its handlers. The role is refused everything else.
func TestTasksByTheWorkersRole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(business)
	p := serveProviders(t)
	role := b.As(t, taskRole)
	b.startTasks(role, p.variables())
	b.cli("workflow", "start", "--task-queue", "task-queue", "--type", "syncTaskQueueWorkflow",
		"--workflow-id", "task-queue-worker-production", "--input", `{"batchSize": 50, "pollIntervalSeconds": 10}`)

	b.enqueueTask("db_function",
		`{"task_type": "db_function", "db_function": "app.supervise", "channels": ["email", "sms", "file_delete"]}`)

	b.eventually("all are completed", 40*time.Second, func() bool { return b.completedTasks() == 4 })
	assert.ElementsMatch(t, []string{
		"mail to ada@example.com", "POST /2010-04-01/Accounts/AC1/Messages.json", "POST /sign",
		"DELETE /recordings/a/1.ogg?signature=s3cret",
	}, p.requests())
	assert.ElementsMatch(t, []string{"supervise", "succeed email", "succeed sms", "succeed file_delete"},
		b.texts(`SELECT what FROM app.facts`))
	assert.Equal(t, []string{`{"deleted": true}`},
		b.texts(`SELECT (body -> 'worker_payload')::text FROM app.facts WHERE what = 'succeed file_delete'`))
	assert.Equal(t, []string{`{"status": "queued", "message_sid": "SM1"}`},
		b.texts(`SELECT (body -> 'worker_payload')::text FROM app.facts WHERE what = 'succeed sms'`))
	assert.Equal(t, []string{"7"},
		b.texts(`SELECT body -> 'original_payload' ->> 'attempt_id' FROM app.facts WHERE what = 'succeed email'`))
	assert.Empty(t, b.texts(`SELECT error_message FROM queues.error`))
	assert.Equal(t, 4, fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.task_lease`), "every task was leased once")

	for _, stmt := range []string{
		`SELECT queues.enqueue('sms', '{}')`, `SELECT * FROM queues.task`, `SELECT * FROM queues.open_task`,
		`SELECT * FROM queues.open_tasks`, `SELECT * FROM queues.task_cursor`,
		`INSERT INTO queues.task_completed VALUES (99)`, `DELETE FROM queues.error`, `TRUNCATE queues.task_lease`,
		`SELECT queues.rebuild_open_tasks()`,
		`SELECT queues.remove_completed_tasks(now())`, `SELECT queues.grant_to_worker()`, `SELECT * FROM app.facts`,
		`SELECT app.secret('{}')`,
		`SELECT internal.run_function('app.secret', '{}')`, `SELECT internal.run_function('pg_catalog.to_jsonb', '{}')`,
		`SELECT * FROM daybook.jobs`,
		`SELECT daybook.enqueue_job('o', 'sms', '{}')`, `CREATE TABLE queues.mine ()`, `CREATE SCHEMA mine`,
		`SET ROLE daybook`,
	} {
		_, err := role.Exec(t.Context(), stmt)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, stmt)
		assert.Contains(t, []string{"42501", "42883", "22023"}, refused.Code, "%s: %s", stmt, refused.Message)
	}
}

// TestTasksThatFail: a provider that refuses is told to the error_handler, what cannot run is
// recorded, and each is completed.
func TestTasksThatFail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(business)
	p := serveProviders(t)
	p.status = http.StatusUnauthorized
	b.startTasks(b.As(t, taskRole), p.variables())
	b.enqueueTask("db_function", `{"db_function": "app.supervise", "channels": ["sms"]}`)
	b.enqueueTask("db_function", `{"db_function": "app.secret"}`)
	b.enqueueTask("db_function", `{}`)
	b.enqueueTask("letter", `{}`)

	var counts models.RunCounts
	require.NoError(t, b.client.GetWorkflow(t.Context(), b.runTasks(`{"exitWhenEmpty": true}`), "").Get(t.Context(),
		&counts))

	assert.Equal(t, 4, b.completedTasks())
	assert.EqualValues(t, 2, counts.Failed, "those without an error_handler")
	refused := "AUTHENTICATION_FAILED: " + p.http.URL + " answered 401 Unauthorized"
	assert.Equal(t, []string{refused}, b.texts(`SELECT body ->> 'error' FROM app.facts WHERE what = 'fail sms'`))
	assert.ElementsMatch(t, []string{
		refused, "HANDLER_ERROR: app.secret: function app.secret is not granted to worker_service_user (SQLSTATE 42501)",
		"PAYLOAD_INVALID: the task's payload names no db_function: name it as schema.name",
	}, b.texts(`SELECT error_message FROM queues.error`))
	assert.Equal(t, []string{"letter"}, b.texts(`SELECT task_type FROM queues.open_tasks`),
		"no worker has a processor for it")
}

// TestTasksDrain stops a worker while a provider is asked: the call ends, and its task is
// completed.
func TestTasksDrain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(business)
	p := serveProviders(t)
	p.hold, p.asked = make(chan struct{}), make(chan struct{}, 10)
	stop := b.startTasks(b.As(t, taskRole), p.variables())
	b.runTasks(`{}`)
	b.enqueueTask("db_function", `{"db_function": "app.supervise", "channels": ["sms"]}`)
	p.waitAsked(t, time.Minute)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	close(p.hold)
	<-stopped
	assert.Equal(t, 2, b.completedTasks())
	assert.Equal(t, []string{"succeed sms"}, b.texts(`SELECT what FROM app.facts WHERE what <> 'supervise'`))
}

// TestTasksOutlastAnOutage cuts the line to the database while a provider is asked: the provider is
// not asked again, the success_handler has its effect once, and nothing has failed.
func TestTasksOutlastAnOutage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(business)
	p := serveProviders(t)
	p.hold, p.asked = make(chan struct{}), make(chan struct{}, 10)
	line := b.Line(t)
	b.startTasks(line.Pool, p.variables())
	b.runTasks(`{}`)
	b.enqueueTask("db_function", `{"db_function": "app.supervise", "channels": ["sms"]}`)
	p.waitAsked(t, time.Minute)
	line.Cut()
	close(p.hold)
	require.Eventually(t, func() bool { return len(p.requests()) == 1 }, time.Minute, 20*time.Millisecond)
	line.Mend()
	b.eventually("both are completed", 60*time.Second, func() bool { return b.completedTasks() == 2 })
	assert.Len(t, p.requests(), 1)
	assert.Equal(t, []string{"succeed sms"}, b.texts(`SELECT what FROM app.facts WHERE what <> 'supervise'`))
	assert.Empty(t, b.texts(`SELECT error_message FROM queues.error`))
}

// TestSuccessHandlerThatLooksLikeAnOutage: the server itself refuses what a success_handler does,
// each time. The provider is asked again each time: that must end.
func TestSuccessHandlerThatLooksLikeAnOutage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(business)
	b.exec(`CREATE FUNCTION app.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM set_config('transaction_read_only', 'on', true); DELETE FROM app.facts; RETURN NEW; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON app.facts FOR EACH ROW WHEN (NEW.what LIKE 'succeed%')
  EXECUTE FUNCTION app.refuse()`)
	p := serveProviders(t)
	b.startTasks(b.As(t, taskRole), p.variables())
	b.runTasks(`{}`)
	b.enqueueTask("sms", `{"task_type": "sms", "before_handler": "app.prepare", "success_handler": "app.succeed", "error_handler": "app.fail"}`)
	b.eventually("it is given up", 2*time.Minute, func() bool { return b.completedTasks() == 1 })
	require.Len(t, b.texts(`SELECT error_message FROM queues.error`), 1)
	assert.Contains(t, b.texts(`SELECT error_message FROM queues.error`)[0],
		"the attempt was put off 10 times because of the database, the last time with: ")
	assert.Len(t, p.requests(), 11)
}

// TestTaskOfAKilledWorker kills a worker while a provider is asked. Nothing renews the lease; when
// it has run out, the task is run again, and is completed once.
func TestTaskOfAKilledWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(business)
	p := serveProviders(t)
	p.hold, p.asked = make(chan struct{}), make(chan struct{}, 10)
	victim := b.taskProcess("victim", p.variables())
	b.runTasks(`{}`)
	b.enqueueTask("db_function", `{"db_function": "app.supervise", "channels": ["sms"]}`)
	p.waitAsked(t, time.Minute)
	b.kill(victim, "victim")
	b.taskProcess("survivor", p.variables())
	// The five minutes are over.
	b.exec(`UPDATE queues.open_task SET leased_until = c, last_call = c, arrived = pg_current_xact_id() FROM clock_timestamp() AS c WHERE task_type = 'sms'`)
	p.waitAsked(t, time.Minute)
	close(p.hold)
	b.eventually("both are completed", 30*time.Second, func() bool { return b.completedTasks() == 2 })
	assert.Equal(t, []string{"succeed sms"}, b.texts(`SELECT what FROM app.facts WHERE what <> 'supervise'`))
	assert.Equal(t, 2, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM queues.task_lease l JOIN queues.task t USING (task_id) WHERE t.task_type = 'sms' AND renews IS NULL`),
		"each time that it was handed out is on record")
}

// TestTasksOfAKilledTurn kills a worker in mid-turn: another one goes on with the turn's tasks,
// without waiting for their leases, and each function has its effect once. What fetches had begun
// belongs to the killed process alone, and waits for the end of its lease: here it is over at once.
func TestTasksOfAKilledTurn(t *testing.T) {
	t.Parallel()
	const n = 4000
	b := setup(t)
	b.exec(business)
	b.exec(`SELECT count(queues.enqueue('db_function', '{"db_function": "app.supervise", "channels": []}')::text) FROM generate_series(1, $1::int)`, n)
	victim := b.taskProcess("victim", nil)
	b.runTasks(`{}`)
	b.eventually("it is in mid-turn", time.Minute, func() bool { return b.completedTasks() > 200 })
	b.kill(victim, "victim")
	left := n - b.completedTasks()
	require.Positive(t, left)
	b.exec(`UPDATE queues.open_task SET leased_until = c, last_call = c, arrived = pg_current_xact_id() FROM clock_timestamp() AS c WHERE detached`)
	b.taskProcess("survivor", nil)
	b.eventually("all are completed", 90*time.Second, func() bool { return b.completedTasks() == n })
	assert.Equal(t, n, fixture.Count(t, b.Pool, `SELECT count(*) FROM app.facts`), "each once")
	assert.Equal(t, n, fixture.Count(t, b.Pool, `SELECT count(DISTINCT task_id) FROM queues.task_lease`),
		"every lease is on record")
	t.Logf("%d tasks were left when the worker was killed", left)
}

// TestTasksOptions: what cannot work is refused, and says what to do.
func TestTasksOptions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := workers.NewTasks(workers.TasksOptions{})
	require.ErrorContains(t, err, "Client, Pool and Registry are required")
	for message, o := range map[string]workers.TasksOptions{
		"MaxConcurrentActivities is 1: it must be at least 2":    {MaxConcurrentActivities: 1},
		"MaxConcurrentWorkflowTasks is 1: it must be at least 2": {MaxConcurrentWorkflowTasks: 1},
		"Settings.BatchSize is -1: want 1 to 1000":               {Settings: workers.Settings{BatchSize: -1}},
		"PickInterval is 1m0s":                                   {PickInterval: time.Minute},
	} {
		o.Client, o.Pool, o.Registry = b.client, b.Pool, tasks.NewRegistry()
		_, err := workers.NewTasks(o)
		require.ErrorContains(t, err, message)
	}
}

// TestTasksRoleWithoutGrants: a worker whose role is not granted the functions says so at its
// start.
func TestTasksRoleWithoutGrants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`DO $$ BEGIN EXECUTE (SELECT string_agg(format('REVOKE EXECUTE ON FUNCTION %s FROM worker_service_user', oid::regprocedure), '; ') FROM pg_proc WHERE pronamespace = 'queues'::regnamespace); END $$`)
	w, err := workers.NewTasks(workers.TasksOptions{
		Client: b.client, Pool: b.As(t, taskRole),
		Registry: tasks.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	defer w.Close()
	err = w.Run(context.WithoutCancel(t.Context()))
	require.ErrorContains(t, err, "daybook migrate up --roles")
	assert.Contains(t, err.Error(), "42501")
}

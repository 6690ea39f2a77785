package languages_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/released"
	"github.com/daybook-dev/daybook/queue"
)

// language is a worker in one language, as a command and what its environment has besides the
// database.
type language struct {
	name    string
	command func(t *testing.T) (command, env []string)
}

func languages() []language {
	return []language{
		{"Go", func(*testing.T) ([]string, []string) { return []string{os.Args[0]}, nil }},
		{"Python", func(t *testing.T) ([]string, []string) {
			t.Helper()
			return []string{python(t, "psycopg"), "testdata/conformance.py"},
				pythonPath()
		}},
		{"TypeScript", func(t *testing.T) ([]string, []string) {
			t.Helper()
			return []string{found(t, "node"), "testdata/conformance.mjs"},
				[]string{"WORKER_JS=" + filepath.Join(compiled(t, clientSource), "dist", "worker.js")}
		}},
	}
}

// pythonPath has Python find the library, and leave nothing beside it.
func pythonPath() []string {
	return []string{"PYTHONPATH=../../clients/python", "PYTHONDONTWRITEBYTECODE=1"}
}

// conformance is a database with workers of one language.
type conformance struct {
	*daybooktest.DB
	t            *testing.T
	command, env []string
}

// process is a worker.
type process struct {
	*exec.Cmd
	log   *bytes.Buffer
	ended chan struct{}
	err   error
}

// start starts a worker, which ends with the test.
func (c *conformance) start(env ...string) *process {
	c.t.Helper()
	p := &process{
		Cmd: exec.CommandContext(c.t.Context(), c.command[0], c.command[1:]...), log: &bytes.Buffer{},
		ended: make(chan struct{}),
	}
	p.Env = append(append(os.Environ(), c.env...), "GRACE=30", "DAYBOOK_DATABASE_URL="+c.URL, envGoWorker+"="+c.URL)
	p.Env = append(p.Env, env...)
	p.Stdout, p.Stderr = p.log, p.log
	require.NoError(c.t, p.Start())
	go func() {
		p.err = p.Wait()
		close(p.ended)
	}()
	c.t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		if c.t.Failed() {
			c.t.Logf("the worker said: %s", p.log)
		}
	})
	return p
}

// stopped asks a worker to stop, and waits for that.
func (c *conformance) stopped(p *process) {
	c.t.Helper()
	require.NoError(c.t, p.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
		assert.NoError(c.t, p.err)
	case <-time.After(time.Minute):
		c.t.Fatal("the worker has not stopped")
	}
}

func (c *conformance) enqueue(jobType, payload string, o queue.JobOptions) string {
	c.t.Helper()
	job, err := queue.EnqueueJob(c.t.Context(), c.Pool, "acme",
		queue.RawPayload{Type: jobType, Data: json.RawMessage(payload)}, o)
	require.NoError(c.t, err)
	return job.ID
}

// text reads one text.
func (c *conformance) text(query string, args ...any) (text string) {
	c.t.Helper()
	require.NoError(c.t, c.Pool.QueryRow(c.t.Context(), query, args...).Scan(&text))
	return text
}

// until waits until a query says yes.
func (c *conformance) until(what, query string, args ...any) {
	c.t.Helper()
	if !assert.Eventually(c.t, func() bool { return c.text(`SELECT (`+query+`)::text`, args...) == "true" },
		time.Minute, 50*time.Millisecond, what) {
		c.t.Fatal(c.text(`SELECT coalesce(string_agg(j::text, E'\n'), 'no jobs') FROM daybook.jobs j`))
	}
}

const (
	// runsStmt: the job's attempt has begun, or is over. A lease alone can still be given back, and
	// the attempt with it.
	runsStmt = `SELECT working OR finished_at IS NOT NULL FROM daybook.jobs WHERE id = $1`
	// workedStmt: each job has been worked, and the attempt is over.
	workedStmt = `SELECT count(*) = 0 FROM daybook.jobs WHERE state = 'leased' OR state = 'pending' AND (last_attempted_at IS NULL OR ready_at <= clock_timestamp())`
	// stateStmt is a job's state, attempts, code, result, effects, and the delay until the next one.
	// The two times are read one after the other, so on a busy machine they differ by more than the delay.
	stateStmt = `
SELECT concat_ws(' ', state, run_count, last_error_code, result, (SELECT 'effects ' || string_agg(e.note, ' ' ORDER BY e.id) FROM app.effects e WHERE e.job_id = j.id),
                 CASE WHEN state = 'pending' THEN
                     CASE WHEN abs(extract(epoch FROM ready_at - updated_at - daybook.retry_delay(id, 1, 60, 2, 600))) < 1 THEN 'by the policy'
                          ELSE 'after ' || round(extract(epoch FROM ready_at - updated_at)) END END)
  FROM daybook.jobs j WHERE id = $1`
)

// cases are what a job asks for, and what becomes of it, whichever worker works it. $id is its
// id.
var cases = []struct {
	do, want string
	options  queue.JobOptions
}{
	{do: "complete", want: `completed 1 {"of": 3, "key": "$id", "org": "acme", "attempt": 1}`},
	{
		do: "complete", want: `completed 1 {"of": 7, "key": "k", "org": "acme", "attempt": 1}`,
		options: queue.JobOptions{MaxAttempts: 7, IdempotencyKey: "k"},
	},
	{do: "note", want: `completed 1 effects a`},
	{do: "refuse", want: `pending 1 HANDLER_ERROR by the policy`},
	{do: "error", want: `pending 1 HANDLER_ERROR by the policy`},
	{do: "error", want: `failed 1 HANDLER_ERROR`, options: queue.JobOptions{MaxAttempts: 1}},
	{do: "code", want: `pending 1 DISK_FULL by the policy`},
	{do: "no code", want: `pending 1 HANDLER_ERROR by the policy`},
	{do: "reserved", want: `pending 1 HANDLER_ERROR by the policy`},
	{do: "final code", want: `failed 1 NOT_FOUND`},
	{do: "final", want: `failed 1 HANDLER_ERROR`},
	{do: "retry after", want: `pending 1 NOT_FOUND after 120`},
	{do: "snooze", want: `pending 0 SNOOZED after 300`},
	{do: "cancel", want: `cancelled 1 JOB_CANCELLED`},
	{do: "no result", want: `completed 1 RESULT_NOT_STORED`},
	{do: "hang", want: `pending 1 TIMEOUT by the policy`},
	{do: "steps", want: `completed 2 [[1], {"attempt": 1}, 3] effects a a a a`},
	{do: "cut step", want: `completed 1 effects a`},
	{do: "refuse step", want: `completed 2 {"attempt": 2} effects a`},
	{do: "big step", want: `pending 1 STEP_NOT_STORED by the policy`},
	{do: "unstorable step", want: `pending 1 STEP_NOT_STORED by the policy`},
	{do: "step twice", want: `pending 1 STEP_INVALID by the policy`},
	{do: "long step", want: `pending 1 STEP_INVALID by the policy`},
	{do: "step of loop", want: `failed 2 STEP_CHANGED`, options: queue.JobOptions{MaxAttempts: 2}},
	{do: "renamed step", want: `completed 2 {"new": 2}`},
}

// TestWorkersOfAllLanguages works the same jobs by workers in Go, Python and TypeScript.
func TestWorkersOfAllLanguages(t *testing.T) {
	t.Parallel()
	scenarios := map[string]func(c *conformance){
		"outcomes": (*conformance).outcomes, "order": (*conformance).order, "limits": (*conformance).limits,
		"cancelled": (*conformance).cancelled, "killed": (*conformance).killed, "stops": (*conformance).stops,
		"alone": (*conformance).alone, "together": (*conformance).together, "gives back": (*conformance).givesBack,
		"sessions end": (*conformance).sessionsEnd, "steps killed": (*conformance).stepsKilled,
		"steps of another": (*conformance).stepsOfAnother, "paused in a step": (*conformance).pausedInStep,
		"killed in a step": (*conformance).killedInStep, "encrypted": (*conformance).encrypted,
	}
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			command, env := l.command(t)
			meets(t, command, env, scenarios)
		})
	}
}

// meets has workers, each with a database of its own, meet scenarios side by side.
func meets(t *testing.T, command, env []string, scenarios map[string]func(c *conformance)) {
	t.Helper()
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &conformance{DB: daybooktest.New(t), t: t, command: command, env: env}
			daybooktest.AddOrganization(t, c.Pool, daybooktest.Organization{ID: "acme"})
			scenario(c)
		})
	}
}

func (c *conformance) outcomes() {
	ids := make([]string, len(cases))
	for i, k := range cases {
		ids[i] = c.enqueue("quick", fmt.Sprintf(`{"do": %q, "note": "a"}`, k.do), k.options)
	}
	foreign := c.enqueue("other", `{}`, queue.JobOptions{})
	worker := c.start()
	c.until("all are worked", workedStmt+` AND type <> 'other'`)
	for i, k := range cases {
		assert.Equal(c.t, strings.ReplaceAll(k.want, "$id", ids[i]), c.text(stateStmt, ids[i]), k.do)
	}
	assert.Equal(c.t, "pending", c.text(`SELECT state::text FROM daybook.jobs WHERE id = $1`, foreign))
	assert.Equal(c.t, "patient quick", c.text(
		`SELECT string_agg(t, ' ' ORDER BY t) FROM daybook.live_job_workers w, unnest(w.types) t`), "it is on record")
	assert.Equal(c.t, "3", c.text(`SELECT max_attempts::text FROM daybook.job_types WHERE type = 'quick'`))
	c.stopped(worker)
	said := worker.log.String()
	assert.Contains(c.t, said, "were they renamed or removed?")
	for i, k := range cases {
		if state, _, _ := strings.Cut(k.want, " "); state == "failed" || state == "pending" && !strings.Contains(k.want, "SNOOZED") {
			assert.Contains(c.t, said, ids[i], "an attempt that failed is told: %s", k.do)
		}
	}
}

// order: high priorities first, and the jobs of a sequence one after the other, also around one
// that is put off.
func (c *conformance) order() {
	for _, note := range []string{"1", "2", "3", "4"} {
		c.enqueue("quick", fmt.Sprintf(`{"do": "note", "note": %q}`, note), queue.JobOptions{Sequence: "s"})
	}
	c.start()
	c.until("the sequence is worked", `SELECT count(*) = 4 FROM app.effects`)
	assert.Equal(c.t, "1 2 3 4", c.text(`SELECT string_agg(note, ' ' ORDER BY id) FROM app.effects`))
}

// limits: of a queue, of an organization, their rates, and a pause of each.
func (c *conformance) limits() {
	_, err := c.Pool.Exec(c.t.Context(), `
SELECT daybook.set_queue('narrow', max_parallel => 1), daybook.set_queue('rated', rate => 4), daybook.set_queue('paused');
UPDATE daybook.queues SET paused_at = now() WHERE name = 'paused';
INSERT INTO daybook.organizations (id, name, max_in_flight) VALUES ('small', 'small', 1);
INSERT INTO daybook.organizations (id, name, rate, rate_seconds) VALUES ('even', 'even', 4, 1);
INSERT INTO daybook.organizations (id, name, paused_at) VALUES ('closed', 'closed', now());
SELECT daybook.enqueue_job('small', 'quick', '{"do": "nap"}') FROM generate_series(1, 4);
SELECT daybook.enqueue_job('even', 'quick', '{"do": "nap"}') FROM generate_series(1, 4);
SELECT daybook.enqueue_job('closed', 'quick', '{"do": "nap"}')`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(c.t, err)
	for _, name := range []string{"narrow", "narrow", "narrow", "narrow", "rated", "rated", "rated", "rated", "paused"} {
		c.enqueue("quick", `{"do": "nap"}`, queue.JobOptions{Queue: name})
	}
	c.start()
	c.start()
	c.until("all but what is paused", `SELECT count(*) = 16 FROM daybook.jobs WHERE state = 'completed'`)
	const most = `
SELECT max((SELECT count(*) FROM daybook.jobs o WHERE (o.queue = j.queue OR o.org_id = j.org_id AND j.queue IS NULL) AND o.completed_started_at <= j.completed_started_at AND o.finished_at > j.completed_started_at))::text
  FROM daybook.jobs j WHERE `
	assert.Equal(c.t, "1", c.text(most+`queue = 'narrow'`), "at a time")
	assert.Equal(c.t, "1", c.text(most+`org_id = 'small'`), "at a time")
	for _, of := range []string{"queue = 'rated'", "org_id = 'even'"} {
		assert.Equal(c.t, "true", c.text(`
SELECT (max(completed_started_at) - min(completed_started_at) > interval '0.7 seconds')::text FROM daybook.jobs WHERE `+of), of)
	}
	assert.Equal(c.t, "2", c.text(`SELECT count(*)::text FROM daybook.jobs WHERE state = 'pending'`))
}

func (c *conformance) cancelled() {
	id := c.enqueue("patient", `{"do": "hang"}`, queue.JobOptions{})
	c.start()
	c.until("it runs", runsStmt, id)
	_, err := queue.CancelJob(c.t.Context(), c.Pool, id)
	require.NoError(c.t, err)
	c.until("it is cancelled", `SELECT state = 'cancelled' FROM daybook.jobs WHERE id = $1`, id)
}

// killed: what a killed worker leaves is worked by another one, once more, and its effect is there
// once.
func (c *conformance) killed() {
	id := c.enqueue("patient", `{"do": "hang once", "note": "a"}`, queue.JobOptions{})
	victim := c.start()
	c.until("it runs", runsStmt, id)
	require.NoError(c.t, victim.Process.Kill())
	<-victim.ended
	c.goWorker().start() // reclaims what it finds, of its own language or another's, and works it
	c.until("it is worked again", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, id)
	assert.Equal(c.t, "completed 2 effects a", c.text(stateStmt, id))
	assert.Equal(c.t, "1 lost JOB_LOCK_TIMEOUT_RECLAIMED, 2 completed", c.text(`
SELECT string_agg(concat_ws(' ', attempt, outcome, error_code), ', ' ORDER BY attempt) FROM daybook.attempts WHERE job_id = $1`, id))
}

// goWorker is the same database with workers in Go.
func (c *conformance) goWorker() *conformance {
	return &conformance{DB: c.DB, t: c.t, command: []string{os.Args[0]}}
}

// alone: what a killed worker leaves is worked by another one of its language where there is none
// in Go, and what has no handler for a while comes back.
func (c *conformance) alone() {
	id := c.enqueue("patient", `{"do": "hang once", "note": "a"}`, queue.JobOptions{})
	lacked := c.enqueue("patient", `{"do": "note", "note": "b"}`, queue.JobOptions{})
	_, err := c.Pool.Exec(c.t.Context(), `
UPDATE daybook.jobs SET state = 'failed', finished_at = now(), last_error = 'x', last_error_code = 'HANDLER_MISSING' WHERE id = $1`, lacked)
	require.NoError(c.t, err)
	victim := c.start()
	c.until("it runs", runsStmt, id)
	c.until("the other has come back", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, lacked)
	require.NoError(c.t, victim.Process.Kill())
	<-victim.ended
	c.start()
	c.until("it is worked again", `SELECT state = 'completed' FROM daybook.jobs WHERE id = $1`, id)
	assert.Equal(c.t, "completed 2 effects a", c.text(stateStmt, id))
}

// together: a worker of the language and one in Go work the same jobs, each once.
func (c *conformance) together() {
	_, err := c.Pool.Exec(c.t.Context(),
		`SELECT daybook.enqueue_job('acme', 'quick', '{"do": "note", "note": "a"}') FROM generate_series(1, 500)`)
	require.NoError(c.t, err)
	c.start()
	c.goWorker().start()
	c.until("all are worked", `SELECT count(*) = 500 FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`)
	assert.Equal(c.t, "500 of 500", c.text(`SELECT count(DISTINCT job_id) || ' of ' || count(*) FROM app.effects`))
}

// stops: a worker that is to stop ends what runs, and begins nothing.
func (c *conformance) stops() {
	id := c.enqueue("patient", `{"do": "nap"}`, queue.JobOptions{})
	worker := c.start()
	c.until("it runs", runsStmt, id)
	c.stopped(worker)
	assert.Equal(c.t, "completed 1", c.text(stateStmt, id))
}

// givesBack: what has not ended within the grace period is due again, and no attempt is counted.
func (c *conformance) givesBack() {
	id := c.enqueue("patient", `{"do": "hang", "note": "a"}`, queue.JobOptions{})
	worker := c.start("GRACE=0.2")
	c.until("it runs", runsStmt, id)
	c.stopped(worker)
	assert.Equal(c.t, "pending 0", c.text(`SELECT state || ' ' || run_count FROM daybook.jobs WHERE id = $1`, id))
}

// sessionsEnd: a worker whose sessions are ended again and again goes on, and completes what its
// handlers have done in time, also later than that.
func (c *conformance) sessionsEnd() {
	_, err := c.Pool.Exec(c.t.Context(),
		`SELECT daybook.enqueue_job('acme', 'quick', '{"do": "nap"}') FROM generate_series(1, 20)`)
	require.NoError(c.t, err)
	worker := c.start()
	c.until("all are worked", `
SELECT count(*) = 20 FROM daybook.jobs WHERE state = 'completed' AND (SELECT count(pg_terminate_backend(pid)) >= 0 FROM pg_stat_activity
        WHERE application_name = 'daybook worker' AND datname = current_database() AND extract(epoch FROM clock_timestamp())::bigint % 4 > 0)`)
	assert.Equal(c.t, "0", c.text(`SELECT count(*)::text FROM daybook.attempts WHERE outcome <> 'completed'`))
	c.stopped(worker)
}

// TestPythonWorkerIsInstalled installs the library as pip does, from its folder.
func TestPythonWorkerIsInstalled(t *testing.T) {
	leisurely(t)
	t.Parallel()
	interpreter := python(t, "psycopg, setuptools, wheel, pip")
	dir := t.TempDir()
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	require.NoError(t, os.CopyFS(source, os.DirFS("../../clients/python"))) // pip leaves files beside what it builds
	run(t, dir, interpreter, "-m", "pip", "install", "--no-build-isolation", "--no-index", "--no-deps", "--no-cache-dir",
		"--target", target, source)
	require.NoError(t, os.RemoveAll(source))
	run(t, target, interpreter, "-c", "import daybook_worker; daybook_worker.Worker('postgresql://')")
	assert.FileExists(t, filepath.Join(target, "daybook_worker", "py.typed"))
	assert.Contains(t, only(t, target, "METADATA"), "\nVersion: "+released.Version+"\n")
	assert.Contains(t, only(t, target, "METADATA"), "# A Python worker of background jobs")
	license, err := os.ReadFile("../../LICENSE")
	require.NoError(t, err)
	assert.Equal(t, string(license), only(t, target, "LICENSE"))
}

// only reads the one file of that name below a folder.
func only(t *testing.T, dir, name string) string {
	t.Helper()
	var texts []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != name {
			return err
		}
		text, err := os.ReadFile(path)
		texts = append(texts, string(text))
		return err
	}))
	require.Len(t, texts, 1, name)
	return texts[0]
}

// TestExampleWorkers has the worker in each language confirm an order, and stop.
func TestExampleWorkers(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]func(t *testing.T) []string{
		"Python": func(t *testing.T) []string {
			t.Helper()
			return []string{python(t, "psycopg"), "python/worker.py"}
		},
		"TypeScript": func(t *testing.T) []string {
			t.Helper()
			return []string{found(t, "node"), filepath.Join(compiled(t, clientSource), "example", "worker.mjs")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &conformance{DB: daybooktest.New(t), t: t, command: command(t), env: pythonPath()}
			daybooktest.AddOrganization(t, c.Pool, daybooktest.Organization{ID: "acme"})
			_, err := c.Pool.Exec(t.Context(), `INSERT INTO app.orders (id, org_id, customer, net) VALUES ('o', 'acme', 'c', 1)`)
			require.NoError(t, err)
			good := c.enqueue("order_confirmation", `{"order_id": "o"}`, queue.JobOptions{})
			bad := c.enqueue("order_confirmation", `{}`, queue.JobOptions{})
			worker := c.start()
			c.until("both are worked", `SELECT count(*) = 2 FROM daybook.jobs WHERE finished_at IS NOT NULL`)
			c.stopped(worker)
			assert.Equal(t, `completed 1 {"confirmed": "o"}`, c.text(stateStmt, good))
			assert.Equal(t, "failed 1 PAYLOAD_INVALID", c.text(stateStmt, bad))
			assert.Equal(t, "true", c.text(`SELECT confirmed::text FROM app.orders`))
			assert.Equal(t, "true", c.text(`SELECT bool_and(stopped_at IS NOT NULL)::text FROM daybook.job_workers`))
		})
	}
}

// TestWorkersOfThePage runs the workers that docs/language-workers.md begins with.
func TestWorkersOfThePage(t *testing.T) {
	t.Parallel()
	for language, file := range map[string]struct{ name, before, library string }{
		"python": {"worker.py", "write = lambda payload: 'Dear ' + payload['email']\n", ""},
		"ts":     {"worker.mjs", "const write = (payload) => 'Dear ' + payload.email;\n", "daybook-client/worker"},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			blocks, err := pages.Of("docs/language-workers.md", language)
			require.NoError(t, err)
			require.Len(t, blocks, 1)
			c := &conformance{DB: daybooktest.New(t), t: t, env: pythonPath()}
			code := file.before + strings.ReplaceAll(blocks[0].Text, "postgresql://…", c.URL)
			path := filepath.Join(t.TempDir(), file.name)
			if file.library == "" {
				c.command = []string{python(t, "psycopg"), path}
			} else {
				c.command = []string{found(t, "node"), path}
				code = strings.ReplaceAll(code, file.library, filepath.Join(compiled(t, clientSource), "dist", "worker.js"))
			}
			require.NoError(t, os.WriteFile(path, []byte(code), 0o600))
			daybooktest.AddOrganization(t, c.Pool, daybooktest.Organization{ID: "acme"})
			_, err = c.Pool.Exec(t.Context(), `CREATE TABLE public.greeted (email text)`)
			require.NoError(t, err)
			job := c.enqueue("welcome", `{"email": "ada@example.com"}`, queue.JobOptions{})
			worker := c.start()
			c.until("the job is worked", `SELECT count(*) = 1 FROM daybook.jobs WHERE finished_at IS NOT NULL`)
			c.stopped(worker)
			assert.Equal(t, `completed 1 {"sent": "Dear ada@example.com"}`, c.text(stateStmt, job))
			assert.Equal(t, "ada@example.com", c.text(`SELECT email FROM public.greeted`))
		})
	}
}

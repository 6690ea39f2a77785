package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/dev/testdb"
	"github.com/daybook-dev/daybook/migrations"
)

// temporalPaths are the commands that ask Temporal, each as its role, while a worker runs.
func temporalPaths() []inRole {
	line := func(text string) inRole { return inRole{args: strings.Fields(text)} }
	schedule := line("schedules create nightly --org de --type webhook --every 24h")
	schedule.args = append(schedule.args, "--payload", `{"url": "https://example.com/"}`)
	return []inRole{
		line("workflow start"), line("workflow show"), line("workflow configure jobs --concurrency 2"),
		line("workflow pause tasks"), line("workflow resume tasks"),
		schedule, line("schedules list"), line("schedules pause nightly"), line("schedules resume nightly"),
		line("schedules trigger nightly"), line("schedules delete nightly"),
		line("status"), line("top"), line("doctor"),
		line("workflow cancel --all"),
	}
}

// endless are the commands that run until a signal; a test of this file runs each as its role.
var endless = []string{"worker", "serve"}

// ownersPaths are the commands that only the schema's owner may run, in an order in which each
// finds what it needs.
func ownersPaths(dir string) []inRole {
	line := func(text string) inRole { return inRole{args: strings.Fields(text)} }
	return []inRole{
		line("migrate up"), line("migrate status"), line("migrate dump"),
		line("accounts import ../../internal/moving/sample/chart.csv --org acme --create"),
		line("rules apply ../../internal/moving/sample/rules.yaml --org acme"),
		line("adopt accounting-queue --entries public.legacy_entries --apply"), line("adopt accounting-queue --undo"),
		line("adopt async-operations --org acme --apply"), line("adopt async-operations --undo"),
		line("archive restore --all --archive " + dir), line("erase --org acme --all --no-archive"),
		line("migrate down --all --delete-data"),
	}
}

// No command is left out: each that needs a role stands in one of the lists of these tests.
func TestEveryCommandIsTestedAsItsRole(t *testing.T) {
	t.Parallel()
	a, err := cli.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	require.NoError(t, err)
	root := newRoot(a)
	tested := map[string]bool{}
	for _, name := range endless {
		tested[name] = true
	}
	for _, list := range [][]inRole{mainPaths("1", "."), temporalPaths(), ownersPaths(".")} {
		for _, path := range list {
			command, _, err := root.Find(path.args)
			require.NoError(t, err)
			tested[pathOf(command)] = true
		}
	}
	for _, path := range leaves(root) {
		if r, _ := roleOf(path); r != noRole {
			assert.True(t, tested[path],
				"daybook %s is tested as %s by no test: add it to mainPaths, temporalPaths or ownersPaths", path, r)
		}
	}
}

// begin runs a command as the role until end is called, which returns its exit code.
func (l login) begin(stderr *lines, args ...string) (end func() int) {
	l.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(l.t.Context()))
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"--database-url", l.pool.Config().ConnString()}, args...), strings.NewReader(""),
			&bytes.Buffer{}, stderr)
	}()
	return func() int { stop(); return <-ended }
}

// said is what was logged up to now.
func (l *lines) said() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.whole.String()
}

// A worker that is logged in as daybook_worker posts and executes, and the commands that ask
// Temporal work beside it, each as its role.
func TestTemporalCommandsInTheirRoles(t *testing.T) {
	server := temporaltest.Shared(t)
	inNamespace(t, server, server.Namespace(t))
	b := setup(t)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	t.Setenv("DAYBOOK_TASKS_DATABASE_URL", b.As(t, "worker_service_user").Config().ConnString())
	roles := map[role]login{domain: b.as(domain), worker: b.as(worker), operator: b.as(operator), reader: b.as(reader)}
	ok := func(r role, args ...string) result {
		done := roles[r].run("", args...)
		require.Zero(t, done.exit, "%s: daybook %s: %s%s", r, strings.Join(args, " "), done.err, done.out)
		return done
	}
	for _, org := range []string{"de", "es", "jp"} {
		ok(operator, "accounts", "import", "../../internal/moving/sample/chart.csv", "--org", org, "--create")
		ok(operator, "rules", "apply", "../../internal/moving/sample/rules.yaml", "--org", org)
	}
	ok(domain, "import", "ndjson", "dev/documents.ndjson", "--create")
	ok(domain, "jobs", "enqueue", "--create", "cleanup", "--org", "de", "--payload", `{"jobs_days": 30}`)
	ok(operator, "workflow", "start")

	log := &lines{next: make(chan string, 1)}
	end := roles[worker].begin(log, "worker", "--name", "w1")
	require.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed'`) == 10 &&
			fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`) == 1
	}, 2*time.Minute, 50*time.Millisecond)
	assert.Zero(t, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.attempts WHERE error ILIKE '%permission denied%'`))
	// As a role that may not write the log they do nothing: below, each finds what it needs as its
	// own role.
	for _, path := range temporalPaths() {
		if r, _ := roleOf(strings.Join(path.args[:min(2, len(path.args))], " ")); r == operator {
			done := roles[reader].run("", path.args...)
			assert.Equal(t, failure.ExitFailure, done.exit, "daybook %s: %s%s", strings.Join(path.args, " "), done.err,
				done.out)
			assert.Contains(t, done.err, "lacks INSERT on daybook.actions", strings.Join(path.args, " "))
			assert.Contains(t, done.err, "needs the rights of daybook_operator", strings.Join(path.args, " "))
		}
	}
	for _, path := range temporalPaths() {
		r, _ := roleOf(strings.Join(path.args[:min(2, len(path.args))], " "))
		var done result
		if r == noRole {
			done = call(t.Context(), "", path.args...)
		} else {
			done = roles[r].run("", path.args...)
		}
		assert.NotContains(t, done.err+done.out, "permission denied", "%s: daybook %s", r, strings.Join(path.args, " "))
		assert.NotContains(t, done.err, "not in the log of actions", "%s: daybook %s", r, strings.Join(path.args, " "))
		assert.Contains(t, []int{failure.ExitOK, failure.ExitWarnings}, done.exit, "%s: daybook %s: %s%s", r,
			strings.Join(path.args, " "), done.err, done.out)
	}
	weekly := []string{"schedules", "create", "weekly", "--org", "acne", "--type", "cleanup", "--every", "168h"}
	misspelt := roles[operator].run("", weekly...)
	assert.Equal(t, failure.ExitNotFound, misspelt.exit)
	assert.Contains(t, misspelt.err, "Daybook knows no organization acne")
	ok(operator, append(weekly, "--create")...)
	assert.Zero(t, end())
	assert.NotContains(t, log.said(), "permission denied")
	assert.NotZero(t, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.actions WHERE action = 'workflow.configure' AND db_role = 'daybook_operator'`))
}

// answerOf sends a request with a token, and returns its status and its body.
func answerOf(t *testing.T, method, address, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// A program that runs until a signal ends at once as a role that cannot do its work, before it says
// that it runs.
func TestProgramsRefuseAnotherRole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	for _, program := range []struct {
		needs role
		args  []string
		wrong []role
	}{
		{serving, []string{"serve", "--listen", "127.0.0.1:0"}, []role{reader, domain, operator, worker}},
		{worker, []string{"worker"}, []role{reader, domain, operator}},
	} {
		for _, wrong := range program.wrong {
			log := &lines{next: make(chan string, 100)}
			end := b.as(wrong).begin(log, append(program.args, "--json")...)
			first := <-log.next
			assert.Equal(t, failure.ExitFailure, end(), first)
			assert.Contains(t, first, `"code":"ROLE_LACKS_RIGHT"`, "%s as %s", program.needs, wrong)
			assert.Contains(t, first, "needs the rights of "+string(program.needs), "as %s", wrong)
		}
	}
}

// A server that is logged in as daybook_server answers, and enqueues for a token; the status is
// watched by daybook_reader.
func TestServeAndWatchInTheirRoles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	secret := strings.TrimSpace(b.as(operator).run("", "tokens", "create", "--name", "shop", "--scope",
		"read,enqueue,operate", "--all-orgs").out)
	log := &lines{next: make(chan string, 100)}
	end := b.as(serving).begin(log, "serve", "--listen", "127.0.0.1:0")
	var begun struct{ Address string }
	select {
	case line := <-log.next:
		require.NoError(t, json.Unmarshal([]byte(line), &begun), line)
	case <-time.After(time.Minute):
		require.Fail(t, "it does not serve", log.said())
	}
	for _, request := range []struct{ method, path, body string }{
		{http.MethodGet, "/api/stats", ""},
		{http.MethodPost, "/api/jobs/enqueue", `{"orgId": "acme", "type": "mail", "payload": {}}`},
		{http.MethodGet, "/metrics", ""},
		{http.MethodGet, "/readyz", ""},
	} {
		status, body := answerOf(t, request.method, begun.Address+request.path, secret, request.body)
		assert.Less(t, status, 300, "%s: %s", request.path, body)
	}
	assert.Zero(t, end())
	assert.NotContains(t, log.said(), "permission denied")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &counting{stop: stop}
	address := b.as(reader).pool.Config().ConnString()
	assert.Zero(t, run(ctx, []string{"--database-url", address, "status", "--no-temporal", "--watch", "0.1"},
		strings.NewReader(""), out, &bytes.Buffer{}))
	assert.NotContains(t, out.all.String(), "cannot be read")
}

// ownerOf makes a login role that owns the database and may make roles, and nothing else: no
// superuser.
func ownerOf(t *testing.T, db *pgtest.DB) login {
	t.Helper()
	name := "owner_" + strings.ToLower(db.Name)
	for _, stmt := range []string{
		`CREATE ROLE "` + name + `" LOGIN PASSWORD 'for-a-test'`, `GRANT "` + name + `" TO CURRENT_USER`,
		`ALTER DATABASE "` + db.Name + `" OWNER TO "` + name + `"`,
		`ALTER SCHEMA public OWNER TO "` + name + `"`,
	} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := db.Pool.Exec(context.WithoutCancel(t.Context()),
			`REASSIGN OWNED BY "`+name+`" TO CURRENT_USER; DROP OWNED BY "`+name+`" CASCADE; DROP ROLE "`+name+`"`)
		assert.NoError(t, err)
	})
	address, err := url.Parse(db.URL)
	require.NoError(t, err)
	address.User = url.UserPassword(name, "for-a-test")
	pool, err := pgxpool.New(t.Context(), address.String())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return login{t, pool}
}

// The commands of the schema's owner need no superuser. A database without the schema is shown as
// such to each role.
func TestTheOwnersCommands(t *testing.T) {
	t.Parallel()
	b := &bundle{pgtest.NewEmpty(t), t}
	own := ownerOf(t, b.DB)
	first := own.run("", "migrate", "status")
	assert.Equal(t, failure.ExitSchema, first.exit, first.err)
	assert.Contains(t, first.out, "no")
	dir := t.TempDir()
	for _, path := range ownersPaths(dir) {
		done := own.run("", path.args...)
		assert.Zero(t, done.exit, "daybook %s: %s", strings.Join(path.args, " "), done.err)
		if path.args[0] == "migrate" && path.args[1] == "up" {
			(&bundle{&pgtest.DB{Database: &testdb.Database{Pool: own.pool}}, t}).legacy()
			_, err := own.pool.Exec(t.Context(),
				`CREATE TABLE public.async_operations (id uuid PRIMARY KEY, operation_type text NOT NULL, payload jsonb NOT NULL, status text NOT NULL, last_error text)`)
			require.NoError(t, err)
			require.NoError(t, migrations.Roles(t.Context(), b.URL))
			asWorker := b.as(worker).run("", "archive", "move", "--before", "1h", "--archive", dir)
			assert.Zero(t, asWorker.exit, asWorker.err)
		}
	}
}

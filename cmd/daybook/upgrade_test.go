package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/dev/released"
	"github.com/daybook-dev/daybook/migrations"
)

// oldProgram names the program of the release before, which then works as a process of its own. Without
// it this build is the older program: of one that has a migration more.
const oldProgram = "DAYBOOK_TEST_OLD_PROGRAM"

// shippedMigrations are those of package migrations: with one more, this test program is a newer one.
//
//go:linkname shippedMigrations github.com/daybook-dev/daybook/migrations.shipped
var shippedMigrations struct{ files fs.FS }

// newer makes this program one that has a migration more, until back is called.
func newer(t *testing.T) (back func()) {
	t.Helper()
	paths, err := filepath.Glob("../../migrations/0*.sql")
	require.NoError(t, err)
	all := fstest.MapFS{"00099_later.sql": {Data: []byte(`-- +goose Up
ALTER TABLE daybook.jobs ADD COLUMN later text;
ALTER TABLE daybook.documents ADD COLUMN later text;
-- +goose Down
ALTER TABLE daybook.documents DROP COLUMN later;
ALTER TABLE daybook.jobs DROP COLUMN later;
`)}}
	for _, path := range paths {
		all[filepath.Base(path)] = &fstest.MapFile{Data: []byte(read(t, path))}
	}
	before := shippedMigrations.files
	shippedMigrations.files = all
	back = func() { shippedMigrations.files = before }
	t.Cleanup(back)
	return back
}

// worker starts a worker, of another program if one is named, and waits until it works. It is logged
// in as daybook_worker, so that it fails where this build's roles lack what that program needs. end
// ends it in an orderly way.
func (b *bundle) worker(name, program string) (end func()) {
	b.t.Helper()
	log := &lines{next: make(chan string, 1)}
	l := b.as(worker)
	var stop func() int
	if program == "" {
		stop = l.begin(log, "worker", "--name", name)
	} else {
		command := exec.CommandContext(context.WithoutCancel(b.t.Context()), program, "--database-url", l.pool.Config().ConnString(), "worker", "--name", name)
		command.Stderr = log
		require.NoError(b.t, command.Start())
		stop = func() int {
			assert.NoError(b.t, command.Process.Signal(syscall.SIGTERM))
			_ = command.Wait()
			return command.ProcessState.ExitCode()
		}
	}
	end = func() { assert.Zero(b.t, stop(), log.said()) }
	if !assert.Eventually(b.t, func() bool { return strings.Count(log.said(), `"msg":"the worker has started"`) == 3 },
		pgtest.Patience, 10*time.Millisecond, "%s does not start", name) {
		end()
		b.t.Fatal(log.said())
	}
	return end
}

// by calls a command of a program, or of this build if none is named, that must succeed.
func (b *bundle) by(program string, args ...string) {
	b.t.Helper()
	if program == "" {
		b.ok(args...)
		return
	}
	said, err := exec.CommandContext(b.t.Context(), program, append([]string{"--database-url", b.URL}, args...)...).CombinedOutput()
	require.NoError(b.t, err, "%s %s: %s", program, strings.Join(args, " "), said)
}

// sound wants an audit that finds nothing wrong.
func (b *bundle) sound() {
	b.t.Helper()
	r := b.run("audit", "--all-orgs")
	require.Zero(b.t, r.exit, "%s%s", r.out, r.err)
}

// load enqueues documents, jobs and tasks until end is called, which returns how many of each.
func (b *bundle) load() (end func() int) {
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-b.t.Context().Done():
				return
			case <-stop:
				done <- n
				return
			case <-time.After(20 * time.Millisecond):
			}
			_, err := b.Pool.Exec(b.t.Context(), `SELECT app.document($1), app.job($1 || '-job'), app.task($1 || '-task')`, "load-"+strconv.Itoa(n))
			if b.t.Context().Err() == nil && assert.NoError(b.t, err) {
				n++
			}
		}
	}()
	return func() int { close(stop); return <-done }
}

// TestUpgradeOfAReleaseUnderLoad: the database of the newest release is upgraded while it has work,
// with workers of both programs side by side. All that can be done is done, once. What follows that
// release is applied beside its own worker only where its program is named (`make release-check`).
func TestUpgradeOfAReleaseUnderLoad(t *testing.T) {
	server := temporaltest.Shared(t)
	if *keepSurface {
		inNamespace(t, server, server.Namespace(t))
		keepDump(t)
	}
	inNamespace(t, server, server.Namespace(t))
	dump, err := released.Dump(checkout)
	require.NoError(t, err)
	require.NoError(t, migrations.Roles(t.Context(), pgtest.New(t).URL)) // which belong to the server
	b := &bundle{pgtest.NewEmpty(t), t}
	b.Restore(t, dump)

	// The chapters of a release stay as they are: changed, they are refused here by SCHEMA_DIFFERENT.
	// Before the release itself, `make keep` writes the dump anew.
	if err := migrations.Verify(t.Context(), b.Pool); !errors.Is(err, migrations.ErrPending) {
		require.NoError(t, err)
	}
	assert.Equal(t, released.Schema, fixture.Count(t, b.Pool, `SELECT max(version_id) FROM daybook.schema_migrations`))
	assert.Empty(t, b.emptyTables())
	t.Setenv("DAYBOOK_DB_FUNCTIONS", "app.visit")
	t.Setenv("DAYBOOK_TASKS_DATABASE_URL", b.As(t, "worker_service_user").Config().ConnString())

	old := os.Getenv(oldProgram)
	if old != "" {
		b.by(old, "audit", "--all-orgs")
	}
	endLoad := b.load()
	if old == "" {
		b.do("daybook migrate up --roles") // this build works with its own schema
	}
	b.by(old, "workflow", "start")
	endOld := b.worker("old", old)
	b.do("daybook migrate up --roles") // what this build has more than that release
	back := newer(t)
	b.do("daybook migrate up")
	endNew := b.worker("new", "")
	back()
	endOld()
	endOld = b.worker("old again", old) // a program that is rolled back starts
	n := endLoad()
	require.Positive(t, n)

	b.await(`SELECT count(*) FROM daybook.accounting_work_queue WHERE state IN ('pending', 'leased') AND org_id = 'beta'`,
		`SELECT count(*) FROM daybook.jobs WHERE type = 'db_function' AND state IN ('pending', 'leased') AND queue IS NULL`,
		`SELECT count(*) FROM queues.open_task WHERE task_type = 'db_function'`)
	endOld()
	endNew()
	assert.Equal(t, n, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts WHERE org_id = 'beta' AND document_id LIKE 'load-%'`))
	assert.Equal(t, n, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE org_id = 'beta' AND document_id LIKE 'load-%' AND outcome = 'completed'`))
	assert.Equal(t, n, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE payload #>> '{argument,key}' LIKE 'load-%' AND state = 'completed' AND run_count = 1`))
	assert.Equal(t, 2*n, fixture.Count(t, b.Pool, `SELECT count(*) FROM app.visits WHERE key LIKE 'load-%'`))
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM (SELECT FROM app.visits GROUP BY key HAVING count(*) > 1) twice`))
	for _, key := range []string{"done-1", "done-2", "bank-1", "task-1", "leased-1", "leased-2", "due-1", "task-2", "task-3"} {
		assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM app.visits WHERE key = $1`, key), key)
	}
	// What the worker that is gone had: a document is posted, and what no worker has a handler for waits with its step.
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE org_id = 'beta' AND document_id = 'inv-1' AND state = 'completed'`))
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs j JOIN daybook.job_steps s ON s.job_id = j.id WHERE j.type = 'mail' AND j.state = 'pending'`))
	b.sound()

	r := b.run("migrate", "down")
	assert.Equal(t, failure.ExitUsage, r.exit, r.err)
	assert.Contains(t, r.err, "the database holds data")
}

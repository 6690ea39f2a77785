package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/cmd/daybook/keep"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models/locks"
)

// interrupted interrupts a command as soon as a query of one row is true.
func (b *bundle) interrupted(when string, args ...string) result {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	ended := make(chan result, 1)
	go func() { ended <- call(ctx, "", append([]string{"--database-url", b.URL, "--json"}, args...)...) }()
	require.Eventually(b.t, func() bool {
		var now bool
		err := b.Pool.QueryRow(b.t.Context(), when).Scan(&now)
		return err == nil && now
	}, time.Minute, 10*time.Millisecond)
	cancel()
	r := <-ended
	assert.Equal(b.t, failure.ExitInterrupted, r.exit, r.err)
	return r
}

// An erasure that is interrupted while it waits for a job says what it has erased, and that it is
// not complete.
func TestInterruptedErasureSaysWhatItDid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.background("webhook", "--org", "acme", "--skip-validation")
	b.background("report", "--org", "acme", "--skip-validation")
	_, err := b.Pool.Exec(t.Context(), `
UPDATE daybook.jobs SET state = 'leased', turn_id = 't', fence = 1, leased_generation = generation, attempt_started_at = clock_timestamp(), last_attempted_at = clock_timestamp(), working = true, run_count = 1
 WHERE type = 'report'`)
	require.NoError(t, err)
	r := b.interrupted(`SELECT bool_and(counts ->> 'jobs' = '1') FROM daybook.erasures`, "erase", "--org", "acme",
		"--all", "--no-archive")
	var proof store.Erasure
	require.NoError(t, json.Unmarshal([]byte(r.out), &proof), r.out)
	assert.EqualValues(t, 1, proof.Counts["jobs"])
	assert.Nil(t, proof.FinishedAt)
	assert.Contains(t, r.err, "the erasure "+proof.ID+" is not complete, erase again")
}

// A command that moves batches to the archive, or back, and is interrupted says how many it has
// moved.
func TestInterruptedArchivingSaysWhatItDid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		b.background("webhook", "--org", "acme", "--skip-validation")
	}
	_, err := b.Pool.Exec(t.Context(),
		`UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp() - interval '40 days', run_count = 1`)
	require.NoError(t, err)
	_, err = b.Pool.Exec(t.Context(), `
CREATE FUNCTION public.second() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF (SELECT count(*) = 2 OR count(restored_at) = 2 FROM daybook.archives) THEN PERFORM pg_advisory_lock(7); END IF; RETURN NULL; END $$;
CREATE TRIGGER second AFTER INSERT OR UPDATE ON daybook.archives FOR EACH ROW EXECUTE FUNCTION public.second()`)
	require.NoError(t, err)
	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	lock := func(what string) {
		_, err := conn.Exec(t.Context(), `SELECT pg_advisory_`+what+`(7)`)
		require.NoError(t, err)
	}
	lock("lock")
	const waits = `SELECT count(*) = 1 FROM pg_locks JOIN pg_database d ON d.oid = database WHERE datname = current_database() AND locktype = 'advisory' AND objid = 7 AND NOT granted`
	dir := filepath.Join(t.TempDir(), "archive")
	move := []string{"archive", "move", "--before", "720h", "--batch", "1", "--archive", dir}
	var moved keep.MovedRows
	require.NoError(t, camel.Unmarshal([]byte(b.interrupted(waits, move...).out), &moved))
	assert.EqualValues(t, 1, moved.Files)
	assert.EqualValues(t, 1, moved.Counts["jobs"])
	lock("unlock")
	b.json(&moved, move...)
	assert.EqualValues(t, 2, moved.Files)

	lock("lock")
	restore := []string{"archive", "restore", "--all", "--archive", dir}
	var restored keep.RestoredFiles
	require.NoError(t, camel.Unmarshal([]byte(b.interrupted(waits, restore...).out), &restored))
	assert.EqualValues(t, 1, restored.Files)
	lock("unlock")
	b.json(&restored, restore...)
	assert.EqualValues(t, 2, restored.Rows["jobs"])
}

// A migration that is interrupted says what is applied. One that is undone by each call says to
// look first.
func TestInterruptedMigrationsSayWhatIsApplied(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, locks.Migrations)
	require.NoError(t, err)
	const waits = `SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_try_advisory_lock%'`
	for _, command := range []string{"up", "down"} {
		r := b.interrupted(waits, "migrate", command)
		var shown struct{ Migrations []migrations.Step }
		require.NoError(t, json.Unmarshal([]byte(r.out), &shown), r.out)
		require.NotEmpty(t, shown.Migrations)
		assert.True(t, shown.Migrations[len(shown.Migrations)-1].Applied)
		assert.Equal(t, command == "down", strings.Contains(r.err, "Each call undoes one migration"), r.err)
	}
}

// A change that is interrupted while it is committed is either done, and shown, or may have been
// done, and the command says so.
func TestInterruptedCommitIsNotHidden(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("accounts", "import", "../../internal/moving/sample/chart.csv", "--org", "es", "--create")
	b.ok("rules", "apply", withoutSales(t), "--org", "es")
	b.ok("rules", "apply", "../../internal/moving/sample/rules.yaml", "--org", "es", "--no-activate")
	_, err := b.Pool.Exec(t.Context(), `
CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON daybook.organizations DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.slow()`)
	require.NoError(t, err)
	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	const waits = `SELECT count(*) = 1 FROM pg_locks JOIN pg_database d ON d.oid = database WHERE datname = current_database() AND locktype = 'advisory' AND objid = 7 AND NOT granted`
	// inCommit interrupts a command that activates a version, while its commit waits.
	inCommit := func(version string) (interrupt func(), ended chan result) {
		_, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock(7)`)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended = make(chan result, 1)
		go func() { ended <- call(ctx, "", "--database-url", b.URL, "rules", "activate", version, "--org", "es") }()
		require.Eventually(t, func() bool {
			var now bool
			return b.Pool.QueryRow(t.Context(), waits).Scan(&now) == nil && now
		}, time.Minute, 10*time.Millisecond)
		return cancel, ended
	}
	unlock := func() {
		_, err := conn.Exec(t.Context(), `SELECT pg_advisory_unlock(7)`)
		require.NoError(t, err)
	}
	interrupt, ended := inCommit("2")
	interrupt()
	unlock()
	r := <-ended
	assert.Zero(t, r.exit, r.err)
	_, active := b.ruleSets("es")
	assert.EqualValues(t, 2, active)

	interrupt, ended = inCommit("1")
	interrupt()
	r = <-ended
	unlock()
	assert.Equal(t, failure.ExitInterrupted, r.exit)
	assert.Equal(t, "daybook: interrupted: the commit was cut off, and may have succeeded\n", r.err)
}

// A session that does not end, as that of a server that stands still, does not keep a command.
func TestCloseWaitsForNoSession(t *testing.T) {
	t.Parallel()
	a := &cli.App{DatabaseURL: setup(t).URL}
	db, err := a.Open(t.Context(), 1)
	require.NoError(t, err)
	conn, err := db.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	closed := make(chan struct{})
	go func() {
		db.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("it waits for the session")
	}
}

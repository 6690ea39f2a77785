package archive_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/archive"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// completed makes n tasks, of which the last is open.
func completed(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	_, err := pool.Exec(t.Context(),
		`SELECT queues.enqueue_tasks(array_fill('email'::text, ARRAY[$1::int]), array_fill('{"a": "b"}'::jsonb, ARRAY[$1::int]))`, n)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(),
		`SELECT queues.fail_task(task_id, 'busy'), queues.complete_task(task_id) FROM queues.dequeue_available_tasks($1)`,
		n-1)
	require.NoError(t, err)
}

func open(t *testing.T, address string) *archive.Archive {
	t.Helper()
	a, err := archive.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
	return a
}

// ids are those of the tasks in an archive, in the order of the files.
func ids(t *testing.T, dir string) []int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "tasks", "*"))
	require.NoError(t, err)
	var all []int64
	for _, name := range files {
		assert.Equal(t, ".jsonl", filepath.Ext(name), "nothing else is left")
		f, err := os.Open(name)
		require.NoError(t, err)
		for s := bufio.NewScanner(f); s.Scan(); {
			var task struct {
				TaskID      int64     `json:"task_id"`
				CompletedAt time.Time `json:"completed_at"`
				Payload     map[string]string
				Leases      []map[string]any
				Errors      []map[string]any
			}
			require.NoError(t, json.Unmarshal(s.Bytes(), &task))
			assert.Equal(t, map[string]string{"a": "b"}, task.Payload)
			assert.Len(t, task.Leases, 1)
			assert.Equal(t, "busy", task.Errors[0]["error_message"])
			assert.False(t, task.CompletedAt.IsZero())
			all = append(all, task.TaskID)
		}
		require.NoError(t, f.Close())
	}
	return all
}

func TestTasksAreArchived(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	completed(t, db.Pool, 6)
	dir := filepath.Join(t.TempDir(), "of its own")
	a := open(t, dir)
	n, err := a.RemoveTasks(t.Context(), db.Pool, time.Now().Add(-time.Hour), 10)
	require.NoError(t, err)
	assert.Zero(t, n, "nothing is that old")
	for _, want := range []int{2, 2, 1, 0} {
		n, err := a.RemoveTasks(t.Context(), db.Pool, time.Now(), 2)
		require.NoError(t, err)
		assert.Equal(t, want, n)
	}
	assert.Equal(t, []int64{1, 2, 3, 4, 5}, ids(t, dir))
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task`))
	assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_lease`))
	_, err = a.RemoveTasks(t.Context(), db.Pool, time.Now().Add(time.Hour), 2)
	require.ErrorContains(t, err, "in the past")
}

// A commit that fails after the file was written: the tasks are in both, and the next removal
// replaces the file by an equal one.
func TestCrashBetweenTheArchiveAndTheCommitLosesNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	completed(t, db.Pool, 4)
	dir := t.TempDir()
	a := open(t, "file://"+filepath.ToSlash(dir))
	_, err := db.Pool.Exec(t.Context(), `
CREATE FUNCTION public.crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no commit'; END $$;
CREATE CONSTRAINT TRIGGER crash AFTER DELETE ON queues.task_completed DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.crash()`)
	require.NoError(t, err)
	before := time.Now()
	_, err = a.RemoveTasks(t.Context(), db.Pool, before, 10)
	require.ErrorContains(t, err, "no commit")
	assert.Equal(t, []int64{1, 2, 3}, ids(t, dir), "the file came first")
	assert.Equal(t, 3, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_completed`), "and nothing is removed")
	_, err = db.Pool.Exec(t.Context(), `DROP TRIGGER crash ON queues.task_completed`)
	require.NoError(t, err)
	n, err := a.RemoveTasks(t.Context(), db.Pool, before, 10)
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	assert.Equal(t, []int64{1, 2, 3}, ids(t, dir))
}

// A storage that refuses the file: nothing is removed.
func TestRefusedFilesRemoveNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	completed(t, db.Pool, 4)
	dir := t.TempDir()
	a := open(t, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks"), []byte("in the way"), 0o600))
	_, err := a.RemoveTasks(t.Context(), db.Pool, time.Now(), 10)
	var refused *archive.WriteError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 3, fixture.Count(t, db.Pool, `SELECT count(*) FROM queues.task_completed`))
}

// Two that archive at once take different tasks.
func TestTwoArchiversDoNotShareTasks(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	completed(t, db.Pool, 5)
	dir := t.TempDir()
	a := open(t, dir)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT queues.remove_completed_tasks(clock_timestamp(), 2)`)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	n, err := a.RemoveTasks(ctx, db.Pool, time.Now(), 10)
	require.NoError(t, errors.Join(err, tx.Commit(t.Context())))
	assert.Equal(t, 2, n)
	assert.Equal(t, []int64{3, 4}, ids(t, dir))
}

func TestArchivesThatAreNone(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, address := range []string{"", "s3://key:s3cret@bucket", "file://host/path", "file:///%zz", file} {
		_, err := archive.Open(t.Context(), address)
		require.ErrorIs(t, err, archive.ErrAddress, address)
		assert.NotContains(t, err.Error(), "s3cret")
	}
}

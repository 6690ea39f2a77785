package migrations_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// objects lists everything of ours in the database, but for the migrations' own table.
func objects(t *testing.T, db *pgtest.DB) []string {
	t.Helper()
	rows, err := db.Pool.Query(t.Context(), `
SELECT 'relation ' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname IN ('daybook', 'queues', 'internal') AND c.relname NOT LIKE 'schema_migrations%' AND c.relname NOT LIKE 'schema_texts%'
UNION ALL
SELECT 'function ' || p.oid::regprocedure FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ('daybook', 'queues', 'internal')
UNION ALL
SELECT 'enum ' || t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = 'daybook' AND t.typtype = 'e'
 ORDER BY 1`)
	require.NoError(t, err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return list
}

func applied(t *testing.T, db *pgtest.DB) (all, done int) {
	t.Helper()
	steps, err := migrations.Status(t.Context(), db.URL)
	require.NoError(t, err)
	for i, s := range steps {
		assert.EqualValues(t, i+1, s.Version, "numbered without a gap")
		assert.NotEmpty(t, s.File)
		if s.Applied {
			done++
		}
	}
	return len(steps), done
}

func TestUpDownUp(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	ctx := t.Context()
	require.NoError(t, migrations.Up(ctx, db.URL))
	up := objects(t, db)
	require.NotEmpty(t, up)
	require.NoError(t, migrations.Verify(ctx, db.Pool))

	require.NoError(t, migrations.Down(ctx, db.URL, migrations.DownOptions{All: true}))
	require.Empty(t, objects(t, db), "what is left after all migrations were taken back")
	require.ErrorIs(t, migrations.Verify(ctx, db.Pool), migrations.ErrPending)

	require.NoError(t, migrations.Up(ctx, db.URL))
	require.Equal(t, up, objects(t, db))
	require.NoError(t, migrations.Verify(ctx, db.Pool))
}

func TestDownOneByOne(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	all, done := applied(t, db)
	require.Equal(t, all, done)
	for left := all - 1; left >= 0; left-- {
		require.NoError(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{}))
		_, done = applied(t, db)
		require.Equal(t, left, done)
		require.ErrorIs(t, migrations.Verify(t.Context(), db.Pool), migrations.ErrPending)
	}
	require.Empty(t, objects(t, db))
	require.NoError(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{}), "with nothing left to take back")
}

// Each migration, taken back, leaves exactly what was there before it was applied: tables,
// functions, comments, privileges.
func TestDownRestoresExactly(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	all, _ := applied(t, db)
	// The schema itself, which the first command that writes makes, stays.
	_, err := db.Pool.Exec(t.Context(), `CREATE SCHEMA daybook`)
	require.NoError(t, err)
	dumps := []string{db.Dump(t)}
	for n := 1; n <= all; n++ {
		require.NoError(t, migrations.UpByOne(t.Context(), db.URL))
		dumps = append(dumps, db.Dump(t))
		require.NotEqual(t, dumps[n-1], dumps[n], "migration %d changes something", n)
	}
	for n := all - 1; n >= 0; n-- {
		require.NoError(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{}))
		require.Equal(t, dumps[n], db.Dump(t), "migration %d was taken back", n+1)
	}

	require.NoError(t, migrations.Up(t.Context(), db.URL))
	require.Equal(t, dumps[all], db.Dump(t), "up, down to nothing, up again")
	require.NoError(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{All: true}))
	require.Equal(t, dumps[0], db.Dump(t), "all migrations were taken back at once")
}

// Each object stands in one chapter. A later migration may make it anew.
func TestEachObjectIsMadeOnce(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("0*.sql")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), migrations.Baseline)
	made := map[string]string{}
	create := regexp.MustCompile(`(?m)^CREATE (?:OR REPLACE |UNIQUE |CONSTRAINT )*(TABLE|FUNCTION|TYPE|VIEW|INDEX|SEQUENCE|TRIGGER) (?:daybook\.)?([a-z_.]+)`)
	for _, file := range files[:migrations.Baseline] {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		assert.NotContains(t, up, "OR REPLACE", file)
		for _, m := range create.FindAllStringSubmatch(up, -1) {
			object := m[1] + " " + m[2]
			assert.Empty(t, made[object], "%s stands in %s and in %s", object, made[object], file)
			made[object] = file
		}
	}
	assert.Contains(t, made, "FUNCTION enqueue_job")
}

// Taking migrations back does not stop at rows.
func TestDownWithData(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	fixture.Organization(t, db.Pool, "org_1")
	fixture.ManyReady(t, db.Pool, "org_1", "inv-", 3)
	require.NoError(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{All: true, DeleteData: true}))
	require.Empty(t, objects(t, db))
}

func TestUpTwiceIsNothing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	fixture.ManyReady(t, db.Pool, "org_1", "inv-", 3)
	const q = `SELECT count(*) FROM daybook.schema_migrations`
	before := fixture.Count(t, db.Pool, q)
	require.NoError(t, migrations.Up(t.Context(), db.URL))
	assert.Equal(t, before, fixture.Count(t, db.Pool, q))
	assert.Equal(t, 3, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.accounting_work_queue`))
}

// Workers that are started together may all migrate.
func TestConcurrentUp(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	var g errgroup.Group
	for range 8 {
		g.Go(func() error { return migrations.Up(t.Context(), db.URL) })
	}
	require.NoError(t, g.Wait())
	require.NoError(t, migrations.Verify(t.Context(), db.Pool))
	all, done := applied(t, db)
	assert.Equal(t, all, done)
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.schema_migrations WHERE version_id = 1`))
	// A lock goes when its session has ended, a moment after the connection was closed.
	const locks = `SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE locktype = 'advisory' AND datname = $1`
	require.Eventually(t, func() bool { return fixture.Count(t, db.Pool, locks, db.Name) == 0 }, pgtest.Patience,
		10*time.Millisecond,
		"migration locks that are still held")
}

// A migration whose session is ended does not go on beside the one that waited for it.
func TestUpWhoseSessionIsEnded(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	require.NoError(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{}))
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.schema_migrations IN SHARE MODE`) // what is applied is not noted
	require.NoError(t, err)
	up := func() chan error {
		ended := make(chan error, 1)
		go func() { ended <- migrations.Up(t.Context(), db.URL) }()
		return ended
	}
	// waits waits for a session that waits for a lock of a table, and is not the one of that id.
	waits := func(other int) (pid int) {
		require.Eventually(t, func() bool {
			const q = `SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock' AND pid <> $2`
			pid = fixture.Count(t, db.Pool, q, db.Name, other)
			return pid > 0
		}, time.Minute, 10*time.Millisecond)
		return pid
	}
	first := up()
	applies := waits(0)
	second := up()
	eventually(t, db, waitsForMigration)
	const end = `
SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE d.datname = $1 AND l.locktype = 'advisory' AND l.granted`
	_, err = db.Pool.Exec(t.Context(), end, db.Name)
	require.NoError(t, err)
	waits(applies)
	require.NoError(t, tx.Rollback(t.Context()))

	require.NoError(t, <-second)
	err = <-first
	require.Error(t, err)
	assert.Equal(t, failure.DatabaseUnavailable, store.Failure(err), err)
	require.NoError(t, migrations.Verify(t.Context(), db.Pool))
}

// They may give the roles their rights as well.
func TestConcurrentRoles(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var g errgroup.Group
	for range 8 {
		g.Go(func() error { return migrations.Roles(t.Context(), db.URL) })
	}
	require.NoError(t, g.Wait())
}

func TestStatusOfAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	all, done := applied(t, db)
	assert.Positive(t, all)
	assert.Zero(t, done)
}

func TestVerifyKnowsANewerSchema(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(),
		`INSERT INTO daybook.schema_migrations (version_id, is_applied) VALUES (9999, true)`)
	require.NoError(t, err)
	err = migrations.Verify(t.Context(), db.Pool)
	require.ErrorIs(t, err, migrations.ErrNewer)
	require.ErrorContains(t, err, "9999")
}

// A table that another session has locked keeps Verify waiting for some seconds, and not for ever.
func TestVerifyWaitsForNoLockForEver(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"schema_migrations", "schema_texts"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			tx, err := db.Pool.Begin(t.Context())
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.`+table)
			require.NoError(t, err)
			err = migrations.Verify(t.Context(), db.Pool)
			require.ErrorIs(t, err, migrations.ErrNoAnswer)
			assert.False(t, migrations.Wrong(err))
			require.NoError(t, tx.Rollback(t.Context()))
			require.NoError(t, migrations.Verify(t.Context(), db.Pool))
		})
	}
}

func TestVerifySaysWhatToRun(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	require.NoError(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{}))
	err := migrations.Verify(t.Context(), db.Pool)
	require.ErrorIs(t, err, migrations.ErrPending)
	require.NotErrorIs(t, err, migrations.ErrNoAnswer)
	require.ErrorContains(t, err, "daybook migrate up")
}

// A caller that has ended is no database that does not answer.
func TestVerifyOfACallerThatHasEnded(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := migrations.Verify(ended, pgtest.New(t).Pool)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, migrations.ErrNoAnswer)
}

// The same address opens the worker's pool, so it may carry the pool's settings.
func TestAddressWithPoolSettings(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	u, err := url.Parse(db.URL)
	require.NoError(t, err)
	q := u.Query()
	q.Set("pool_max_conns", "7")
	u.RawQuery = q.Encode()
	require.NoError(t, migrations.Up(t.Context(), u.String()))
}

// An address that cannot be used is named without its password.
func TestErrorsKeepThePassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://daybook:s3cret@127.0.0.1:1/nowhere?connect_timeout=2",
		"postgres://daybook:s3cret@127.0.0.1:port/nowhere",
	} {
		err := migrations.Up(t.Context(), address)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "s3cret")
	}
}

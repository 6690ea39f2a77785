package migrations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/migrations"
)

const expand = `-- +goose Up
ALTER TABLE daybook.jobs ADD COLUMN later text;
-- +goose Down
ALTER TABLE daybook.jobs DROP COLUMN later;
`

// A program of the release before works with a schema that a newer one has only added to.
func TestVerifyAcceptsANewerSchemaThatBreaksNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"adds":   {expand, nil},
		"breaks": {"-- +daybook breaks\n" + expand, migrations.ErrNewer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			newer := migrations.Shipped(map[string]string{"00099_later.sql": c.text})
			require.ErrorIs(t, newer.Verify(t.Context(), db.Pool), migrations.ErrPending)
			require.NoError(t, newer.Up(t.Context(), db.URL))
			require.NoError(t, newer.Verify(t.Context(), db.Pool))
			require.ErrorIs(t, migrations.Verify(t.Context(), db.Pool), c.want)

			require.ErrorIs(t, migrations.Up(t.Context(), db.URL), c.want, "the older program adds nothing, and takes nothing back")
			steps, err := migrations.Status(t.Context(), db.URL)
			require.NoError(t, err)
			assert.Equal(t, migrations.Step{Version: 99, Applied: true}, steps[len(steps)-1])
			require.Error(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{}), "the older program does not have its text")
		})
	}
}

// An index that a newer program drops, and says so by dropping it in a migration, is not missed by
// an older one; one that is lost in another way is.
func TestVerifyMissesWhatTheNewestProgramNoted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	newer := migrations.Shipped(map[string]string{"00099_later.sql": `-- +goose Up
CREATE INDEX jobs_later ON daybook.jobs (org_id);
`})
	require.NoError(t, newer.Up(t.Context(), db.URL))
	require.NoError(t, migrations.Verify(t.Context(), db.Pool))
	_, err := db.Pool.Exec(t.Context(), `DROP INDEX daybook.jobs_later`)
	require.NoError(t, err)
	require.ErrorIs(t, newer.Verify(t.Context(), db.Pool), migrations.ErrIncomplete)
}

// While a migration waits for the lock of a table, others go on reading and writing it.
func TestUpHoldsNothingUpWhileItWaits(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM daybook.jobs`)
	require.NoError(t, err)

	done := make(chan error, 1)
	go func() {
		done <- migrations.Shipped(map[string]string{"00099_later.sql": expand}).Up(t.Context(), db.URL)
	}()
	const waits = `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'daybook.jobs'::regclass AND NOT granted)`
	require.Eventually(t, func() bool {
		var waiting bool
		return db.Pool.QueryRow(t.Context(), waits).Scan(&waiting) == nil && waiting
	}, time.Minute, 10*time.Millisecond)
	_, err = db.Pool.Exec(t.Context(), `SELECT FROM daybook.jobs`)
	require.NoError(t, err, "answers although the transaction that the migration waits for is open")
	require.Empty(t, done)

	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, <-done)
}

// A transaction that has a table, and then wants one that the migration has changed before it came to
// the first, goes on: the migration gives way, and comes again.
func TestUpGivesWayToATransactionThatWantsBothTables(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM daybook.documents`)
	require.NoError(t, err)

	done := make(chan error, 1)
	go func() {
		done <- migrations.Shipped(map[string]string{"00099_later.sql": `-- +goose Up
ALTER TABLE daybook.jobs ADD COLUMN later text;
ALTER TABLE daybook.documents ADD COLUMN later text;
`}).Up(t.Context(), db.URL)
	}()
	const waits = `SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'daybook.documents'::regclass AND NOT granted)`
	require.Eventually(t, func() bool {
		var waiting bool
		return db.Pool.QueryRow(t.Context(), waits).Scan(&waiting) == nil && waiting
	}, time.Minute, 10*time.Millisecond)
	_, err = tx.Exec(t.Context(), `SELECT FROM daybook.jobs`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-done)
}

func TestDownRefusesToDeleteData(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `INSERT INTO daybook.organizations (id) VALUES ('acme')`)
	require.NoError(t, err)
	for _, all := range []bool{false, true} {
		err := migrations.Down(t.Context(), db.URL, migrations.DownOptions{All: all})
		require.ErrorIs(t, err, migrations.ErrHasData)
		require.ErrorContains(t, err, "organizations")
		require.NoError(t, migrations.Verify(t.Context(), db.Pool), "nothing was taken back")
	}
	require.NoError(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{DeleteData: true}))
	require.ErrorIs(t, migrations.Verify(t.Context(), db.Pool), migrations.ErrPending)
}

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

// An older program that is started again takes nothing from the roles that a newer one gave them.
func TestRolesOfANewerProgramStay(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	require.NoError(t, migrations.Roles(t.Context(), db.URL))
	newer := migrations.Shipped(map[string]string{
		"00099_later.sql": "-- +goose Up\nCREATE TABLE daybook.later (id bigint);\n-- +goose Down\nDROP TABLE daybook.later;\n",
	})
	require.NoError(t, newer.Up(t.Context(), db.URL))
	change(t, db, `GRANT INSERT ON daybook.later TO daybook_domain`)
	require.NoError(t, migrations.Up(t.Context(), db.URL))
	require.NoError(t, migrations.Roles(t.Context(), db.URL))
	_, err := as(t, db, "daybook_domain").Exec(t.Context(), `INSERT INTO daybook.later VALUES (1)`)
	require.NoError(t, err)

	require.NoError(t, newer.Down(t.Context(), db.URL))
	change(t, db, `REVOKE INSERT ON daybook.documents FROM daybook_domain`)
	require.NoError(t, migrations.Roles(t.Context(), db.URL))
	lacks, err := migrations.VerifyRoles(t.Context(), db.Pool)
	require.NoError(t, err)
	assert.Empty(t, lacks, "they are given anew where the schema is this program's")
}

// An index that a newer program drops in a migration is not missed by an older one, also when a
// later migration of it fails; one that is lost in another way is.
func TestVerifyMissesWhatTheNewestProgramNoted(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	newer := migrations.Shipped(map[string]string{
		"00098_later.sql": "-- +goose Up\nDROP INDEX daybook.imports_org_id;\nCREATE INDEX imports_later ON daybook.imports (org_id);\n",
		"00099_fails.sql": "-- +goose Up\nSELECT 1 / 0;\n",
	})
	require.ErrorContains(t, newer.Up(t.Context(), db.URL), "division by zero")
	require.NoError(t, migrations.Verify(t.Context(), db.Pool))
	_, err := db.Pool.Exec(t.Context(), `DROP INDEX daybook.imports_later`)
	require.NoError(t, err)
	err = migrations.Verify(t.Context(), db.Pool)
	require.ErrorIs(t, err, migrations.ErrIncomplete)
	require.ErrorContains(t, err, "imports_later")
}

// After a newer program has taken its migration back, an older one misses nothing of it.
func TestVerifyAfterANewerMigrationWasTakenBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	newer := migrations.Shipped(map[string]string{"00099_later.sql": `-- +goose Up
CREATE INDEX imports_later ON daybook.imports (org_id);
-- +goose Down
DROP INDEX daybook.imports_later;
`})
	require.NoError(t, newer.Up(t.Context(), db.URL))
	require.NoError(t, newer.Down(t.Context(), db.URL))
	require.NoError(t, migrations.Verify(t.Context(), db.Pool))
	require.NoError(t, newer.Up(t.Context(), db.URL))
	require.NoError(t, newer.Verify(t.Context(), db.Pool))
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

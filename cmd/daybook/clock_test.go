package main

import (
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// TestSpansGoByTheDatabasesClock: delays and ages count by the database's clock, which here is a
// day ahead of the command's.
func TestSpansGoByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.background("webhook", "--org", "acme", "--skip-validation")
	_, err := b.Pool.Exec(t.Context(),
		`UPDATE daybook.jobs SET state = 'completed', run_count = 1, finished_at = clock_timestamp() - interval '29 days 12 hours'`)
	require.NoError(t, err)
	for _, stmt := range []string{
		`CREATE SCHEMA ahead`,
		`CREATE FUNCTION ahead.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 day' $$`,
		// for sessions that begin later
		`ALTER DATABASE ` + pgx.Identifier{b.Name}.Sanitize() + ` SET search_path = ahead, pg_catalog, daybook, public`,
	} {
		_, err := b.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}

	b.background("webhook", "--org", "acme", "--skip-validation", "--delay", "1h")
	b.task("email", "--delay", "1h")
	moved := b.run("archive", "move", "--before", "720h", "--archive", filepath.Join(t.TempDir(), "archive"))

	assert.Equal(t, "moved to 1 file: jobs: 1\n", moved.out, moved.err)
	const due = `BETWEEN pg_catalog.clock_timestamp() + interval '24 hours 30 minutes' AND pg_catalog.clock_timestamp() + interval '25 hours'`
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE ready_at `+due))
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.open_task WHERE scheduled_at `+due))
}

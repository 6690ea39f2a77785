package health_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

func TestNothingIsWrong(t *testing.T) {
	t.Parallel()
	r := setup(t).check()
	assert.True(t, r.Working)
	assert.Contains(t, r.Summary, "nothing waits")
	for _, f := range r.Findings {
		assert.Equal(t, health.Info, f.Severity, f.Says)
	}
}

func TestDatabaseUnavailable(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://u:secret@127.0.0.1:1/none")
	require.NoError(t, err)
	defer pool.Close()
	r := clean(t, health.Check(t.Context(), health.Options{Pool: pool}))
	f := one(t, r, health.DatabaseUnavailable)
	assert.Equal(t, health.Critical, f.Severity)
	assert.NotContains(t, f.Says, "secret")
	assert.False(t, r.Working)
	assert.Contains(t, r.Summary, "Nothing is worked: the database does not answer")
}

func TestNoConnectionIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	role := b.Name + "_crowd"
	b.exec(`CREATE ROLE ` + role + ` LOGIN CONNECTION LIMIT 0`)
	t.Cleanup(func() {
		_, err := b.Pool.Exec(context.WithoutCancel(t.Context()), `DROP ROLE `+role)
		assert.NoError(t, err)
	})
	pool := b.As(t, role)
	f := one(t, health.Check(t.Context(), health.Options{Pool: pool}), health.DatabaseUnavailable)
	assert.Contains(t, f.Says, "The database has no connection left for this role: ")
	assert.Contains(t, f.Todo, "max_connections")
	assert.Contains(t, store.Explain(pool.Ping(t.Context())),
		"too many connections for role \""+role+"\" (SQLSTATE 53300). Raise max_connections")
}

func TestSchema(t *testing.T) {
	t.Parallel()
	empty := &bundle{pgtest.NewEmpty(t), t}
	assert.Contains(t, one(t, empty.check(), health.SchemaOld).Todo, "daybook migrate up")
	b := setup(t)
	b.exec(`DROP INDEX daybook.jobs_failed_org`)
	assert.Contains(t, one(t, b.check(), health.SchemaIncomplete).Says, "jobs_failed_org")
	b.exec(`INSERT INTO daybook.schema_migrations (version_id, is_applied) VALUES (99999, true)`)
	assert.Contains(t, one(t, b.check(), health.SchemaNew).Says, "newer")
}

func TestStandbyAndReadOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	pool, err := pgxpool.New(t.Context(), b.URL)
	require.NoError(t, err)
	defer pool.Close()
	r := health.Check(t.Context(), health.Options{Pool: pool})
	assert.Contains(t, one(t, r, health.DatabaseUnavailable).Says, "only read")
}

func TestClocksApart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := health.Options{Pool: b.Pool, Now: func() time.Time { return time.Now().Add(-90 * time.Second) }}
	f := one(t, clean(t, health.Check(t.Context(), o)), health.ClockSkew)
	assert.Equal(t, health.Warning, f.Severity)
	assert.Regexp(t, `1 min (29|30) s ahead of`, f.Says)
}

// A table that is locked is reported, with the session that has locked it, and everything else is
// looked at. What waits is not known then.
func TestLockedTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.jobs, daybook.job_sequences`)
	require.NoError(t, err)
	b.exec(`INSERT INTO daybook.organizations (id, paused_at) VALUES ('acme', now());
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id) VALUES (1, 'acme', 'd')`)
	r := health.Check(t.Context(), health.Options{Pool: b.Pool})
	one(t, r, health.OrganizationPaused)
	f := one(t, r, health.DatabaseUnavailable)
	assert.Equal(t, health.Warning, f.Severity)
	assert.Contains(t, f.Says, "lock timeout")
	assert.Contains(t, f.Says, "due jobs")
	locked := of(r, health.TableLocked)
	require.Len(t, locked, 1, "one transaction, one finding")
	assert.Equal(t, "jobs", locked[0].Kind)
	assert.Equal(t, health.Critical, locked[0].Severity)
	assert.Contains(t, locked[0].Says, fmt.Sprintf("Process %d (", tx.Conn().PgConn().PID()))
	assert.Contains(t, locked[0].Says, "has locked daybook.jobs and 1 more table for ")
	assert.Contains(t, locked[0].Todo, fmt.Sprintf("pg_terminate_backend(%d)", tx.Conn().PgConn().PID()))
	assert.NotNil(t, locked[0].Since)
	assert.False(t, r.Working)
	assert.Contains(t, r.Summary, "(accounting is): process ")
}

// A lock that lets others read is found as well: workers cannot write.
func TestTableLockedForWriting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	b.exec(`INSERT INTO daybook.jobs (org_id, type, payload) VALUES ('acme', 'mail', '{}')`)
	_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.jobs IN SHARE MODE`)
	require.NoError(t, err)
	assert.Eventually(t, func() bool {
		found := of(b.check(), health.TableLocked)
		return len(found) == 1 && found[0].Severity == health.Critical
	}, time.Minute, 10*time.Millisecond)
}

// What cannot be counted is not said to be nothing.
func TestWhatWaitsIsNotKnown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.organizations`)
	require.NoError(t, err)
	r := health.Check(t.Context(), health.Options{Pool: b.Pool})
	assert.Contains(t, r.Summary, "It is not known whether work gets done: ")
	assert.Contains(t, r.Summary, "what waits of accounting and jobs could not be counted (")
	assert.Contains(t, r.Summary, "lock timeout")
	assert.NotContains(t, r.Summary, "nothing waits")
	_, err = tx.Exec(t.Context(), `LOCK TABLE daybook.schema_migrations`)
	require.NoError(t, err)
	r = health.Check(t.Context(), health.Options{Pool: b.Pool, Timeout: time.Second})
	assert.Contains(t, r.Summary, "what waits of accounting, jobs and tasks could not be counted (")
}

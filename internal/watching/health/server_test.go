package health_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/devstack"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/migrations"
)

func TestOldSnapshot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	held, err := pgx.Connect(t.Context(), b.URL+"&application_name=monthly%20report")
	require.NoError(t, err)
	defer func() { _ = held.Close(context.WithoutCancel(t.Context())) }()
	_, err = held.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM daybook.jobs`)
	require.NoError(t, err)
	assert.Empty(t, of(b.check(), health.OldSnapshot), "it is young")
	r := clean(t, health.Check(t.Context(), health.Options{Pool: b.Pool, SnapshotAge: time.Nanosecond}))
	f := one(t, r, health.OldSnapshot)
	assert.Contains(t, f.Says, "monthly report")
	assert.Contains(t, f.Says, "idle in transaction")
	assert.Contains(t, f.Todo, "pg_terminate_backend("+f.Example+")")
	assert.NotNil(t, f.Since)
	_, err = held.Exec(t.Context(), `ROLLBACK`)
	require.NoError(t, err)
	assert.Empty(t, of(clean(t, health.Check(t.Context(), health.Options{Pool: b.Pool, SnapshotAge: time.Nanosecond})),
		health.OldSnapshot))
}

// A role that is not told of others' sessions says so.
func TestOldSnapshotsThatARoleCannotSee(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	r := clean(t, health.Check(t.Context(), health.Options{Pool: b.As(t, "daybook_reader")}))
	var notes []string
	for _, c := range r.Checked {
		if c.Note != "" {
			notes = append(notes, c.Note)
		}
	}
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "GRANT pg_read_all_stats")
}

// Commits that wait for a synchronous standby are found, also before the first one waits. That is a
// setting of the whole server, so the test has one of its own.
func TestStandbyMissing(t *testing.T) {
	t.Parallel()
	s, err := devstack.Start(t.Context(),
		devstack.Options{
			Private: true, NoTemporal: true, FastAndUnsafe: true,
			PostgresSettings: []string{"synchronous_commit=on"},
		})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) }()
	require.NoError(t, migrations.Up(t.Context(), s.DatabaseURL))
	pool, err := pgxpool.New(t.Context(), s.AdminURL)
	require.NoError(t, err)
	defer pool.Close()
	set := func(to string) {
		for _, stmt := range []string{
			`ALTER SYSTEM SET synchronous_standby_names = '` + to + `'`,
			`SELECT pg_reload_conf()`,
		} {
			_, err := pool.Exec(t.Context(), stmt)
			require.NoError(t, err)
		}
	}
	var r health.Report
	await := func(satisfies func(found []health.Finding) bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			r = clean(t, health.Check(t.Context(), health.Options{Pool: pool}))
			return satisfies(of(r, health.StandbyMissing))
		}, time.Minute, 10*time.Millisecond)
	}
	set("absent")
	await(func(found []health.Finding) bool { return len(found) == 1 && found[0].Severity == health.Critical })
	assert.False(t, r.Working)
	assert.Contains(t, r.Summary, "Nothing is worked: every commit waits for a synchronous standby, and none is "+
		"connected (synchronous_standby_names is \"absent\").")

	enqueued := make(chan error, 1)
	go func() {
		_, err := pool.Exec(t.Context(), `INSERT INTO daybook.jobs (org_id, type, payload) VALUES ('acme', 'mail', '{}')`)
		enqueued <- err
	}()
	await(func(found []health.Finding) bool { return len(found) == 1 && found[0].Count == 1 })
	assert.Contains(t, one(t, r, health.StandbyMissing).Says, "1 session waits, the first one for ")
	assert.Contains(t, one(t, r, health.StandbyMissing).Todo, "ALTER SYSTEM SET synchronous_standby_names = ''")

	// Patroni's own connections are named so.
	manager, err := pgx.Connect(t.Context(), s.AdminURL+"&application_name=Patroni")
	require.NoError(t, err)
	defer func() { _ = manager.Close(context.WithoutCancel(t.Context())) }()
	await(func(found []health.Finding) bool { return strings.Contains(found[0].Todo, "patronictl edit-config") })
	assert.NotContains(t, one(t, r, health.StandbyMissing).Todo, "ALTER SYSTEM SET")
	overridden := one(t, r, health.SettingOverridden)
	assert.Equal(t, "synchronous_standby_names", overridden.Example)
	assert.Contains(t, overridden.Todo, "`ALTER SYSTEM RESET synchronous_standby_names`")
	set("")
	require.NoError(t, <-enqueued)
	await(func(found []health.Finding) bool { return len(found) == 0 })
	assert.True(t, r.Working)
}

func TestAutovacuumOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`ALTER TABLE daybook.jobs SET (autovacuum_enabled = false)`)
	f := one(t, b.check(), health.AutovacuumBehind)
	assert.Equal(t, "daybook.jobs", f.Example)
	assert.Contains(t, f.Todo, "RESET (autovacuum_enabled)")
}

func TestRolesThatLackRights(t *testing.T) {
	t.Parallel()
	b := setup(t)
	assert.Empty(t, of(b.check(), health.RoleLacksRights), "the roles are not used in this database")
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	assert.Empty(t, of(b.check(), health.RoleLacksRights))
	b.exec(`REVOKE UPDATE ON daybook.jobs FROM daybook_worker; REVOKE SELECT ON daybook.documents FROM daybook_reader`)
	all := of(b.check(), health.RoleLacksRights)
	require.Len(t, all, 2)
	assert.Contains(t, all[0].Says+all[1].Says, "UPDATE on daybook.jobs")
	assert.Contains(t, all[0].Says+all[1].Says, "SELECT on daybook.documents")
	assert.Contains(t, all[0].Todo, "daybook migrate up --roles")
}

func TestNoToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	assert.Contains(t, one(t, b.check(), health.NoToken).Todo, "daybook tokens create")
	b.exec(`INSERT INTO daybook.api_tokens (org_id, name, scopes, hash) VALUES (NULL, 't', '{read}', sha256('x'))`)
	assert.Empty(t, of(b.check(), health.NoToken))
}

// TestFailoverIsNoted: the timeline of the last sample is another one.
func TestFailoverIsNoted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.check()
	assert.Positive(t, r.Timeline)
	assert.Nil(t, r.PromotedAt, "there is no sample")
	b.exec(`INSERT INTO daybook.gauges (kind, holder, figures) VALUES ('database', 'w', '{"timeline": 7}')`)
	assert.NotNil(t, b.check().PromotedAt)
	b.exec(`UPDATE daybook.gauges SET figures = jsonb_build_object('timeline', $1::bigint, 'promoted_at', '2026-03-01T00:00:00Z')`, r.Timeline)
	require.NotNil(t, b.check().PromotedAt)
	assert.Equal(t, 2026, b.check().PromotedAt.Year(), "as the samples before have it")
}

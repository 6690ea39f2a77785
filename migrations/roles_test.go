package migrations_test

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
)

// as connects as a role, which gets a password for it.
func as(t *testing.T, db *pgtest.DB, role string) *pgxpool.Pool {
	t.Helper()
	// A member may end the role's sessions: those that are about to end when the test's database is
	// dropped.
	for _, stmt := range []string{`ALTER ROLE ` + role + ` PASSWORD 'for-a-test'`, `GRANT ` + role + ` TO CURRENT_USER`} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	address, err := url.Parse(db.URL)
	require.NoError(t, err)
	address.User = url.UserPassword(role, "for-a-test")
	pool, err := pgxpool.New(t.Context(), address.String())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// TestRoles has each role do its work, and refuses it the rest.
func TestRoles(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for range 2 {
		require.NoError(t, migrations.Roles(t.Context(), db.URL))
	}
	fixture.Organization(t, db.Pool, "o")
	domain, worker, reader := as(t, db, "daybook_domain"), as(t, db, "daybook_worker"), as(t, db, "daybook_reader")

	fixture.Ready(t, domain, fixture.Invoice("o", "doc", 1000))
	e := engine.New(store.New(worker), ledger.New(nil), engine.Options{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(e.Close)
	report, err := e.Process(t.Context(),
		engine.TurnRequest{Turn: store.Turn{ID: "r/0/1", Worker: "w"}, Batch: 10, Length: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, 1, report.Completed)
	var n int
	require.NoError(t, reader.QueryRow(t.Context(),
		`SELECT COUNT(*) FROM accounting_work_queue WHERE state = 'completed';`).Scan(&n), "without the schema's name")
	assert.Equal(t, 1, n)
	assert.Equal(t, models.JobCompleted, fixture.Job(t, reader, "o", "doc").State)

	for _, did := range []struct {
		pool *pgxpool.Pool
		stmt string
	}{
		{domain, `SELECT count(*) FROM queues.enqueue_tasks('{email}', ARRAY['{}']::jsonb[]), queues.enqueue('email', '{}')`},
		{worker, `SELECT count(*) FROM queues.dequeue_available_tasks(2)`},
		{worker, `SELECT count(queues.complete_task(task_id)::text) FROM queues.leased_tasks`},
		{reader, `SELECT count(*) FROM queues.task_completed JOIN queues.task USING (task_id)`},
		{worker, `SELECT count(*) FROM queues.remove_completed_tasks(clock_timestamp() - interval '0 seconds')`},
		{worker, `WITH added AS (INSERT INTO daybook.gauges (kind, holder) VALUES ('jobs', 'w') RETURNING 1) SELECT count(*) FROM added`},
		{reader, `SELECT count(*) FROM daybook.gauges`},
		{reader, `SELECT count(*) + 1 FROM (SELECT job_id, name, deadline, created_at, called_at, data, awaited, seen FROM daybook.job_callbacks) x`},
		{worker, `SELECT count(daybook.lease_async_operation(daybook.enqueue_async_operation('email', '{}')))`},
		{worker, `SELECT count(daybook.complete_async_operation(j.id::uuid)) FROM daybook.jobs j WHERE j.state = 'leased'`},
		{domain, `SELECT count(*) FROM daybook.set_queue('rated', rate => 100)`},
		{domain, `SELECT count(*) FROM daybook.enqueue_job('o', 'w', '{}', queue => 'rated')`},
		{worker, `SELECT count(daybook.start_job_worker('w', '{w}')::text)`},
		{worker, `SELECT count(daybook.snooze_job(c.job_id, c.fence, interval '0')) FROM daybook.claim_jobs('w', 5) c`},
		{worker, `SELECT count(daybook.fail_job(c.job_id, c.fence, 'X', 'x', interval '0')) FROM daybook.claim_jobs('w', 5) c`},
		{worker, `SELECT count(daybook.keep_step(c.job_id, c.fence, 's', '1')::text || daybook.complete_job(c.job_id, c.fence)::text) FROM daybook.claim_jobs('w', 5) c`},
		{worker, `SELECT 1 + daybook.stop_job_worker('w')`},
	} {
		require.NoError(t, did.pool.QueryRow(t.Context(), did.stmt).Scan(&n), did.stmt)
		assert.Positive(t, n, did.stmt)
	}
	_, err = domain.Exec(t.Context(), domainColumns(t, db, "accounting_work_queue"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		pool *pgxpool.Pool
		stmt string
	}{
		"the worker changes what is posted": {worker, `UPDATE daybook.entries SET amount_minor = 1`},
		"the worker removes what is posted": {worker, `DELETE FROM daybook.impacts`},
		"the worker empties the log":        {worker, `TRUNCATE daybook.attempt_log`},
		"the worker changes the rules":      {worker, `UPDATE daybook.organizations SET active_rule_set = NULL`},
		"the worker pauses":                 {worker, `UPDATE daybook.organizations SET paused_at = now()`},
		"domain code lifts a cap":           {domain, `UPDATE daybook.organizations SET max_in_flight = NULL`},
		"domain code posts":                 {domain, `INSERT INTO daybook.confirmations VALUES (1, 1, 1, 'j', 1)`},
		"domain code draws a fence":         {domain, `SELECT nextval('daybook.fence_seq')`},
		"domain code claims": {
			domain,
			`SELECT daybook.claim_async_operation(daybook.enqueue_async_operation('email', '{}'))`,
		},
		"domain code starts a worker": {domain, `SELECT daybook.start_job_worker('d', '{w}')`},
		"domain code removes a job":   {domain, `DELETE FROM daybook.accounting_work_queue`},
		"the worker changes a fact":   {worker, `UPDATE queues.task SET payload = '{}'`},
		"the worker opens a task": {
			worker,
			`INSERT INTO queues.open_task (task_id, task_type, scheduled_at) VALUES (1, 'email', now())`,
		},
		"the worker enqueues a task":  {worker, `SELECT queues.enqueue('email', '{}')`},
		"the worker pauses tasks":     {worker, `SELECT queues.limit_tasks('*', true)`},
		"domain code leases a task":   {domain, `SELECT queues.dequeue_next_available_task()`},
		"domain code removes tasks":   {domain, `SELECT queues.remove_completed_tasks(now())`},
		"the reader enqueues a task":  {reader, `SELECT queues.enqueue('email', '{}')`},
		"the reader samples":          {reader, `INSERT INTO daybook.gauges (kind, holder) VALUES ('tasks', 'r')`},
		"the worker changes the log":  {worker, `UPDATE daybook.actions SET actor = ''`},
		"domain code empties the log": {domain, `DELETE FROM daybook.actions`},
		"domain code logs as another role": {
			domain,
			`INSERT INTO daybook.actions (via, action, actor, outcome, db_role) VALUES ('cli', 'a', 'b', 'done', 'postgres')`,
		},
		"the reader logs an action": {
			reader,
			`INSERT INTO daybook.actions (via, action, actor, outcome) VALUES ('cli', 'a', 'b', 'done')`,
		},
		"the reader looks at sessions":  {reader, `SELECT hash FROM daybook.console_sessions`},
		"the reader looks at callbacks": {reader, `SELECT token_hash FROM daybook.job_callbacks`},
		"the reader looks at tokens":    {reader, `SELECT hash FROM daybook.api_tokens`},
		"the worker looks at tokens":    {worker, `SELECT hash FROM daybook.api_tokens`},
		"the reader enqueues":           {reader, `SELECT daybook.enqueue_accounting_job('o', 'other', 1)`},
		"the reader enqueues as the owner": {reader, `
CREATE TEMP TABLE legacy (id text, org_id text, document_id text, version_hint bigint, ready_at timestamptz, state text);
CREATE TRIGGER forward AFTER INSERT ON legacy FOR EACH ROW EXECUTE FUNCTION daybook.forward_accounting_request('forward');
INSERT INTO legacy VALUES ('1', 'o', 'other', 1, now(), 'pending')`},
		"the reader logs as the owner": {reader, `
CREATE TEMP TABLE forged (LIKE daybook.accounting_work_queue);
CREATE TRIGGER forge AFTER DELETE ON forged FOR EACH ROW EXECUTE FUNCTION daybook.log_kept_attempt()`},
		"domain code says who completed a document": {
			domain,
			`UPDATE daybook.accounting_work_queue SET completed_by = 'w'`,
		},
		"domain code says which turn completed it": {
			domain,
			`UPDATE daybook.accounting_work_queue SET completed_turn_id = 't'`,
		},
		"domain code says under which fence": {
			domain,
			`UPDATE daybook.accounting_work_queue SET completed_fence = 1`,
		},
		"domain code says since when": {
			domain,
			`UPDATE daybook.accounting_work_queue SET completed_started_at = now()`,
		},
		"domain code inserts who completed a document": {
			domain,
			`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, completed_by) VALUES ('o', 'x', 1, 'w')`,
		},
		"domain code inserts under which fence": {
			domain,
			`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, completed_fence) VALUES ('o', 'x', 1, 1)`,
		},
		"domain code logs an attempt": {
			domain,
			`INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, started_at, turn_id, fence) VALUES ('j', 'o', 'x', 1, 1, 'completed', now(), 't', 1)`,
		},
	} {
		_, err := c.pool.Exec(context.WithoutCancel(t.Context()), c.stmt)
		assert.Equal(t, "42501", store.SQLState(err), "%s: %v", name, err)
	}
}

// TestDomainCodeAsksForCompletedDocuments: domain code, which may neither write attempts nor say
// what completed a document, asks for it anew, and the attempt that completed it goes to the log.
func TestDomainCodeAsksForCompletedDocuments(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	require.NoError(t, migrations.Roles(t.Context(), db.URL))
	domain := as(t, db, "daybook_domain")
	for i, stmt := range []string{
		`SELECT daybook.enqueue_accounting_job('o', 'd', 2)`, `SELECT daybook.mark_accounting_job_pending('o', 'd')`,
		`SELECT daybook.repost_accounting_job('o', 'd')`,
		`UPDATE daybook.accounting_work_queue SET state = 'pending', finished_at = NULL`,
	} {
		_, err := db.Pool.Exec(t.Context(), `DELETE FROM daybook.accounting_work_queue`)
		require.NoError(t, err)
		_, err = db.Pool.Exec(t.Context(), job(kept(nil)))
		require.NoError(t, err)
		_, err = domain.Exec(t.Context(), stmt)
		require.NoError(t, err, stmt)
		assert.Equal(t, 1, fixture.Count(t, db.Pool,
			`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending' AND completed_fence IS NULL`), stmt)
		assert.Equal(t, i+1, fixture.Count(t, db.Pool,
			`SELECT count(*) FROM daybook.attempt_log WHERE outcome = 'completed' AND version = 1 AND fence = 1`), stmt)
	}
}

// TestRolesOfAnotherOwner: roles belong to the server. From PostgreSQL 16 on the owner of a second
// database may not change those that the first one's made; the error says what lets it.
func TestRolesOfAnotherOwner(t *testing.T) {
	t.Parallel()
	require.NoError(t, migrations.Roles(t.Context(), pgtest.New(t).URL))
	db := pgtest.NewEmpty(t)
	second := "second_" + db.Name
	for _, stmt := range []string{
		`CREATE ROLE ` + second + ` LOGIN CREATEROLE PASSWORD 'for-a-test'`, `GRANT ` + second + ` TO CURRENT_USER`,
		`GRANT CREATE ON DATABASE ` + db.Name + ` TO ` + second,
	} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := db.Pool.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+second+` CASCADE; DROP ROLE `+second)
		assert.NoError(t, err)
	})
	address, err := url.Parse(db.URL)
	require.NoError(t, err)
	address.User = url.UserPassword(second, "for-a-test")
	require.NoError(t, migrations.Up(t.Context(), address.String()))
	err = migrations.Roles(t.Context(), address.String())
	if fixture.Count(t, db.Pool, `SELECT current_setting('server_version_num')::int`) < 160000 {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, migrations.ErrNoAdminOption)
	_, grant, _ := strings.Cut(err.Error(), "as the role that made them: ")
	grant, _, _ = strings.Cut(grant, ". ")
	require.Contains(t, grant, second)
	assert.NotContains(t, grant, "worker_service_user", "daybook_worker is a member of it already")
	_, err = db.Pool.Exec(t.Context(), grant)
	require.NoError(t, err, grant)
	require.NoError(t, migrations.Roles(t.Context(), address.String()))

	// What is done needs no right to do it.
	_, err = db.Pool.Exec(t.Context(),
		strings.NewReplacer("GRANT", "REVOKE ADMIN OPTION FOR", " TO ", " FROM ", " WITH ADMIN OPTION", "").Replace(grant))
	require.NoError(t, err)
	require.NoError(t, migrations.Roles(t.Context(), address.String()))
}

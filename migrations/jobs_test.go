package migrations_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
)

// queued is an INSERT of a background job that is right but for what set says.
func queued(set map[string]string) string {
	columns := map[string]string{"org_id": "'o'", "type": "'mail'", "payload": "'{}'", "input_hash": "sha256('')"}
	if set["state"] == "'leased'" {
		maps.Copy(columns, map[string]string{
			"turn_id": "'t'", "fence": "1", "leased_generation": "0", "attempt_started_at": "now()",
			"last_attempted_at": "now()", "run_count": "1",
		})
	}
	maps.Copy(columns, set)
	names, values := make([]string, 0, len(columns)), make([]string, 0, len(columns))
	for k, v := range columns {
		names, values = append(names, k), append(values, v)
	}
	return fmt.Sprintf(`INSERT INTO daybook.jobs (%s) VALUES (%s)`, strings.Join(names, ", "), strings.Join(values, ", "))
}

func TestJobConstraints(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const (
		lease    = "leased_has_lease"
		finished = "finished_has_time"
		failed   = "failed_has_error"
		ended    = "completed_has_attempt"
	)
	unleased := slices.DeleteFunc(slices.Clone(times), func(column string) bool { return column == "attempt_started_at" })
	for _, c := range []struct {
		name string
		set  map[string]string
		// refuses names the constraint; empty: the row is right.
		refuses string
	}{
		{"pending", nil, ""},
		{"leased", map[string]string{"state": "'leased'"}, ""},
		{
			"leased and working, to be cancelled",
			map[string]string{"state": "'leased'", "working": "true", "cancel_requested": "true", "worker": "'w'"},
			"",
		},
		{"completed", map[string]string{"state": "'completed'", "finished_at": "now()"}, ""},
		{"completed by an attempt", kept(nil), ""},
		{"failed", map[string]string{
			"state": "'failed'", "finished_at": "now()", "last_error": "'e'",
			"last_error_code": "'TIMEOUT'",
		}, ""},
		{
			"the longest of everything",
			map[string]string{
				"org_id": "repeat('o', 255)", "type": "repeat('t', 64)", "idempotency_key": "repeat('k', 255)",
				"max_attempts": "1000",
			},
			"",
		},
		{"a type with all characters", map[string]string{"type": "'Ab_9.c:d-e'"}, ""},

		{"leased without turn", map[string]string{"state": "'leased'", "turn_id": "NULL"}, lease},
		{"leased without attempt", map[string]string{"state": "'leased'", "run_count": "0"}, lease},
		{"pending with worker", map[string]string{"worker": "'w'"}, lease},
		{"pending with turn", map[string]string{"turn_id": "'t'"}, lease},
		{"pending with fence", map[string]string{"fence": "1"}, lease},
		{"pending with leased generation", map[string]string{"leased_generation": "1"}, lease},
		{"pending with start", map[string]string{"attempt_started_at": "now()"}, lease},
		{"pending and detached", map[string]string{"detached": "true"}, lease},
		{
			"completed and working",
			map[string]string{"state": "'completed'", "finished_at": "now()", "working": "true"},
			lease,
		},
		{
			"completed, to be cancelled",
			map[string]string{"state": "'completed'", "finished_at": "now()", "cancel_requested": "true"},
			"cancel_only_while_leased",
		},
		{"completed by no turn", kept(map[string]string{"completed_turn_id": "NULL"}), ended},
		{"completed by no fence", kept(map[string]string{"completed_fence": "NULL"}), ended},
		{"completed by no worker", kept(map[string]string{"completed_by": "NULL"}), ended},
		{"completed by an attempt that did not begin", kept(map[string]string{"completed_started_at": "NULL"}), ended},
		{"completed by an attempt without a number", kept(map[string]string{"run_count": "0"}), ended},
		{"cancelled, and completed by an attempt", kept(map[string]string{"state": "'cancelled'"}), ended},
		{
			"pending, and completed by an attempt", kept(map[string]string{"state": "'pending'", "finished_at": "NULL"}),
			ended,
		},
		{"cancelled without time", map[string]string{"state": "'cancelled'"}, finished},
		{"long queue", map[string]string{"queue": "repeat('q', 65)"}, "jobs_queue_check"},
		{"no sequence", map[string]string{"sequence": "''"}, "jobs_sequence_check"},
		{"a key of no limit", map[string]string{"limit_key": "'k'"}, "limit_key_has_scope"},
		{"a limit without a key", map[string]string{"limit_scope": "'t'"}, "limit_key_has_scope"},
		{"too many attempts", map[string]string{"run_count": "1000001"}, "jobs_run_count_check"},
		{"too many reclaims", map[string]string{"reclaims": "1000001"}, "jobs_reclaims_check"},
		{"priority 0", map[string]string{"priority": "0"}, "jobs_priority_check"},
		{"pending and working", map[string]string{"working": "true"}, lease},
		{"completed without time", map[string]string{"state": "'completed'"}, finished},
		{"pending with time", map[string]string{"finished_at": "now()"}, finished},
		{
			"failed without code",
			map[string]string{"state": "'failed'", "finished_at": "now()", "last_error": "'e'"},
			failed,
		},
		{"pending, to be cancelled", map[string]string{"cancel_requested": "true"}, "cancel_only_while_leased"},
		{"no organization", map[string]string{"org_id": "''"}, "jobs_org_id_check"},
		{"long organization", map[string]string{"org_id": "repeat('€', 85) || 'o'"}, "jobs_org_id_check"},
		{"no type", map[string]string{"type": "''"}, "jobs_type_check"},
		{"a type with a space", map[string]string{"type": "'a b'"}, "jobs_type_check"},
		{"a type of two lines", map[string]string{"type": "E'a\\nb'"}, "jobs_type_check"},
		{"long type", map[string]string{"type": "repeat('t', 65)"}, "jobs_type_check"},
		{"payload that is no object", map[string]string{"payload": "'[]'"}, "jobs_payload_check"},
		{"short hash", map[string]string{"input_hash": "'a'"}, "jobs_input_hash_check"},
		{"short unique hash", map[string]string{"unique_hash": "'1'"}, "jobs_unique_hash_check"},
		{"no hash", map[string]string{"input_hash": "NULL"}, ""},
		{"a key without a hash", map[string]string{"idempotency_key": "'k'", "input_hash": "NULL"}, "key_has_hash"},
		{"unique without a hash", map[string]string{"unique_hash": "sha256('')", "input_hash": "NULL"}, "key_has_hash"},
		{"empty key", map[string]string{"idempotency_key": "''"}, "jobs_idempotency_key_check"},
		{"long key", map[string]string{"idempotency_key": "repeat('k', 256)"}, "jobs_idempotency_key_check"},
		{"no attempts", map[string]string{"max_attempts": "0"}, "jobs_max_attempts_check"},
		{"priority 4", map[string]string{"priority": "4"}, "jobs_priority_check"},
		{"negative attempts", map[string]string{"run_count": "-1"}, "jobs_run_count_check"},
		{"negative reclaims", map[string]string{"reclaims": "-1"}, "jobs_reclaims_check"},
	} {
		assertRefused(t, c.name, c.refuses, attempt(t, db, queued(c.set)))
		if c.set["input_hash"] == "" && c.set["idempotency_key"] == "" && c.set["unique_hash"] == "" {
			// Plain rows have a condition of their own.
			plain := map[string]string{"input_hash": "NULL"}
			maps.Copy(plain, c.set)
			assertRefused(t, "plain, "+c.name, c.refuses, attempt(t, db, queued(plain)))
		}
	}
	for _, row := range []struct {
		set     map[string]string
		columns []string
	}{
		{map[string]string{"state": "'leased'"}, times},
		{map[string]string{"input_hash": "NULL"}, unleased},
		{
			map[string]string{"input_hash": "NULL", "state": "'completed'", "finished_at": "now()"},
			append(slices.Clone(unleased), "finished_at"),
		},
		{kept(nil), []string{"completed_started_at"}},
		{kept(map[string]string{"input_hash": "NULL"}), []string{"finished_at", "completed_started_at"}},
	} {
		for _, column := range row.columns {
			for _, at := range []string{
				"'infinity'", "'-infinity'", "'10000-01-01 00:00:00+00'",
				"'0001-12-31 00:00:00+00 BC'",
			} {
				set := maps.Clone(row.set)
				set[column] = at
				assertRefused(t, fmt.Sprint(row.set, column, at), "times_are_readable", attempt(t, db, queued(set)))
			}
		}
	}
	for set, refuses := range map[string]string{
		"last_error = 'looked at'": "", "state = 'pending'": ended, "finished_at = NULL": finished,
		"completed_fence = NULL": ended, "run_count = 0": ended,
		"org_id = ''": "jobs_org_id_check", "updated_at = 'infinity'": "times_are_readable",
	} {
		assertRefused(t, "a completed row, "+set, refuses,
			attempt(t, db, queued(kept(nil)), "UPDATE daybook.jobs SET "+set))
	}
	key := map[string]string{"idempotency_key": "'k'"}
	assertRefused(t, "a key twice", "jobs_key", attempt(t, db, queued(key), queued(key)))
	unique := map[string]string{"unique_hash": "sha256('')"}
	assertRefused(t, "an open job twice", "jobs_unique", attempt(t, db, queued(unique), queued(unique)))
	assertRefused(t, "one open job and a finished one", "", attempt(t, db, queued(unique),
		queued(map[string]string{"unique_hash": "sha256('')", "state": "'completed'", "finished_at": "now()"})))
}

func TestConstraintsBesideJobs(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const (
		attempts = `INSERT INTO daybook.attempt_log (job_id, org_id, attempt, outcome, started_at, turn_id, fence, kind, type, document_id, version)
		            VALUES ('j', 'o', 1, 'completed', now(), 't', 1, `
		tokens     = `INSERT INTO daybook.api_tokens (org_id, name, scopes, hash) VALUES `
		links      = `INSERT INTO daybook.job_links (job_id, kind, id) SELECT id, `
		receipts   = `INSERT INTO daybook.webhook_deliveries (job_id, attempt, url, ok, duration_ms) VALUES `
		deliveries = `INSERT INTO daybook.job_deliveries (job_id, channel, state, attempt, generation) VALUES `
	)
	for _, c := range []struct{ name, refuses, stmt string }{
		{"attempt at a job", "", attempts + `'jobs', 'mail', NULL, NULL)`},
		{"attempt at a document", "", attempts + `'accounting', NULL, 'd', 0)`},
		{"attempt at a job without type", "attempts_kind", attempts + `'jobs', NULL, NULL, NULL)`},
		{"attempt at a job with a document", "attempts_kind", attempts + `'jobs', 'mail', 'd', 1)`},
		{"attempt at nothing", "attempts_kind", attempts + `'accounting', NULL, NULL, NULL)`},
		{"attempt of another kind", "attempts_kind", attempts + `'mails', 'mail', NULL, NULL)`},
		{"token", "", tokens + `(NULL, 'n', '{read,enqueue,operate}', sha256('1'))`},
		{"token of no organization", "api_tokens_org_id_check", tokens + `('', 'n', '{read}', sha256('1'))`},
		{"token for nothing", "api_tokens_scopes_check", tokens + `('o', 'n', '{}', sha256('1'))`},
		{"token for something else", "api_tokens_scopes_check", tokens + `('o', 'n', '{read,write}', sha256('1'))`},
		{"token for null", "api_tokens_scopes_check", tokens + `('o', 'n', '{read,NULL}', sha256('1'))`},
		{"token itself", "api_tokens_hash_check", tokens + `('o', 'n', '{read}', 'secret')`},
		{
			"tokens with one hash", "api_tokens_hash_key",
			tokens + `('o', 'n', '{read}', sha256('1')), ('o', 'n', '{read}', sha256('1'))`,
		},
		{"link", "", links + `'order', 'o_1' FROM daybook.jobs`},
		{"link without kind", "job_links_kind_check", links + `'', 'o_1' FROM daybook.jobs`},
		{"link with a long id", "job_links_id_check", links + `'order', repeat('i', 256) FROM daybook.jobs`},
		{"receipt", "", receipts + `('j', 1, 'https://example.com/', true, 0)`},
		{
			"receipt of no attempt", "webhook_deliveries_attempt_check",
			receipts + `('j', 0, 'https://example.com/', true, 0)`,
		},
		{"delivery", "", deliveries + `('j', 'email', 'sending', 1, 0)`},
		{"delivery by something else", "job_deliveries_channel_check", deliveries + `('j', 'E-mail', 'sending', 1, 0)`},
		{"delivery in another state", "job_deliveries_state_check", deliveries + `('j', 'email', 'lost', 1, 0)`},
		{"delivery of no attempt", "job_deliveries_attempt_check", deliveries + `('j', 'email', 'sent', 0, 0)`},
		{
			"delivery twice", "job_deliveries_pkey",
			deliveries + `('j', 'email', 'sent', 1, 0), ('j', 'email', 'sent', 2, 0)`,
		},
		{"receipt twice", "webhook_deliveries_pkey", receipts + `('j', 1, 'u', true, 0), ('j', 1, 'u', true, 0)`},
	} {
		assertRefused(t, c.name, c.refuses, attempt(t, db, queued(nil), c.stmt))
	}
}

// The statements of leases and of searches find their rows by a partial index: none is as large as
// the table.
func TestJobIndexesArePartial(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `
SELECT count(*) FROM pg_index WHERE indrelid = 'daybook.jobs'::regclass AND indpred IS NULL`),
		"the primary key alone has every row")
}

// A purged job takes its links along.
func TestLinksGoWithTheirJob(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(),
		`SELECT daybook.enqueue_job('o', 'mail', '{}', links => '[{"kind": "k", "id": "i"}]')`)
	require.NoError(t, err)
	require.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.job_links`))
	_, err = db.Pool.Exec(t.Context(), `DELETE FROM daybook.jobs`)
	require.NoError(t, err)
	assert.Zero(t, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.job_links`))
}

// Taking back the migration that makes the queue of jobs (00008) keeps the log of the accounting
// jobs.
func TestDownWithJobs(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
SELECT daybook.enqueue_job('o', 'mail', '{}', links => '[{"kind": "k", "id": "i"}]');
INSERT INTO daybook.attempt_log (job_id, org_id, attempt, outcome, started_at, turn_id, fence, kind, type) VALUES ('j', 'o', 1, 'completed', now(), 't', 1, 'jobs', 'mail');
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, started_at, turn_id, fence) VALUES ('a', 'o', 'd', 1, 1, 'completed', now(), 't', 1)`)
	require.NoError(t, err)
	for {
		_, done := applied(t, db)
		if done < 8 {
			break
		}
		require.NoError(t, migrations.Down(t.Context(), db.URL, migrations.DownOptions{DeleteData: true}))
	}
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.attempt_log`))
	require.NoError(t, migrations.Up(t.Context(), db.URL))
	assert.Equal(t, 1, fixture.Count(t, db.Pool, `SELECT count(*) FROM daybook.attempts WHERE kind = 'accounting'`))
}

// domainColumns is a statement that inserts and updates each column of a queue but those that say
// what completed a job, and changes nothing.
func domainColumns(t *testing.T, db *pgtest.DB, table string) (stmt string) {
	t.Helper()
	require.NoError(t, db.Pool.QueryRow(t.Context(), `
SELECT format('WITH updated AS (UPDATE daybook.%3$s SET %1$s WHERE false) INSERT INTO daybook.%3$s (%2$s) SELECT %2$s FROM daybook.%3$s WHERE false',
              string_agg(format('%I = %1$I', column_name), ', '), string_agg(format('%I', column_name), ', '), $1::text)
  FROM information_schema.columns WHERE table_schema = 'daybook' AND table_name = $1::text AND column_name NOT LIKE 'completed%'`, table).Scan(&stmt))
	return stmt
}

// TestRolesAndJobs has each role do its work on background jobs, and refuses it the rest.
func TestRolesAndJobs(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	require.NoError(t, migrations.Roles(t.Context(), db.URL))
	pools := map[string]*pgxpool.Pool{}
	for _, role := range []string{"domain", "worker", "reader", "server"} {
		pools[role] = as(t, db, "daybook_"+role)
	}
	_, err := db.Pool.Exec(t.Context(),
		`INSERT INTO daybook.api_tokens (name, scopes, hash) VALUES ('n', '{read}', sha256('1'));
SELECT daybook.lease_async_operation(daybook.enqueue_async_operation('claimed', '{}'))`)
	require.NoError(t, err)

	for _, c := range []struct {
		name, stmt string
		by         string
		refused    bool
	}{
		{"domain code enqueues", `SELECT daybook.enqueue_job('o', 'mail', '{}', 'k', links => '[{"kind": "k", "id": "i"}]', unique_payload => true)`, "domain", false},
		{
			"domain code enqueues many", `SELECT daybook.enqueue_jobs('{o,o}', '{mail,mail}', ARRAY['{}', '{}']::jsonb[])`,
			"domain", false,
		},
		{
			"domain code enqueues under another name",
			`SELECT daybook.enqueue_async_operation('mail', '{}', p_form_id => gen_random_uuid())`, "domain", false,
		},
		{"domain code cancels", `SELECT daybook.cancel_job(min(id)) FROM daybook.jobs`, "domain", false},
		{
			"domain code completes",
			`SELECT daybook.complete_async_operation((SELECT id FROM daybook.jobs WHERE state = 'leased')::uuid)`, "domain",
			true,
		},
		{"domain code says who completed a job", `UPDATE daybook.jobs SET completed_by = 'w'`, "domain", true},
		{
			"domain code forgets who completed a job",
			`UPDATE daybook.jobs SET completed_turn_id = NULL, completed_fence = NULL, completed_by = NULL, completed_started_at = NULL`, "domain", true,
		},
		{
			"domain code inserts a completed job",
			`INSERT INTO daybook.jobs (org_id, type, payload, completed_turn_id) VALUES ('o', 'mail', '{}', 't')`, "domain",
			true,
		},
		{"domain code writes every other column", domainColumns(t, db, "jobs"), "domain", false},
		{
			"domain code logs an attempt",
			`INSERT INTO daybook.attempt_log (job_id, org_id, attempt, outcome, started_at, turn_id, fence, kind, type) VALUES ('j', 'o', 1, 'completed', now(), 't', 1, 'jobs', 'mail')`, "domain",
			true,
		},
		// What docs/security.md says that it does not protect from.
		{
			"domain code says that a job is worked",
			`WITH j AS (INSERT INTO daybook.jobs (id, org_id, type, payload, input_hash, state, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, run_count, worker)
VALUES ('lied', 'other', 'mail', '{}', sha256(''), 'leased', 't', 99, 0, now(), now(), 1, 'w') RETURNING id) SELECT FROM j`, "domain", false,
		},
		{
			"domain code says what came of a job",
			`UPDATE daybook.jobs SET state = 'completed', result = '{}', finished_at = now(), turn_id = NULL, fence = NULL, leased_generation = NULL, attempt_started_at = NULL, worker = NULL WHERE id = 'lied'`, "domain", false,
		},
		{"domain code pauses a named queue", `UPDATE daybook.queues SET paused_at = now()`, "domain", false},
		{
			"domain code adds to the log of actions under another name",
			`INSERT INTO daybook.actions (via, action, token_id, actor, org_id, outcome) VALUES ('api', 'jobs.cancel', 't', 'admin', 'other', 'done')`, "domain", false,
		},
		{
			"domain code hides its role in the log of actions",
			`INSERT INTO daybook.actions (via, action, token_id, actor, db_role, outcome) VALUES ('api', 'jobs.cancel', 't', 'admin', 'daybook_server', 'done')`, "domain", true,
		},
		{"the worker completes", `SELECT daybook.complete_async_operation((SELECT id FROM daybook.jobs WHERE state = 'leased')::uuid)`, "worker", false},
		{"the worker retries", `SELECT daybook.retry_job(min(id)) FROM daybook.jobs`, "worker", false},
		{"the worker enqueues", `SELECT daybook.enqueue_job('o', 'mail', '{"a": 1}')`, "worker", false},
		{"the worker logs", `INSERT INTO daybook.attempt_log (job_id, org_id, attempt, outcome, started_at, turn_id, fence, kind, type) VALUES ('j', 'o', 1, 'completed', now(), 't', 1, 'jobs', 'mail')`, "worker", false},
		{
			"the worker keeps a receipt",
			`INSERT INTO daybook.webhook_deliveries (job_id, attempt, url, ok, duration_ms) VALUES ('j', 1, 'u', true, 0) ON CONFLICT (job_id, attempt) DO UPDATE SET ok = excluded.ok`, "worker", false,
		},
		{
			"the worker notes a delivery",
			`INSERT INTO daybook.job_deliveries (job_id, channel, state, attempt, generation) VALUES ('j', 'email', 'sending', 1, 0) ON CONFLICT (job_id, channel) DO UPDATE SET state = excluded.state`, "worker", false,
		},
		{"the worker cleans up", `WITH j AS (DELETE FROM daybook.jobs RETURNING id), a AS (DELETE FROM daybook.attempt_log) DELETE FROM daybook.webhook_deliveries`, "worker", false},
		{"the reader looks", `SELECT * FROM jobs, job_links, job_status, async_operations, async_operations_status, webhook_deliveries`, "reader", false},
		{
			"the reader looks at tokens",
			`SELECT id, org_id, name, scopes, created_at, last_used_at, revoked_at FROM api_tokens`, "reader", false,
		},
		{"the server looks for a token", `SELECT * FROM daybook.api_tokens WHERE hash = sha256('1')`, "server", false},
		{
			"the server notes its use", `UPDATE daybook.api_tokens SET last_used_at = now() WHERE hash = sha256('1')`,
			"server", false,
		},
		{
			"the server enqueues and works", `SELECT daybook.enqueue_job('o', 'mail', '{}'), nextval('daybook.fence_seq')`,
			"server", false,
		},
		{"the reader looks at the hashes of erasures", `SELECT scope_salt, scope_hash FROM erasures`, "reader", false},

		{"the reader enqueues", `SELECT daybook.enqueue_job('o', 'mail', '{}')`, "reader", true},
		{"the reader looks at hashes", `SELECT hash FROM daybook.api_tokens`, "reader", true},
		{"the reader looks at all columns", `SELECT * FROM daybook.api_tokens`, "reader", true},
		{"domain code looks at hashes", `SELECT hash FROM daybook.api_tokens`, "domain", true},
		{"the worker looks at hashes", `SELECT hash FROM daybook.api_tokens`, "worker", true},
		{
			"the server makes a token",
			`INSERT INTO daybook.api_tokens (name, scopes, hash) VALUES ('n', '{read}', sha256('2'))`, "server", true,
		},
		{"the server widens a token", `UPDATE daybook.api_tokens SET scopes = '{operate}'`, "server", true},
		{"domain code removes a job", `DELETE FROM daybook.jobs`, "domain", true},
		{
			"domain code writes a delivery",
			`INSERT INTO daybook.job_deliveries (job_id, channel, state, attempt, generation) VALUES ('j', 'email', 'sent', 1, 0)`, "domain", true,
		},
		{
			"domain code writes a receipt",
			`INSERT INTO daybook.webhook_deliveries (job_id, attempt, url, ok, duration_ms) VALUES ('j', 1, 'u', true, 0)`,
			"domain", true,
		},
		{"the worker changes the log", `UPDATE daybook.attempt_log SET outcome = 'completed'`, "worker", true},
	} {
		_, err := pools[c.by].Exec(t.Context(), c.stmt)
		if c.refused {
			assert.Equal(t, "42501", store.SQLState(err), "%s: %v", c.name, err)
		} else {
			assert.NoError(t, err, c.name)
		}
	}
}

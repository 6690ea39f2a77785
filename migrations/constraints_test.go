package migrations_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// attempt runs statements in a transaction that is rolled back, and returns the last one's error.
func attempt(t *testing.T, db *pgtest.DB, stmts ...string) error {
	t.Helper()
	tx, err := db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	for i, stmt := range stmts {
		if _, err = tx.Exec(t.Context(), stmt, pgx.QueryExecModeSimpleProtocol); i < len(stmts)-1 {
			require.NoError(t, err, stmt)
		}
	}
	return err
}

// job is an INSERT of a job that is right but for what set says.
func job(set map[string]string) string {
	columns := map[string]string{"org_id": "'o'", "document_id": "'d'", "version_hint": "1"}
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
	return fmt.Sprintf(`INSERT INTO daybook.accounting_work_queue (%s) VALUES (%s)`, strings.Join(names, ", "),
		strings.Join(values, ", "))
}

// kept is what a completed job that keeps its attempt has, but for what set says.
func kept(set map[string]string) map[string]string {
	row := map[string]string{
		"state": "'completed'", "finished_at": "now()", "run_count": "1",
		"completed_turn_id": "'t'", "completed_fence": "1", "completed_by": "''", "completed_started_at": "now()",
	}
	maps.Copy(row, set)
	return row
}

// times are the columns of a job that hold a time, in both queues; finished_at is null while a job
// is leased.
var times = []string{
	"ready_at", "first_ready_at", "created_at", "updated_at", "last_attempted_at",
	"attempt_started_at",
}

func TestQueueConstraints(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const (
		lease    = "leased_has_lease"
		finished = "finished_has_time"
		failed   = "failed_has_error"
		cancel   = "cancel_only_while_leased"
		ended    = "completed_has_attempt"
		table    = "accounting_work_queue_"
	)
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
		{"cancelled", map[string]string{"state": "'cancelled'", "finished_at": "now()"}, ""},
		{"failed", map[string]string{
			"state": "'failed'", "finished_at": "now()", "last_error": "'e'",
			"last_error_code": "'TIMEOUT'",
		}, ""},

		{"leased without turn", map[string]string{"state": "'leased'", "turn_id": "NULL"}, lease},
		{"leased without fence", map[string]string{"state": "'leased'", "fence": "NULL"}, lease},
		{"leased without generation", map[string]string{"state": "'leased'", "leased_generation": "NULL"}, lease},
		{"leased without start", map[string]string{"state": "'leased'", "attempt_started_at": "NULL"}, lease},
		{"leased without renewal", map[string]string{"state": "'leased'", "last_attempted_at": "NULL"}, lease},
		{"leased without attempt", map[string]string{"state": "'leased'", "run_count": "0"}, lease},
		{"pending with turn", map[string]string{"turn_id": "'t'"}, lease},
		{"pending with fence", map[string]string{"fence": "1"}, lease},
		{"pending with leased generation", map[string]string{"leased_generation": "1"}, lease},
		{"pending with worker", map[string]string{"worker": "'w'"}, lease},
		{"pending with start", map[string]string{"attempt_started_at": "now()"}, lease},
		{"pending and working", map[string]string{"working": "true"}, lease},
		{
			"completed with lease",
			map[string]string{"state": "'completed'", "finished_at": "now()", "turn_id": "'t'"},
			lease,
		},

		{"completed without time", map[string]string{"state": "'completed'"}, finished},
		{"cancelled without time", map[string]string{"state": "'cancelled'"}, finished},
		{
			"failed without time",
			map[string]string{"state": "'failed'", "last_error": "'e'", "last_error_code": "'TIMEOUT'"},
			finished,
		},
		{"pending with time", map[string]string{"finished_at": "now()"}, finished},
		{"leased with time", map[string]string{"state": "'leased'", "finished_at": "now()"}, finished},
		{"failed without error", map[string]string{
			"state": "'failed'", "finished_at": "now()",
			"last_error_code": "'TIMEOUT'",
		}, failed},
		{
			"failed without code",
			map[string]string{"state": "'failed'", "finished_at": "now()", "last_error": "'e'"},
			failed,
		},
		{"pending, to be cancelled", map[string]string{"cancel_requested": "true"}, cancel},

		{"empty organization", map[string]string{"org_id": "''"}, table + "org_id_check"},
		{"long organization", map[string]string{"org_id": "repeat('€', 85) || 'o'"}, table + "org_id_check"},
		{"empty document", map[string]string{"document_id": "''"}, table + "document_id_check"},
		{"long document", map[string]string{"document_id": "repeat('a', 256)"}, table + "document_id_check"},
		{
			"finished at no time",
			map[string]string{"state": "'completed'", "finished_at": "'infinity'"},
			"times_are_readable",
		},
		{"negative version", map[string]string{"version_hint": "-1"}, table + "version_hint_check"},
		{"deleted in a negative version", map[string]string{"deleted_version": "-1"}, table + "deleted_version_check"},
		{"negative epoch", map[string]string{"epoch": "-1"}, table + "epoch_check"},
		{"negative attempts", map[string]string{"run_count": "-1"}, table + "run_count_check"},
		{"too many attempts", map[string]string{"run_count": "1000001"}, table + "run_count_check"},
		{"too many looks", map[string]string{"not_ready_count": "1000001"}, table + "not_ready_count_check"},
		{"too many reclaims", map[string]string{"reclaims": "1000001"}, table + "reclaims_check"},
		{"priority 0", map[string]string{"priority": "0"}, table + "priority_check"},
		{"priority 4", map[string]string{"priority": "4"}, table + "priority_check"},
		{"negative looks", map[string]string{"not_ready_count": "-1"}, table + "not_ready_count_check"},
		{"negative reclaims", map[string]string{"reclaims": "-1"}, table + "reclaims_check"},

		{"completed by an attempt", kept(nil), ""},
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
		{"completed by an attempt of no organization", kept(map[string]string{"org_id": "''"}), table + "org_id_check"},
		{"completed by an attempt without time", kept(map[string]string{"finished_at": "NULL"}), finished},
		{"completed by an attempt and leased", kept(map[string]string{"turn_id": "'t'"}), lease},
	} {
		assertRefused(t, c.name, c.refuses, attempt(t, db, job(c.set)))
	}
	for set, refuses := range map[string]string{
		"last_error = 'looked at'": "", "state = 'pending', finished_at = NULL": "", "completed_fence = NULL": "",
		"run_count = 0": "", "completed_fence = 9": "",
		"state = 'pending'": finished, "finished_at = NULL": finished, "turn_id = 't'": lease,
		"org_id = ''": table + "org_id_check", "updated_at = 'infinity'": "times_are_readable",
	} {
		assertRefused(t, "a completed row, "+set, refuses,
			attempt(t, db, job(kept(nil)), "UPDATE daybook.accounting_work_queue SET "+set))
	}
	for _, column := range []string{"finished_at", "completed_started_at"} {
		assertRefused(t, "completed by an attempt, "+column, "times_are_readable",
			attempt(t, db, job(kept(map[string]string{column: "'infinity'"}))))
	}
	for _, column := range times {
		for _, at := range []string{
			"'infinity'", "'-infinity'", "'10000-01-01 00:00:00+00'",
			"'0001-12-31 00:00:00+00 BC'",
		} {
			assertRefused(t, column+" "+at, "times_are_readable",
				attempt(t, db, job(map[string]string{"state": "'leased'", column: at})))
		}
	}
	assertRefused(t, "two jobs for one document", table+"org_id_document_id_key", attempt(t, db, job(nil), job(nil)))
}

// assertRefused checks the name of the constraint that refused.
func assertRefused(t *testing.T, name, constraint string, err error) {
	t.Helper()
	if constraint == "" {
		assert.NoError(t, err, name)
		return
	}
	var pg *pgconn.PgError
	if assert.ErrorAs(t, err, &pg, name) {
		assert.Equal(t, constraint, pg.ConstraintName, "%s: %s", name, pg.Message)
	}
}

func TestOtherConstraints(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const (
		organization = `INSERT INTO daybook.organizations (id) VALUES ('o')`
		document     = `INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content) VALUES `
		attempts     = `INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, error_code, started_at, turn_id, fence) VALUES `
		accounts     = `INSERT INTO daybook.accounts (org_id, code, type) VALUES `
		ruleSets     = `INSERT INTO daybook.rule_sets (org_id, version, name, source, sha256) VALUES `
	)
	for _, c := range []struct{ name, refuses, stmt string }{
		{"document", "", document + `('o', 'd', 'invoice', 'out', 'EUR', '2026-03-14', '{}')`},
		{"document without type", "documents_type_check", document + `('o', 'd', '', 'out', 'EUR', '2026-03-14', '{}')`},
		{
			"document with another direction", "documents_direction_check",
			document + `('o', 'd', 'invoice', 'up', 'EUR', '2026-03-14', '{}')`,
		},
		{
			"document with a currency in lower case", "documents_currency_check",
			document + `('o', 'd', 'invoice', 'in', 'eur', '2026-03-14', '{}')`,
		},
		{
			"document without an id", "documents_id_check",
			document + `('o', '', 'invoice', 'in', 'EUR', '2026-03-14', '{}')`,
		},
		{
			"document of a long organization", "documents_org_id_check",
			document + `(repeat('a', 256), 'd', 'invoice', 'in', 'EUR', '2026-03-14', '{}')`,
		},

		{"attempt", "", attempts + `('j', 'o', 'd', 1, 1, 'completed', NULL, now(), 't', 1)`},
		{"attempt 0", "attempt_log_attempt_check", attempts + `('j', 'o', 'd', 1, 0, 'completed', NULL, now(), 't', 1)`},
		{"failed without a code", "attempt_log_check", attempts + `('j', 'o', 'd', 1, 1, 'failed', NULL, now(), 't', 1)`},
		{"retried without a code", "attempt_log_check", attempts + `('j', 'o', 'd', 1, 1, 'retried', NULL, now(), 't', 1)`},
		{"retried with a code", "", attempts + `('j', 'o', 'd', 1, 1, 'retried', 'TIMEOUT', now(), 't', 1)`},

		{"organization without an id", "organizations_id_check", `INSERT INTO daybook.organizations (id) VALUES ('')`},
		{"a cap of no jobs", "organizations_max_in_flight_check", `UPDATE daybook.organizations SET max_in_flight = 0`},
		{"a rate without a time", "rate_has_seconds", `UPDATE daybook.organizations SET rate = 1`},
		{"a cap of one job", "", `UPDATE daybook.organizations SET max_in_flight = 1`},
		{"a source with a space", "organizations_source_check", `UPDATE daybook.organizations SET source = 'the shop'`},
		{"a source with a quote", "organizations_source_check", `UPDATE daybook.organizations SET source = 'sh''op'`},
		{"a source", "", `UPDATE daybook.organizations SET source = 'shop-2.orders_x'`},
		{"a hook without a name", "organizations_hooks_check", `UPDATE daybook.organizations SET hooks = '{a,""}'`},
		{"an unknown hook", "organizations_hooks_check", `UPDATE daybook.organizations SET hooks = '{a,null}'`},
		{"a hook with a brace", "organizations_hooks_check", `UPDATE daybook.organizations SET hooks = '{"a}"}'`},
		{"two hooks", "", `UPDATE daybook.organizations SET hooks = '{a,b.c}'`},
		{"no hooks", "", `UPDATE daybook.organizations SET hooks = '{}'`},
		{"a default source with a space", "defaults_source_check", `UPDATE daybook.defaults SET source = 'the shop'`},
		{"default hooks with a space", "defaults_hooks_check", `UPDATE daybook.defaults SET hooks = '{the shop}'`},
		{"a second row of defaults", "defaults_pkey", `INSERT INTO daybook.defaults DEFAULT VALUES`},
		{"account", "", accounts + `('o', '1200', 'asset')`},
		{"account without a code", "accounts_code_check", accounts + `('o', '', 'asset')`},
		{"account with a long code", "accounts_code_check", accounts + `('o', repeat('1', 65), 'asset')`},
		{"account of no organization", "accounts_org_id_fkey", accounts + `('unknown', '1200', 'asset')`},
		{"rule set", "", ruleSets + `('o', 1, 'n', 's', repeat('a', 64))`},
		{"rule set 0", "rule_sets_version_check", ruleSets + `('o', 0, 'n', 's', repeat('a', 64))`},
		{"rule set with a short hash", "rule_sets_sha256_check", ruleSets + `('o', 1, 'n', 's', 'a')`},
		{
			"an active rule set that is not there", "organizations_id_active_rule_set_fkey",
			`UPDATE daybook.organizations SET active_rule_set = 7`,
		},
	} {
		assertRefused(t, c.name, c.refuses, attempt(t, db, organization, c.stmt))
	}
}

func TestNewID(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name, stmt := range map[string]string{
		"one by one": `SELECT daybook.new_id() FROM generate_series(1, 1000)`,
		"at once":    `SELECT unnest(daybook.new_ids(10000))`,
	} {
		rows, err := db.Pool.Query(t.Context(), stmt)
		require.NoError(t, err)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.NotEmpty(t, ids)
		seen, tails := map[string]bool{}, map[string]bool{}
		for i, id := range ids {
			require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id,
				"%s: a UUID of version 7", name)
			seen[id], tails[id[19:]] = true, true
			if i > 0 {
				require.LessOrEqual(t, ids[i-1][:18], id[:18], "%s: ordered by the millisecond and its 4096ths", name)
			}
		}
		assert.Len(t, seen, len(ids), name)
		assert.Len(t, tails, len(ids), "%s: what is random differs", name)
	}
	var first, again, none []string
	require.NoError(t, db.Pool.QueryRow(t.Context(),
		`SELECT daybook.new_ids(1), daybook.new_ids(1), daybook.new_ids(0)`).Scan(&first, &again, &none))
	assert.NotEqual(t, first, again, "each call has a seed of its own")
	assert.Empty(t, none)
	for _, id := range []string{"daybook.new_id()", "(daybook.new_ids(1))[1]"} {
		var off float64
		require.NoError(t, db.Pool.QueryRow(t.Context(), `
SELECT abs(('x' || lpad(replace(substr(`+id+
			`, 1, 13), '-', ''), 16, '0'))::bit(64)::bigint / 1000.0 - extract(epoch FROM clock_timestamp()))::float8`).Scan(&off))
		assert.Less(t, off, 5.0, "the time in the id is the clock's: %s", id)
	}
}

package diagnosis_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestCompletedLately: what was completed in the last minute is found without a look at what was
// completed before.
func TestCompletedLately(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, stmt := range []string{
		`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at)
SELECT 'o', 'd' || n, 1, 'completed', now() - interval '1 day' + n * interval '1 s' FROM generate_series(1, 60000) n`,
		`INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, finished_at, completed_turn_id, completed_fence, completed_by, completed_started_at)
SELECT 'o', 'mail', '{}', 'completed', 1, now() - interval '1 day' + n * interval '1 s', 't', 1, '', now() FROM generate_series(1, 20000) n`,
		`VACUUM ANALYZE daybook.accounting_work_queue`, `VACUUM ANALYZE daybook.jobs`,
		`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, last_error, last_error_code)
VALUES ('o', 'a', 1, 'completed', now(), NULL, NULL), ('p', 'b', 1, 'completed', now(), NULL, NULL), ('o', 'c', 1, 'failed', now(), 'e', 'TIMEOUT')`,
		`INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, finished_at, completed_turn_id, completed_fence, completed_by, completed_started_at)
VALUES ('o', 'mail', '{}', 'completed', 1, now(), 't', 1, '', now()), ('o', 'mail', '{}', 'cancelled', 1, now(), NULL, NULL, NULL, NULL)`,
	} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	for org, want := range map[string][]diagnosis.Completed{
		"":  {{Kind: "accounting", Count: 2}, {Kind: "jobs", Count: 1}, {Kind: "tasks", Count: 0}},
		"o": {{Kind: "accounting", Count: 1}, {Kind: "jobs", Count: 1}, {Kind: "tasks", Count: 0}},
		"p": {{Kind: "accounting", Count: 1}, {Kind: "jobs", Count: 0}, {Kind: "tasks", Count: 0}},
	} {
		all, err := diagnosis.CompletedLately(t.Context(), db.Pool, org)
		require.NoError(t, err)
		for i := range all {
			assert.Equal(t, all[i].Kind != "tasks", all[i].Last != nil,
				"when the last one was completed, of all organizations")
			all[i].Last = nil
		}
		assert.ElementsMatch(t, want, all, org)
	}
	rows, err := db.Pool.Query(t.Context(), "EXPLAIN "+diagnosis.CompletedStatement, pgx.QueryExecModeSimpleProtocol, "",
		100)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	plan := strings.Join(lines, "\n")
	assert.Contains(t, plan, "accounting_work_queue_completed")
	assert.Contains(t, plan, "jobs_finished")
}

// TestStatementsReadABoundedNumberOfRows: with more jobs than they read, statements go along an
// index and never through all rows.
func TestStatementsReadABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
INSERT INTO daybook.jobs (org_id, type, payload, ready_at) SELECT 'o' || n % 100, 'mail', '{}', now() - n * interval '1 ms' FROM generate_series(1, 20000) n;
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at) SELECT 'o' || n % 100, 'd' || n, 1, now() - n * interval '1 ms' FROM generate_series(1, 20000) n;
ANALYZE daybook.jobs, daybook.accounting_work_queue`)
	require.NoError(t, err)
	for what, statements := range diagnosis.Statements {
		for kind, stmt := range statements {
			var plan string
			err := diagnosis.Read(t.Context(), db.Pool, func(tx pgx.Tx) error {
				args := []any{pgx.QueryExecModeSimpleProtocol, "", 100}
				if what == "failed" {
					args = []any{pgx.QueryExecModeSimpleProtocol, store.Args{
						"org": "", "most": 100, "codes": []string{"TIMEOUT"}, "words": []string{"x"}, "causes": []string{"y"},
					}}
				}
				rows, err := tx.Query(t.Context(), "EXPLAIN "+stmt, args...)
				if err != nil {
					return err
				}
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				plan = strings.Join(lines, "\n")
				return err
			})
			require.NoError(t, err, "%s %s", what, kind)
			assert.NotContains(t, plan, "Bitmap", "%s %s", what, kind)
			if kind == "jobs" && what != "failed" {
				assert.Contains(t, plan, "(fleet = f.id)", "%s: along the index, which begins with the fleet", what)
			}
			assert.NotContains(t, plan, "Seq Scan on jobs", "%s %s", what, kind)
			assert.NotContains(t, plan, "Seq Scan on accounting_work_queue", "%s %s", what, kind)
		}
	}
}

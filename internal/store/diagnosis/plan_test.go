package diagnosis_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/pgtest"
	"github.com/daybook-dev/daybook/internal/store/diagnosis"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// TestStatementsReadABoundedNumberOfRows: with more jobs than they read, statements go along an index and never through all rows.
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
				rows, err := tx.Query(t.Context(), "EXPLAIN "+stmt, pgx.QueryExecModeSimpleProtocol, "", 100)
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

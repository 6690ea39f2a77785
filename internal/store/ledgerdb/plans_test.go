package ledgerdb_test

import (
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
)

// TestPlansOfAnEmptyLedger: a session keeps the plans that it made while the ledger was empty until
// PostgreSQL analyzes the table. By them it finds the impacts of one document, and does not read
// those of its whole organization.
func TestPlansOfAnEmptyLedger(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `ALTER TABLE daybook.impacts SET (autovacuum_enabled = false)`)
	require.NoError(t, err)
	pool, reads := fixture.Reads(t, db.Pool)
	id := 0
	impact := func(document string, seq int, kind string) {
		id++
		_, err := pool.Exec(t.Context(), `
INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
VALUES ($1, 'o', $2, 1, $3, $4, date '2026-01-01', date '2026-01-01', 0, 'j', 1)`, id, document, seq, kind)
		require.NoError(t, err)
	}
	steps := map[string]func(document string){
		"a document is written": func(document string) {
			_, err := pool.Exec(t.Context(), `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content) VALUES ('o', $1, 'invoice', 'out', 'EUR', date '2026-01-01', '{}')`, document+"/new")
			require.NoError(t, err)
		},
		"an impact is reversed": func(document string) {
			impact(document, 2, "reverse")
		},
		"the last impact is read": func(document string) {
			require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
				_, err := ledgerdb.LastImpacts(t.Context(), tx,
					[]ledgerdb.ImpactKey{{
						DocumentKey: ledgerdb.DocumentKey{OrgID: "o", ID: document}, Version: 1,
						RuleSetVersion: 1,
					}})
				return err
			}))
		},
		"a document is to be posted anew": func(document string) {
			_, err := pool.Exec(t.Context(), `SELECT daybook.enqueue_accounting_job('o', $1, 1)`, document)
			require.NoError(t, err)
			_, err = pool.Exec(t.Context(), `SELECT daybook.repost_accounting_job('o', $1)`, document)
			require.NoError(t, err)
		},
	}
	const planned = 8 // PostgreSQL prefers one plan for all values after the fifth time
	for n := range planned {
		document := "early" + strconv.Itoa(n)
		impact(document, 1, "post")
		for _, name := range []string{
			"a document is written", "the last impact is read", "an impact is reversed",
			"a document is to be posted anew",
		} {
			steps[name](document)
		}
	}
	for n := range 2 * planned {
		impact("d"+strconv.Itoa(n), 1, "post")
	}
	_, err = db.Pool.Exec(t.Context(), `
INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
SELECT 1000 + g, 'o', 'other' || g, 1, 1, 'post', date '2026-01-01', date '2026-01-01', 0, 'j', 1 FROM generate_series(1, 3000) g`)
	require.NoError(t, err)
	for name, step := range steps {
		before, _ := reads("daybook.impacts")
		step("d0")
		after, _ := reads("daybook.impacts")
		assert.LessOrEqual(t, after-before, int64(20),
			"%s: impacts read, of one of the document and 3,000 of its organization", name)
	}
}

package ledgerdb_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// TestATrialBalanceReadsOneOrganization: what an organization has posted is summed up by its own
// entries, also in a session that has often summed up those of a large one: PostgreSQL then prefers
// one plan for all of them.
func TestATrialBalanceReadsOneOrganization(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, stmt := range []string{
		`INSERT INTO daybook.organizations (id, name) SELECT 'o' || g, '' FROM generate_series(0, 200) g`,
		`INSERT INTO daybook.accounts (org_id, code, name, type) SELECT o.id, a.code, '', 'asset' FROM daybook.organizations o, (VALUES ('a'), ('b')) a (code)`,
		`WITH g AS (SELECT g, CASE WHEN g > 29000 THEN 'o' || 1 + g % 200 ELSE 'o0' END AS org FROM generate_series(1, 30000) g), i AS (
		INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
		SELECT g, org, 'd' || g, 1, 1, 'post', date '2026-01-01' + g / 300, date '2026-01-01' + g / 300, 2, 'j', 1 FROM g
		) INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency)
		SELECT g, l, org, CASE l WHEN 1 THEN 'a' ELSE 'b' END, CASE l WHEN 1 THEN 'debit' ELSE 'credit' END::daybook.entry_side, 100, 'EUR' FROM g, generate_series(1, 2) l`,
		`VACUUM ANALYZE daybook.entries, daybook.impacts, daybook.accounts`,
	} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	pool, reads := fixture.Reads(t, db.Pool)
	for name, f := range map[string]ledgerdb.BalanceFilter{
		"all":   {},
		"a day": {From: models.NewDate(2026, 4, 10), To: models.NewDate(2026, 4, 10)},
	} {
		for range 8 {
			f.OrgID = "o0"
			_, err := ledgerdb.ReadTrial(t.Context(), pool, f)
			require.NoError(t, err, name)
		}
		before, _ := reads("daybook.entries")
		f.OrgID = "o7"
		trial, err := ledgerdb.ReadTrial(t.Context(), pool, f)
		require.NoError(t, err, name)
		assert.Len(t, trial.Accounts, 2, name)
		after, _ := reads("daybook.entries")
		assert.LessOrEqual(t, after-before, int64(100), "%s: entries read, of 10 of the organization and 60,000 of all",
			name)
	}
}

package ledgerdb_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/models"
)

// found returns the ids of one page.
func found(t *testing.T, db *pgtest.DB, f ledgerdb.DocumentQuery) (ids []string, next string) {
	t.Helper()
	page, err := ledgerdb.FindDocuments(t.Context(), db.Pool, f)
	require.NoError(t, err)
	for _, d := range page.Documents {
		ids = append(ids, d.ID)
	}
	return ids, page.Next
}

func TestFindDocuments(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	fixture.Organization(t, db.Pool, "o")
	fixture.Organization(t, db.Pool, "other")
	payment := fixture.Invoice("o", "c-payment", 100)
	payment.Type, payment.IssueDate = "unheard-of", models.NewDate(2026, 5, 1)
	fixture.Ready(t, db.Pool, fixture.Invoice("o", "a-1", 1000), fixture.Invoice("o", "a-2", 1000), payment,
		fixture.Invoice("other", "a-3", 1000))
	queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{})
	fixture.Ready(t, db.Pool, fixture.Invoice("o", "b-new", 1000))
	_, err := db.Pool.Exec(t.Context(), `SELECT * FROM daybook.enqueue_accounting_job('o', 'own-table', 7)`)
	require.NoError(t, err)

	for name, test := range map[string]struct {
		f    ledgerdb.DocumentQuery
		want []string
	}{
		"all":        {ledgerdb.DocumentQuery{}, []string{"a-1", "a-2", "b-new", "c-payment", "own-table"}},
		"after":      {ledgerdb.DocumentQuery{After: "a-2"}, []string{"b-new", "c-payment", "own-table"}},
		"prefix":     {ledgerdb.DocumentQuery{Prefix: "a-"}, []string{"a-1", "a-2"}},
		"type":       {ledgerdb.DocumentQuery{Type: "unheard-of"}, []string{"c-payment"}},
		"failed":     {ledgerdb.DocumentQuery{State: models.JobFailed}, []string{"c-payment"}},
		"posted":     {ledgerdb.DocumentQuery{Posted: new(true)}, []string{"a-1", "a-2"}},
		"not posted": {ledgerdb.DocumentQuery{Posted: new(false)}, []string{"b-new", "c-payment", "own-table"}},
		"from":       {ledgerdb.DocumentQuery{From: models.NewDate(2026, 4, 1)}, []string{"c-payment"}},
		"to":         {ledgerdb.DocumentQuery{To: models.NewDate(2026, 4, 1)}, []string{"a-1", "a-2", "b-new"}},
		"none":       {ledgerdb.DocumentQuery{Type: "x"}, nil},
	} {
		test.f.OrgID = "o"
		ids, next := found(t, db, test.f)
		assert.Equal(t, test.want, ids, name)
		assert.Empty(t, next, name)
	}
	page, err := ledgerdb.FindDocuments(t.Context(), db.Pool, ledgerdb.DocumentQuery{OrgID: "o"})
	require.NoError(t, err)
	assert.Equal(t, new(int64(1)), page.Documents[0].PostedVersion)
	assert.Equal(t, models.CodeNoMatchingRule, page.Documents[3].ErrorCode)
	own := page.Documents[4]
	assert.False(t, own.Here)
	assert.Equal(t, int64(7), own.Version, "as its job has it")

	ids, next := found(t, db, ledgerdb.DocumentQuery{OrgID: "o", Limit: 2})
	assert.Equal(t, []string{"a-1", "a-2"}, ids)
	assert.Equal(t, "a-2", next)
}

// TestFindDocumentsReadsAPart: a filter that matches none of many documents reads as many as any
// page does, and says where the list goes on.
func TestFindDocumentsReadsAPart(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content)
SELECT 'o' || i % 3, to_char(i, 'FM000000'), CASE WHEN i = 29997 THEN 'rare' ELSE 'invoice' END, 'out', 'EUR', '2026-03-14', '{}' FROM generate_series(1, 30000) i`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `ANALYZE daybook.documents`)
	require.NoError(t, err)

	ids, next := found(t, db, ledgerdb.DocumentQuery{OrgID: "o0", Type: "rare"})
	assert.Empty(t, ids)
	assert.Equal(t, "006000", next, "2,000 documents were looked at")
	var all []string
	for next != "" {
		ids, next = found(t, db, ledgerdb.DocumentQuery{OrgID: "o0", Type: "rare", After: next})
		all = append(all, ids...)
	}
	assert.Equal(t, []string{"029997"}, all)

	e := &explaining{Pool: db.Pool, t: t}
	_, err = ledgerdb.FindDocuments(t.Context(), e, ledgerdb.DocumentQuery{OrgID: "o0", Type: "rare"})
	require.NoError(t, err)
	assert.LessOrEqual(t, e.read, 5000.0, "rows read, of 30,000")
	assert.Empty(t, e.whole, "tables that are read as a whole")
}

// TestFailedDocumentsReadAPart: what a preview of rules looks at is found by indexes, however many
// jobs an organization has.
func TestFailedDocumentsReadAPart(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, last_error_code, last_error)
SELECT 'o' || i % 3, i::text, 1, CASE WHEN i % 4 = 0 THEN 'failed' ELSE 'completed' END::daybook.job_state, clock_timestamp(),
       CASE WHEN i % 4 = 0 THEN CASE WHEN i % 5 = 0 THEN 'UNBALANCED' ELSE 'NO_MATCHING_RULE' END END, 'e' FROM generate_series(1, 24000) i`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `ANALYZE daybook.accounting_work_queue`)
	require.NoError(t, err)
	codes := []models.ErrorCode{models.CodeAmbiguousRule, models.CodeUnbalanced, models.CodeNoMatchingRule}
	e := &explaining{Pool: db.Pool, t: t}

	failed, err := ledgerdb.FailedDocuments(t.Context(), e, "o0", codes, 450)
	require.NoError(t, err)
	assert.Len(t, failed, 450)
	assert.Equal(t, models.CodeUnbalanced, failed[399].Code)
	assert.Equal(t, models.CodeNoMatchingRule, failed[400].Code)
	assert.LessOrEqual(t, e.read, 1000.0, "rows read, of 24,000")

	counts, err := ledgerdb.CountFailures(t.Context(), e, "o0", codes)
	require.NoError(t, err)
	assert.Equal(t, []ledgerdb.FailureCount{
		{Code: models.CodeUnbalanced, Jobs: 400},
		{Code: models.CodeNoMatchingRule, Jobs: 1600},
	}, counts)
	assert.Empty(t, e.whole, "tables that are read as a whole")
}

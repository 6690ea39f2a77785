package daybooktest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/models"
)

// A document that the application has written to daybook.documents by SQL is refused as an import
// refuses it: a misspelt amount is not posted as 0.
func TestMisspeltFieldOfADocumentIsRefused(t *testing.T) {
	t.Parallel()
	db := daybooktest.New(t)
	daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "acme"})
	put := func(id, content string) {
		_, err := db.Pool.Exec(t.Context(), `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content)
VALUES ('acme', $1, split_part($1, '-', 1), 'out', 'EUR', '2026-01-31', $2)
ON CONFLICT (org_id, id) DO UPDATE SET content = excluded.content`, id, content)
		require.NoError(t, err)
		_, err = db.Pool.Exec(t.Context(), `SELECT daybook.mark_document_ready('acme', $1)`, id)
		require.NoError(t, err)
	}
	misspelt := map[string]string{
		"payment-1": `{"amuont": 10000}`,
		"invoice-1": `{"lines": [{"kind": "item", "net": 10000}], "taxs": [{"category": "VAT", "amount": 1900}], "total": 10000, "payable": 10000}`,
		"invoice-2": `{"lines": [{"kind": "item", "nett": 10000}], "total": 10000, "payable": 10000}`,
	}
	fields := map[string]string{"payment-1": "amuont", "invoice-1": "taxs", "invoice-2": "nett"}
	for id, content := range misspelt {
		put(id, content)
	}
	jobs := queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{}).Jobs
	require.Len(t, jobs, len(misspelt))
	for _, job := range jobs {
		assert.Equal(t, models.JobFailed, job.State, "%s is posted, although what it states was not read", job.DocumentID)
		require.NotNil(t, job.LastErrorCode, job.DocumentID)
		assert.Equal(t, models.CodeDocumentInvalid, *job.LastErrorCode, job.DocumentID)
		assert.Contains(t, *job.LastError, `there is no field "`+fields[job.DocumentID]+`"`)
	}
	assert.Empty(t, daybooktest.Balances(t, db.Pool, "acme", "EUR"))
	posted := `{"lines": [{"kind": "item", "net": 10000, "rate": 19}], "taxes": [{"category": "VAT", "rate": 19, "amount": 1900}], "total": 11900, "payable": 11900, "attributes": {"any": "name"}}`

	// A document that is posted, and is misspelt since, stays posted, and can be taken back.
	put("invoice-1", posted)
	queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{})
	before := daybooktest.Balances(t, db.Pool, "acme", "EUR")
	require.NotEmpty(t, before)
	put("invoice-1", misspelt["invoice-1"])
	queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{})
	assert.Equal(t, before, daybooktest.Balances(t, db.Pool, "acme", "EUR"))
	_, err := db.Pool.Exec(t.Context(), `SELECT daybook.mark_document_deleted('acme', 'invoice-1')`)
	require.NoError(t, err)
	queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{})
	for account, balance := range daybooktest.Balances(t, db.Pool, "acme", "EUR") {
		assert.Zero(t, balance, account)
	}
}

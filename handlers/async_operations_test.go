package handlers

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/models"
)

// Payloads as programs write them that come from async operations are worked when they come by
// enqueue_async_operation; credentials in one are refused, and the error names the secret.
func TestPrintedPayloadsOfAsyncOperations(t *testing.T) {
	t.Parallel()
	const workspace = "0197a0c0-0000-7000-8000-000000000003"
	hook, table := receive(t, nil), serveAirtable(t)
	b := setup(t)
	b.syncs(table.URL, map[string]string{
		"DAYBOOK_SECRET_ORGS_DEFAULT":    workspace,
		"DAYBOOK_WEBHOOK_ALLOW_NETWORKS": "127.0.0.0/8",
	})
	enqueue := func(operationType, payload string) (id string) {
		require.NoError(t, b.Pool.QueryRow(t.Context(), `
SELECT daybook.enqueue_async_operation(p_operation_type => $1, p_payload => $2::jsonb, p_submission_id => NULL, p_form_id => NULL, p_workspace_id => $3::uuid,
                                       p_max_attempts => 3)::text`, operationType, payload, workspace).Scan(&id))
		return id
	}
	sent := enqueue("webhook", `{"webhookUrl": "`+hook.URL+
		`", "formId": "form-1", "submissionId": "sub-1", "data": {"name": "Ada"}, "headers": {"X-A": "b"}}`)
	const synced = `{"formId": "form-1", "submissionId": "sub-1", "data": {"name": "Ada"}, "schema": {"fields": [{"id": "name", "label": "Full name"}]},
	                 "airtableSettings": {"base_id": "app0123", "table_name": "Applications"`
	written := enqueue("airtable_sync", synced+`}}`)
	refused := enqueue("airtable_sync", synced+`, "api_key": "key-of-a-customer"}}`)
	b.work()

	assert.Equal(t, models.JobCompleted, b.job(sent).State, b.job(sent).Error)
	require.Len(t, hook.requests(), 1)
	assert.Equal(t, models.JobCompleted, b.job(written).State, b.job(written).Error)
	assert.Equal(t, []map[string]any{{"Submission ID": "sub-1", "Full name": "Ada"}}, table.records)
	assert.Equal(t, models.JobFailed, b.job(refused).State)
	assert.Equal(t, models.CodePayloadInvalid, b.job(refused).Code)
	assert.Contains(t, b.job(refused).Error, "DAYBOOK_AIRTABLE_TOKEN_DEFAULT")
}

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
)

// The command looks, adopts, verifies and gives back; a payload that a built-in type refuses is
// reported before anything is adopted.
func TestAdoptOperations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `
CREATE TABLE public.async_operations (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), operation_type text NOT NULL, payload jsonb NOT NULL, status text NOT NULL DEFAULT 'pending',
                                      workspace_id uuid, last_error text);
INSERT INTO public.async_operations (operation_type, payload) VALUES
  ('webhook', '{"webhookUrl": "https://example.com/", "data": {}}'), ('webhook', '{"data": {}}'),
  ('airtable_sync', '{"airtableSettings": {"base_id": "app0123", "table_name": "t", "api_key": "key-of-a-customer"}, "submissionId": "s", "data": {}}')`)
	require.NoError(t, err)
	seen := b.ok("adopt", "async-operations")
	assert.Contains(t, seen, "DAYBOOK_AIRTABLE_TOKEN_DEFAULT")
	assert.Contains(t, seen, "PAYLOAD_REFUSED")
	assert.NotContains(t, seen, "key-of-a-customer")
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs`))
	b.ok("adopt", "async-operations", "--create", "--org", "acme", "--drop-credentials", "--apply")
	b.ok("adopt", "async-operations", "--create", "--org", "acme", "--drop-credentials", "--verify")
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE org_id = 'acme'`))
	assert.Contains(t, b.ok("adopt", "async-operations", "--undo"), "2 rows given back")
}

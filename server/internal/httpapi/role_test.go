package httpapi_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
)

// TestTheServersRole does everything with the rights of daybook_server alone.
func TestTheServersRole(t *testing.T) {
	t.Parallel()
	b := setupWith(t, func(o *httpapi.Options) {
		config := o.Pool.Config()
		require.NoError(t, migrations.Roles(t.Context(), config.ConnString()))
		_, err := o.Pool.Exec(t.Context(), "GRANT daybook_server TO CURRENT_USER")
		require.NoError(t, err)
		config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, "SET ROLE daybook_server")
			return err
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		listing, err := listing.New(pool)
		require.NoError(t, err)
		t.Cleanup(func() { _ = listing.Close() })
		o.Pool, o.Listing = pool, listing
	})
	fixture.Organization(t, b.Pool, "acme")
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "doc", 1000))
	_, err := b.Pool.Exec(t.Context(),
		`INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, posted_on, system, next) VALUES ('acme', 'doc', 0, '2027-01-31', 'legacy', 'wait')`)
	require.NoError(t, err)
	id := b.enqueue(object{"links": []object{{"kind": "a", "id": "b"}}, "idempotencyKey": "k"})
	b.fail(id, "TIMEOUT")
	for _, request := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPost, "/api/jobs/" + id + "/retry", `{"mode":"reset"}`},
		{http.MethodPost, "/api/jobs/" + id + "/cancel", nil},
		{http.MethodPost, "/api/jobs/retry", `{"mode":"now","all":true,"filter":{"state":"cancelled"}}`},
		{http.MethodPost, "/api/jobs/cancel", `{"all":true,"filter":{"state":"pending"}}`},
		{http.MethodPost, "/api/accounting/jobs/enqueue", `{"orgId":"acme","documentId":"doc","version":2}`},
		{http.MethodPost, "/api/accounting/jobs/doc/retry?orgId=acme", nil},
		{http.MethodPost, "/api/accounting/jobs/doc/cancel?orgId=acme", nil},
		{http.MethodPost, "/api/accounting/jobs/doc/elsewhere?orgId=acme", `{"post":"full"}`},
		{http.MethodGet, "/api/accounting/jobs/doc/elsewhere?orgId=acme", nil},
		{http.MethodGet, "/api/accounting/jobs", nil},
		{http.MethodGet, "/api/accounting/jobs/doc?orgId=acme", nil},
		{http.MethodGet, "/api/documents?orgId=acme", nil},
		{http.MethodGet, "/api/documents/doc?orgId=acme", nil},
		{http.MethodGet, "/api/entries?orgId=acme", nil},
		{http.MethodGet, "/api/trial-balance?orgId=acme", nil},
		{http.MethodGet, "/api/stats", nil},
		{http.MethodPut, "/api/queues/bank", `{"fleet":"shop","rate":1}`},
		{http.MethodPost, "/api/queues/bank/pause", nil},
		{http.MethodPost, "/api/queues/bank/resume", nil},
		{http.MethodGet, "/api/queues", nil},
		{http.MethodGet, "/api/jobs", nil},
		{http.MethodGet, "/api/jobs/" + id, nil},
	} {
		a := b.send(b.everything, request.method, request.path, request.body)
		assert.Equal(t, http.StatusOK, a.status, "%s %s: %s", request.method, request.path, a.body)
	}
	deleted := b.send(b.everything, http.MethodDelete, "/api/queues/bank", nil)
	assert.Equal(t, http.StatusNoContent, deleted.status, string(deleted.body))
	var used bool
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT last_used_at IS NOT NULL FROM daybook.api_tokens`).Scan(&used))
	assert.True(t, used)
	assert.NotContains(t, b.log.String(), `"level":"ERROR"`)
}

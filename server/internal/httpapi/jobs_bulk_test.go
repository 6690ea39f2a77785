package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/answers"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/listing"
	"github.com/daybook-dev/daybook/internal/store/tokens"
	"github.com/daybook-dev/daybook/server/internal/httpapi"
)

// deadLetters makes dead letters.
func (b *bundle) deadLetters(n int) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), `
INSERT INTO daybook.jobs (org_id, type, payload, input_hash, state, run_count, last_error, last_error_code, finished_at)
SELECT 'acme', 'webhook', '{}', sha256('x'), 'failed', 3, 'no', 'UPSTREAM_5XX', clock_timestamp() FROM generate_series(1, $1::int)`, n)
	require.NoError(b.t, err)
}

// Many dead letters are tried again set by set: the answer counts them, and comes before a proxy
// gives up.
func TestRetryOfManyDeadLetters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 50_000
	b.deadLetters(n)
	a := b.send(b.everything, http.MethodPost, "/api/jobs/retry",
		`{"all": true, "mode": "reset", "filter": {"type": "webhook"}}`)
	require.Less(t, a.status, 300, string(a.body))
	var op answers.BulkOperation
	a.into(t, &op)
	assert.Equal(t, n, op.Matched)
	require.Eventually(t, func() bool {
		b.get(&op, "/api/bulk-operations/"+op.OperationID)
		assert.LessOrEqual(t, op.Changed, fixture.Count(t, b.Pool, `SELECT changed FROM daybook.bulk_operations`),
			"it goes on meanwhile")
		return op.Finished
	}, 2*time.Minute, 100*time.Millisecond)
	assert.Equal(t, n, op.Changed)
	assert.Zero(t, op.Left)
	assert.NotNil(t, op.FinishedAt)
	assert.Equal(t, n, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND run_count = 0`))
}

// An operation that is cut off has counted what it did, and is gone on with: nothing is changed
// twice.
func TestBulkOperationIsGoneOnWith(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 3_200
	b.deadLetters(n)
	lists, err := listing.New(b.Pool)
	require.NoError(t, err)
	t.Cleanup(func() { _ = lists.Close() })
	op, err := lists.StartRetry(t.Context(), listing.BulkJobs{Filter: listing.JobFilter{OrgID: "acme"}}, "now", 0)
	require.NoError(t, err)
	for range 2 {
		more, err := store.WorkBulkBatch(t.Context(), b.Pool, op.ID)
		require.NoError(t, err)
		require.True(t, more)
	}
	path := "/api/bulk-operations/" + op.ID
	var seen answers.BulkOperation
	b.get(&seen, path)
	assert.Equal(t, n, seen.Matched)
	assert.Equal(t, 1000, seen.Changed)
	assert.False(t, seen.Finished)
	assert.Equal(t, 1000, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'pending'`))
	assert.Equal(t, http.StatusNotFound, b.send(b.token("beta", tokens.ScopeOperate), http.MethodGet, path, nil).status,
		"another organization's")

	_, err = b.Pool.Exec(t.Context(), `
UPDATE daybook.bulk_operations SET updated_at = updated_at - interval '1 hour';
UPDATE daybook.jobs SET state = 'cancelled', finished_at = clock_timestamp() WHERE id = (SELECT max(id) FROM daybook.jobs)`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		httpapi.ResumeBulk(ctx, b.Pool, slog.New(slog.DiscardHandler))
	}()
	require.Eventually(t, func() bool {
		b.get(&seen, path)
		return seen.Finished
	}, time.Minute, 20*time.Millisecond)
	cancel()
	<-ended
	assert.Equal(t, n-1, seen.Changed)
	assert.Equal(t, 1, seen.Left, "what has changed meanwhile is left alone")
	assert.Equal(t, n-1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND generation = 1`))
}

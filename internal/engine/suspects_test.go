package engine_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/pgtest/fixture"
)

// TestPickedBulkLeasesItsSuspectsAlone has one of twenty documents carry the mark of a lost pick: the others are not leased because of it.
func TestPickedBulkLeasesItsSuspectsAlone(t *testing.T) {
	t.Parallel()
	var b *bundle
	var mu sync.Mutex
	leased := map[string]bool{}
	b = setupWith(t, failing{prepare: func(context.Context, []engine.Job) error {
		rows, err := b.Pool.Query(context.Background(), `SELECT document_id FROM daybook.accounting_work_queue WHERE state = 'leased'`)
		if err != nil {
			return err
		}
		defer rows.Close()
		mu.Lock()
		defer mu.Unlock()
		for rows.Next() {
			var document string
			if err := rows.Scan(&document); err != nil {
				return err
			}
			leased[document] = true
		}
		return rows.Err()
	}}, engine.Options{Direct: true, Parallel: 1})
	fixture.ManyReady(t, b.Pool, org, "doc-", 20)
	lost, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = lost.Exec(t.Context(), `SELECT FROM daybook.accounting_work_queue WHERE document_id = 'doc-7' FOR NO KEY UPDATE`)
	require.NoError(t, err)
	require.NoError(t, lost.Rollback(t.Context()))

	r, err := b.engine.Process(t.Context(), request(1))
	require.NoError(t, err)
	assert.Equal(t, 20, r.Completed)
	assert.Equal(t, map[string]bool{"doc-7": true}, leased)
}

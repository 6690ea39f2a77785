package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestNewlyEndedWorkflowsDoNotWaitForOthers: those whose end does not succeed come again and again,
// and leave room for the others.
func TestNewlyEndedWorkflowsDoNotWaitForOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const add = `INSERT INTO daybook.job_workflows (job_id, namespace, grace_seconds, asked_at, due_at) SELECT $1 || i, 'n', 3600, clock_timestamp() - interval '1 hour', $2 FROM generate_series(1, 100) AS i`
	b.exec(add, "again-", time.Now().Add(-time.Minute))
	b.exec(add, "new-", nil)
	left, err := store.ClaimLeftWorkflows(t.Context(), b.Pool, "n")
	require.NoError(t, err)
	first := 0
	for _, w := range left {
		assert.True(t, w.Over)
		if w.JobID[0] == 'n' {
			first++
		}
	}
	assert.Len(t, left, 50)
	assert.Equal(t, 25, first)
}

// TestWorkflowThatWasJustAskedForIsLeftAlone: the claim may have read its job before the job was
// tried again.
func TestWorkflowThatWasJustAskedForIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`INSERT INTO daybook.job_workflows (job_id, namespace, grace_seconds) VALUES ('gone', 'n', 3600)`)
	left, err := store.ClaimLeftWorkflows(t.Context(), b.Pool, "n")
	require.NoError(t, err)
	assert.Empty(t, left)
	b.exec(`UPDATE daybook.job_workflows SET asked_at = asked_at - interval '2 seconds'`)
	left, err = store.ClaimLeftWorkflows(t.Context(), b.Pool, "n")
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.True(t, left[0].Over)
}

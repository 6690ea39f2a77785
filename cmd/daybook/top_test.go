package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/camel"
	"github.com/daybook-dev/daybook/internal/top"
)

func TestTopPrintsOnePictureWhereItIsNotATerminal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('j', 'acme', 'email', '{}', 'failed', 'connection refused', 'NETWORK_ERROR', now(), 5)`)
	require.NoError(t, err)

	r := b.run("top", "--no-temporal")
	require.Equal(t, failure.ExitOK, r.exit, r.err)
	assert.Contains(t, r.out, "QUEUE")
	assert.Contains(t, r.out, "NETWORK_ERROR")
	assert.NotContains(t, r.out, "\x1b")

	r = b.run("top", "--no-temporal", "--json")
	require.Equal(t, failure.ExitOK, r.exit, r.err)
	var p top.Picture
	require.NoError(t, camel.Unmarshal([]byte(r.out), &p))
	require.Len(t, p.Failures, 1)
	assert.Equal(t, int64(1), p.Failures[0].Waiting)

	assert.Equal(t, failure.ExitUsage, b.run("top", "--every", "1ms").exit)
}

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestOwnersAreShown: in the list of types, in lists of jobs and on a job's page.
func TestOwnersAreShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, store.NewQueue(b.Pool, store.Jobs).NoteTypes(t.Context(), "host/1", []store.TypeOnRecord{
		{Type: "webhook", Owner: "growth", MaxAttempts: 5, Timeout: 90 * time.Second, Parallel: 30},
		{Type: "hook", AliasOf: "webhook", Owner: "growth"},
	}))
	id := b.background("webhook", "--org", "acme", "--payload", `{"url":"https://example.com"}`)
	assert.Regexp(t, `jobs +webhook +growth +5 +1 min 30 s +30 `, b.ok("jobs", "types"))
	assert.Contains(t, b.ok("jobs", "types"), "hook (alias of webhook)")
	var out struct{ Types []map[string]any }
	b.json(&out, "jobs", "types")
	require.Len(t, out.Types, 2)
	assert.Equal(t, "growth", out.Types[1]["owner"])
	assert.InDelta(t, 90, out.Types[1]["timeoutSeconds"], 0)
	assert.Regexp(t, `webhook +growth +pending`, b.ok("jobs", "list"))
	assert.Regexp(t, `owner +growth`, b.ok("jobs", "show", id))
	assert.Equal(t, "growth", b.backgroundJob(id).Owner)
	var page struct{ Jobs []struct{ Owner string } }
	b.json(&page, "jobs", "list")
	assert.Equal(t, "growth", page.Jobs[0].Owner)
}

package handlers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/moving/archive"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/models"
)

// With an archive, jobs that are cleaned up can be brought back; as the role of a worker.
func TestCleanupArchives(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	h, err := NewCleanup(b.As(t, "daybook_worker"), CleanupConfig{Batch: 2, Archive: dir})
	require.NoError(t, err)
	b.past(org, models.JobCompleted, 40, 5)
	b.past("org_2", models.JobCompleted, 40, 1)
	var said CleanupResult
	c := callFor(Cleanup{})
	c.result = func(v any) { said = v.(CleanupResult) }
	require.NoError(t, h.clean(t.Context(), c))
	assert.Equal(t, CleanupResult{Jobs: 5, Attempts: 5, Receipts: 5, Files: 3}, said)
	assert.Equal(t, 1, b.left("daybook.jobs"))
	a, err := archive.Open(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
	files, err := store.Archives(t.Context(), b.Pool, org)
	require.NoError(t, err)
	for _, f := range files {
		_, err := a.Restore(t.Context(), b.Pool, f, "")
		require.NoError(t, err)
	}
	assert.Equal(t, 6, b.left("daybook.jobs"))
	assert.Equal(t, 6, b.left("daybook.job_links"))

	// A storage that refuses: nothing is removed.
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "jobs")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jobs"), nil, 0o600))
	require.ErrorContains(t, h.clean(t.Context(), c), "they stay in the database")
	assert.Equal(t, 6, b.left("daybook.jobs"))
	_, err = NewCleanup(b.Pool, CleanupConfig{Archive: filepath.Join(dir, "jobs")})
	require.ErrorContains(t, err, "ARCHIVE")
}

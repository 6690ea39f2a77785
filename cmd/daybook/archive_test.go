package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/keep"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/store"
)

// The commands of the archive and of erasures, one after the other, on two jobs that ended long ago
// and one that waits.
func TestArchiveAndErase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		b.background("webhook", "--org", "acme", "--link", "customer=ada", "--skip-validation")
	}
	_, err := b.Pool.Exec(t.Context(), `
UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp() - interval '40 days', run_count = 1 WHERE id IN (SELECT id FROM daybook.jobs ORDER BY id LIMIT 2)`)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "archive")
	moved := b.run("archive", "move", "--before", "720h", "--archive", dir)
	assert.Equal(t, "moved to 1 file: jobs: 2, links: 2\n", moved.out, moved.err)
	var page keep.ArchivePage
	b.json(&page, "archive", "list", "--org", "acme")
	listed := page.Files
	require.Len(t, listed, 1)
	table := b.run("archive", "list").out
	assert.Contains(t, table, listed[0].Key)
	assert.Contains(t, table, cli.FormatTime(listed[0].ArchivedAt), "in the reader's zone, as every table")
	assert.Equal(t, "1 file with 2 lines, 0 damaged, 0 not on record\n", b.run("archive", "verify", "--archive", dir).out)
	assert.Contains(t, b.run("archive", "restore", listed[0].Key, "--archive", dir).out,
		"brought back from 1 file: jobs: 2, links: 2; left out, because they are there or their key is in use: 0")
	assert.Contains(t, b.run("archive", "restore", "--all", "--archive", dir).out, "in use: 2")

	// The archive holds something of the organization: it must be named, or left out on purpose.
	assert.Equal(t, failure.ExitUsage, b.run("erase", "--org", "acme", "--link", "customer=ada").exit)
	dry := b.run("erase", "--org", "acme", "--link", "customer=ada", "--archive", dir, "--dry-run")
	assert.Contains(t, dry.out, "nothing is erased", dry.err)
	var proof store.Erasure
	done := b.run("erase", "--org", "acme", "--link", "customer=ada", "--archive", dir, "--ground", "request 7", "--json")
	require.NoError(t, json.Unmarshal([]byte(done.out), &proof), done.err)
	assert.Equal(t, map[string]int64{
		"jobs": 3, "job_links": 3, "actions": proof.Counts["actions"], "archive_files": 1,
		"archived_jobs": 2, "archived_links": 2,
	}, withActions(proof.Counts))
	table = b.run("erasures", "list").out
	assert.Contains(t, table, proof.ID)
	assert.Contains(t, table, cli.FormatTime(proof.StartedAt))
	var proofs keep.ErasureList
	b.json(&proofs, "erasures", "list")
	require.Len(t, proofs.Erasures, 1)
	assert.Equal(t, proof.ID, proofs.Erasures[0].ID)
	shown := b.run("erasures", "show", proof.ID, "--link", "customer=ada").out
	assert.Contains(t, shown, "request 7")
	assert.Contains(t, shown, "archive_files: 1")
	assert.Contains(t, shown, cli.FormatTime(proof.StartedAt))
	assert.Equal(t, failure.ExitNotFound, b.run("erasures", "show", proof.ID, "--link", "customer=bob").exit)
	assert.Equal(t, failure.ExitNotFound, b.run("erasures", "show", "none").exit)
	assert.NotContains(t, b.run("actions", "list", "--json").out, "ada", "the command itself leaves no trace of the link")

	unknown := b.run("archive", "restore", "none", "--archive", dir)
	assert.Equal(t, failure.ExitNotFound, unknown.exit)
	assert.Contains(t, unknown.err, "no file none is on record: `daybook archive list`")

	require.NoError(t, os.RemoveAll(dir))
	for _, args := range [][]string{
		{"archive", "move", "--before", "1h"},
		{"archive", "move", "--before", "soon", "--archive", dir},
		{"archive", "move", "--before", "1h", "--kind", "tasks", "--archive", dir},
		{"archive", "restore", "--archive", dir},
		{"erase", "--link", "a=b"},
		{"erase", "--org", "acme"},
		{"erase", "--org", "acme", "--link", "a"},
		{"erase", "--org", "acme", "--link", "a=b", "--all"},
		{"erase", "--org", "acme", "--all", "--batch", "0"},
	} {
		assert.Equal(t, failure.ExitUsage, b.run(args...).exit, args)
	}
}

// withActions has the count of actions also when it is 0.
func withActions(counts map[string]int64) map[string]int64 {
	counts["actions"] += 0
	return counts
}

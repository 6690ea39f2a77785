package workers_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/moving/importer"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/workers"
)

// goblExamples finds the example documents that the GOBL project publishes in its Go module.
func goblExamples(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/invopop/gobl@v0.504.0")
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		t.Skipf("the GOBL examples cannot be downloaded: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(module.Dir, "examples", "*", "out", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// TestGOBLExamples posts the published invoices, credit notes and payments of all countries through
// the workflow. One of them is off by 0.10 and must wait for a person.
func TestGOBLExamples(t *testing.T) {
	t.Parallel()
	files := goblExamples(t)
	b := setup(t)
	b.start(workers.AccountingOptions{})
	orgs := map[string]bool{}
	documents, bypass := 0, ""
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		in, err := importer.GOBL(data)
		if errors.Is(err, importer.ErrNotBookable) {
			continue
		}
		require.NoError(t, err, file)
		// Several examples share a uuid, so the test tells them apart by their file.
		d := in.Document
		d.OrgID = "gobl-" + in.Regime
		d.ID = in.Regime + "/" + filepath.Base(file)
		if filepath.Base(file) == "invoice-es-bypass.json" {
			bypass = d.ID
		}
		if !orgs[d.OrgID] {
			orgs[d.OrgID] = true
			fixture.Organization(t, b.Pool, d.OrgID)
		}
		fixture.Ready(t, b.Pool, &d)
		documents++
	}
	require.NotEmpty(t, bypass)

	counts := b.drainOnce()

	assert.Greater(t, documents, 120)
	assert.Greater(t, len(orgs), 20)
	assert.EqualValues(t, documents-1, counts.Completed)
	assert.EqualValues(t, 1, counts.Failed)
	assert.Equal(t, map[models.JobState]int{models.JobCompleted: documents - 1, models.JobFailed: 1}, b.states())
	job := fixture.Job(t, b.Pool, "gobl-es", bypass)
	require.NotNil(t, job.LastErrorCode)
	assert.Equal(t, models.CodeUnbalanced, *job.LastErrorCode)
	assert.Contains(t, *job.LastError, "EUR")

	rows, err := b.Pool.Query(t.Context(), `
SELECT org_id, currency, sum(CASE side WHEN 'debit' THEN amount_minor ELSE -amount_minor END)::bigint
  FROM daybook.entries GROUP BY 1, 2`)
	require.NoError(t, err)
	var org, currency string
	var difference int64
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&org, &currency, &difference}, func() error {
		n++
		assert.Zero(t, difference, "%s %s", org, currency)
		return nil
	})
	require.NoError(t, err)
	assert.Greater(t, n, 20)
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.entries WHERE rule_line_id = 'rounding'`),
		"two are off by 0.01")
}

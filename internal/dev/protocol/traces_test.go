package protocol_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// recordTraces has the database keep each change of a job's row that lease.pml knows: the state, the
// attempt, the generation, and whether the fence is newer than that of the lease before.
const recordTraces = `
CREATE TABLE traced (n bigint GENERATED ALWAYS AS IDENTITY, job_id text, row text, fence bigint);
CREATE FUNCTION traced() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last CONSTANT bigint := coalesce((SELECT t.fence FROM traced t WHERE t.job_id = NEW.id AND t.fence IS NOT NULL ORDER BY t.n DESC LIMIT 1), 0);
BEGIN
    INSERT INTO traced (job_id, row, fence)
    VALUES (NEW.id, format('%s %s %s %s', NEW.state, NEW.run_count, NEW.generation,
                           CASE WHEN NEW.state <> 'leased' OR NEW.fence = OLD.fence THEN '0' WHEN NEW.fence > last THEN 'NEWER' WHEN NEW.fence = last THEN 'SAME' ELSE 'OLDER' END),
            NEW.fence);
    RETURN NULL;
END $$;
CREATE TRIGGER traced AFTER UPDATE ON daybook.jobs FOR EACH ROW
    WHEN ((OLD.state, OLD.run_count, OLD.generation, OLD.fence) IS DISTINCT FROM (NEW.state, NEW.run_count, NEW.generation, NEW.fence))
    EXECUTE FUNCTION traced()`

// traces are the different ones that were recorded.
func traces(t *testing.T, db *pgtest.DB) (all []string) {
	t.Helper()
	rows, err := db.Pool.Query(t.Context(), `
SELECT DISTINCT string_agg(row, ', ' ORDER BY n) FROM traced GROUP BY job_id ORDER BY 1`)
	require.NoError(t, err)
	var trace string
	for rows.Next() {
		require.NoError(t, rows.Scan(&trace))
		all = append(all, trace)
	}
	require.NoError(t, rows.Err())
	return all
}

// allows reports whether lease.pml has a way through the rows of a trace.
func allows(t *testing.T, trace string) bool {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("lease.pml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.pml"), text, 0o600))
	rows := strings.Split(trace, ", ")
	for i, row := range rows {
		rows[i] = fmt.Sprintf("at == %d && ROW(%s)", i, strings.Join(strings.Fields(row), ", "))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "trace.pml"), fmt.Appendf(nil,
		"#define TRACE_LENGTH %d\n#define TRACE_ROWS (%s)\n", len(rows), strings.Join(rows, ") || (")), 0o600))
	run(t, dir, "spin", "-a", "-DTRACE", "model.pml")
	run(t, dir, "gcc", "-w", "-DCOLLAPSE", "-DMEMLIM=500", "-DSAFETY", "-DNOCLAIM", "-o", "pan", "pan.c")
	said := run(t, dir, "./pan", "-E", "-m200000")
	if strings.Contains(said, "errors: 0") {
		require.NotContains(t, said, "Search not completed")
		return false
	}
	require.Contains(t, said, "assertion violated (at<", said)
	return true
}

// TestTraces: the model has a way through what the engine does, and none through what it must not do.
func TestTraces(t *testing.T) {
	t.Parallel()
	for trace, allowed := range map[string]bool{
		"leased 1 0 NEWER, completed 1 0 0":                                               true,
		"leased 1 0 NEWER, pending 0 0 0, leased 1 0 SAME, completed 1 0 0":               true, // put off
		"leased 1 0 NEWER, leased 2 0 NEWER, completed 2 0 0":                             true, // the next activity
		"leased 1 0 NEWER, leased 1 1 0, pending 0 1 0, leased 1 1 SAME, completed 1 1 0": true, // asked meanwhile
		"leased 1 0 NEWER, leased 1 1 0, completed 1 1 0":                                 false,
		"leased 1 0 NEWER, completed 1 0 0, leased 2 0 NEWER":                             false,
		"leased 1 0 NEWER, leased 2 0 OLDER, completed 2 0 0":                             false,
		"leased 1 0 NEWER, leased 1 0 NEWER, completed 1 0 0":                             false,
		"leased 1 0 NEWER, pending 0 0 0, leased 2 0 SAME, completed 2 0 0":               false,
		"completed 1 0 0": false,
	} {
		t.Run(strings.ReplaceAll(trace, " ", "-"), func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, allowed, allows(t, trace))
		})
	}
}

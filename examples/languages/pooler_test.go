package languages_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

// enqueued runs a program by which eight clients enqueue 25 jobs each through PgBouncer in
// transaction mode, and returns how many failed.
func enqueued(t *testing.T, dir string, command ...string) int {
	t.Helper()
	db := daybooktest.New(t)
	daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "shop"})
	address := pgtest.Pooler(t, db.URL, pgtest.PoolTransactions)
	program := exec.CommandContext(t.Context(), command[0], command[1:]...)
	program.Dir = dir
	program.Env = append(os.Environ(), "DAYBOOK_DATABASE_URL="+address, "JDBC_URL="+jdbc(t, address))
	var out, log bytes.Buffer
	program.Stdout, program.Stderr = &out, &log
	require.NoError(t, program.Run(), log.String())
	failed, err := strconv.Atoi(strings.TrimSpace(out.String()))
	require.NoError(t, err, out.String())
	var jobs int
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM daybook.jobs`).Scan(&jobs))
	assert.Equal(t, 200-failed, jobs)
	t.Logf("%v: %d of 200 failed %s", command, failed, log.String())
	return failed
}

// TestDriversBehindAPooler: what docs/scaling.md says of drivers. Those that prepare statements
// fail.
func TestDriversBehindAPooler(t *testing.T) {
	leisurely(t)
	t.Parallel()
	source, err := filepath.Abs(filepath.Join("testdata", "pooler"))
	require.NoError(t, err)
	t.Run("psycopg", func(t *testing.T) {
		t.Parallel()
		path := python(t, "psycopg, psycopg2")
		assert.Zero(t, enqueued(t, source, path, "enqueue.py", "prepare_threshold=None"))
		assert.Zero(t, enqueued(t, source, path, "enqueue.py", "psycopg2"))
		assert.Positive(t, enqueued(t, source, path, "enqueue.py", "default"))
	})
	t.Run("node-postgres", func(t *testing.T) {
		t.Parallel()
		node, dir := found(t, "node"), t.TempDir()
		require.NoError(t, os.Symlink(filepath.Join(installed(t, found(t, "npm"), "typescript"), "node_modules"),
			filepath.Join(dir, "node_modules")))
		text, err := os.ReadFile(filepath.Join(source, "enqueue.cjs"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "enqueue.cjs"), text, 0o600))
		assert.Zero(t, enqueued(t, dir, node, "enqueue.cjs", "default"))
		assert.Positive(t, enqueued(t, dir, node, "enqueue.cjs", "named"))
	})
	t.Run("JDBC", func(t *testing.T) {
		t.Parallel()
		java := []string{found(t, "java"), "-cp", "/usr/share/java/postgresql.jar", "Enqueue.java"}
		assert.Zero(t, enqueued(t, source, append(java, "prepareThreshold=0")...))
		assert.Positive(t, enqueued(t, source, append(java, "default")...))
	})
}

// TestProgramsBehindAPooler: the programs of this folder work behind it as they do without it.
func TestProgramsBehindAPooler(t *testing.T) {
	leisurely(t)
	t.Parallel()
	dir := compiled(t, "typescript")
	for _, name := range []string{"orders.js", "orders-drizzle.js", "orders-prisma.js"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := daybooktest.New(t)
			daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "shop"})
			through := *db
			through.URL = pgtest.Pooler(t, db.URL, pgtest.PoolTransactions)
			p := &program{DB: &through, t: t, command: []string{found(t, "node"), filepath.Join(dir, "dist", name)}}
			assert.Contains(t, p.run("order-1", "10000"), "completed")
		})
	}
}

package daybooktest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest"
)

// strangersTest is a package of a module of its own, of which there are two that are tested at
// once.
const strangersTest = `package PACKAGE

import (
	"testing"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
)

func TestMain(m *testing.M) { daybooktest.Main(m, daybooktest.Options{Migrate: daybooktest.SQL("CREATE TABLE mine (n int)")}) }

func TestMine(t *testing.T) {
	db := daybooktest.New(t)
	t.Log("server", db.URL)
	daybooktest.AddOrganization(t, db.Pool, daybooktest.Organization{ID: "acme"})
	if _, err := db.Pool.Exec(t.Context(), "INSERT INTO mine VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if _, err := queue.EnqueueAccountingJob(t.Context(), db.Pool, queue.AccountingJob{OrgID: "acme", DocumentID: "mine:1", Version: 1}); err != nil {
		t.Fatal(err)
	}
	if failed := queuetest.DrainAccounting(t, db.Pool, queuetest.AccountingOptions{}).Failed; failed != 1 {
		t.Fatalf("%d jobs failed", failed)
	}
	if b := daybooktest.Balances(t, db.Pool, "acme", "EUR"); len(b) != 0 {
		t.Fatal(b)
	}
}
`

// TestAnotherModule has the packages of a module of its own tested, as an application's are, and
// none of their servers is left.
func TestAnotherModule(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	// The versions are Daybook's own, so that nothing is downloaded.
	modules, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	write("go.mod", strings.Replace(string(modules), "module github.com/daybook-dev/daybook",
		"module example.com/billing", 1)+
		"\nrequire github.com/daybook-dev/daybook v0.0.0\n\nreplace github.com/daybook-dev/daybook => "+root+"\n")
	write("go.sum", string(sums))
	for _, name := range []string{"sales", "purchases"} {
		write(name+"/"+name+"_test.go", strings.ReplaceAll(strangersTest, "PACKAGE", name))
	}
	command := exec.CommandContext(t.Context(), "go", "test", "-mod=mod", "-count=1", "-v", "./...")
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	assert.Equal(t, 2, strings.Count(string(output), "--- PASS: TestMine"), string(output))
	if os.Getenv(daybooktest.EnvDatabaseURL) != "" {
		return // the server is not the tests' own
	}
	for _, server := range regexp.MustCompile(`server (postgres://\S+)`).FindAllStringSubmatch(string(output), -1) {
		conn, err := pgx.Connect(t.Context(), server[1])
		if !assert.Error(t, err, "a server is left: %s", server[1]) {
			assert.NoError(t, conn.Close(t.Context()))
		}
	}
}

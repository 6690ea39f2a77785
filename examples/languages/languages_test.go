// Package languages_test runs the applications in other languages, those whose runtime and
// libraries are there, against a worker of their jobs.
package languages_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest"
	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/jobs"
)

func TestMain(m *testing.M) {
	goWorker()
	schema, err := os.ReadFile("schema.sql")
	if err != nil {
		panic(err)
	}
	code := daybooktest.Run(m, daybooktest.Options{Migrate: daybooktest.SQL(string(schema))})
	if err := temporaltest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop Temporal:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// required is set where every program must run, as in CI; elsewhere one whose runtime lacks is
// skipped.
var required = os.Getenv("DAYBOOK_TEST_LANGUAGES") == "all"

// lacks skips the test of a program that cannot run here, and says why.
func lacks(t *testing.T, why string) {
	t.Helper()
	if required {
		t.Fatalf("DAYBOOK_TEST_LANGUAGES=all, and %s", why)
	}
	t.Skipf("%s; DAYBOOK_TEST_LANGUAGES=all makes that a failure", why)
}

// leisurely skips a test with -short, as in CI: `make test` and the release check have time for it.
func leisurely(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves it out; make release-check runs it")
	}
}

// found returns the path of a program.
func found(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	lacks(t, "none of the programs is there: "+names[0])
	return ""
}

// python returns the interpreter that has the modules: Debian's own packages are for
// /usr/bin/python3.
func python(t *testing.T, modules string) string {
	t.Helper()
	path := found(t, "/usr/bin/python3", "python3")
	if out, err := exec.CommandContext(t.Context(), path, "-c", "import "+modules).CombinedOutput(); err != nil {
		lacks(t, path+" has not the modules "+modules+": "+string(out))
	}
	return path
}

// confirmation is the payload of the job that each program enqueues.
type confirmation struct {
	OrderID string `json:"order_id"`
}

func (confirmation) JobType() string { return "order_confirmation" }

// program is a database with a program that writes orders into it.
type program struct {
	*daybooktest.DB
	t       *testing.T
	command []string
	env     []string
}

// run starts the program and works its jobs and documents until it ends.
func (p *program) run(args ...string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, p.command[0], append(p.command[1:], args...)...)
	command.Env = append(os.Environ(), "DAYBOOK_DATABASE_URL="+p.URL, "JDBC_URL="+jdbc(p.t, p.URL))
	command.Env = append(command.Env, p.env...)
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	require.NoError(p.t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()

	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Owner: "orders"}, func(_ context.Context, job *jobs.Job[confirmation]) error {
		job.SetResult(map[string]string{"confirmed": job.Payload.OrderID})
		return nil
	})
	for {
		select {
		case err := <-ended:
			require.NoError(p.t, err, log.String())
			return out.String()
		case <-time.After(50 * time.Millisecond):
			queuetest.DrainJobs(p.t, p.Pool, registry, queuetest.JobsOptions{})
			queuetest.DrainAccounting(p.t, p.Pool, queuetest.AccountingOptions{})
		}
	}
}

// jdbc writes the address as Java's driver takes it.
func jdbc(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	values := u.Query()
	values.Set("user", u.User.Username())
	if password, ok := u.User.Password(); ok {
		values.Set("password", password)
	}
	values.Set("sslmode", "disable")
	return "jdbc:postgresql://" + u.Host + u.Path + "?" + values.Encode()
}

func (p *program) count(query string) (n int) {
	p.t.Helper()
	require.NoError(p.t, p.Pool.QueryRow(p.t.Context(), query).Scan(&n))
	return n
}

// check has the program write an order, and write and undo another, in a database whose time zone
// is not that of the program.
func check(t *testing.T, command ...string) {
	t.Helper()
	p := &program{DB: daybooktest.New(t), t: t, command: command}
	daybooktest.AddOrganization(t, p.Pool, daybooktest.Organization{ID: "shop"})
	_, err := p.Pool.Exec(t.Context(),
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = %L', current_database(), 'Asia/Tokyo'); END $$`)
	require.NoError(t, err)
	var outcome struct {
		State      string
		Error      *string
		Result     map[string]string
		Posted     bool
		FinishedAt *time.Time `json:"finished_at"` // of programs that read a time
	}
	out := p.run("order-1", "10000")
	require.NoError(t, json.Unmarshal([]byte(out), &outcome), out)
	assert.Equal(t, "completed", outcome.State)
	assert.Equal(t, map[string]string{"confirmed": "order-1"}, outcome.Result)
	assert.True(t, outcome.Posted)
	if outcome.FinishedAt != nil {
		assert.WithinDuration(t, time.Now(), *outcome.FinishedAt, time.Hour, "a time is read in its time zone")
	}
	assert.Contains(t, daybooktest.Balances(t, p.Pool, "shop", "EUR"), "1200")
	assert.Equal(t, int64(11900), daybooktest.Balances(t, p.Pool, "shop", "EUR")["1200"], "net and tax are receivable")

	p.run("order-2", "10000", "undo")
	assert.Equal(t, 1, p.count(`SELECT count(*) FROM app.orders`))
	assert.Equal(t, 1, p.count(`SELECT count(*) FROM daybook.jobs`), "what is undone is not enqueued")
	assert.Equal(t, 1, p.count(`SELECT count(*) FROM daybook.accounting_work_queue`))
	assert.Equal(t, 1, p.count(`SELECT count(*) FROM daybook.documents`))
}

func TestPython(t *testing.T) {
	t.Parallel()
	check(t, python(t, "psycopg"), "python/orders.py")
}

func TestSQLAlchemy(t *testing.T) {
	t.Parallel()
	check(t, python(t, "sqlalchemy, psycopg2"), "python/orders_sqlalchemy.py")
}

// prismaOfThePage is a program of the pieces that docs/from-prisma.md shows.
func prismaOfThePage(t *testing.T) string {
	t.Helper()
	blocks, err := pages.Of("docs/from-prisma.md", "ts")
	require.NoError(t, err)
	require.Len(t, blocks, 2)
	return `import { PrismaPg } from "@prisma/adapter-pg";
import { PrismaClient } from "./generated/client.js";
const connectionString = process.env.DAYBOOK_DATABASE_URL;
const [orgId, id, customer, net] = ["shop", "order-3", "A. Customer", 100];
const prisma = ` + blocks[1].Text + blocks[0].Text + `
await prisma.$disconnect();
`
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	node := found(t, "node")
	dir := compiled(t, "typescript", file{"page.ts", prismaOfThePage(t)})
	t.Run("Prisma of the page", func(t *testing.T) {
		t.Parallel()
		p := &program{DB: daybooktest.New(t), t: t, command: []string{node, filepath.Join(dir, "dist", "page.js")}}
		daybooktest.AddOrganization(t, p.Pool, daybooktest.Organization{ID: "shop"})
		p.run()
		assert.Equal(t, 1, p.count(`SELECT count(*) FROM app.orders WHERE id = 'order-3'`))
		assert.Equal(t, 1, p.count(`
SELECT count(*) FROM daybook.jobs WHERE idempotency_key = 'confirm/order-3' AND payload = '{"order_id": "order-3"}'`))
	})
	t.Run("pg", func(t *testing.T) {
		t.Parallel()
		check(t, node, filepath.Join(dir, "dist", "orders.js"))
	})
	t.Run("Drizzle", func(t *testing.T) {
		t.Parallel()
		check(t, node, filepath.Join(dir, "dist", "orders-drizzle.js"))
	})
	t.Run("Prisma", func(t *testing.T) {
		t.Parallel()
		check(t, node, filepath.Join(dir, "dist", "orders-prisma.js"))
	})
}

func TestJava(t *testing.T) {
	t.Parallel()
	java := found(t, "java")
	const driver = "/usr/share/java/postgresql.jar"
	if _, err := os.Stat(driver); err != nil {
		lacks(t, "there is no JDBC driver at "+driver)
	}
	if out, err := exec.CommandContext(t.Context(), java, "--list-modules").CombinedOutput(); err != nil ||
		!bytes.Contains(out, []byte("jdk.compiler")) {
		lacks(t, "java has no compiler: install a JDK")
	}
	check(t, java, "-cp", driver, "java/Orders.java")
}

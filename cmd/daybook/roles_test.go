package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/migrations"
)

// login is the bundle's database for one that is logged in as a role.
type login struct {
	t    *testing.T
	pool *pgxpool.Pool
}

func (b *bundle) as(r role) login {
	b.t.Helper()
	return login{b.t, b.As(b.t, string(r))}
}

// run calls a command with an address of the role's.
func (l login) run(stdin string, args ...string) result {
	l.t.Helper()
	return call(l.t.Context(), stdin, append([]string{"--database-url", l.pool.Config().ConnString()}, args...)...)
}

// leaves are the commands that do something, by their paths.
func leaves(command *cobra.Command) (paths []string) {
	for _, c := range command.Commands() {
		paths = append(paths, leaves(c)...)
	}
	if len(paths) == 0 && command.HasParent() && command.RunE != nil && command.Name() != "help" && !command.Hidden {
		paths = append(paths, pathOf(command))
	}
	return paths
}

// Every command says which role it needs, in its help and in docs/cli.md.
func TestEveryCommandNamesItsRole(t *testing.T) {
	t.Parallel()
	a, err := cli.New(strings.NewReader(""), os.Stdout, os.Stderr)
	require.NoError(t, err)
	root := newRoot(a)
	all := leaves(root)
	require.Greater(t, len(all), 50)
	for _, path := range all {
		r, found := roleOf(path)
		assert.True(t, found, "daybook %s: add it to commandRoles and to docs/cli.md, with the role that it needs", path)
		command, _, err := root.Find(strings.Fields(path))
		require.NoError(t, err)
		assert.Equal(t, r != noRole, strings.Contains(command.Long, "It needs the rights of "+string(r)), path)
	}
	for path := range commandRoles {
		command, rest, err := root.Find(strings.Fields(path))
		assert.True(t, err == nil && len(rest) == 0 && pathOf(command) == path,
			"commandRoles has daybook %s, which is no command", path)
	}
	assert.Equal(t, commandRoles, documentedRoles(t))
}

// documentedRoles is the table of docs/cli.md.
func documentedRoles(t *testing.T) map[string]role {
	t.Helper()
	text, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "#### Which role a command needs\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n### ")
	documented := map[string]role{}
	code := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[2], "`") {
			continue
		}
		r := role(strings.Trim(strings.TrimSpace(cells[1]), "`"))
		if r == "none" {
			r = noRole
		}
		for _, m := range code.FindAllStringSubmatch(cells[2], -1) {
			documented[m[1]] = r
		}
	}
	return documented
}

// inRole is the main path of a command; its role is that of the table.
type inRole struct {
	args []string
	// stdin is what the command reads.
	stdin string
}

// mainPaths are the commands in an order in which each finds what it needs. Those of Temporal and
// those that run until a signal have tests of their own.
func mainPaths(task, dir string) []inRole {
	line := func(text string) inRole { return inRole{args: strings.Fields(text)} }
	return []inRole{
		line("accounts import ../../internal/moving/sample/chart.csv --org new --create"), line("accounts list --org new"),
		line("rules apply ../../internal/moving/sample/rules.yaml --org new"), line("rules activate 1 --org new"),
		line("rules list --org new"), line("rules show --org new"),
		line("rules check ../../internal/moving/sample/rules.yaml --org new"),
		line("periods add --org new --year 2027"), line("periods close --org new --month 2027-03"),
		line("periods open --org new --month 2027-03"),
		line("periods adjustments --org new --month 2027-03"), line("periods closings --org new"), line("periods check --org new --month 2027-01"),
		line("periods policy first_open_day --org new"), line("periods list --org new"),
		line("import ndjson dev/documents.ndjson --create"),
		line("accounting enqueue acme doc --version 1"), line("accounting list"), line("accounting retry acme doc"),
		line("accounting cancel acme other"),
		line("accounting repost acme doc"),
		line("jobs enqueue greet --org acme --payload {}"),
		line("jobs list"), line("jobs retry --org acme --all"), line("jobs cancel --org acme --all"),
		{args: []string{"jobs", "edit", "--org", "acme", "--all", "--patch", `[{"op": "add", "path": "/a", "value": 1}]`, "--retry"}},
		line("organizations pause --org acme"), line("organizations resume --org acme"),
		line("organizations cap --org acme --max-in-flight 5"), line("organizations rate --org acme --rate 5"),
		line("organizations list"), line("organizations source daybook --org acme"),
		line("organizations hooks --org acme --none"),
		line("queues create bank --fleet shop"), line("queues set bank --max-parallel 2"), line("queues release bank"),
		line("queues pause bank"), line("queues resume bank"), line("queues list"),
		line("jobs limit --queue bank --parallel 2"), line("queues delete bank"),
		line("leases"), line("leases release"),
		line("status"), line("entries --org acme"), line("trial-balance --org acme"), line("audit --all-orgs"),
		line("statement balance --org acme --on 2026-12-31 --compare year"), line("statement income --org acme --by cost_centre"),
		line("statement cash --org acme"), line("statement vat --org acme --format csv"), line("year-end --org acme --year 2026 --undo"),
		line("export --org acme --format hledger"), line("explain acme doc"),
		{args: strings.Fields("tasks enqueue email"), stdin: `{}`},
		line("tasks list"), line("tasks pause --type email"), line("tasks resume --type email"),
		line("tasks cap --type email --max-in-flight 5"),
		line("tasks limits"), line("tasks history 1"), line("tasks show 1"),
		line("tasks archive --before 1h --to " + dir + "/tasks"),
		line("tokens create --name t --scope read --all-orgs"), line("tokens list"), line("tokens revoke " + task),
		line("import csv --org acme --mapping " + dir + "/mapping.yaml " + dir + "/a.csv"),
		line("import gobl ../../internal/moving/importer/testdata/invoice.json --org acme"),
		line("import gobl ../../internal/moving/importer/testdata/invoice.json --org acme --dry-run"),
		line("import ubl ../../internal/moving/importer/testdata/invoice.ubl.xml --org acme"),
		line("import cii ../../internal/moving/importer/testdata/invoice.cii.xml --org acme"),
		line("import camt ../../internal/moving/importer/testdata/statement.camt.xml --org acme"),
		line("import mt940 ../../internal/moving/importer/testdata/statement.sta --org acme"),
		line("import facturx ../../internal/moving/importer/testdata/invoice.pdf --org acme"),
		{args: strings.Fields("import hledger - --org acme"), stdin: "2026-01-01 opening\n  a:1200  5.00 EUR\n  e:4400\n"},
		{
			args:  strings.Fields("import opening - --against 4400 --reason opening --org acme"),
			stdin: "account,number,issue_date,amount,currency,document\n1200,17,2026-01-01,1.00,EUR,old\n",
		},
		line("import list"), line("import undo 1"),
		line("journal put --org acme --date 2026-03-01 --reason rent --id rent --currency EUR 1200=5.00 4400=-5.00"),
		line("journal list --org acme"), line("journal delete acme journal:rent"),
		line("accounting show acme doc"), line("accounting elsewhere acme doc --post full"),
		line("accounts ledger 1200 --org acme"),
		line("open-items reconcile doc other --org acme"), line("open-items list --org acme"), line("open-items show 1 --org acme"),
		line("rates own EUR --org acme"), line("rates set USD --on 2026-03-31 --rate 0.92 --org acme"), line("rates list --org acme"),
		{args: strings.Fields("rates import - --org acme"), stdin: "currency,valid_on,rate\nUSD,2026-03-31,0.93\n"},
		line("exchange show --org acme"),
		line("exchange book --until 2026-03-31 --adjustment 1370 --gain 4920 --loss 6960 --org acme"),
		line("open-items ageing --org acme"), line("open-items statement --org acme --counterparty Ada"),
		line("open-items match --org acme"), line("open-items unreconcile doc --org acme"),
		line("jobs show mail-1"), line("jobs decrypt mail-1"), line("jobs resume unknown"), line("jobs stats"), line("jobs types"),
		line("jobs limit mail --parallel 2"), line("jobs limits"), line("jobs limits mail"), line("jobs limit mail --remove"),
		line("archive move --before 1h --archive " + dir), line("archive list"), line("archive verify --archive " + dir),
		line("erasures list"), line("erasures show unknown"), line("explain acme doc"), line("actions list"),
		line("migrate status"), line("top --no-temporal"),
	}
}

// Each command works for one who is logged in as the role that it names.
func TestCommandsInTheirRoles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	fixture.Organization(t, b.Pool, "acme")
	fixture.Ready(t, b.Pool, fixture.Invoice("acme", "doc", 1000), fixture.Invoice("acme", "other", 1000))
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, posted_on, system, next) VALUES ('acme', 'doc', 1, '2027-01-31', 'legacy', 'wait');
INSERT INTO daybook.jobs (id, org_id, type, payload) VALUES ('mail-1', 'acme', 'mail', '{}')`)
	require.NoError(t, err)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "mapping.yaml"), csvMapping)
	write(t, filepath.Join(dir, "a.csv"), "No,Day,Qty,Price\n1,2025-01-31,2,9.99\n")
	roles := map[role]login{}
	for _, path := range mainPaths("unknown", dir) {
		r, _ := roleOf(strings.Join(path.args[:min(2, len(path.args))], " "))
		if _, ok := roles[r]; !ok {
			roles[r] = b.as(r)
		}
		done := roles[r].run(path.stdin, path.args...)
		assert.NotContains(t, done.err, "permission denied", "%s: daybook %s", r, strings.Join(path.args, " "))
		assert.NotEqual(t, failure.ExitUsage, done.exit, "daybook %s: %s", strings.Join(path.args, " "), done.err)
		assert.NotContains(t, done.err, "not in the log of actions", "%s: daybook %s", r, strings.Join(path.args, " "))
		// What is unknown is said as such; the audit finds the document whose job was cancelled.
		if done.exit != failure.ExitNotFound && path.args[0] != "audit" {
			assert.Zero(t, done.exit, "%s: daybook %s: %s", r, strings.Join(path.args, " "), done.err)
		}
	}
}

// A right that the role lacks is one error, which says what it is and which role has it: also where
// a command works row by row.
func TestARoleThatLacksARight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	b.sample("acme")
	weak := b.as(reader)
	for _, args := range [][]string{
		{"import", "ndjson", "dev/documents.ndjson", "--create"},
		{"rules", "apply", "../../internal/moving/sample/rules.yaml", "--org", "acme", "--no-activate"},
		{"accounting", "enqueue", "--create", "acme", "doc", "--version", "1"},
		{"organizations", "pause", "--all-orgs"},
		{"tokens", "create", "--name", "t", "--scope", "read", "--all-orgs"},
	} {
		r := weak.run("", args...)
		assert.Equal(t, failure.ExitFailure, r.exit, "%v", args)
		assert.Equal(t, 1, strings.Count(r.err, "permission denied"), "%v: %s", args, r.err)
		needs, _ := roleOf(strings.Join(args[:2], " "))
		assert.Contains(t, r.err, "needs the rights of "+string(needs), "%v", args)
		assert.Less(t, strings.Count(r.err, "\n"), 6, r.err)
		asJSON := weak.run("", append(slices.Clone(args), "--json")...).err
		assert.Contains(t, asJSON, `"code":"ROLE_LACKS_RIGHT"`, "%v", args)
		assert.Contains(t, asJSON, "needs the rights of "+string(needs), "%v", args)
	}
}

// Tables that a release brings are no role's until the roles are given them: the one who migrates
// is told.
func TestMigrateUpTellsOfRolesThatLackRights(t *testing.T) {
	t.Parallel()
	b := setup(t)
	assert.NotContains(t, b.run("migrate", "up").err, "--roles", "no role is used here")
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	assert.NotContains(t, b.run("migrate", "up").err, "--roles")
	for range 3 { // the last chapters bring functions alone, which every role may call
		b.ok("migrate", "down")
	}
	assert.Contains(t, b.run("migrate", "up").err, "run `daybook migrate up --roles`")
	assert.NotContains(t, b.run("migrate", "up", "--roles").err, "--roles")
}

// A program that is older than the schema leaves the roles as the newer one made them, and says so.
func TestMigrateUpLeavesTheRolesOfANewerProgram(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	assert.NotContains(t, b.run("migrate", "up", "--roles").err, "newer")
	_, err := b.Pool.Exec(t.Context(), `
CREATE TABLE daybook.later (id bigint);
GRANT INSERT ON daybook.later TO daybook_domain;
INSERT INTO daybook.schema_migrations (version_id, is_applied) VALUES (99, true);
INSERT INTO daybook.schema_texts (version, sha256, breaks) VALUES (99, '', false)`)
	require.NoError(t, err)
	r := b.run("migrate", "up", "--roles")
	assert.Zero(t, r.exit, r.err)
	assert.Contains(t, r.err, "newer program's")
	_, err = b.as(domain).pool.Exec(t.Context(), `INSERT INTO daybook.later VALUES (1)`)
	require.NoError(t, err)
}

// An application that connects as daybook_domain reaches its own documents, and people find
// Daybook's queue as the operators' queries are printed.
func TestSearchPathsOfTheRoles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	_, err := b.Pool.Exec(t.Context(), `
CREATE TABLE public.documents (id bigint PRIMARY KEY, title text);
CREATE TABLE public.jobs (id bigint PRIMARY KEY);
GRANT ALL ON public.documents, public.jobs TO daybook_domain, daybook_worker, daybook_server, daybook_reader, daybook_operator`)
	require.NoError(t, err)
	for _, r := range []role{domain, worker, serving} {
		pool := b.as(r).pool
		_, err = pool.Exec(t.Context(),
			`INSERT INTO documents (id, title) VALUES ((SELECT count(*) FROM documents), 'own')`)
		require.NoError(t, err, r)
		require.NoError(t, pool.QueryRow(t.Context(),
			`SELECT 1 FROM accounting_work_queue HAVING count(*) = 0`).Scan(new(int)),
			"what the application lacks is Daybook's")
	}
	assert.Equal(t, 3, fixture.Count(t, b.Pool, `SELECT count(*) FROM public.documents`))
	for _, r := range []role{reader, operator} {
		pool := b.as(r).pool
		for _, query := range []string{
			`SELECT COUNT(*) FROM accounting_work_queue WHERE state = 'pending';`,
			`SELECT * FROM accounting_work_queue WHERE state = 'failed' ORDER BY updated_at DESC;`,
			`SELECT * FROM accounting_work_queue WHERE state = 'leased' AND last_attempted_at < NOW() - INTERVAL '15 minutes';`,
			`SELECT state, COUNT(*) FROM accounting_work_queue GROUP BY state;`,
			`SELECT org_id FROM documents`, `SELECT type FROM jobs`,
		} {
			_, err := pool.Exec(t.Context(), query)
			assert.NoError(t, err, "%s: %s", r, query)
		}
	}
	_, err = b.Pool.Exec(t.Context(),
		`DO $$ BEGIN EXECUTE format('ALTER ROLE daybook_domain IN DATABASE %I SET search_path = app, public', current_database()); END $$`)
	require.NoError(t, err)
	require.NoError(t, migrations.Roles(t.Context(), b.URL))
	var path string
	require.NoError(t, b.as(domain).pool.QueryRow(t.Context(), `SHOW search_path`).Scan(&path))
	assert.Equal(t, "app, public", path, "what the administrator chose stays")
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/books"
	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	b := posted(t)
	bad := write(t, t.TempDir()+"/bad.json", "{")
	for name, test := range map[string]struct {
		args []string
		exit int
		code string
		says string
	}{
		"unknown command":    {[]string{"post"}, failure.ExitUsage, "USAGE", "unknown command"},
		"unknown subcommand": {[]string{"accounting", "lst"}, failure.ExitUsage, "USAGE", "did you mean list?"},
		"unknown flag":       {[]string{"status", "--all"}, failure.ExitUsage, "USAGE", "unknown flag"},
		"missing flag":       {[]string{"accounting", "enqueue", "de", "d"}, failure.ExitUsage, "USAGE", `"version"`},
		"too many arguments": {[]string{"status", "de"}, failure.ExitUsage, "USAGE", "unknown command"},
		"arguments missing": {
			[]string{"jobs", "show"},
			failure.ExitUsage, "USAGE",
			"accepts 1 arg(s), received 0: want `daybook jobs show ID",
		},
		"unknown help topic": {
			[]string{"help", "jobs", "shw"},
			failure.ExitUsage, "USAGE",
			"there is no command jobs shw",
		},
		"one argument": {
			[]string{"accounting", "retry", "de"},
			failure.ExitUsage, "USAGE",
			"name the organization and the document",
		},
		"retry of all": {
			[]string{"accounting", "retry", "--all"},
			failure.ExitUsage, "USAGE",
			"give --state and --all",
		},
		"retry of completed": {
			[]string{"accounting", "retry", "--state", "completed", "--all"},
			failure.ExitUsage,
			"USAGE", "one by one",
		},
		"unknown state": {[]string{"accounting", "list", "--state", "done"}, failure.ExitUsage, "USAGE", "pending"},
		"bad time":      {[]string{"accounting", "list", "--since", "yesterday"}, failure.ExitUsage, "USAGE", "24h"},
		"bad log level": {
			[]string{"status", "--log-level", "loud"},
			failure.ExitUsage, "USAGE",
			"debug, info, warn or error",
		},
		"no organization": {[]string{"import", "gobl", bad}, failure.ExitUsage, "USAGE", "--org-by"},
		"supplier as receiver": {
			[]string{"import", "gobl", bad, "--org-by", "supplier", "--direction", "in"},
			failure.ExitUsage, "USAGE", "leave --direction in out",
		},
		"which balance": {[]string{"trial-balance"}, failure.ExitUsage, "USAGE", "--org or --all-orgs"},
		"bad document": {
			[]string{"import", "gobl", bad, "--create", "--org", "de"},
			failure.ExitFailure,
			"PARTLY_FAILED", "1 document failed",
		},
		"empty id": {
			[]string{"accounting", "enqueue", "--create", "", "d", "--version", "1"},
			failure.ExitUsage, "INVALID", "must not be empty",
		},
		"negative version": {
			[]string{"accounting", "enqueue", "--create", "o", "d", "--version", "-1"},
			failure.ExitUsage, "INVALID", "negative",
		},
		"no such job": {
			[]string{"accounting", "show", "de", "nope"},
			failure.ExitNotFound, "JOB_NOT_FOUND",
			"document nope",
		},
		"job of no document": {
			[]string{"accounting", "show", "de", "nope"},
			failure.ExitNotFound, "JOB_NOT_FOUND",
			"enqueue the document first",
		},
		"no such job by id": {[]string{"jobs", "show", "nope"}, failure.ExitNotFound, "JOB_NOT_FOUND", "check the id"},
		"no such operation": {
			[]string{"jobs", "resume", "nope"},
			failure.ExitNotFound, "OPERATION_NOT_FOUND",
			"kept for a month",
		},
		"unknown organization": {
			[]string{"entries", "--org", "nope"},
			failure.ExitNotFound, "ORGANIZATION_NOT_FOUND",
			"first rules, account, document or job",
		},
		"no job to retry": {
			[]string{"accounting", "retry", "de", "nope"},
			failure.ExitNotFound, "JOB_NOT_FOUND",
			"enqueue the document first",
		},
		"no such organization": {
			[]string{"entries", "--org", "nope"},
			failure.ExitNotFound, "ORGANIZATION_NOT_FOUND",
			"nope",
		},
		"no such file": {
			[]string{"import", "gobl", "nope.json", "--org", "de"},
			failure.ExitNotFound, "FILE_NOT_FOUND",
			"nope.json",
		},
		"completed job": {
			[]string{"accounting", "cancel", "de", "invoice-1"},
			failure.ExitConflict, "JOB_COMPLETED",
			"completed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &bundle{b.DB, t}
			r := b.run(append(test.args, "--json")...)
			assert.Equal(t, test.exit, r.exit, r.err)
			var said struct {
				Error struct {
					Code, Message string
					Exit          int
				}
			}
			require.NoError(t, json.Unmarshal([]byte(r.err), &said), r.err)
			assert.Equal(t, test.code, said.Error.Code)
			assert.Equal(t, test.exit, said.Error.Exit)
			assert.Contains(t, said.Error.Message, test.says)
		})
	}
}

func TestNoRuleSetIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.ok("accounts", "import", "../../internal/moving/sample/chart.csv", "--org", "acme", "--create")
	r := b.run("rules", "show", "--org", "acme")
	assert.Equal(t, failure.ExitNotFound, r.exit)
	assert.Contains(t, r.err, "no active rule set")
}

func TestMissingMigrationsAreNamed(t *testing.T) {
	t.Parallel()
	b := &bundle{pgtest.NewEmpty(t), t}
	for _, args := range [][]string{{"status"}, {"worker"}, {"import", "ndjson", "dev/documents.ndjson", "--create"}} {
		r := b.run(args...)
		assert.Equal(t, failure.ExitSchema, r.exit, "%v: %s", args, r.err)
		assert.Contains(t, r.err, "daybook migrate up")
	}
	r := b.run("migrate", "status")
	assert.Equal(t, failure.ExitSchema, r.exit)
	assert.Contains(t, r.out, "no\n")
	assert.Contains(t, r.err, "daybook migrate up")
	assert.NotContains(t, b.ok("migrate", "up"), "no\n")
	b.ok("migrate", "status")
	b.ok("status")
	assert.NotContains(t, b.ok("migrate", "down", "--all"), "yes\n")
	assert.Equal(t, failure.ExitSchema, b.run("status").exit)
}

func TestDatabaseAwayTellsNoPassword(t *testing.T) {
	t.Parallel()
	// A port that was free a moment ago, so that no server answers.
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	live, err := url.Parse(pgtest.New(t).URL)
	require.NoError(t, err)
	live.User = url.UserPassword(live.User.Username(), "geheim")
	for name, test := range map[string]struct {
		url  string
		exit int
	}{
		"no socket":      {"postgres://u:geheim@/x?host=/nowhere", failure.ExitUnavailable},
		"no answer":      {"postgres://u:geheim@" + address + "/x", failure.ExitUnavailable},
		"wrong password": {live.String(), failure.ExitFailure},
		"not an address": {"postgres://u:geheim@h:port/x", failure.ExitUsage},
		"odd password":   {"postgres://u:geheim/7@h/x", failure.ExitUsage},
		"not a setting":  {"password=geheim geheim", failure.ExitUsage},
	} {
		for _, command := range []string{"status", "migrate up"} {
			r := call(t.Context(), "", append([]string{"--database-url", test.url}, strings.Fields(command)...)...)
			assert.Equal(t, test.exit, r.exit, "%s: %s: %s", command, name, r.err)
			assert.NotContains(t, r.err+r.out, "geheim", "%s: %s", command, name)
			assert.Contains(t, r.err, "DAYBOOK_DATABASE_URL", "%s: %s", command, name) // what to do next
		}
	}
}

// TestWorkerEndsWhenTheDatabaseRefusesIt: what would be refused again for ever is an error at the
// start.
func TestWorkerEndsWhenTheDatabaseRefusesIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, change := range map[string]func(u *url.URL){
		"wrong password":   func(u *url.URL) { u.User = url.UserPassword(u.User.Username(), "geheim") },
		"unknown user":     func(u *url.URL) { u.User = url.UserPassword("no_such_user", "geheim") },
		"unknown database": func(u *url.URL) { u.Path = "/no_such_database" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, err := url.Parse(b.URL)
			require.NoError(t, err)
			change(address)
			for _, command := range []string{"worker", "serve", "status", "migrate"} {
				args := []string{"--json", "--database-url", address.String(), command}
				if command == "migrate" {
					args = append(args, "up")
				}
				r := call(t.Context(), "", args...)
				assert.Equal(t, failure.ExitFailure, r.exit, "%s: %s", command, r.err)
				assert.Contains(t, r.err, `"code":"DATABASE_REFUSES"`, command)
				assert.NotContains(t, r.err, "geheim", command)
			}
		})
	}
}

func TestNoConnectionIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	role := b.Name + "_crowd"
	_, err := b.Pool.Exec(t.Context(), `CREATE ROLE `+role+` LOGIN CONNECTION LIMIT 0`)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := b.Pool.Exec(context.WithoutCancel(t.Context()), `DROP ROLE `+role)
		assert.NoError(t, err)
	})
	r := call(t.Context(), "", "--database-url", b.As(t, role).Config().ConnString(), "status")
	assert.Equal(t, failure.ExitUnavailable, r.exit, r.err)
	assert.Contains(t, r.err, "\nRaise max_connections")
	assert.NotContains(t, r.err, "Check that PostgreSQL runs")
}

func TestDemoRefusesADatabaseInUse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.sample("acme")
	r := b.run("demo", "--offline")
	assert.Equal(t, failure.ExitConflict, r.exit, r.err)
	assert.Contains(t, r.err, "unset the variable")
}

func TestInterruptedImport(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := call(ctx, "", "--database-url", b.URL, "import", "ndjson", "dev/documents.ndjson", "--create")
	assert.Equal(t, failure.ExitInterrupted, r.exit)
	assert.Equal(t, "daybook: interrupted\n", r.err)
}

// TestInterruptedCommandsSayWhatTheyDid interrupts an import whose last document, which it changes,
// is locked by another transaction: the first ones are there, and counted.
func TestInterruptedCommandsSayWhatTheyDid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const documents = 1000
	one := func(n, payable int) string {
		return fmt.Sprintf(`{"org_id":"acme","id":"d-%03d","type":"invoice","direction":"out","currency":"EUR","issue_date":"2026-03-14","content":{"payable":%d}}`+"\n", n, payable)
	}
	var lines strings.Builder
	for n := range documents {
		lines.WriteString(one(n, 100))
	}
	file := write(t, t.TempDir()+"/d.ndjson", lines.String())
	b.ok("import", "ndjson", write(t, t.TempDir()+"/one.ndjson", one(documents-1, 200)), "--create")
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM daybook.documents WHERE id = 'd-999' FOR UPDATE`)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan result, 1)
	go func() { ended <- call(ctx, "", "--database-url", b.URL, "import", "ndjson", file, "--json") }()
	require.Eventually(t, func() bool {
		var waits bool
		err := b.Pool.QueryRow(t.Context(), `SELECT count(*) > 100 FROM daybook.documents`).Scan(&waits)
		return err == nil && waits
	}, pgtest.Patience, 10*time.Millisecond)
	cancel()
	r := <-ended
	assert.Equal(t, failure.ExitInterrupted, r.exit, r.err)
	var done books.ImportResult
	require.NoError(t, camel.Unmarshal([]byte(r.out), &done), r.out)
	var there int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM daybook.documents`).Scan(&there))
	assert.Equal(t, there-1, done.Inserted, "one was there before")
}

// TestDocumentation compares docs/cli.md with the commands and their flags.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/cli.md")
	require.NoError(t, err)
	docs := string(data)
	a, err := cli.New(nil, nil, nil)
	require.NoError(t, err)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.HasParent() {
			assert.Contains(t, docs, strings.TrimPrefix(c.CommandPath(), "daybook "), c.CommandPath())
			assert.NotEmpty(t, c.Short, c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { assert.Contains(t, docs, "`--"+f.Name, c.CommandPath()) })
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(newRoot(a))
	assert.Contains(t, docs, "    "+strings.ReplaceAll(cli.AccountingLoop.StartCommandLine(), "\n", "\n    "),
		"the start command")
}

func TestVersionFlag(t *testing.T) {
	t.Parallel()
	flag := call(t.Context(), "", "--version")
	command := call(t.Context(), "", "version")
	assert.Zero(t, flag.exit, flag.err)
	assert.Equal(t, command.out, flag.out)
}

// TestListsShowTheFirstLine: the error of a panic has a stack, which a list leaves to `show`.
func TestListsShowTheFirstLine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('j', 'acme', 'mail', '{}', 'failed', E'panic: no address\ngoroutine 7 [running]:\nmain.go:12', 'HANDLER_ERROR', now(), 1)`)
	require.NoError(t, err)
	list := b.ok("jobs", "list")
	assert.Contains(t, list, "panic: no address …")
	assert.NotContains(t, list, "goroutine 7")
	assert.Contains(t, b.ok("jobs", "show", "j"), "goroutine 7")
}

// What does not exist is named in the same words by every command, and an error says what is wrong
// without the words of its code beside it.
func TestCommandsSayTheSameOfWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for said, commands := range map[string][][]string{
		"daybook: there is no job x: check the id, the job may have been purged\n": {
			{"jobs", "show", "x"},
			{"jobs", "retry", "x"},
			{"jobs", "cancel", "x"},
		},
		"daybook: no accounting job for document d of organization acme: enqueue the document first\n": {
			{"accounting", "show", "acme", "d"},
			{"accounting", "retry", "acme", "d"},
			{"accounting", "cancel", "acme", "d"},
			{"accounting", "elsewhere", "acme", "d", "--post", "full"},
		},
	} {
		for _, args := range commands {
			r := b.run(args...)
			assert.Equal(t, failure.ExitNotFound, r.exit, args)
			assert.Equal(t, said, r.err, args)
		}
	}
	b.ok("organizations", "pause", "--org", "acme", "--create")
	for _, args := range [][]string{
		{"organizations", "cap", "--org", "acme", "--max-in-flight", "0"},
		{"periods", "policy", "odd", "--org", "acme"},
		{"jobs", "list", "--waits", "odd"},
		{"tasks", "list", "--state", "odd"},
		{"jobs", "list", "--cursor", "x"},
	} {
		r := b.run(args...)
		assert.Equal(t, failure.ExitUsage, r.exit, args)
		assert.NotContains(t, r.err, "invalid request", args)
	}
}

// TestFullDiskSaysWhatToDo: a command that the server refuses for want of room ends as in an
// outage, and says what to do.
func TestFullDiskSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.Pool.Exec(t.Context(), `
CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON daybook.jobs FOR EACH STATEMENT EXECUTE FUNCTION public.full_disk()`)
	require.NoError(t, err)
	r := b.run("jobs", "enqueue", "--create", "webhook", "--org", "acme", "--payload", "{}", "--skip-validation")
	assert.Equal(t, failure.ExitUnavailable, r.exit, r.err)
	assert.Contains(t, r.err, "No space left on device (SQLSTATE 53100)\n"+store.DiskAdvice)
	assert.NotContains(t, r.err, "Check that PostgreSQL runs")
}

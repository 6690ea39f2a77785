package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/cli"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/released"
	"github.com/daybook-dev/daybook/internal/watching/metrics"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/server"
)

// checkout is where the repository is.
const checkout = "../.."

var keepSurface = flag.Bool("keep", false, "write what others rely on into testdata of the newest release")

// TestWhatOthersRelyOn: what programs, scripts, dashboards and statements of users rely on is there
// as it was in the newest release, or the change log names it above that release.
func TestWhatOthersRelyOn(t *testing.T) {
	t.Parallel()
	now := map[string]bool{}
	for _, lines := range [][]string{exported(t), commands(), settings(t), operations(t), classes(), exposed(), columnsAndFunctions(t), rights(t, givenRoles(t))} {
		require.NotEmpty(t, lines)
		for _, line := range lines {
			now[line] = true
		}
	}
	path := released.Path(checkout, "surface.txt")
	if *keepSurface {
		require.NoError(t, released.MayKeep(checkout))
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(slices.Sorted(maps.Keys(now)), "\n")+"\n"), 0o644))
	}
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	log, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	changes, _, found := strings.Cut(string(log), "\n## "+released.Version)
	if !found {
		changes = "" // it is the release that is being made
	}
	assert.Empty(t, unexplained(strings.Split(strings.TrimSpace(string(kept)), "\n"), now, changes),
		"others rely on it since %s: keep it, or say in CHANGELOG.md above that release, in backquotes, what became of it", released.Version)
}

// unexplained are the lines that are not there any more and whose thing, what stands behind the
// first colon, the changes do not name. A right on what is gone goes with it.
func unexplained(kept []string, now map[string]bool, changes string) []string {
	had, has := named(slices.Values(kept)), named(maps.Keys(now))
	var gone []string
	for _, line := range kept {
		what, thing, _ := strings.Cut(line, ": ")
		thing, _, _ = strings.Cut(thing, " =")
		if _, on, _ := strings.Cut(thing, " on "); what == "right" && had[on] && !has[on] {
			continue
		}
		if !now[line] && !strings.Contains(changes, "`"+thing+"`") {
			gone = append(gone, line)
		}
	}
	return gone
}

// named are the things of SQL that lines are about, with the tables of columns.
func named(lines iter.Seq[string]) map[string]bool {
	names := map[string]bool{}
	for line := range lines {
		if thing, is := strings.CutPrefix(line, "sql: "); is {
			thing, _, _ = strings.Cut(thing, " =")
			names[thing] = true
			names[thing[:strings.LastIndex(thing, ".")]] = true
		}
	}
	return names
}

func TestUnexplainedChanges(t *testing.T) {
	t.Parallel()
	now := map[string]bool{"metric: a = gauge": true, "sql: daybook.t.c = text": true}
	kept := []string{"metric: a = gauge", "metric: b = counter", "command: daybook x --y", "right: INSERT of r on daybook.t.c", "right: USAGE of r on daybook.s"}
	assert.Equal(t, kept[1:], unexplained(kept, now, ""))
	assert.Equal(t, kept[2:], unexplained(kept, now, "- `b` is `c` now, and daybook x has no --y."))
	assert.Empty(t, unexplained(kept, now, "- `b` and `daybook x --y` are gone, and `INSERT of r on daybook.t.c` as well as `USAGE of r on daybook.s`."))
	assert.Empty(t, unexplained([]string{"sql: daybook.t.d = text", "sql: daybook.u.c = text", "right: INSERT of r on daybook.t.d", "right: SELECT of r on daybook.u"},
		now, "- `daybook.t.d` and `daybook.u.c`"), "with their rights")
}

// exported is what the Go packages export, with the values of constants, exit codes among them.
func exported(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../api.txt")
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		name, value, constant := strings.Cut(strings.TrimSpace(line), " = ")
		if constant {
			name += " = " + value
		}
		lines = append(lines, "go: "+name)
	}
	return lines
}

func commands() []string {
	var lines []string
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.RunE != nil || !c.HasParent() {
			lines = append(lines, "command: "+c.CommandPath())
			c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
				lines = append(lines, fmt.Sprintf("command: %s --%s = %s", c.CommandPath(), f.Name, f.Value.Type()))
			})
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(&cli.App{}))
	return lines
}

// operations are the paths of the HTTP API with the fields that they take and answer.
func operations(t *testing.T) []string {
	t.Helper()
	text, err := server.OpenAPI("")
	require.NoError(t, err)
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
			Responses  map[string]any
		}
		Components struct {
			Schemas map[string]struct {
				Properties map[string]map[string]any
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &document))
	var lines []string
	for path, methods := range document.Paths {
		for method, operation := range methods {
			at := "http: " + strings.ToUpper(method) + " " + path
			lines = append(lines, at)
			for _, p := range operation.Parameters {
				lines = append(lines, at+" "+p.In+" "+p.Name)
			}
			for status := range operation.Responses {
				lines = append(lines, at+" "+status)
			}
		}
	}
	for name, schema := range document.Components.Schemas {
		for property, value := range schema.Properties {
			lines = append(lines, fmt.Sprintf("http: %s.%s = %v", name, property, value["type"]))
		}
	}
	return lines
}

func classes() []string {
	var lines []string
	for _, c := range failure.Classes() {
		lines = append(lines, fmt.Sprintf("error: %s = status %d, exit %d, retryable %v", c.Code, c.Status, c.Exit, c.Retryable))
	}
	return lines
}

func exposed() []string {
	var lines []string
	for _, d := range metrics.Definitions() {
		lines = append(lines, fmt.Sprintf("metric: %s = %s %v", d.Name, d.Type, d.Labels))
	}
	return lines
}

// columnsAndFunctions are the views, tables and functions that statements of an application may use.
func columnsAndFunctions(t *testing.T) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.New(t).URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	lines, err := released.Surface(t.Context(), conn)
	require.NoError(t, err)
	for i, line := range lines {
		lines[i] = "sql: " + line
	}
	return lines
}

// givenRoles is a database in which Daybook's roles have their rights.
func givenRoles(t *testing.T) *pgtest.DB {
	t.Helper()
	db := pgtest.New(t)
	require.NoError(t, migrations.Roles(t.Context(), db.URL))
	return db
}

// rights are what Daybook's roles may do. What every role may is said of functions by
// columnsAndFunctions.
func rights(t *testing.T, db *pgtest.DB) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	all, err := released.Rights(t.Context(), conn)
	require.NoError(t, err)
	var lines []string
	for _, right := range all {
		if !strings.Contains(right, " of PUBLIC ") {
			lines = append(lines, "right: "+right)
		}
	}
	return lines
}

// A right that roles/roles.sql gives no more is missed.
func TestRevokedRightsAreFound(t *testing.T) {
	t.Parallel()
	db := givenRoles(t)
	kept := append(rights(t, db), columnsAndFunctions(t)...)
	for stmt, right := range map[string]string{
		`REVOKE UPDATE ON daybook.documents FROM daybook_worker`:              "UPDATE of daybook_worker on daybook.documents",
		`REVOKE INSERT (payload) ON daybook.jobs FROM daybook_domain`:         "INSERT of daybook_domain on daybook.jobs.payload",
		`REVOKE EXECUTE ON FUNCTION queues.enqueue_tasks FROM daybook_domain`: "EXECUTE of daybook_domain on queues.enqueue_tasks",
		`REVOKE USAGE ON SEQUENCE daybook.fence_seq FROM daybook_worker`:      "USAGE of daybook_worker on daybook.fence_seq",
		`REVOKE USAGE ON SCHEMA daybook FROM daybook_reader`:                  "USAGE of daybook_reader on schema daybook",
	} {
		_, err := db.Pool.Exec(t.Context(), stmt)
		require.NoError(t, err)
		now := map[string]bool{}
		for _, line := range append(rights(t, db), columnsAndFunctions(t)...) {
			now[line] = true
		}
		assert.Equal(t, []string{"right: " + right}, unexplained(kept, now, ""))
		require.NoError(t, migrations.Roles(t.Context(), db.URL))
	}
}

package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/models"
)

// commandsOf are the command lines in the blocks of a page, from that of a line on which first
// stands, as many as are wanted.
func commandsOf(t *testing.T, page, first string, n int) []pages.Command {
	t.Helper()
	all, err := pages.Commands("")
	require.NoError(t, err)
	for i, c := range all {
		if c.Page == page && strings.HasPrefix(c.String(), first) && i+n <= len(all) {
			return all[i : i+n]
		}
	}
	t.Fatalf("%s has no command %q with %d lines from it on", page, first, n)
	return nil
}

// filled are the words of a command with others in the place of some.
func filled(c pages.Command, instead map[string]string) []string {
	words := make([]string, len(c.Words))
	for i, w := range c.Words {
		words[i] = w
		for from, to := range instead {
			if w == from || strings.TrimPrefix(w, "@") == from {
				words[i] = strings.Replace(w, from, to, 1)
			}
		}
	}
	return words
}

// TestSignaturesOfThePage makes the keys, closes and audits as docs/closing.md says.
func TestSignaturesOfThePage(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not on the PATH: install the Debian package")
	}
	b := setup(t)
	b.sample("acme")
	b.ok("periods", "add", "--org", "acme", "--from", "2026-03-01", "--to", "2026-03-31")
	dir := t.TempDir()
	keys := map[string]string{"closing.pem": filepath.Join(dir, "closing.pem"), "closing.pub": filepath.Join(dir, "closing.pub")}
	var said []string
	for _, c := range commandsOf(t, "docs/closing.md", "openssl genpkey", 4) {
		words := filled(c, keys)
		for _, one := range c.Env {
			name, value, _ := strings.Cut(one, "=")
			t.Setenv(name, keys[value])
		}
		if words[0] == "openssl" {
			out, err := exec.CommandContext(t.Context(), openssl, words[1:]...).CombinedOutput()
			require.NoError(t, err, "%s: %s", c, out)
			continue
		}
		said = append(said, b.ok(words[1:]...))
	}
	require.Len(t, said, 2)
	assert.Equal(t, "2026-03-01 to 2026-03-31: closed\n", said[0])
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.closings WHERE signature IS NOT NULL`))
}

// TestEditOfThePage corrects a job as docs/edit-jobs.md says.
func TestEditOfThePage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.background("invoice", "--org", "acme", "--payload", `{"currency": "EU"}`)
	b.deadLetter(id, "PAYLOAD_INVALID")
	commands := commandsOf(t, "docs/edit-jobs.md", "daybook jobs show ID --json", 4)
	corrected := filepath.Join(t.TempDir(), "corrected.json")
	instead := map[string]string{"ID": id, "corrected.json": corrected}

	var shown map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(b.ok(filled(commands[0], instead)[1:]...)), &shown))
	require.Equal(t, "jq", commands[1].Words[0])
	payload, ok := shown[strings.TrimPrefix(commands[1].Words[1], ".")]
	require.True(t, ok, commands[1])
	write(t, corrected, strings.Replace(string(payload), "EU", "EUR", 1))
	assert.Contains(t, b.ok(filled(commands[3], instead)[1:]...), "1 job matches, 1 would be edited")
	assert.Contains(t, b.ok(filled(commands[2], instead)[1:]...), "requeued")
	assert.Equal(t, models.JobPending, models.JobState(b.backgroundJob(id).State))
}

// TestDumpsOfThePages moves a database's rows into another one as docs/runbook.md says, and restores
// a dump as docs/operating.md does.
func TestDumpsOfThePages(t *testing.T) {
	t.Parallel()
	from := posted(t)
	from.ok("periods", "add", "--org", "es", "--year", "2025")
	from.ok("periods", "close", "--org", "es", "--year", "2025")
	from.background("mail", "--org", "acme")
	into, again := setup(t), setup(t)
	dir := t.TempDir()
	instead := map[string]string{
		"OLD": from.Superuser(t), "NEW": into.Superuser(t), "data.dump": filepath.Join(dir, "data.dump"),
		"$DAYBOOK_DATABASE_URL": again.Superuser(t), "daybook.dump": filepath.Join(dir, "daybook.dump"),
	}
	for _, c := range commandsOf(t, "docs/runbook.md", "pg_dump --data-only", 3) {
		pgtest.Program(t, filled(c, instead)...)
	}
	dumped := map[string]string{"$DAYBOOK_DATABASE_URL": instead["OLD"], "daybook.dump": instead["daybook.dump"]}
	pgtest.Program(t, filled(commandsOf(t, "docs/operating.md", "pg_dump", 1)[0], dumped)...)
	pgtest.Program(t, filled(commandsOf(t, "docs/operating.md", "pg_restore", 1)[0], instead)...)

	balance, audit := from.ok("trial-balance", "--org", "es"), from.ok("audit", "--org", "de")
	for _, b := range []*bundle{into, again} {
		assert.Equal(t, balance, b.ok("trial-balance", "--org", "es"))
		assert.Equal(t, audit, b.ok("audit", "--org", "de"))
		assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs`))
		for _, code := range []health.Code{health.SchemaDifferent, health.SchemaIncomplete, health.SchemaOld} {
			assert.Nil(t, b.finding(code), code)
		}
		b.background("mail", "--org", "acme", "--key", "after")
	}
}

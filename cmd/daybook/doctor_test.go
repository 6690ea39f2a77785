package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/watching/health"
)

func TestDoctorWithoutAnything(t *testing.T) {
	t.Setenv("DAYBOOK_DATABASE_URL", "")
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	t.Setenv("TEMPORAL_CONFIG_FILE", os.DevNull)
	r := call(t.Context(), "", "doctor")
	assert.Equal(t, failure.ExitCritical, r.exit)
	assert.Contains(t, r.out, "CRITICAL  DATABASE_UNAVAILABLE")
	assert.Contains(t, r.out, "set DAYBOOK_DATABASE_URL")
	assert.Contains(t, r.out, "CRITICAL  TEMPORAL_UNAVAILABLE")
	assert.Contains(t, r.out, "Temporal at 127.0.0.1:1 does not answer")
	assert.Equal(t, "daybook: 2 critical findings, 0 warnings\n", r.err)
	assert.Equal(t, failure.ExitCritical,
		call(t.Context(), "", "doctor", "--database-url", "postgres://u:geheim@h:port/x").exit)
}

func TestDoctorSaysHowBadItIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.run("doctor", "--no-temporal")
	assert.Equal(t, failure.ExitOK, r.exit, r.out)
	assert.Contains(t, r.out, "nothing waits.")
	assert.Contains(t, r.out, "Not looked at: Temporal, workflows, workers, schedules.")
	_, err := b.Pool.Exec(t.Context(), `
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('j', 'acme', 'email', '{}', 'failed', E'dial tcp: \x1b[31mconnection refused', 'NETWORK_ERROR', now(), 5);
INSERT INTO daybook.organizations (id) VALUES ('other')`)
	require.NoError(t, err)
	r = b.run("doctor", "--no-temporal")
	assert.Equal(t, failure.ExitWarnings, r.exit)
	assert.Contains(t, r.out, "WARNING  FAILED_JOBS  jobs email NETWORK_ERROR")
	assert.NotContains(t, r.out, "\x1b")
	r = b.run("doctor", "--no-temporal", "--json")
	assert.Equal(t, failure.ExitWarnings, r.exit)
	assert.Contains(t, r.err, "FOUND_WARNINGS")
	var report health.Report
	require.NoError(t, camel.Unmarshal([]byte(r.out), &report))
	assert.True(t, report.Working)
	assert.Equal(t, "j", report.Findings[0].Example)
	assert.Equal(t, failure.ExitOK, b.run("doctor", "--no-temporal", "--org", "other").exit)
	assert.Equal(t, failure.ExitUsage, b.run("doctor", "--snapshot-age", "-1s").exit)
}

func TestDoctorOfADatabaseWithoutASchema(t *testing.T) {
	t.Parallel()
	b := &bundle{pgtest.NewEmpty(t), t}
	r := b.run("doctor", "--no-temporal")
	assert.Equal(t, failure.ExitCritical, r.exit)
	assert.Contains(t, r.out, "SCHEMA_OLD")
	assert.Contains(t, r.out, "→ Run `daybook migrate up`")
}

// TestDoctorAsTheDocumentedRoles: each of them may ask everything but for other roles' sessions,
// which is said.
func TestDoctorAsTheDocumentedRoles(t *testing.T) {
	server := temporaltest.Shared(t)
	inNamespace(t, server, server.Namespace(t))
	b := setup(t)
	b.ok("migrate", "up", "--roles")
	for _, role := range []string{
		"daybook_reader", "daybook_operator", "daybook_domain", "daybook_worker",
		"daybook_server",
	} {
		address := b.As(t, role).Config().ConnString()
		r := call(context.WithoutCancel(t.Context()), "", "--database-url", address, "doctor")
		assert.Equal(t, failure.ExitOK, r.exit, "%s: %s%s", role, r.out, r.err)
		assert.Contains(t, r.out, "pg_read_all_stats", role)
		assert.NotContains(t, r.out, "could not be looked at", role)
	}
}

// TestDoctorIsDocumented: docs/doctor.md has a section for each code that can be found, and no
// other.
func TestDoctorIsDocumented(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/doctor.md")
	require.NoError(t, err)
	var have, want []string
	for _, m := range regexp.MustCompile("(?m)^### <a id=\"([a-z-]+)\"></a>`([A-Z_]+)`$").FindAllStringSubmatch(string(docs), -1) {
		assert.Equal(t, strings.ToLower(strings.ReplaceAll(m[2], "_", "-")), m[1])
		have = append(have, m[2])
	}
	for _, code := range health.Codes() {
		want = append(want, string(code))
	}
	assert.Equal(t, want, have)
}

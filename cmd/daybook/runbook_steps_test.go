package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/migrations"
)

// runbookStep is a section of docs/runbook.md: a fault, and the commands by which the section ends
// it.
type runbookStep struct {
	code health.Code
	// fault is SQL that brings the fault about.
	fault string
	// before makes what the fault needs; nil: nothing.
	before func(b *bundle)
	// lines are what the section says to do, as it stands there: commands, or SQL for psql.
	lines []string
}

var runbookSteps = []runbookStep{
	{
		code: health.SchemaIncomplete, fault: `DROP INDEX daybook.jobs_failed_code`,
		// The section says to take it from migrations/schema.sql.
		lines: []string{`psql CREATE INDEX jobs_failed_code `},
	},
	{
		code: health.RoleLacksRights, fault: `REVOKE UPDATE ON daybook.jobs FROM daybook_worker`,
		before: func(b *bundle) { require.NoError(b.t, migrations.Roles(b.t.Context(), b.URL)) },
		lines:  []string{`daybook migrate up --roles`},
	},
	{
		code: health.StaleLeases,
		fault: `
INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, worker)
VALUES ('acme', 'email', '{}', 'leased', 1, 't', 1, 0, now(), now() - interval '5 minutes', 'w7')`,
		lines: []string{`daybook leases`, `daybook leases release`},
	},
	{
		code: health.HandlerMissing,
		fault: `
INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{other}');
INSERT INTO daybook.jobs (org_id, type, payload, ready_at) VALUES ('acme', 'email', '{}', now() - interval '2 minutes')`,
		lines: []string{
			`daybook jobs list --type email --limit 5`, `daybook jobs cancel --all --type email --state pending --dry-run`,
			`daybook jobs cancel --all --type email --state pending`,
		},
	},
	{
		code: health.SourceMissing,
		fault: `
INSERT INTO daybook.organizations (id, source, hooks) VALUES ('acme', 'erp', '{print}');
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, ready_at) VALUES (1, 'acme', 'd', now() - interval '2 minutes')`,
		lines: []string{`daybook organizations source daybook --org acme`, `daybook organizations hooks --none --org acme`},
	},
	{
		code: health.OrganizationPaused,
		fault: `
INSERT INTO daybook.organizations (id, paused_at) VALUES ('acme', now() - interval '3 hours');
INSERT INTO daybook.jobs (org_id, type, payload) VALUES ('acme', 'email', '{}')`,
		lines: []string{`daybook organizations list`, `daybook organizations resume --org acme`},
	},
	{
		code: health.TypePaused, fault: `SELECT queues.enqueue('email', '{}'), queues.limit_tasks('email', true, NULL)`,
		lines: []string{`daybook tasks limits`, `daybook tasks resume --type email`},
	},
	{
		code: health.CapReached,
		fault: `
INSERT INTO daybook.organizations (id, max_in_flight) VALUES ('acme', 1);
INSERT INTO daybook.jobs (org_id, type, payload, ready_at) VALUES ('acme', 'email', '{}', now() - interval '2 minutes');
INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, capped)
VALUES ('acme', 'email', '{}', 'leased', 1, 't', 1, 0, now(), now(), true)`,
		lines: []string{`daybook organizations cap --org acme --max-in-flight 100`},
	},
	{
		code: health.FailedJobs,
		fault: `
INSERT INTO daybook.jobs (org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
VALUES ('acme', 'email', '{}', 'failed', 'no such user', 'AUTHENTICATION_FAILED', now(), 5)`,
		lines: []string{
			`daybook jobs retry --all --type email --code AUTHENTICATION_FAILED --dry-run`,
			`daybook jobs retry --all --type email --code AUTHENTICATION_FAILED`,
		},
	},
	{
		code: health.AmountNotPosted,
		fault: `
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content) VALUES ('acme', 'pay-9', 'payment', 'in', 'EUR', '2026-01-05', '{"total": 100}');
SELECT daybook.mark_document_ready('acme', 'pay-9');
UPDATE daybook.accounting_work_queue SET state = 'completed', finished_at = now();
INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
VALUES (1, 'acme', 'pay-9', 1, 1, 'post', '2026-01-05', '2026-01-05', 0, 'j', 1)`,
		lines: []string{`daybook accounting repost acme pay-9`},
	},
	{
		code: health.AutovacuumBehind, fault: `ALTER TABLE daybook.jobs SET (autovacuum_enabled = false)`,
		lines: []string{`psql VACUUM (ANALYZE) daybook.jobs`, `todo`},
	},
	{
		code: health.NoToken, lines: []string{`daybook tokens create --name "console of the operators" --scope read,operate --all-orgs`},
	},
	{
		code: health.SearchPathOpen, fault: `GRANT CREATE ON SCHEMA public TO PUBLIC`,
		lines: []string{`psql REVOKE CREATE ON SCHEMA public FROM PUBLIC`},
	},
}

// TestRunbookEndsFaults does what sections of docs/runbook.md say, and finds the fault gone.
// internal/dev/faults tries those that want Temporal, a worker or another server.
func TestRunbookEndsFaults(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/runbook.md")
	require.NoError(t, err)
	for _, s := range runbookSteps {
		t.Run(string(s.code), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			if s.before != nil {
				s.before(b)
			}
			_, err := b.Pool.Exec(t.Context(), s.fault)
			require.NoError(t, err)
			f := b.finding(s.code)
			require.NotNil(t, f, "the fault is found")
			section := runbookSection(t, string(text), f.Runbook)
			for _, line := range s.lines {
				b.doLine(line, section, f)
			}
			assert.Nil(t, b.finding(s.code), "the fault is gone")
		})
	}
}

// TestRunbookSchemaOld is the same for a database without a schema.
func TestRunbookSchemaOld(t *testing.T) {
	t.Parallel()
	b := &bundle{pgtest.NewEmpty(t), t}
	require.NotNil(t, b.finding(health.SchemaOld))
	b.ok("migrate", "up")
	assert.Nil(t, b.finding(health.SchemaOld))
}

// TestRunbookOldSnapshot ends the session that the section's first statement lists.
func TestRunbookOldSnapshot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	held, err := pgx.Connect(t.Context(), b.URL)
	require.NoError(t, err)
	defer func() { _ = held.Close(context.WithoutCancel(t.Context())) }()
	_, err = held.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM daybook.jobs`)
	require.NoError(t, err)
	require.NotNil(t, b.finding(health.OldSnapshot, "--snapshot-age", "1ns"))
	_, err = b.Pool.Exec(t.Context(), `
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND datname = current_database() AND state = 'idle in transaction'`)
	require.NoError(t, err)
	assert.Eventually(t, func() bool { return b.finding(health.OldSnapshot, "--snapshot-age", "1ns") == nil },
		10*time.Second, 50*time.Millisecond)
}

// finding returns the first finding of a code; nil: there is none.
func (b *bundle) finding(code health.Code, flags ...string) *health.Finding {
	b.t.Helper()
	r := b.run(append([]string{"doctor", "--no-temporal", "--json"}, flags...)...)
	var report health.Report
	require.NoError(b.t, camel.Unmarshal([]byte(r.out), &report), r.err)
	for _, f := range report.Findings {
		if f.Code == code {
			return &f
		}
	}
	return nil
}

// runbookSection is the text of a section, by its anchor.
func runbookSection(t *testing.T, text, anchor string) string {
	t.Helper()
	for _, section := range strings.Split(text, "\n### ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		if strings.ReplaceAll(strings.ToLower(title), " ", "-") == anchor {
			return body
		}
	}
	t.Fatalf("docs/runbook.md has no section %q", anchor)
	return ""
}

// doLine does a line of a section: a command of Daybook as it stands there, SQL for psql, or what
// the finding itself says to run in psql.
func (b *bundle) doLine(line, section string, f *health.Finding) {
	b.t.Helper()
	if command, ok := strings.CutPrefix(line, "daybook "); ok {
		require.Contains(b.t, section, "\n      "+line+"\n", "the section says this")
		b.ok(pages.Words(command)...)
		return
	}
	stmt, _ := strings.CutPrefix(line, "psql ")
	switch {
	case line == "todo":
		_, after, _ := strings.Cut(f.Todo, "`")
		stmt, _, _ = strings.Cut(after, "`")
	case strings.HasPrefix(stmt, "CREATE"):
		schema, err := os.ReadFile("../../migrations/schema.sql")
		require.NoError(b.t, err)
		_, after, found := strings.Cut(string(schema), stmt)
		require.True(b.t, found)
		rest, _, _ := strings.Cut(after, ";")
		stmt += rest
	default:
		require.Contains(b.t, section, stmt)
	}
	_, err := b.Pool.Exec(b.t.Context(), stmt)
	require.NoError(b.t, err, stmt)
}

package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/admin/schedules"
	"github.com/daybook-dev/daybook/cmd/daybook/internal/camel"
	"github.com/daybook-dev/daybook/failure"
	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/watching/health"
	"github.com/daybook-dev/daybook/migrations"
	"github.com/daybook-dev/daybook/queue"
)

// advised is what brings findings of a code about, so that what they advise can be done word by
// word.
type advised struct {
	// faults are SQL, each in a database of its own; before is called first. None: elsewhere says
	// why.
	faults []string
	before func(b *bundle)
	flags  []string
	// elsewhere says where the advice is tried, or that it has no command.
	elsewhere string
}

const heldJob = `
INSERT INTO daybook.jobs (id, org_id, type, payload, queue, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, worker, capped)
VALUES ('held', 'acme', 'mail', '{}', %, 'leased', 1, 't', 1, 0, now() - interval '1 hour', now(), 'w7', true);
INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{mail}')`

func held(queue string) string { return strings.Replace(heldJob, "%", queue, 1) }

const dueJob = `INSERT INTO daybook.jobs (id, org_id, type, payload, ready_at) VALUES ('due', 'acme', 'mail', '{}', now() - interval '5 minutes')`

func dueIn(queue string) string {
	return `INSERT INTO daybook.jobs (id, org_id, type, payload, queue, fleet, ready_at)
VALUES ('due', 'acme', 'mail', '{}', '` + queue + `', daybook.queue_fleet('` + queue +
		`'), now() - interval '5 minutes')`
}

// advice has every code that doctor can find: one without an entry fails the test.
var advice = map[health.Code]advised{
	health.SplitBrain:          {elsewhere: "no command"},
	health.DatabaseUnavailable: {elsewhere: "TestAdviceOfASessionThatOnlyReads"},
	health.SchemaOld:           {elsewhere: "TestRunbookSchemaOld"},
	health.SchemaNew:           {elsewhere: "no command"},
	health.SchemaDifferent:     {elsewhere: "no command"},
	health.SchemaIncomplete:    {faults: []string{`DROP INDEX daybook.jobs_failed_code`}},
	health.RoleLacksRights: {
		faults: []string{`REVOKE UPDATE ON daybook.jobs FROM daybook_worker`},
		before: func(b *bundle) { require.NoError(b.t, migrations.Roles(b.t.Context(), b.URL)) },
	},
	health.SettingOverridden:   {elsewhere: "it changes the settings of a server that other tests use"},
	health.DirectAddressNeeded: {elsewhere: "TestBehindAPooler"},
	health.StandbyMissing:      {elsewhere: "it changes the settings of a server that other tests use"},
	health.TableLocked:         {elsewhere: "TestAdviceOfOpenTransactions"},
	health.TemporalUnavailable: {elsewhere: "no command of Daybook's"},
	health.AnswersSlowly:       {elsewhere: "no command but doctor"},
	health.WorkflowNotStarted:  {elsewhere: "TestAdviceAboutWorkflows"},
	health.WorkflowEnded:       {elsewhere: "TestAdviceAboutWorkflows"},
	health.WorkflowPaused:      {elsewhere: "TestWorkflowCommands"},
	health.NoWorker:            {elsewhere: "internal/dev/faults starts the worker"},
	health.TurnsFailing:        {elsewhere: "TestAdviceAboutWorkflows shows a workflow"},
	health.HandlerMissing:      {faults: []string{`INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{other}');` + dueJob}},
	health.StaleLeases: {faults: []string{`
INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, worker)
VALUES ('acme', 'email', '{}', 'leased', 1, 't', 1, 0, now(), now() - interval '5 minutes', 'w7')`}},
	health.OldSnapshot:      {elsewhere: "TestAdviceOfOpenTransactions"},
	health.AutovacuumBehind: {faults: []string{`ALTER TABLE daybook.jobs SET (autovacuum_enabled = false)`}},
	health.ClockSkew: {faults: []string{`
INSERT INTO daybook.jobs (org_id, type, payload, ready_at, updated_at) VALUES ('acme', 'mail', '{}', now() + interval '1 hour', now() + interval '1 hour')`}},
	health.SourceMissing: {faults: []string{`
INSERT INTO daybook.organizations (id, source, hooks) VALUES ('acme', 'erp', '{print}');
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, ready_at) VALUES (1, 'acme', 'd', now() - interval '2 minutes')`}},
	health.OrganizationPaused: {faults: []string{`INSERT INTO daybook.organizations (id, paused_at) VALUES ('-it''s acme', now());
INSERT INTO daybook.jobs (org_id, type, payload) VALUES ('-it''s acme', 'mail', '{}')`}},
	health.TypePaused: {faults: []string{
		`SELECT queues.enqueue('email', '{}'), queues.limit_tasks('email', true, NULL)`,
		`SELECT queues.enqueue('email', '{}'), queues.limit_tasks('*', true, NULL)`,
	}},
	health.QueuePaused: {faults: []string{`SELECT daybook.set_queue('bank'), daybook.pause_queue('bank');` +
		dueIn("bank")}},
	health.QueueUnworked: {faults: []string{
		`SELECT daybook.set_queue('bank', 'shop');` + dueIn("bank"), `SELECT daybook.set_queue('bank');` + dueIn("bank"),
	}},
	health.CapReached: {faults: []string{
		`INSERT INTO daybook.organizations (id, max_in_flight) VALUES ('acme', 1);` + dueJob + `;` + held("NULL"),
		`INSERT INTO daybook.organizations (id, rate, rate_seconds) VALUES ('acme', 1, 60);
INSERT INTO daybook.organization_rates (org_id, starts, at) VALUES ('acme', 0, now());` + dueJob +
			`;INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{mail}')`,
		`SELECT daybook.set_queue('bank', NULL, 1);` + dueIn("bank") + `;` + held("'bank'"),
		`SELECT daybook.set_queue('bank', per_process => 1);` + dueIn("bank") + `;` + held("'bank'"),
		`SELECT daybook.set_queue('bank', NULL, NULL, 1, 60);` + dueIn("bank") +
			`;INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{mail}');
INSERT INTO daybook.queue_rates (queue, starts, at) VALUES ('bank', 0, now())`,
	}},
	health.OldestDue: {faults: []string{dueJob, `SELECT queues.enqueue('fax', '{}', now() - interval '5 minutes')`}},
	health.BacklogGrows: {faults: []string{`INSERT INTO daybook.depths (seconds, at, kind, due, waiting, leased, failed, oldest_due_seconds)
SELECT 60, date_trunc('minute', now()) - n * interval '1 minute', 'jobs', 2000 - 150 * n, 0, 0, 0, 0 FROM generate_series(0, 9) n`}},
	health.TransactionUnshared: {faults: []string{
		`INSERT INTO daybook.job_workers (id, name, types, unshared) VALUES ('w', 'w', '{mail}', '{"mail": "SET"}')`,
	}},
	health.FailedJobs: {before: func(b *bundle) {
		b.sample("acme")
		b.ok("periods", "add", "--org", "acme", "--month", "2026-03")
		b.ok("periods", "close", "--org", "acme", "--month", "2026-03")
	}, faults: []string{`
INSERT INTO daybook.organizations (id) VALUES ('bare');
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, state, last_error_code, last_error, run_count, finished_at)
SELECT 1, 'acme', code, 'failed', code, CASE code WHEN 'PERIOD_CLOSED' THEN 'the posting date 2026-03-05 lies in the closed period from 2026-03-01 to 2026-03-31' ELSE 'e' END, 1, now()
  FROM unnest('{NO_MATCHING_RULE,AMBIGUOUS_RULE,UNKNOWN_ACCOUNT,UNBALANCED,DOCUMENT_INVALID,PERIOD_CLOSED,DOCUMENT_UNKNOWN,PROCESSOR_ERROR,TIMEOUT}'::text[]) code;
INSERT INTO daybook.jobs (id, org_id, type, payload, state, last_error, last_error_code, finished_at, run_count)
SELECT code, 'acme', 'mail', '{}', 'failed', 'e', code, now(), 5
  FROM unnest('{NETWORK_ERROR,UPSTREAM_5XX,RATE_LIMITED,HANDLER_ERROR,PAYLOAD_INVALID,AUTHENTICATION_FAILED,NOT_FOUND,WORKER_LOST,DATABASE_ERROR}'::text[]) code`, `
INSERT INTO daybook.organizations (id) VALUES ('bare');
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, state, last_error_code, last_error, run_count, finished_at)
VALUES (1, 'bare', 'd', 'failed', 'NO_MATCHING_RULE', 'organization bare has no active rule set: run daybook rules apply', 1, now())`, `
INSERT INTO daybook.accounting_work_queue (version_hint, org_id, document_id, state, last_error_code, last_error, run_count, finished_at)
VALUES (1, 'acme', 'd', 'failed', 'NO_MATCHING_RULE', 'map "vat" has no row that matches country="FR"; add one', 1, now())`}},
	health.AmountNotPosted: {elsewhere: "TestRunbookEndsFaults"},
	health.SequenceHeld: {faults: []string{`SELECT daybook.enqueue_job('acme', 'mail', '{}', sequence => 's') FROM generate_series(1, 3);
SELECT daybook.check_waits();
UPDATE daybook.jobs j SET state = 'failed', run_count = 3, last_error = 'no', last_error_code = 'TIMEOUT', finished_at = clock_timestamp()
  FROM daybook.job_sequences s WHERE s.holder = j.id`}},
	health.RetryingJobs: {faults: []string{`INSERT INTO daybook.jobs (id, org_id, type, payload, ready_at, run_count, last_error, last_error_code)
VALUES ('j', 'acme', 'mail', '{}', now() + interval '1 hour', 1, 'e', 'TIMEOUT')`}},
	health.ScheduleClocks: {elsewhere: "TestAdviceAboutSchedules"},
	health.NoToken:        {faults: []string{`SELECT 1`}},
	health.SearchPathOpen: {
		faults: []string{`GRANT CREATE ON SCHEMA public TO PUBLIC`},
		before: func(b *bundle) { require.NoError(b.t, migrations.Roles(b.t.Context(), b.URL)) },
	},
}

// TestEachAdviceCanBeDone brings every finding about, and does what each advises, word by word.
func TestEachAdviceCanBeDone(t *testing.T) {
	t.Parallel()
	for _, code := range health.Codes() {
		require.Contains(t, advice, code, "what it advises is tried by this table")
	}
	for code, a := range advice {
		require.NotEqual(t, len(a.faults) == 0, a.elsewhere == "", code)
		for _, fault := range a.faults {
			t.Run(string(code), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				if a.before != nil {
					a.before(b)
				}
				_, err := b.Pool.Exec(t.Context(), fault)
				require.NoError(t, err)
				found := b.findings(code, a.flags...)
				require.NotEmpty(t, found)
				for i := range found {
					b.follow(&found[i])
				}
			})
		}
	}
}

// findings returns the findings of a code.
func (b *bundle) findings(code health.Code, flags ...string) []health.Finding {
	b.t.Helper()
	r := b.run(append([]string{"doctor", "--no-temporal", "--json"}, flags...)...)
	var report health.Report
	require.NoError(b.t, camel.Unmarshal([]byte(r.out), &report), r.err)
	return slices.DeleteFunc(report.Findings, func(f health.Finding) bool { return f.Code != code })
}

var (
	// inCode is a span of code, placeholder a word that a person would have to replace.
	inCode      = regexp.MustCompile("`([^`]+)`")
	placeholder = regexp.MustCompile(`\b(ORG|FILE|MONTH|TYPE|NAME|DOCUMENT|GID|PID|ID|N)\b|…|[{}]`)
	statement   = regexp.MustCompile(`^(SELECT|ALTER|REVOKE|VACUUM|ROLLBACK|SET)\b`)
	// assigned is a setting before a command.
	assigned = regexp.MustCompile(`^[A-Z_]+=\S+ `)
)

// follow does what a finding advises: commands of Daybook by the program, SQL by the database.
func (b *bundle) follow(f *health.Finding) {
	b.t.Helper()
	dir := b.t.TempDir()
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, "accounts.csv"), []byte("code,name,type\n9999,New,asset\n"),
		0o600))
	rules, err := os.ReadFile("../../internal/moving/sample/rules.yaml")
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, "rules.yaml"), rules, 0o600))
	for _, m := range inCode.FindAllStringSubmatch(f.Todo, -1) {
		line := m[1]
		assert.NotRegexp(b.t, placeholder, line, "%s", f.Todo)
		switch command := assigned.ReplaceAllString(line, ""); {
		case strings.HasPrefix(command, "daybook "):
			b.doAdvised(command, dir, f.Todo)
		case strings.HasPrefix(line, "ALTER SYSTEM"): // other tests use the server
		case statement.MatchString(line):
			_, err := b.Pool.Exec(b.t.Context(), line)
			assert.NoError(b.t, err, "%s", f.Todo)
		default:
			assert.Contains(b.t, []string{"date -u"}, line, "%s", f.Todo)
		}
	}
}

// doAdvised calls a command as a shell does that stands in a directory.
func (b *bundle) doAdvised(line, dir, todo string) {
	b.t.Helper()
	words := shellWords(line)
	into := ""
	if i := slices.Index(words, ">"); i >= 0 {
		into, words = words[i+1], words[:i]
	}
	for i, w := range words {
		if strings.HasSuffix(w, ".yaml") || strings.HasSuffix(w, ".csv") {
			words[i] = filepath.Join(dir, w)
		}
	}
	command := strings.Join(words[1:], " ")
	switch {
	case command == "worker", command == "serve",
		strings.HasPrefix(command, "workflow configure "): // they want Temporal, or go on
		assertCommand(b.t, todo, words, true)
		return
	case strings.HasSuffix(command, "periods open"),
		strings.HasSuffix(command, "organizations source"): // names a command
		assertCommand(b.t, todo, words, false)
		return
	}
	r := b.run(words[1:]...)
	ok := []int{failure.ExitOK}
	if command == "doctor" {
		ok = append(ok, failure.ExitWarnings, failure.ExitCritical)
	}
	assert.Contains(b.t, ok, r.exit, "%s: %s: %s", todo, line, r.err)
	if into != "" {
		require.NoError(b.t, os.WriteFile(filepath.Join(dir, into), []byte(r.out), 0o600))
	}
}

// shellWords splits a command line as a shell does.
func shellWords(line string) (words []string) {
	for _, w := range regexp.MustCompile(`(?:'[^']*'|\\.|[^\s'\\])+`).FindAllString(line, -1) {
		w = regexp.MustCompile(`'([^']*)'|\\(.)`).ReplaceAllString(w, "$1$2")
		words = append(words, w)
	}
	return words
}

// TestAdviceOfOpenTransactions ends a session that keeps a snapshot or a lock, as the findings say.
func TestAdviceOfOpenTransactions(t *testing.T) {
	t.Parallel()
	for code, stmt := range map[health.Code]string{
		health.OldSnapshot: `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM daybook.jobs`,
		health.TableLocked: `BEGIN; LOCK TABLE daybook.jobs`,
	} {
		b := setup(t)
		other, err := pgx.Connect(t.Context(), b.URL)
		require.NoError(t, err)
		defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }()
		_, err = other.Exec(t.Context(), stmt)
		require.NoError(t, err)
		var found []health.Finding
		require.Eventually(t, func() bool {
			found = b.findings(code, "--snapshot-age", "1ns")
			return len(found) > 0
		}, time.Minute, 50*time.Millisecond)
		b.follow(&found[0])
		assert.Error(t, other.Ping(t.Context()), "the session is ended")
	}
}

// TestAdviceOfASessionThatOnlyReads has it write again by what the finding says.
func TestAdviceOfASessionThatOnlyReads(t *testing.T) {
	t.Parallel()
	b := &bundle{pgtest.New(t), t}
	_, err := b.Pool.Exec(t.Context(),
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	require.NoError(t, err)
	found := b.findings(health.DatabaseUnavailable)
	require.Len(t, found, 1)
	b.follow(&found[0])
	assert.Empty(t, b.findings(health.DatabaseUnavailable))
}

// TestAdviceAboutSchedules triggers, pauses and resumes schedules by what the finding says. It sets
// the environment, so it is not parallel.
func TestAdviceAboutSchedules(t *testing.T) {
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	inNamespace(t, server, namespace)
	b := setup(t)
	c := server.Client(t, namespace)
	for id, day := range map[string]string{"-it's missed": "SUN", "fires": "SAT"} {
		id = strings.ReplaceAll(id, " ", "-")
		require.NoError(t, schedules.Create(t.Context(), c, schedules.Schedule{
			ID: id, OrgID: "acme", Payload: queue.RawPayload{Type: "mail"}, Crons: []string{"0 9 * * " + day},
			TimeZone: "America/Santiago",
		}))
		var f *health.Finding
		require.Eventually(t, func() bool {
			r := health.Check(t.Context(), health.Options{Temporal: c, Now: func() time.Time {
				return time.Date(2027, time.August, 30, 0, 0, 0, 0, time.UTC)
			}})
			i := slices.IndexFunc(r.Findings, func(f health.Finding) bool { return f.Code == health.ScheduleClocks })
			if i >= 0 {
				f = &r.Findings[i]
			}
			return f != nil
		}, time.Minute, 50*time.Millisecond)
		assert.Equal(t, health.Warning, f.Severity, "it is near")
		b.follow(f)
		b.ok("schedules", "delete", "--", id)
	}
}

// TestAdviceAboutWorkflows starts, resumes and shows workflows by what findings say. It sets the
// environment, so it is not parallel.
func TestAdviceAboutWorkflows(t *testing.T) {
	server := temporaltest.Shared(t)
	namespace := server.Namespace(t)
	inNamespace(t, server, namespace)
	b := setup(t)
	c := server.Client(t, namespace)
	follow := func(code health.Code) {
		t.Helper()
		var f *health.Finding
		require.Eventually(t, func() bool {
			r := health.Check(t.Context(), health.Options{Pool: b.Pool, Temporal: c})
			i := slices.IndexFunc(r.Findings, func(f health.Finding) bool { return f.Code == code })
			if i >= 0 {
				f = &r.Findings[i]
			}
			return f != nil
		}, time.Minute, 50*time.Millisecond)
		b.follow(f)
	}
	follow(health.WorkflowNotStarted)
	b.ok("workflow", "show")
	b.ok("workflow", "pause", "jobs", "--no-wait")
	require.NoError(t, c.TerminateWorkflow(t.Context(), "accounting-queue-worker-production", "", "test"))
	follow(health.WorkflowEnded)
}

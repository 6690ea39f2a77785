package models_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/models"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// tables are the tables that have a model: those whose rows the exported functions return, or an
// application reads.
func tables() map[string]any {
	return map[string]any{
		"accounting_work_queue": models.AccountingJob{},
		"accounts":              models.Account{},
		"attempt_log":           models.Attempt{},
		"bulk_operations":       models.BulkOperation{},
		"confirmations":         models.Confirmation{},
		"documents":             models.Document{},
		"entries":               models.Entry{},
		"impacts":               models.Impact{},
		"job_links":             models.JobLink{},
		"jobs":                  models.Job{},
		"organizations":         models.Organization{},
		"periods":               models.Period{},
		"posted_elsewhere":      models.PostedElsewhere{},
		"rule_sets":             models.RuleSet{},

		"queues.task_limit": models.TaskLimit{},
	}
}

// qualified is the name of a table with its schema's.
func qualified(name string) string {
	if strings.Contains(name, ".") {
		return name
	}
	return "daybook." + name
}

// own are the tables that the statements of internal/store and the functions of the database alone
// read.
var own = []string{
	"daybook.schema_migrations", "daybook.schema_texts", "daybook.gauges", "daybook.history", "daybook.depths",
	"daybook.job_types", "daybook.console_sessions", "daybook.actions", "daybook.adopted_rows",
	"daybook.archives", "daybook.erasures", "daybook.api_tokens", "daybook.bulk_batches", "daybook.defaults",
	"daybook.fleets", "daybook.queues", "daybook.queue_rates", "daybook.organization_rates",
	"daybook.job_callbacks", "daybook.job_deliveries", "daybook.job_sequences", "daybook.job_steps", "daybook.job_waits",
	"daybook.job_wait_checks", "daybook.job_limits", "daybook.job_limit_rates", "daybook.job_workers",
	"daybook.job_workflows",
	"daybook.webhook_deliveries", "daybook.accounting_returns", "daybook.imports", "daybook.import_documents",
	"daybook.reconciled", "daybook.rates",
	"daybook.closed_sum_spans", "daybook.closed_sums", "daybook.closed_dimension_sums", "daybook.closed_taxes",
	"daybook.closed_tax_sums", "daybook.closed_tax_differences", "daybook.replaced_taxes",
	"daybook.closed_item_days", "daybook.closed_items",
	"daybook.closings",
	"queues.task", "queues.task_lease", "queues.task_completed", "queues.error", "queues.open_task", "queues.task_cursor",
}

// views are the views by which tables are read. A view has the columns of its table.
var views = map[string]string{"attempt_log": "daybook.attempts"}

type column struct {
	Name, Type string
	Nullable   bool
}

// kinds are the column types that a Go type may stand for.
var kinds = map[reflect.Type][]string{
	reflect.TypeFor[string]():          {"text"},
	reflect.TypeFor[int64]():           {"bigint"},
	reflect.TypeFor[int]():             {"integer"},
	reflect.TypeFor[bool]():            {"boolean"},
	reflect.TypeFor[time.Time]():       {"timestamp with time zone"},
	reflect.TypeFor[models.Date]():     {"date"},
	reflect.TypeFor[models.Content]():  {"jsonb"},
	reflect.TypeFor[models.Priority](): {"smallint"},
	reflect.TypeFor[int16]():           {"smallint"},

	reflect.TypeFor[models.ErrorCode]():     {"text"},
	reflect.TypeFor[models.DeliveryState](): {"text"},
	reflect.TypeFor[models.DocumentType]():  {"text"},
	reflect.TypeFor[models.Direction]():     {"text"},
	reflect.TypeFor[models.NoEntries]():     {"text"},
	reflect.TypeFor[models.Kind]():          {"text"},
	reflect.TypeFor[models.Words]():         {"ARRAY"},
	reflect.TypeFor[models.BulkAction]():    {"text"},
	reflect.TypeFor[models.NextPosting]():   {"text"},
	reflect.TypeFor[float64]():              {"double precision"},
	reflect.TypeFor[json.RawMessage]():      {"jsonb"},
	reflect.TypeFor[[]models.JobEdit]():     {"jsonb"},
	reflect.TypeFor[models.Outcome]():       {"daybook.attempt_outcome"},
	reflect.TypeFor[models.AccountType]():   {"daybook.account_type"},
	reflect.TypeFor[models.AccountRole]():   {"text"},
	reflect.TypeFor[models.Dimensions]():    {"jsonb"},
	reflect.TypeFor[models.Side]():          {"daybook.entry_side"},
	reflect.TypeFor[models.JobState]():      {"daybook.job_state"},
	reflect.TypeFor[models.ImpactKind]():    {"daybook.impact_kind"},

	reflect.TypeFor[models.ClosedPeriodPolicy](): {"daybook.closed_period_policy"},
	reflect.TypeFor[models.PeriodState]():        {"daybook.period_state"},
	reflect.TypeFor[models.Currencies]():         {"ARRAY"},
	reflect.TypeFor[[]byte]():                    {"bytea"},
}

// otherwise are the columns whose Go type does not say whether they may be null: slices of bytes
// that never are, and what the attempts of one kind of job have and those of the other do not.
var otherwise = map[string]bool{
	"jobs.payload": false, "jobs.edits": true, "entries.dimensions": true,
	"attempt_log.document_id": true, "attempt_log.version": true,
}

func TestModelsAreTheSchema(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name, model := range tables() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			columns := func(of string) []column {
				rows, err := db.Pool.Query(t.Context(), `
SELECT column_name, CASE data_type WHEN 'USER-DEFINED' THEN udt_schema || '.' || udt_name ELSE data_type END, is_nullable = 'YES'
  FROM information_schema.columns WHERE table_schema || '.' || table_name = $1 ORDER BY ordinal_position`, of)
				require.NoError(t, err)
				list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
				require.NoError(t, err)
				require.NotEmpty(t, list)
				return list
			}
			want, table := columns(qualified(name)), cmp.Or(views[name], qualified(name))
			if table != qualified(name) {
				shown := columns(table)
				for i := range shown {
					shown[i].Nullable = want[i].Nullable // a view does not say
				}
				assert.Equal(t, want, shown)
			}

			s, err := schema.Parse(model, &sync.Map{}, schema.NamingStrategy{})
			require.NoError(t, err)
			assert.Equal(t, table, s.Table)
			var have []column
			for _, f := range s.Fields {
				if f.DBName == "" {
					continue // no column
				}
				typ, nullable := f.FieldType, false
				if typ.Kind() == reflect.Pointer {
					typ, nullable = typ.Elem(), true
				}
				// A nil slice of bytes is null; an empty list is not.
				nullable = nullable || typ == reflect.TypeFor[[]byte]() || typ == reflect.TypeFor[json.RawMessage]()
				if differs, ok := otherwise[name+"."+f.DBName]; ok {
					nullable = differs
				}
				kind := strings.Join(kinds[typ], " or ")
				if f.DBName == "traceparent" {
					kind = "character varying" // of one length
				}
				have = append(have, column{f.DBName, kind, nullable})
			}
			byName := func(a, b column) int { return cmp.Compare(a.Name, b.Name) }
			slices.SortFunc(want, byName)
			slices.SortFunc(have, byName)
			assert.Equal(t, want, have)
		})
	}
}

func TestEveryTableHasAModel(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	rows, err := db.Pool.Query(t.Context(), `
SELECT table_schema || '.' || table_name FROM information_schema.tables WHERE table_schema IN ('daybook', 'queues') AND table_type = 'BASE TABLE' AND table_schema || '.' || table_name <> ALL ($1)`, own)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	have := tables()
	for _, name := range names {
		assert.Contains(t, have, strings.TrimPrefix(name, "daybook."))
	}
	assert.Len(t, names, len(have))
}

func TestPrimaryKeys(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name, model := range tables() {
		rows, err := db.Pool.Query(t.Context(), `
SELECT a.attname FROM pg_constraint c, unnest(c.conkey) WITH ORDINALITY k (n, i), pg_attribute a
 WHERE c.conrelid = $1::regclass AND c.contype = 'p' AND a.attrelid = c.conrelid AND a.attnum = k.n ORDER BY k.i`,
			qualified(name))
		require.NoError(t, err)
		want, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		s, err := schema.Parse(model, &sync.Map{}, schema.NamingStrategy{})
		require.NoError(t, err)
		assert.ElementsMatch(t, want, s.PrimaryFieldDBNames, name)
	}
}

func TestEnumsAreTheConstants(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	states := make([]string, 0, len(models.JobStates()))
	for _, s := range models.JobStates() {
		states = append(states, string(s))
	}
	want := map[string][]string{
		"job_state": states,
		"attempt_outcome": {
			string(models.OutcomeCompleted), string(models.OutcomeRetried), string(models.OutcomeRescheduled),
			string(models.OutcomeFailed), string(models.OutcomeCancelled), string(models.OutcomeLost),
		},
		"account_type": {
			string(models.AccountAsset), string(models.AccountLiability), string(models.AccountEquity),
			string(models.AccountIncome), string(models.AccountExpense),
		},
		"entry_side":  {string(models.Debit), string(models.Credit)},
		"impact_kind": {string(models.ImpactPost), string(models.ImpactReverse)},

		"closed_period_policy": {string(models.PolicyFail), string(models.PolicyFirstOpenDay)},
		"period_state":         {string(models.PeriodOpen), string(models.PeriodClosed)},
	}
	rows, err := db.Pool.Query(t.Context(), `
SELECT t.typname::text, array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
  FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid JOIN pg_namespace n ON n.oid = t.typnamespace
 WHERE n.nspname = 'daybook' GROUP BY t.typname`)
	require.NoError(t, err)
	have := map[string][]string{}
	var name string
	var labels []string
	_, err = pgx.ForEachRow(rows, []any{&name, &labels}, func() error {
		have[name] = slices.Clone(labels)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, want, have)
}

// Each model can be read through GORM as domain teams do, with every column that may be null set
// once and null once.
func TestModelsAreRead(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `
INSERT INTO daybook.organizations (id) VALUES ('o');
INSERT INTO daybook.rule_sets (org_id, version, name, source, sha256) VALUES ('o', 1, 'n', 's', repeat('a', 64));
INSERT INTO daybook.organizations (id, paused_at, max_in_flight, rate, rate_seconds, source, hooks) VALUES ('p', now(), 1, 5, 60, 'shop', '{a,b}');
UPDATE daybook.organizations SET active_rule_set = 1 WHERE id = 'o';
INSERT INTO daybook.accounts (org_id, code, type) VALUES ('o', '1200', 'asset'), ('o', '4400', 'income');
UPDATE daybook.accounts SET currencies = '{EUR,USD}' WHERE code = '1200';
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, content) VALUES ('o', 'a', 'invoice', 'out', 'EUR', '2026-03-14', '{}');
INSERT INTO daybook.documents (org_id, id, type, direction, currency, issue_date, value_date, content, accounting_ready_at, accounting_impact_created_at, deleted_at)
VALUES ('o', 'b', 'invoice', 'out', 'EUR', '2026-03-14', '2026-03-15', '{"total": 9007199254740993, "lines": [{"kind": "item", "net": 5}]}', now(), now(), now());
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) VALUES ('o', 'a', 1);
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, run_count, last_attempted_at, turn_id, fence, leased_generation, worker, attempt_started_at, last_error, last_error_code)
VALUES ('o', 'b', 1, 'leased', 1, now(), 't', 1, 0, 'w', now(), 'e', 'TIMEOUT');
UPDATE daybook.accounting_work_queue SET deleted_version = 1 WHERE document_id = 'b';
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at) VALUES ('o', 'c', 1, 'completed', now());
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, started_at, turn_id, fence) VALUES ('j', 'o', 'a', 1, 1, 'completed', now(), 't', 1);
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, error_code, error, started_at, turn_id, fence) VALUES ('j', 'o', 'a', 1, 1, 'failed', 'TIMEOUT', 'e', now(), 't', 1);
WITH posted AS (
    INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, document_date, posting_date, entry_count, job_id, attempt)
    VALUES (1, 'o', 'a', 1, 1, 'post', '2026-03-14', '2026-03-14', 2, 'j', 1))
INSERT INTO daybook.entries (impact_id, line_no, org_id, account_code, side, amount_minor, currency, document_line)
VALUES (1, 1, 'o', '1200', 'debit', 5, 'EUR', NULL), (1, 2, 'o', '4400', 'credit', 5, 'EUR', 1);
INSERT INTO daybook.impacts (id, org_id, document_id, document_version, seq, kind, rule_set_version, document_date, posting_date, entry_count, job_id, attempt, content_hash)
VALUES (2, 'o', 'b', 1, 1, 'post', 1, '2026-03-14', '2026-03-14', 0, 'j', 1, sha256(''));
INSERT INTO daybook.posted_elsewhere (org_id, document_id, document_version, next, entries, posted_on, system)
VALUES ('o', 'a', 1, 'difference', '[{"account": "1200", "side": "debit", "amount": 5, "currency": "EUR"}]', '2026-03-14', 's'), ('o', 'b', 1, 'wait', NULL, '2026-03-14', 's');
INSERT INTO daybook.confirmations (impact_id, document_version, rule_set_version, job_id, attempt) VALUES (2, 2, 1, 'j', 1);
INSERT INTO daybook.periods (org_id, starts_on, ends_on) VALUES ('o', '2026-01-01', '2026-01-31');
INSERT INTO daybook.periods (org_id, starts_on, ends_on, state, closed_at) VALUES ('o', '2026-02-01', '2026-02-28', 'closed', now());
SELECT daybook.enqueue_job('o', 'mail', '{}');
SELECT daybook.enqueue_job('o', 'mail', '{"to": "a"}', 'key', max_attempts => 1, links => '[{"kind": "k", "id": "i"}]', unique_payload => true);
SELECT daybook.set_queue('slow', 'mailers', 2, 10);
SELECT daybook.enqueue_job('o', 'mail', '{}', queue => 'slow', sequence => 's', after => ARRAY(SELECT id FROM daybook.jobs));
UPDATE daybook.jobs SET result = '{"a": 1}', progress = '1' WHERE idempotency_key = 'key';
INSERT INTO daybook.jobs (org_id, type, payload, input_hash, state, run_count, last_attempted_at, turn_id, fence, leased_generation, worker, attempt_started_at, last_error, last_error_code)
VALUES ('o', 'mail', '{}', sha256(''), 'leased', 1, now(), 't', 1, 0, 'w', now(), 'e', 'TIMEOUT');
INSERT INTO daybook.jobs (org_id, type, payload, input_hash, state, finished_at) VALUES ('o', 'mail', '{}', sha256(''), 'completed', now());
INSERT INTO daybook.jobs (id, org_id, type, payload, state, finished_at, run_count, completed_turn_id, completed_fence, completed_by, completed_started_at)
VALUES ('k', 'o', 'mail', '{}', 'completed', now(), 2, 'run/0/1', 7, 'w', now());
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, error_code, started_at, turn_id, fence) VALUES ('k', 'o', 'jobs', 'mail', 1, 'retried', 'TIMEOUT', now(), 't', 1);
INSERT INTO daybook.bulk_operations (id, org_id, action, mode, delay_seconds, states, finished_at) VALUES ('b', 'o', 'retry', 'later', 1.5, '{failed}', now()), ('c', NULL, 'cancel', NULL, NULL, '{failed,pending}', NULL);
SELECT queues.limit_tasks('email', true), queues.limit_tasks('sms', NULL, 1);`)
	require.NoError(t, err)
	sqlDB := stdlib.OpenDBFromPool(db.Pool)
	t.Cleanup(func() { assert.NoError(t, sqlDB.Close()) })
	g, err := gorm.Open(postgres.New(postgres.Config{Conn: sqlDB}), &gorm.Config{})
	require.NoError(t, err)

	for name, model := range tables() {
		list := reflect.New(reflect.SliceOf(reflect.TypeOf(model)))
		assert.NoError(t, g.WithContext(t.Context()).Find(list.Interface()).Error, name)
		assert.Positive(t, list.Elem().Len(), name)
	}
	var d models.Document
	require.NoError(t, g.WithContext(t.Context()).First(&d, "id = ?", "b").Error)
	assert.EqualValues(t, 9007199254740993, d.Content.Total, "amounts are never floats")
	assert.Equal(t, models.NewDate(2026, 3, 15), *d.ValueDate)
	var j models.Job
	require.NoError(t, g.WithContext(t.Context()).First(&j, "idempotency_key = ?", "key").Error)
	assert.JSONEq(t, `{"to": "a"}`, string(j.Payload))
	assert.JSONEq(t, `{"a": 1}`, string(j.Result))
	assert.Len(t, j.InputHash, 32)
	assert.Equal(t, j.InputHash, j.UniqueHash)
	var plain models.Job
	require.NoError(t, g.WithContext(t.Context()).First(&plain, "idempotency_key IS NULL AND state = ?",
		models.JobPending).Error)
	assert.Nil(t, plain.Result)
	var attempts []models.JobAttempt
	require.NoError(t, g.WithContext(t.Context()).Order("id").Find(&attempts, "job_id = ?", "k").Error)
	require.Len(t, attempts, 2, "one of the log, and the one that the job's row keeps")
	assert.Equal(t, "mail", attempts[0].Type)
	assert.Equal(t, models.OutcomeRetried, attempts[0].Outcome)
	last := attempts[1]
	var kept models.Job
	require.NoError(t, g.WithContext(t.Context()).First(&kept, "id = ?", "k").Error)
	want := models.JobAttempt{
		ID: last.ID, JobID: "k", OrgID: "o", Type: "mail", Attempt: 2, Outcome: models.OutcomeCompleted,
		StartedAt: *kept.CompletedStartedAt, EndedAt: *kept.FinishedAt,
		Worker: "w", TurnID: "run/0/1", Fence: 7, WorkflowRunID: "run", Times: 1,
	}
	assert.Equal(t, want, last)
}

// The schema is made by migrations alone.
func TestAutoMigrateIsNeverCalled(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	files := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		source, err := os.ReadFile(path)
		assert.NotContains(t, string(source), ".AutoMigrate(", path)
		return err
	}))
	assert.Greater(t, files, 10, "files that were looked at")
}

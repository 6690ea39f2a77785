package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/devstack/temporaltest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { pgtest.Main(m, temporaltest.Stop) }

const org = "org_1"

// bundle is a database, and an engine of background jobs on it.
type bundle struct {
	*pgtest.DB
	t        *testing.T
	registry *jobs.Registry
	engine   *engine.Engine
	turns    int
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db := pgtest.New(t)
	b := &bundle{DB: db, t: t, registry: jobs.NewRegistry()}
	b.engine = engine.NewJobs(store.NewQueue(db.Pool, store.Jobs), b.registry,
		engine.Options{Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(b.engine.Close)
	return b
}

// variables has a registry of what these variables configure.
func (b *bundle) variables(vars map[string]string) *Builtin {
	b.t.Helper()
	builtin, err := Register(b.registry, Config{Pool: b.Pool, Environment: vars})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { assert.NoError(b.t, builtin.Close()) })
	return builtin
}

func (b *bundle) enqueue(p queue.Payload) string { return b.enqueueFor(org, p, queue.JobOptions{}) }

// enqueueFor leaves the check of the payload to the handler, which is to be tested.
func (b *bundle) enqueueFor(org string, p queue.Payload, o queue.JobOptions) string {
	b.t.Helper()
	o.SkipValidation = true
	e, err := queue.EnqueueJob(b.t.Context(), b.Pool, org, p, o)
	require.NoError(b.t, err)
	return e.ID
}

// work works everything that is due. Before that it has what is on record about waiting jobs
// decided: the engine does that beside a turn, and has the job's row meanwhile, which the turn
// would leave alone.
func (b *bundle) work() {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		b.exec(`SELECT daybook.check_waits()`)
		return b.count(`SELECT count(*) FROM daybook.job_wait_checks`) == 0
	}, time.Minute, 5*time.Millisecond)
	b.turns++
	turn := store.Turn{ID: fmt.Sprintf("run/0/%d", b.turns), Worker: "test", WorkflowRunID: "run"}
	_, err := b.engine.Process(b.t.Context(), engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute})
	require.NoError(b.t, err)
}

// run enqueues a job and works it once.
func (b *bundle) run(p queue.Payload) ran {
	b.t.Helper()
	id := b.enqueue(p)
	b.work()
	return b.job(id)
}

// due makes every pending job due now.
func (b *bundle) due() {
	b.exec(`UPDATE daybook.jobs SET ready_at = clock_timestamp() WHERE state = 'pending'`)
}

// ran is what is stored of a job.
type ran struct {
	ID     string
	State  models.JobState
	Code   models.ErrorCode
	Error  string
	Result json.RawMessage
	// Wait is how long after its last attempt the job is due again.
	Wait time.Duration
}

func (b *bundle) job(id string) ran {
	b.t.Helper()
	r := ran{ID: id}
	var wait float64
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `
SELECT state, coalesce(last_error_code, ''), coalesce(last_error, ''), result,
       extract(epoch FROM ready_at - (SELECT max(ended_at) FROM daybook.attempts a WHERE a.job_id = j.id))
  FROM daybook.jobs j WHERE id = $1`, id).Scan(&r.State, &r.Code, &r.Error, &r.Result, &wait))
	r.Wait = time.Duration(wait * float64(time.Second))
	return r
}

// result reads a completed job's result.
func result[T any](t *testing.T, r ran) T {
	t.Helper()
	require.Equal(t, models.JobCompleted, r.State, "%s %s", r.Code, r.Error)
	var v T
	require.NoError(t, json.Unmarshal(r.Result, &v))
	return v
}

func (b *bundle) exec(query string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	require.NoError(b.t, err)
}

func (b *bundle) count(query string, args ...any) int {
	b.t.Helper()
	var n int
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), query, args...).Scan(&n))
	return n
}

// everything is all that is stored of jobs, attempts and receipts but the payloads, as text.
func (b *bundle) everything() string {
	b.t.Helper()
	var text string
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `
SELECT concat((SELECT string_agg((to_jsonb(j) - 'payload')::text, E'\n') FROM daybook.jobs j),
              (SELECT string_agg(a::text, E'\n') FROM daybook.attempts a), (SELECT string_agg(w::text, E'\n') FROM daybook.webhook_deliveries w),
              (SELECT string_agg(c::text, E'\n') FROM daybook.job_deliveries c))`).Scan(&text))
	return text
}

// jittered asserts that a delay is the policy's, with its jitter.
func jittered(t *testing.T, want, got time.Duration) {
	t.Helper()
	const measured = 200 * time.Millisecond
	assert.GreaterOrEqual(t, got, want*9/10-measured)
	assert.LessOrEqual(t, got, want*11/10+measured)
}

// callFor is an attempt at a job of no database.
func callFor[P queue.Payload](p P) *call[P] {
	return &call[P]{
		id: "job_1", orgID: org, attempt: 1, key: "key_1", payload: p, result: func(any) {},
		progress: func(context.Context, any) error { return nil }, inTx: func(func(context.Context, pgx.Tx) error) {},
	}
}

func TestRegisterTakesWhatIsConfigured(t *testing.T) {
	t.Parallel()
	b := setup(t)
	builtin := b.variables(map[string]string{
		"DAYBOOK_DB_FUNCTIONS": "app.one, app.two",
		"DAYBOOK_JOBS_OWNER":   "platform",
	})

	assert.Equal(t, []string{"cleanup", "db_function", "webhook"}, builtin.Types)
	assert.Contains(t, builtin.Missing["email"], "DAYBOOK_SMTP_HOST")
	assert.Contains(t, builtin.Missing["report"], "DAYBOOK_REPORTS_BUCKET")
	assert.Equal(t, []string{"cleanup", "db_function", "webhook", "webhook_delivery"}, b.registry.Names())
	for _, r := range b.registry.Registrations() {
		assert.Equal(t, "platform", r.Policy.Owner, r.Type)
	}
}

func TestRegisterAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	builtin := b.variables(map[string]string{
		"DAYBOOK_DB_FUNCTIONS": "app.one", "DAYBOOK_SMTP_HOST": "mail.example.com",
		"DAYBOOK_SMTP_FROM":      "Shop <shop@example.com>",
		"DAYBOOK_REPORTS_BUCKET": "file://" + t.TempDir(), "DAYBOOK_WEBHOOK_ALLOW_NETWORKS": "10.0.0.0/8,fd00::/8",
		"DAYBOOK_WEBHOOK_TIMEOUT":    "5s",
		"DAYBOOK_TWILIO_ACCOUNT_SID": "AC1", "DAYBOOK_SMS_FROM": "Shop",
		"DAYBOOK_FILES_SIGNER_URL":       "https://files.example.com/sign",
		"DAYBOOK_AIRTABLE_TOKEN_DEFAULT": "pat1", "DAYBOOK_PLAID_CLIENT_ID": "c1",
	})
	assert.Equal(t, []string{
		"airtable_sync", "cleanup", "db_function", "email", "file_delete", "notification",
		"plaid_enrichment", "report", "sms", "webhook",
	}, builtin.Types)
	assert.Empty(t, builtin.Missing)

	policies := map[string][]time.Duration{
		"webhook":          {time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second},
		"email":            {5 * time.Minute, 10 * time.Minute},
		"notification":     {5 * time.Minute, 10 * time.Minute},
		"plaid_enrichment": {5 * time.Minute, 10 * time.Minute},
		"airtable_sync":    {5 * time.Minute, 10 * time.Minute},
		"report":           {30 * time.Second, time.Minute},
		"cleanup":          {5 * time.Minute},
		"sms":              {5 * time.Minute, 10 * time.Minute},
		"file_delete":      {30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute},
	}
	for _, r := range b.registry.Registrations() {
		assert.Equal(t, DefaultOwner, r.Policy.Owner, r.Type)
		delays, ok := policies[r.Type]
		if !ok {
			continue
		}
		assert.Equal(t, len(delays)+1, r.Policy.MaxAttempts, r.Type)
		next := r.Policy.Base
		for _, want := range delays {
			assert.Equal(t, want, next, r.Type)
			next = min(time.Duration(float64(next)*r.Policy.Factor), r.Policy.Cap)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		vars map[string]string
		want string
	}{
		"functions without schema": {map[string]string{"DAYBOOK_DB_FUNCTIONS": "refresh"}, "DB_FUNCTIONS"},
		"functions with more":      {map[string]string{"DAYBOOK_DB_FUNCTIONS": `app.f"();drop`}, "DB_FUNCTIONS"},
		"no sender":                {map[string]string{"DAYBOOK_SMTP_HOST": "mail.example.com"}, "SMTP_FROM"},
		"sender with a line break": {map[string]string{
			"DAYBOOK_SMTP_HOST": "h",
			"DAYBOOK_SMTP_FROM": "a@example.com\r\nBcc: b@example.com",
		}, "SMTP_FROM"},
		"encryption": {map[string]string{
			"DAYBOOK_SMTP_HOST": "h", "DAYBOOK_SMTP_FROM": "a@example.com",
			"DAYBOOK_SMTP_TLS": "ssl",
		}, "SMTP_TLS"},
		"port": {map[string]string{
			"DAYBOOK_SMTP_HOST": "h", "DAYBOOK_SMTP_FROM": "a@example.com",
			"DAYBOOK_SMTP_PORT": "99999",
		}, "SMTP_PORT"},
		"networks": {map[string]string{"DAYBOOK_WEBHOOK_ALLOW_NETWORKS": "10.0.0.0"}, "AllowNetworks"},
		"timeout":  {map[string]string{"DAYBOOK_WEBHOOK_TIMEOUT": "-1s"}, "WEBHOOK_TIMEOUT"},
		"bucket":   {map[string]string{"DAYBOOK_REPORTS_BUCKET": "s3://b?secret=topsecret"}, "REPORTS_BUCKET"},
		"batch":    {map[string]string{"DAYBOOK_CLEANUP_BATCH": "-1"}, "CLEANUP_BATCH"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Register(jobs.NewRegistry(), Config{Pool: b.Pool, Environment: c.vars})
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), "topsecret")
		})
	}
	_, err := Register(jobs.NewRegistry(), Config{})
	require.ErrorContains(t, err, "Config.Pool")
}

func TestClip(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a b", clip(" a\r\n\tb\x00 "))
	long := clip(strings.Repeat("ü", 1000))
	assert.LessOrEqual(t, len(long), maxErrorText+len("…"))
	assert.True(t, strings.HasSuffix(long, "ü…"))
}

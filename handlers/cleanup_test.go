package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// cleans registers the type cleanup.
func (b *bundle) cleans(c CleanupConfig) {
	b.t.Helper()
	h, err := NewCleanup(b.Pool, c)
	require.NoError(b.t, err)
	jobs.Register(b.registry, CleanupPolicy(), h.Handle)
}

// past makes n jobs of an organization that ended in a state so many days ago, each with a link, an
// attempt and a receipt.
func (b *bundle) past(org string, state models.JobState, days, n int) {
	b.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = b.enqueueFor(org, queue.RawPayload{Type: "old"}, queue.JobOptions{
			Links: []queue.Link{{Kind: "n", ID: strconv.Itoa(i)}}, RunAt: time.Now().Add(time.Hour),
		})
	}
	b.exec(`
UPDATE daybook.jobs SET state = $2::text::daybook.job_state, run_count = 1, finished_at = CASE WHEN $2::text <> 'pending' THEN clock_timestamp() - make_interval(days => $3) END,
       last_error = 'x', last_error_code = 'HANDLER_ERROR'
 WHERE id = ANY ($1)`, ids, string(state), days)
	b.exec(`
INSERT INTO daybook.attempt_log (job_id, org_id, kind, type, attempt, outcome, started_at, ended_at, turn_id, fence)
SELECT id, org_id, 'jobs', type, 1, 'completed', clock_timestamp() - make_interval(days => $2), clock_timestamp() - make_interval(days => $2), 'run/0/1', 1
  FROM daybook.jobs WHERE id = ANY ($1)`, ids, days)
	b.exec(`
INSERT INTO daybook.webhook_deliveries (job_id, attempt, url, ok, duration_ms, sent_at)
SELECT id, 1, 'http://x', true, 1, clock_timestamp() - make_interval(days => $2) FROM unnest($1::text[]) AS id`, ids,
		days)
}

func (b *bundle) left(table string) int { return b.count(`SELECT count(*) FROM ` + table) }

func TestCleanupRemovesWhatIsOld(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cleans(CleanupConfig{Batch: 2})
	b.past(org, models.JobCompleted, 40, 5)
	b.past(org, models.JobCancelled, 40, 2)
	b.past(org, models.JobCompleted, 20, 3)
	b.past(org, models.JobFailed, 400, 2)
	b.past(org, models.JobPending, 400, 2)
	b.past("org_2", models.JobCompleted, 40, 3)

	r := result[CleanupResult](t, b.run(Cleanup{}))
	assert.Equal(t, CleanupResult{Jobs: 7, Attempts: 7, Receipts: 7}, r)
	assert.Equal(t, 3+2+2+3+1, b.left("daybook.jobs"), "and the job that cleans up")
	assert.Equal(t, 3+2+2+3, b.left("daybook.job_links"))
	assert.Equal(t, 3+2+2+3, b.left("daybook.webhook_deliveries"))
	assert.Equal(t, 3+2+2+3+1, b.left("daybook.attempts"))

	b.exec(`SELECT daybook.enqueue_job('` + org + `', 'cleanup', '{"jobs_days": 0}')`)
	b.work()
	assert.Equal(t, 3, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND type <> 'cleanup' AND org_id = '`+org+`'`), "0 is the default")

	r = result[CleanupResult](t, b.run(Cleanup{JobsDays: 15}))
	assert.Equal(t, CleanupResult{Jobs: 3, Attempts: 3, Receipts: 3}, r)
	r = result[CleanupResult](t, b.run(Cleanup{}))
	assert.Equal(t, CleanupResult{}, r, "what is gone is gone")
}

// TestCleanupGoesByTheDatabasesClock: what the database's clock says is young stays, also where the
// worker's clock is three weeks ahead of it.
func TestCleanupGoesByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE SCHEMA behind`)
	b.exec(`CREATE FUNCTION behind.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT pg_catalog.clock_timestamp() - interval '21 days' $$`)
	config := b.Pool.Config()
	config.ConnConfig.RuntimeParams["search_path"] = "behind, pg_catalog, daybook, public"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	h, err := NewCleanup(pool, CleanupConfig{})
	require.NoError(t, err)
	jobs.Register(b.registry, CleanupPolicy(), h.Handle)
	b.past(org, models.JobCompleted, 40, 2)
	b.past(org, models.JobCompleted, 60, 3)

	assert.Equal(t, CleanupResult{Jobs: 3, Attempts: 3, Receipts: 3}, result[CleanupResult](t, b.run(Cleanup{})))
}

// A job that can still be tried keeps the receipt that says that its webhook was delivered.
func TestCleanupRemovesReceipts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cleans(CleanupConfig{Batch: 2, Organization: org})
	b.past(org, models.JobCompleted, 100, 3)
	b.past(org, models.JobFailed, 100, 2)
	b.past(org, models.JobPending, 100, 2)
	b.past("org_2", models.JobCompleted, 100, 1)
	b.exec(`INSERT INTO daybook.webhook_deliveries (job_id, attempt, url, ok, duration_ms, sent_at) VALUES ('gone', 1, 'http://x', true, 1, '2020-01-01')`)

	r := result[CleanupResult](t, b.run(Cleanup{JobsDays: -1}))
	assert.Equal(t, CleanupResult{Receipts: 3}, r)
	assert.Equal(t, 6, b.left("daybook.webhook_deliveries"))
	r = result[CleanupResult](t, b.run(Cleanup{JobsDays: -1, AllOrganizations: true}))
	assert.Equal(t, CleanupResult{Receipts: 2}, r, "of another organization, and of a job that is gone")
	r = result[CleanupResult](t, b.run(Cleanup{JobsDays: -1, ReceiptsDays: -1, AttemptsDays: -1}))
	assert.Equal(t, CleanupResult{}, r)
}

func TestCleanupRemovesAttemptsAtAccountingJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cleans(CleanupConfig{Batch: 2})
	b.books()
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "done", 100), fixture.Invoice(org, "dead", 100),
		fixture.Invoice(org, "waits", 100))
	b.exec(`UPDATE daybook.accounting_work_queue SET state = 'completed', finished_at = clock_timestamp() WHERE document_id = 'done'`)
	b.exec(`UPDATE daybook.accounting_work_queue SET state = 'failed', finished_at = clock_timestamp(), last_error = 'x', last_error_code = 'x' WHERE document_id = 'dead'`)
	b.exec(`
INSERT INTO daybook.attempt_log (job_id, org_id, document_id, version, attempt, outcome, error_code, started_at, ended_at, turn_id, fence)
SELECT id, org_id, document_id, 1, n, 'retried', 'x', clock_timestamp() - interval '100 days', clock_timestamp() - make_interval(days => CASE n WHEN 5 THEN 1 ELSE 100 END), 'run/0/1', 1
  FROM daybook.accounting_work_queue, generate_series(1, 5) n`)
	b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, run_count, completed_turn_id, completed_fence, completed_by, completed_started_at)
SELECT $1, d, 1, 'completed', clock_timestamp() - interval '100 days', 1, 'run/0/1', 1, 'w', clock_timestamp() - interval '100 days' FROM unnest('{kept,again}'::text[]) AS d`, org)
	b.exec(`UPDATE daybook.accounting_work_queue SET version_hint = 2 WHERE document_id = 'again'`)
	impacts, entries := b.left("daybook.impacts"), b.left("daybook.entries")

	r := result[CleanupResult](t, b.run(Cleanup{}))
	assert.Equal(t, CleanupResult{Attempts: 5}, r,
		"the fifth of the first document is young, and what completed a document last stays with its job")
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.attempts WHERE document_id = 'kept'`))
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.attempts WHERE document_id = 'again'`))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.attempts WHERE document_id = 'done'`))
	assert.Equal(t, 10, b.count(`SELECT count(*) FROM daybook.attempts WHERE document_id IN ('dead', 'waits')`))
	assert.Equal(t, 5, b.left("daybook.accounting_work_queue"))
	assert.Equal(t, impacts, b.left("daybook.impacts"))
	assert.Equal(t, entries, b.left("daybook.entries"))
}

func TestCleanupOfAllOrganizations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cleans(CleanupConfig{Organization: "operations"})
	b.past("org_2", models.JobCompleted, 40, 3)
	b.past("org_3", models.JobCompleted, 40, 3)

	j := b.run(Cleanup{AllOrganizations: true})
	assert.Equal(t, models.CodePayloadInvalid, j.Code, j.Error)
	id := b.enqueueFor("operations", Cleanup{AllOrganizations: true}, queue.JobOptions{})
	b.work()
	assert.Equal(t, int64(6), result[CleanupResult](t, b.job(id)).Jobs)
}

func TestCleanupRefusesPayloads(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cleans(CleanupConfig{})
	b.past(org, models.JobCompleted, 3, 1)
	for name, p := range map[string]Cleanup{
		"too few days":  {JobsDays: 1},
		"negative":      {ReceiptsDays: -2},
		"too many":      {AttemptsDays: maxDays + 1},
		"organizations": {AllOrganizations: true},
	} {
		j := b.run(p)
		assert.Equal(t, models.JobFailed, j.State, name)
		assert.Equal(t, models.CodePayloadInvalid, j.Code, name)
	}
}

// An attempt whose time is nearly over says that there is more; one that is no longer the worker's
// ends.
func TestCleanupStops(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.past(org, models.JobCompleted, 40, 3)
	h, err := NewCleanup(b.Pool, CleanupConfig{Batch: 1})
	require.NoError(t, err)
	short, cancel := context.WithTimeout(t.Context(), cleanupReserve/2)
	defer cancel()
	var said CleanupResult
	c := callFor(Cleanup{})
	c.result = func(v any) { said = v.(CleanupResult) }
	require.NoError(t, h.clean(short, c))
	assert.Equal(t, CleanupResult{More: true}, said)

	var progress []CleanupResult
	c.progress = func(_ context.Context, v any) error {
		progress = append(progress, *v.(*CleanupResult))
		return store.ErrLeaseLost
	}
	require.ErrorIs(t, h.clean(t.Context(), c), store.ErrLeaseLost)
	assert.Equal(t, []CleanupResult{{Jobs: 1, Attempts: 1, Receipts: 1}}, progress)
	assert.Equal(t, 2, b.left("daybook.jobs"))
}

// A job whose row another transaction holds is left for another time; the cleanup does not wait.
func TestCleanupWaitsForNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cleans(CleanupConfig{})
	b.past(org, models.JobCompleted, 40, 2)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM daybook.jobs WHERE id = (SELECT min(id) FROM daybook.jobs) FOR UPDATE`)
	require.NoError(t, err)
	assert.Equal(t, int64(1), result[CleanupResult](t, b.run(Cleanup{})).Jobs)
	require.NoError(t, tx.Rollback(t.Context()))
	assert.Equal(t, int64(1), result[CleanupResult](t, b.run(Cleanup{})).Jobs)
}

func TestCleanupRetriesByItsTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cleans(CleanupConfig{})
	b.past(org, models.JobCompleted, 40, 1)
	b.exec(`CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$`)
	b.exec(`CREATE TRIGGER refuse BEFORE DELETE ON daybook.jobs FOR EACH ROW EXECUTE FUNCTION public.refuse()`)
	id := b.enqueue(Cleanup{})
	b.work()
	assert.Equal(t, models.CodeHandlerError, b.job(id).Code)
	jittered(t, 5*time.Minute, b.job(id).Wait)
	b.due()
	b.work()
	assert.Equal(t, models.JobFailed, b.job(id).State)
}

// TestCleanupReachesEveryQueue: the payload has a number of days for everything that goes when it
// is old.
func TestCleanupReachesEveryQueue(t *testing.T) {
	t.Parallel()
	fields := map[string]bool{}
	for field := range reflect.TypeFor[Cleanup]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[name] = true
	}
	for _, old := range store.Old() {
		assert.True(t, fields[old.Name+"_days"], old.Name)
	}
}

// TestCleanupHasASettingForAllOldRows: what a kind of queue has cleaned up has its number of days
// in the payload.
func TestCleanupHasASettingForAllOldRows(t *testing.T) {
	t.Parallel()
	for _, old := range store.Old() {
		var c Cleanup
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"%s_days": 8}`, old.Name), &c), old.Name)
		assert.Equal(t, 8, c.days(old.Name), "a field %s_days of Cleanup", old.Name)
	}
}

// Completed tasks go to the archive, for a job that may clean up for all organizations alone.
func TestCleanupArchivesTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	b.cleans(CleanupConfig{Organization: org, Batch: 2, TasksArchive: dir})
	b.exec(`SELECT queues.enqueue_tasks('{email,sms,email,email}', array_fill('{}'::jsonb, '{4}'))`)
	b.exec(`SELECT queues.complete_task(task_id) FROM queues.dequeue_available_tasks(3)`)
	assert.Zero(t, result[CleanupResult](t, b.run(Cleanup{AllOrganizations: true})).Tasks, "nothing is that old")
	b.exec(`ALTER TABLE queues.task_completed DISABLE TRIGGER task_completed_append_only`)
	b.exec(`UPDATE queues.task_completed SET completed_at = clock_timestamp() - make_interval(days => CASE task_id WHEN 1 THEN 100 ELSE 40 END)`)
	b.exec(`ALTER TABLE queues.task_completed ENABLE TRIGGER task_completed_append_only`)

	assert.Zero(t, result[CleanupResult](t, b.run(Cleanup{})).Tasks, "tasks have no organization")
	assert.Equal(t, int64(1), result[CleanupResult](t, b.run(Cleanup{AllOrganizations: true})).Tasks, "after 90 days")
	assert.Zero(t, result[CleanupResult](t, b.run(Cleanup{AllOrganizations: true, TasksDays: -1})).Tasks)
	assert.Equal(t, int64(2), result[CleanupResult](t, b.run(Cleanup{AllOrganizations: true, TasksDays: 30})).Tasks)
	assert.Equal(t, 1, b.left("queues.task"), "the open one")
	files, err := filepath.Glob(filepath.Join(dir, "tasks", "*.jsonl"))
	require.NoError(t, err)
	assert.Len(t, files, 2)
	assert.Equal(t, models.CodePayloadInvalid, b.run(Cleanup{TasksDays: 30}).Code)
}

// A storage that does not take the tasks keeps them in the database.
func TestCleanupWithAnArchiveThatRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	b.cleans(CleanupConfig{Organization: org, TasksArchive: dir})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks"), nil, 0o600))
	b.exec(`SELECT queues.enqueue('email', '{}')`)
	b.exec(`SELECT queues.complete_task(task_id) FROM queues.dequeue_next_available_task()`)
	b.exec(`ALTER TABLE queues.task_completed DISABLE TRIGGER task_completed_append_only`)
	b.exec(`UPDATE queues.task_completed SET completed_at = clock_timestamp() - interval '100 days'`)
	j := b.run(Cleanup{AllOrganizations: true})
	assert.Equal(t, models.CodeNetworkError, j.Code, j.Error)
	assert.Contains(t, j.Error, "they stay in the database")
	assert.Equal(t, 1, b.left("queues.task_completed"))
}

func TestTasksAreNotRemovedWithoutAnArchive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cleans(CleanupConfig{Organization: org})
	b.exec(`SELECT queues.enqueue('email', '{}')`)
	b.exec(`SELECT queues.complete_task(task_id) FROM queues.dequeue_next_available_task()`)
	b.exec(`ALTER TABLE queues.task_completed DISABLE TRIGGER task_completed_append_only`)
	b.exec(`UPDATE queues.task_completed SET completed_at = clock_timestamp() - interval '100 days'`)
	assert.Zero(t, result[CleanupResult](t, b.run(Cleanup{AllOrganizations: true})).Tasks)
	j := b.run(Cleanup{AllOrganizations: true, TasksDays: 30})
	assert.Equal(t, models.CodePayloadInvalid, j.Code)
	assert.Contains(t, j.Error, "DAYBOOK_CLEANUP_TASKS_ARCHIVE")
	_, err := NewCleanup(b.Pool, CleanupConfig{TasksArchive: "s3://bucket"})
	assert.ErrorContains(t, err, "no driver for s3")
}

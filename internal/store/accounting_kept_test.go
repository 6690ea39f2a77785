package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// completed is the completion of a job whose attempt came to its end.
func completed(j store.Job) store.Completion {
	return store.Completion{Job: j, Outcome: models.OutcomeCompleted}
}

// request asks for a document and returns its job's id.
func (b *bundle) request(document string, version int) (id string) {
	b.t.Helper()
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `SELECT job_id FROM daybook.enqueue_accounting_job($1, $2, $3)`,
		org, document, version).Scan(&id))
	return id
}

// completeNext leases the next document and completes it.
func (b *bundle) completeNext(turn string) (store.Turn, store.Job) {
	b.t.Helper()
	at := b.turn(turn)
	jobs := b.lease(at, 1)
	require.Len(b.t, jobs, 1)
	require.NoError(b.t, b.completeAll(at, completed(jobs[0])))
	return at, jobs[0]
}

// pickDocuments picks what is due and completes it in the transaction that picked it, after
// meanwhile was executed there.
func (b *bundle) pickDocuments(turn store.Turn, byPlace bool, meanwhile string) (store.Job, error) {
	b.t.Helper()
	c := completed(store.Job{})
	err := b.completePicked(turn, byPlace, meanwhile, &c)
	return c.Job, err
}

// completePicked is pickDocuments for any end of the attempt, of which it notes the job.
func (b *bundle) completePicked(turn store.Turn, byPlace bool, meanwhile string, c *store.Completion) error {
	b.t.Helper()
	pick, err := b.store.Pick(b.t.Context(), 10, pgtest.Unbounded())
	require.NoError(b.t, err)
	err = b.store.InTx(b.t.Context(), func(tx pgx.Tx) error {
		jobs, err := pick.Lock(b.t.Context(), tx)
		require.NoError(b.t, err)
		require.Len(b.t, jobs, 1)
		c.Job = jobs[0]
		require.True(b.t, c.Job.Place.Valid)
		_, err = tx.Exec(b.t.Context(), meanwhile)
		require.NoError(b.t, err)
		c.Job.Place.Valid = byPlace
		_, err = store.Accounting.Complete(b.t.Context(), tx, turn, []store.Completion{*c},
			store.Access{Picked: true, Commit: true})
		return err
	})
	if err != nil {
		pick.Undo()
	}
	return err
}

// attemptText is an attempt as daybook.attempts shows it, but for its id.
func (b *bundle) attemptText(id string) (text string) {
	b.t.Helper()
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(),
		`SELECT string_agg((to_jsonb(a) - 'id')::text, E'\n' ORDER BY a.id) FROM daybook.attempts a WHERE a.job_id = $1`,
		id).Scan(&text))
	return text
}

// TestACompletedDocumentKeepsItsAttempt: the attempt that completes a document, whether it was
// leased or not, stays in the job's row and is the last one that daybook.attempts shows. A second
// completion is refused.
func TestACompletedDocumentKeepsItsAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.request("leased", 3)
	turn := b.turn("run/0/1")
	jobs := b.lease(turn, 1)
	require.NoError(t, b.completeAll(turn,
		store.Completion{Job: jobs[0], Outcome: models.OutcomeRetried, Code: models.CodeTimeout, Message: "late"}))
	second, job := b.completeNext("run/0/2")
	want := []attempted{
		{1, models.OutcomeRetried, "test", "run/0/1", "run", true},
		{2, models.OutcomeCompleted, "test", "run/0/2", "run", false},
	}
	assert.Equal(t, want, b.attemptsAt(id))
	require.ErrorIs(t, b.completeAll(second, completed(job)), store.ErrLeaseLost)
	err := b.store.InTx(t.Context(), func(tx pgx.Tx) error {
		_, err := store.Accounting.Complete(t.Context(), tx, second, []store.Completion{completed(job)},
			store.Access{Picked: true})
		return err
	})
	require.ErrorIs(t, err, store.ErrLeaseLost)
	assert.Equal(t, want, b.attemptsAt(id))

	for _, byPlace := range []bool{true, false} {
		id := b.request("picked "+map[bool]string{true: "by place", false: "by id"}[byPlace], 0)
		b.exec(`UPDATE daybook.accounting_work_queue SET not_ready_count = 2, run_count = 1, reclaims = 1, last_error = 'before', last_error_code = 'TIMEOUT' WHERE id = $1`, id)
		at := b.turn("run/1/1")
		job, err := b.pickDocuments(at, byPlace, "")
		require.NoError(t, err)
		assert.Equal(t, []attempted{{2, models.OutcomeCompleted, "test", "run/1/1", "run", false}}, b.attemptsAt(id))
		assert.Equal(t, 1, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.accounting_work_queue q JOIN daybook.attempts a ON a.job_id = q.id
 WHERE q.id = $1 AND q.not_ready_count = 0 AND q.reclaims = 0 AND q.last_error IS NULL AND q.last_error_code IS NULL AND q.state = 'completed'
   AND q.last_attempted_at = $2 AND a.started_at = $2 AND a.ended_at = q.finished_at AND a.fence = $3 AND a.version = 0 AND a.kind = 'accounting' AND a.org_id = q.org_id
   AND a.document_id = q.document_id`, id, job.StartedAt, at.Fence))
	}
}

// TestAChangedDocumentLogsItsAttempt: whatever changes or removes the row of a completed document,
// the attempt that completed it goes to the log as it was, before those that follow.
func TestAChangedDocumentLogsItsAttempt(t *testing.T) {
	t.Parallel()
	const way = ` FROM (VALUES ('` + org + `', 'd')) AS asked (org, document)`
	for name, c := range map[string]struct {
		stmt string
		left models.JobState
	}{
		"a newer version": {`SELECT daybook.enqueue_accounting_job(org, document, 2)` + way, models.JobPending},
		"newer versions": {
			`SELECT daybook.enqueue_accounting_jobs(ARRAY[org], ARRAY[document], '{2}')` + way,
			models.JobPending,
		},
		"marked pending":     {`SELECT daybook.mark_accounting_job_pending(org, document)` + way, models.JobPending},
		"reposted":           {`SELECT daybook.repost_accounting_job(org, document)` + way, models.JobPending},
		"marked ready":       {`SELECT daybook.mark_document_ready(org, document)` + way, models.JobPending},
		"marked not ready":   {`SELECT daybook.mark_document_not_ready(org, document)` + way, models.JobPending},
		"marked deleted":     {`SELECT daybook.mark_document_deleted(org, document)` + way, models.JobPending},
		"a plain UPDATE":     {`UPDATE daybook.accounting_work_queue SET state = 'pending', finished_at = NULL, run_count = 0, version_hint = 9`, models.JobPending},
		"an UPDATE of a row": {`UPDATE daybook.accounting_work_queue SET priority = 1`, models.JobCompleted},
		"an UPDATE of the attempt": {
			`UPDATE daybook.accounting_work_queue SET completed_turn_id = 'forged', completed_fence = 9, completed_by = 'forged', completed_started_at = now()`, models.JobCompleted,
		},
		"failed by hand": {`UPDATE daybook.accounting_work_queue SET state = 'failed', last_error = 'e', last_error_code = 'TIMEOUT'`, models.JobFailed},
		"removed":        {`DELETE FROM daybook.accounting_work_queue`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := fixture.Invoice(org, "d", 1000)
			fixture.Ready(t, b.Pool, d)
			turn, job := b.completeNext("run/0/1")
			id, before := job.ID, b.attemptText(job.ID)
			b.exec(c.stmt)
			assert.Equal(t, before, b.attemptText(id))
			assert.Equal(t, []attempted{{1, models.OutcomeCompleted, "test", "run/0/1", "run", true}}, b.attemptsAt(id))
			assert.Zero(t, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.accounting_work_queue WHERE num_nonnulls(completed_turn_id, completed_fence, completed_by, completed_started_at) > 0`))
			if c.left == "" {
				return
			}
			assert.Equal(t, c.left, fixture.Job(t, b.Pool, org, "d").State)
			require.ErrorIs(t, b.completeAll(turn, completed(job)), store.ErrLeaseLost)
			if c.left == models.JobPending {
				b.completeNext("run/0/2")
				assert.Equal(t, []attempted{
					{1, models.OutcomeCompleted, "test", "run/0/1", "run", true},
					{1, models.OutcomeCompleted, "test", "run/0/2", "run", false},
				}, b.attemptsAt(id))
				assert.True(t, strings.HasPrefix(b.attemptText(id), before+"\n"), "the first is the first")
			}
			b.exec(`UPDATE daybook.accounting_work_queue SET priority = 3`)
			b.exec(`UPDATE daybook.accounting_work_queue SET priority = 2`)
			assert.Equal(t, len(b.attemptsAt(id)), fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempt_log`),
				"each once")
		})
	}
}

// TestADocumentThatIsChangedWhileItIsCompleted: a statement that waits for the row of a document
// which is just being completed logs the attempt, once.
func TestADocumentThatIsChangedWhileItIsCompleted(t *testing.T) {
	t.Parallel()
	const waiting = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
	for name, stmt := range map[string]string{
		"a newer version": `SELECT daybook.enqueue_accounting_job('` + org + `', 'd', 2)`,
		"UPDATE FROM":     `UPDATE daybook.accounting_work_queue q SET priority = x.p FROM (VALUES (1), (3)) AS x (p) WHERE q.document_id = 'd'`,
		"ON CONFLICT": `INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) VALUES ('` + org +
			`', 'd', 2)
ON CONFLICT (org_id, document_id) DO UPDATE SET priority = 1`,
		"after a savepoint": `DO $$ BEGIN
    BEGIN UPDATE daybook.accounting_work_queue SET priority = 1; RAISE EXCEPTION 'x'; EXCEPTION WHEN raise_exception THEN NULL; END;
    UPDATE daybook.accounting_work_queue SET priority = 3;
END $$`,
		"DELETE": `DELETE FROM daybook.accounting_work_queue`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.request("d", 1)
			turn := b.turn("run/0/1")
			jobs := b.lease(turn, 1)
			changed := make(chan error, 1)
			require.NoError(t, b.store.InTx(t.Context(), func(tx pgx.Tx) error {
				_, err := store.Accounting.LockChunk(t.Context(), tx, turn, []string{id})
				require.NoError(t, err)
				_, err = store.Accounting.Complete(t.Context(), tx, turn, []store.Completion{completed(jobs[0])},
					store.Access{})
				go func() {
					_, err := b.Pool.Exec(t.Context(), stmt)
					changed <- err
				}()
				require.Eventually(t, func() bool { return fixture.Count(t, b.Pool, waiting) == 1 }, pgtest.Patience,
					10*time.Millisecond)
				return err
			}))
			require.NoError(t, <-changed)
			assert.Equal(t, []attempted{{1, models.OutcomeCompleted, "test", "run/0/1", "run", true}}, b.attemptsAt(id))
		})
	}
}

// TestAttemptsAtOtherVersionsAreLogged: an attempt that did not end its job, or was for another
// version than the row says, is in the log with its own version.
func TestAttemptsAtOtherVersionsAreLogged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile string
		version   *int64
		left      models.JobState
	}{
		"asked for anew": {
			`SELECT daybook.enqueue_accounting_job('` + org + `', 'd', 2)`, nil,
			models.JobPending,
		},
		"cancelled":                {`SELECT daybook.cancel_accounting_job('` + org + `', 'd')`, nil, models.JobCancelled},
		"another version by hand":  {`UPDATE daybook.accounting_work_queue SET version_hint = 2`, nil, models.JobCompleted},
		"another version answered": {`SELECT`, new(int64(2)), models.JobCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.request("d", 1)
			turn := b.turn("run/0/1")
			jobs := b.lease(turn, 1)
			b.exec(c.meanwhile)
			completion := completed(jobs[0])
			completion.Version = c.version
			require.NoError(t, b.completeAll(turn, completion))
			assert.Equal(t, c.left, fixture.Job(t, b.Pool, org, "d").State)
			assert.Equal(t, []attempted{{1, models.OutcomeCompleted, "test", "run/0/1", "run", true}}, b.attemptsAt(id))
			assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE version = 1`))
			assert.Equal(t, 1, fixture.Count(t, b.Pool,
				`SELECT count(*) FROM daybook.accounting_work_queue WHERE completed_turn_id IS NULL`))
		})
	}
}

// TestARequestInThePickIsNotLost: a processor that asks for its own document anew in its
// transaction completes nothing, however the row is found, and whatever else the transaction
// completes.
func TestARequestInThePickIsNotLost(t *testing.T) {
	t.Parallel()
	const way = `('` + org + `', 'd'`
	for name, request := range map[string]string{
		"a newer version": `SELECT daybook.enqueue_accounting_job` + way + `, 2)`,
		"marked pending":  `SELECT daybook.mark_accounting_job_pending` + way + `, 3600)`,
		"reposted":        `SELECT daybook.repost_accounting_job` + way + `)`,
	} {
		for _, byPlace := range []bool{true, false} {
			b := setup(t)
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "d", 1000))
			id := fixture.Job(t, b.Pool, org, "d").ID
			_, err := b.pickDocuments(b.turn("run/0/1"), byPlace, request)
			require.ErrorIs(t, err, store.ErrLeaseLost, "%s, by place: %v", name, byPlace)
			assert.Equal(t, models.JobPending, fixture.Job(t, b.Pool, org, "d").State)
			assert.Empty(t, b.attemptsAt(id))

			err = b.completePicked(b.turn("run/0/1"), byPlace, request,
				&store.Completion{Outcome: models.OutcomeCompleted, Version: new(int64(1))})
			require.ErrorIs(t, err, store.ErrLeaseLost, "%s, with an answer, by place: %v", name, byPlace)
		}
	}
}

// TestAttemptsOfOneJobAreReadByIndex: who reads the attempts at one job reads none of the others,
// whatever keeps them.
func TestAttemptsOfOneJobAreReadByIndex(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, state, finished_at, run_count, completed_turn_id, completed_fence, completed_by, completed_started_at)
SELECT 'o', 'd' || n, 1, 'completed', now(), 1, 'run/0/1', 1, 'w', now() FROM generate_series(1, 5000) AS n`)
	b.exec(`
INSERT INTO daybook.jobs (org_id, type, payload, state, finished_at, run_count, completed_turn_id, completed_fence, completed_by, completed_started_at)
SELECT 'o', 'mail', '{}', 'completed', now(), 1, 'run/0/1', 1, 'w', now() FROM generate_series(1, 5000)`)
	b.exec(`UPDATE daybook.accounting_work_queue SET updated_at = now() WHERE document_id LIKE 'd%0'`)
	b.exec(`ANALYZE daybook.accounting_work_queue, daybook.jobs, daybook.attempt_log`)
	pool, reads := fixture.Reads(t, b.Pool)
	tables := []string{"daybook.accounting_work_queue", "daybook.jobs", "daybook.attempt_log"}
	var before [3]int64
	for i, table := range tables {
		before[i], _ = reads(table)
	}
	for _, document := range []string{"d7", "d70"} {
		id := fixture.Job(t, b.Pool, "o", document).ID
		assert.Equal(t, 1, fixture.Count(t, pool,
			`SELECT count(*) FROM (SELECT * FROM daybook.attempts WHERE job_id = $1 AND id < 9007199254740992 ORDER BY id DESC LIMIT 100) AS a`, id))
	}
	for i, table := range tables {
		after, sequential := reads(table)
		assert.Zero(t, sequential, table)
		assert.Less(t, after-before[i], int64(20), table)
	}
}

package queue_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/queue"
)

// claimed is what a claim by SQL returns.
type claimed struct {
	JobID, OrgID string
	Attempt      int
	Fence        int64
}

// claims has a worker claim.
func (b *bundle) claims(worker string, most int) []claimed {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), `SELECT job_id, org_id, attempt, fence FROM daybook.claim_jobs($1, $2)`,
		worker, most)
	require.NoError(b.t, err)
	jobs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[claimed])
	require.NoError(b.t, err)
	return jobs
}

// refused is the SQLSTATE of a statement that fails.
func (b *bundle) refused(query string, args ...any) string {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	require.Error(b.t, err, query)
	return store.SQLState(err)
}

func (b *bundle) state(id string) (state string) {
	b.t.Helper()
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(),
		`SELECT concat_ws(' ', state, run_count, last_error_code) FROM daybook.jobs WHERE id = $1`, id).Scan(&state))
	return state
}

func (b *bundle) enqueued(org string, o queue.JobOptions) string {
	b.t.Helper()
	job, err := queue.EnqueueJob(b.t.Context(), b.Pool, org, queue.RawPayload{Type: "w", Data: []byte(`{}`)}, o)
	require.NoError(b.t, err)
	return job.ID
}

func TestClaimRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	assert.Equal(t, "DB010", b.refused(`SELECT daybook.claim_jobs('a', 1)`), "it has not started")
	assert.Equal(t, "DB010", b.refused(`SELECT daybook.start_job_worker('a', '{}')`), "no types")
	assert.Equal(t, "DB010", b.refused(`SELECT daybook.start_job_worker('a', '{1}')`), "no type")
	assert.Equal(t, "DB010", b.refused(`SELECT daybook.start_job_worker('', '{w}')`), "no name")
	assert.Equal(t, "DB010", b.refused(`SELECT daybook.start_job_worker('a', '{w}', versions => '{1,2}')`))
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	assert.Equal(t, "DB010", b.refused(`SELECT daybook.claim_jobs('a', 0)`))
	tx, err := b.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT daybook.claim_jobs('a', 1)`)
	assert.Equal(t, "DB010", store.SQLState(err), "its snapshot does not see what others lease")
	require.NoError(t, tx.Rollback(t.Context()))
	b.exec(`SELECT daybook.stop_job_worker('a')`)
	assert.Equal(t, "DB010", b.refused(`SELECT daybook.claim_jobs('a', 1)`), "it has stopped")
}

// A type that workers in Go encrypt is theirs alone: a worker by SQL cannot read it, and would work what
// came in plain, which they refuse.
func TestClaimLeavesEncryptedTypes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w,payout}')`)
	goWorkers := store.NewQueue(b.Pool, store.Jobs)
	types := []store.TypeOnRecord{{Type: "payout", Encrypts: true, Secrets: []string{"iban"}}, {Type: "w"}}
	require.NoError(t, goWorkers.NoteTypes(t.Context(), "host/1", types))
	b.exec(`SELECT daybook.enqueue_job($1, 'payout', '{"iban": "plain"}')`, org)
	other := b.enqueued(org, queue.JobOptions{})
	if jobs := b.claims("a", 10); assert.Len(t, jobs, 1, "it started before the type was encrypted") {
		assert.Equal(t, other, jobs[0].JobID)
	}
	assert.Equal(t, "DB010", b.refused(`SELECT daybook.start_job_worker('b', '{w,payout}')`))
	b.exec(`SELECT daybook.start_job_worker('b', '{w}')`)

	types[0].Encrypts = false
	require.NoError(t, goWorkers.NoteTypes(t.Context(), "host/1", types))
	b.exec(`SELECT daybook.start_job_worker('b', '{w,payout}')`)
	assert.Len(t, b.claims("b", 10), 1)
	secrets, err := store.SecretsOf(t.Context(), b.Pool, "payout")
	require.NoError(t, err)
	assert.Equal(t, []string{"iban"}, secrets, "a worker by SQL leaves what it does not know of")
}

// A claim that is lost completes nothing, and a job that is to be cancelled neither; what was
// written in the same transaction is undone.
func TestLostClaimCompletesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	id := b.enqueued(org, queue.JobOptions{})
	job := b.claims("a", 5)[0]
	assert.Equal(t, claimed{id, org, 1, job.Fence}, job)
	assert.Empty(t, b.claims("a", 5), "it is leased")
	assert.Equal(t, "DB031", b.refused(`SELECT daybook.complete_job($1, $2)`, id, job.Fence+1))
	assert.True(t, b.asks(`daybook.fail_job($1, $2, 'X', 'x') IS NULL`, id, job.Fence+1))
	_, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	assert.True(t, b.asks(`(SELECT cancel_requested FROM daybook.renew_jobs('a', ARRAY[$1]))`, id))
	assert.Equal(t, "DB031", b.refused(`SELECT daybook.complete_job($1, $2)`, id, job.Fence))
	assert.True(t, b.asks(`daybook.fail_job($1, $2, 'X', 'x') = 'cancelled'`, id, job.Fence))
	assert.Equal(t, "cancelled 1 X", b.state(id))
}

// A renewal is for what the worker works: of a claim whose answer was lost it knows nothing. It shows
// that a worker lives whose places are all taken.
func TestRenewIsForWhatIsWorked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}'), daybook.start_job_worker('b', '{w}')`)
	worked, lost := b.enqueued(org, queue.JobOptions{}), b.enqueued(org, queue.JobOptions{})
	require.Len(t, b.claims("a", 2), 2)
	others := b.enqueued(org, queue.JobOptions{})
	require.Len(t, b.claims("b", 1), 1)
	b.exec(`UPDATE daybook.jobs SET last_attempted_at = last_attempted_at - interval '1 minute'`)
	b.exec(`UPDATE daybook.job_workers SET last_seen = last_seen - interval '6 minutes'`)
	assert.True(t, b.asks(`(SELECT string_agg(job_id, ' ') = $1 FROM daybook.renew_jobs('a', ARRAY[$1, $2]))`, worked, others))
	assert.True(t, b.asks(`(SELECT name = 'a' FROM daybook.live_job_workers)`))
	_, err := store.NewQueue(b.Pool, store.Jobs).ReclaimExpired(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "leased 1", b.state(worked))
	assert.Equal(t, "pending 1 JOB_LOCK_TIMEOUT_RECLAIMED", b.state(lost))
	assert.Equal(t, "pending 1 JOB_LOCK_TIMEOUT_RECLAIMED", b.state(others))
}

// A job that has ended its worker in each of its attempts is a dead letter, whichever worker ends
// the leases.
func TestClaimThatEndsItsWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}', max_attempts => '{2}')`)
	id := b.enqueued(org, queue.JobOptions{})
	expire := func() {
		b.exec(`UPDATE daybook.jobs SET last_attempted_at = last_attempted_at - interval '1 minute' WHERE id = $1`, id)
	}
	require.Len(t, b.claims("a", 5), 1)
	expire()
	_, err := store.New(b.Pool).ReclaimExpired(t.Context())
	require.NoError(t, err)
	_, err = store.NewQueue(b.Pool, store.Jobs).ReclaimExpired(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "pending 1 JOB_LOCK_TIMEOUT_RECLAIMED", b.state(id))
	require.Len(t, b.claims("a", 5), 1)
	expire()
	_, err = store.NewQueue(b.Pool, store.Jobs).ReclaimExpired(t.Context())
	require.NoError(t, err)
	assert.Empty(t, b.claims("a", 5))
	assert.Equal(t, "failed 3 JOB_LOCK_TIMEOUT_RECLAIMED", b.state(id))
}

// Leases that no worker could renew for a minute, because no server answered or its clock was set
// forward, are not ended by the first one that claims: their holders renew them first. Those of a
// worker that has ended are, ten seconds later.
func TestClaimAfterAnOutage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pass := func(time string) {
		b.exec(`UPDATE daybook.jobs SET last_attempted_at = last_attempted_at - $1::interval WHERE state = 'leased'`, time)
		b.exec(`UPDATE daybook.job_workers SET last_seen = last_seen - $1::interval`, time)
	}
	for _, outage := range []string{"31 seconds", "1 hour"} {
		b.exec(`SELECT daybook.start_job_worker('a', '{w}'), daybook.start_job_worker('b', '{w}')`)
		id := b.enqueued(org, queue.JobOptions{MaxAttempts: 1})
		require.Len(t, b.claims("a", 1), 1)
		pass(outage)
		for range 2 {
			assert.Empty(t, b.claims("b", 1), outage)
			assert.Empty(t, b.claims("a", 1), "its claims may come before its renewals")
		}
		assert.Equal(t, "leased 1", b.state(id), outage)
		assert.True(t, b.asks(`(SELECT count(*) = 1 FROM daybook.renew_jobs('a', ARRAY[$1]))`, id))
		pass("11 seconds")
		assert.Empty(t, b.claims("b", 1))
		assert.Equal(t, "leased 1", b.state(id), outage)

		pass("11 seconds")
		assert.Empty(t, b.claims("b", 1), "it sees for the first time that nothing is renewed")
		pass("9 seconds")
		assert.Empty(t, b.claims("b", 1))
		assert.Equal(t, "leased 1", b.state(id), outage)
		pass("2 seconds")
		assert.Empty(t, b.claims("b", 1))
		assert.Equal(t, "failed 1 JOB_LOCK_TIMEOUT_RECLAIMED", b.state(id), outage)
	}
}

// A clock that was set back since a worker was last seen keeps no lease of an ended one.
func TestClaimAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}'), daybook.start_job_worker('b', '{w}')`)
	id := b.enqueued(org, queue.JobOptions{})
	require.Len(t, b.claims("a", 1), 1)
	b.exec(`UPDATE daybook.job_workers SET last_seen = last_seen + interval '1 hour'`)
	b.exec(`UPDATE daybook.jobs SET last_attempted_at = last_attempted_at - interval '1 minute'`)
	assert.Empty(t, b.claims("b", 1))
	assert.Equal(t, "leased 1", b.state(id))
	b.exec(`UPDATE daybook.job_workers SET last_seen = last_seen - interval '11 seconds'`)
	assert.Len(t, b.claims("b", 1), 1)
}

// A snooze that is repeated leaves one row of the log, and what its worker gives back is due again,
// uncounted.
func TestSnoozedAndGivenBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	id := b.enqueued(org, queue.JobOptions{})
	for range 3 {
		job := b.claims("a", 5)[0]
		assert.Equal(t, 1, job.Attempt)
		assert.True(t, b.asks(`daybook.snooze_job($1, $2, interval '0') = 'pending'`, id, job.Fence))
	}
	assert.Equal(t, 1, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.attempts WHERE times = 3 AND error_code = 'SNOOZED'`))
	require.Len(t, b.claims("a", 5), 1)
	assert.True(t, b.asks(`daybook.stop_job_worker('a') = 1`))
	assert.Equal(t, "pending 0 SNOOZED", b.state(id))
	assert.True(t, b.asks(`NOT EXISTS (SELECT FROM daybook.live_job_workers)`))
}

// A worker that stops does not wait for a job that an application has locked: the others are due.
func TestGivenBackBesideALock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	locked, other := b.enqueued(org, queue.JobOptions{}), b.enqueued(org, queue.JobOptions{})
	require.Len(t, b.claims("a", 5), 2)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM daybook.jobs WHERE id = $1 FOR UPDATE`, locked)
	require.NoError(t, err)
	err = pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `SET LOCAL lock_timeout = '5s'; SELECT daybook.stop_job_worker('a')`)
		return err
	})
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	assert.Equal(t, "leased 1", b.state(locked))
	assert.Equal(t, "pending 0 SNOOZED", b.state(other))
}

// An attempt ends whatever policy it has, and its next one is due neither in the past nor never.
func TestAttemptsEndByAnyPolicy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, policy := range []string{
		"'x', 300, 30, 100, 3600", "'x', 300, 1e300, 1e300, 3600", "'x', 2, 'NaN', 'NaN', 3600", "'x', 300, 40000, 1, 3600",
		"'x', 2, null, 120, 3600", "'x', 2, 1800, null, 3600",
	} {
		assert.True(t, b.asks(`extract(epoch FROM daybook.retry_delay(`+policy+`)) BETWEEN 3240 AND 3960`), policy)
	}
	for _, policy := range []string{
		"'x', 300, 30, 0.01, 3600", "'x', 2, -30, 2, 3600", "'x', 300, 30, -2, 3600", "'x', 2, 30, 2, -1",
	} {
		assert.True(t, b.asks(`extract(epoch FROM daybook.retry_delay(`+policy+`)) BETWEEN 0 AND 31`), policy)
	}
	assert.True(t, b.asks(`extract(epoch FROM daybook.retry_delay('x', 300, 30, 2, null)) BETWEEN 19440 AND 23760`))
	assert.True(t, b.asks(`extract(epoch FROM daybook.retry_delay('x', 300, 30, 2, 1e300)) BETWEEN 0.9e9 AND 1.1e9`))
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	for _, end := range []string{
		`daybook.snooze_job($1, $2, interval '170000000 years')`, `daybook.fail_job($1, $2, 'X', 'x', interval '170000000 years')`,
	} {
		id := b.enqueued(org, queue.JobOptions{})
		assert.True(t, b.asks(end+` = 'pending'`, id, b.claims("a", 1)[0].Fence), end)
		assert.True(t, b.asks(`(SELECT ready_at > now() + interval '99 years' FROM daybook.jobs WHERE id = $1)`, id), end)
	}
}

// What came back from a dead letter for want of a handler, and what needs a later version.
func TestWorkerOnRecord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	missing, later := b.enqueued(org, queue.JobOptions{}), b.enqueued(org, queue.JobOptions{MinVersion: 2})
	b.exec(`UPDATE daybook.jobs SET state = 'failed', finished_at = now(), last_error = 'x', last_error_code = 'HANDLER_MISSING' WHERE id = $1`, missing)
	b.exec(`SELECT daybook.start_job_worker('a', '{x,w}', versions => '{5,1}')`)
	jobs := b.claims("a", 5)
	require.Len(t, jobs, 1)
	assert.Equal(t, missing, jobs[0].JobID)
	b.exec(`SELECT daybook.start_job_worker('b', '{x,w}', versions => '{5,2}')`)
	jobs = b.claims("b", 5)
	require.Len(t, jobs, 1)
	assert.Equal(t, later, jobs[0].JobID)
	has, err := store.HasHandler(t.Context(), b.Pool, "w", "")
	require.NoError(t, err)
	assert.True(t, has)
}

// High priorities come first, then each organization has its share; and neither what waits of other
// types nor later jobs are read.
func TestClaimIsFairAndReadsLittle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}')`)
	b.exec(`SELECT daybook.enqueue_job('big', 'w', '{}') FROM generate_series(1, 300)`)
	b.exec(`SELECT daybook.enqueue_job('org-' || n % 100, 'other', '{}', ready_at => now()) FROM generate_series(1, 20000) n`)
	b.exec(`SELECT daybook.enqueue_job('small', 'w', '{}')`)
	b.exec(`SELECT daybook.enqueue_job('low', 'w', '{}', priority => 3)`)
	b.exec(`SELECT daybook.enqueue_job('big', 'w', '{}', priority => 1)`)
	b.exec(`ANALYZE daybook.jobs`)
	pool, reads := fixture.Reads(t, b.Pool)
	all, sequential := reads("daybook.jobs")
	own := b.Pool
	b.Pool = pool
	jobs := b.claims("a", 11)
	b.Pool = own
	allThen, sequentialThen := reads("daybook.jobs")
	assert.Equal(t, sequential, sequentialThen, "rows read by scans of the whole table")
	assert.Less(t, allThen-all, int64(1500), "rows read, of 20,000 that are due")
	orgs := map[string]int{}
	for _, j := range jobs {
		orgs[j.OrgID]++
	}
	assert.Equal(t, map[string]int{"big": 10, "small": 1}, orgs)
	assert.Len(t, b.claims("a", 1000), 292, "all that is due")
}

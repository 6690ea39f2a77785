package queue_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
)

// operation enqueues an operation as a program does that comes from async_operations.
func (b *bundle) operation(operationType string, maxAttempts int) (id string) {
	b.t.Helper()
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(),
		`SELECT daybook.enqueue_async_operation($1, '{"user_id": "u"}', p_max_attempts => $2)::text`, operationType,
		maxAttempts).Scan(&id))
	return id
}

// asks calls a function that answers yes or no.
func (b *bundle) asks(query string, args ...any) (yes bool) {
	b.t.Helper()
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `SELECT `+query, args...).Scan(&yes), query)
	return yes
}

func (b *bundle) claim(id string) bool {
	b.t.Helper()
	return b.asks(`daybook.claim_async_operation($1)`, id)
}

// expire has a claim be as old as one whose program has ended.
func (b *bundle) expire(id string) {
	b.t.Helper()
	b.exec(`UPDATE daybook.jobs SET attempt_started_at = attempt_started_at - interval '6 minutes', last_attempted_at = last_attempted_at - interval '6 minutes' WHERE id = $1`, id)
}

// A program's loop: what is due is read, claimed, and completed with a result.
func TestAsyncOperationIsClaimedAndCompleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.operation("airtable", 3)
	b.operation("other", 3)
	var due string
	var attempts int
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT id::text, attempts FROM daybook.get_pending_async_operations(ARRAY['airtable'], 10)`).Scan(&due, &attempts))
	assert.Equal(t, id, due)
	assert.Zero(t, attempts)
	require.True(t, b.claim(id))
	assert.False(t, b.claim(id), "a second time")
	assert.Zero(t, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.get_pending_async_operations(ARRAY['airtable'])`))
	j := b.queued(id)
	assert.Equal(t, models.JobLeased, j.State)
	assert.True(t, j.Working, "should the program end, the attempt counts")
	assert.WithinDuration(t, time.Now().Add(5*time.Minute), j.LastAttemptedAt.Add(store.StaleAfter), time.Minute,
		"when it expires")
	var status string
	var tried time.Time
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT status, last_attempt_at FROM daybook.async_operations WHERE id = $1`, id).Scan(&status, &tried))
	assert.Equal(t, "processing", status)
	assert.False(t, tried.After(time.Now().Add(time.Minute)), "the attempt's begin, not its end")

	require.True(t, b.asks(`daybook.complete_async_operation($1, '{"processedAt": "now"}')`, id))
	j = b.queued(id)
	assert.Equal(t, models.JobCompleted, j.State)
	assert.JSONEq(t, `{"processedAt": "now"}`, string(j.Result))
	assert.Equal(t, 1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.attempts WHERE job_id = $1 AND outcome = 'completed' AND attempt = 1 AND fence > 0`,
		id))
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.complete_async_operation($1)`, id)
	assert.Equal(t, "DB031", store.SQLState(err), "twice")
}

// Twenty claim the same operations at once, while a worker works them: each is worked once.
func TestAsyncOperationIsClaimedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for range 20 {
		ids = append(ids, b.operation("welcome", 3))
	}
	claimed := make([]int, 8)
	var group errgroup.Group
	for i := range claimed {
		group.Go(func() error {
			for _, id := range ids {
				var mine bool
				if err := b.Pool.QueryRow(t.Context(), `SELECT daybook.claim_async_operation($1)`, id).Scan(&mine); err != nil {
					return err
				}
				if mine {
					claimed[i]++
				}
			}
			return nil
		})
	}
	worked := 0
	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{Parallel: 1},
		func(context.Context, *jobs.Job[welcome]) error { worked++; return nil })
	queuetest.DrainJobs(t, b.Pool, registry, queuetest.JobsOptions{})
	require.NoError(t, group.Wait())
	for _, n := range claimed {
		worked += n
	}
	assert.Equal(t, len(ids), worked)
	assert.Equal(t, len(ids),
		fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE run_count = 1 AND state IN ('completed', 'leased')`))
}

// A claim whose program has ended is reset after 5 minutes, not before, and what that program says
// afterwards changes nothing.
func TestAsyncOperationThatIsStuckIsReset(t *testing.T) {
	t.Parallel()
	for _, reset := range []struct {
		name string
		by   func(b *bundle) int
	}{
		{"by SQL", func(b *bundle) int {
			return fixture.Count(b.t, b.Pool, `SELECT daybook.reset_stuck_async_operations()`)
		}},
		{"by a worker", func(b *bundle) int {
			got, err := store.NewQueue(b.Pool, store.Jobs).ReclaimExpired(b.t.Context())
			require.NoError(b.t, err)
			return got.Lost
		}},
	} {
		t.Run(reset.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id, cancelled, last := b.operation("welcome", 2), b.operation("welcome", 2), b.operation("welcome", 1)
			var fence int64
			require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT daybook.lease_async_operation($1, 'first')`,
				id).Scan(&fence))
			require.True(t, b.claim(cancelled) && b.claim(last))
			assert.True(t, b.asks(`daybook.cancel_async_operation($1)`, cancelled))
			assert.Zero(t, reset.by(b), "while the leases last")
			for _, held := range []string{id, cancelled, last} {
				b.expire(held)
			}
			require.Equal(t, 3, reset.by(b))
			j := b.queued(id)
			assert.Equal(t, models.JobPending, j.State)
			assert.Equal(t, 1, j.RunCount, "the attempt counts")
			assert.Equal(t, "JOB_LOCK_TIMEOUT_RECLAIMED", string(*j.LastErrorCode))
			assert.Equal(t, 1, j.Reclaims)
			assert.Equal(t, models.JobCancelled, b.queued(cancelled).State)
			assert.Equal(t, models.JobFailed, b.queued(last).State, "its only attempt")
			assert.Equal(t, 3, fixture.Count(t, b.Pool,
				`SELECT count(*) FROM daybook.attempts WHERE outcome = 'lost' AND workflow_run_id = ''`))

			require.True(t, b.claim(id), "at once")
			assert.False(t, b.asks(`daybook.renew_async_operation($1, $2)`, id, fence), "late")
			assert.False(t, b.asks(`daybook.fail_async_operation($1, 'late', $2)`, id, fence))
			_, err := b.Pool.Exec(t.Context(), `SELECT daybook.complete_async_operation($1, NULL, $2)`, id, fence)
			assert.Equal(t, "DB031", store.SQLState(err))
			assert.Equal(t, models.JobLeased, b.queued(id).State)
			assert.True(t, b.asks(`daybook.complete_async_operation($1)`, id), "the present claim")
		})
	}
}

// What fails is due again in 5, 10, 20 minutes, and dead after its last attempt; a person has it
// tried again as if it were new.
func TestAsyncOperationFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.operation("welcome", 4)
	for attempt, wait := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 0} {
		require.True(t, b.claim(id))
		require.True(t, b.asks(`daybook.fail_async_operation($1, 'Connection timeout', p_error_code => 'NETWORK_ERROR')`,
			id))
		j := b.queued(id)
		assert.Equal(t, attempt+1, j.RunCount)
		assert.Equal(t, "Connection timeout", *j.LastError)
		if wait == 0 {
			assert.Equal(t, models.JobFailed, j.State)
			continue
		}
		assert.Equal(t, models.JobPending, j.State)
		assert.WithinDuration(t, time.Now().Add(wait), j.ReadyAt, time.Minute)
		assert.False(t, b.claim(id), "before its time")
		b.exec(`UPDATE daybook.jobs SET ready_at = clock_timestamp() WHERE id = $1`, id)
	}
	var status string
	var history []struct{ Attempt int }
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT status, error_history FROM daybook.get_dead_async_operations() WHERE id = $1`, id).Scan(&status, &history))
	assert.Equal(t, "dead", status)
	assert.Len(t, history, 4)
	require.True(t, b.asks(`daybook.retry_async_operation($1)`, id))
	assert.Zero(t, b.queued(id).RunCount)
	require.True(t, b.claim(id))
	require.True(t, b.asks(`daybook.fail_async_operation($1, 'no', p_error_code => 'AUTHENTICATION_FAILED')`, id))
	assert.Equal(t, models.JobFailed, b.queued(id).State, "trying again cannot help")

	policy := b.operation("webhook", 3)
	b.exec(`UPDATE daybook.jobs SET max_attempts = NULL, run_count = 4 WHERE id = $1`, policy)
	require.True(t, b.claim(policy) && b.asks(`daybook.fail_async_operation($1, 'e')`, policy))
	assert.Equal(t, models.JobFailed, b.queued(policy).State, "a webhook has five attempts")
}

// What is cancelled while it is claimed ends as cancelled; what is paused or at its cap is not
// claimed.
func TestAsyncOperationHeldBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, second := b.operation("welcome", 3), b.operation("welcome", 3)
	b.exec(`INSERT INTO daybook.organizations (id, paused_at) VALUES ('default', now())`)
	assert.False(t, b.claim(id), "paused")
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.get_pending_async_operations()`))
	b.exec(`UPDATE daybook.organizations SET paused_at = NULL, max_in_flight = 1`)
	require.True(t, b.claim(id))
	assert.False(t, b.claim(second), "the cap is reached")
	require.True(t, b.asks(`daybook.cancel_async_operation($1)`, id))
	assert.False(t, b.asks(`daybook.complete_async_operation($1)`, id))
	assert.Equal(t, models.JobCancelled, b.queued(id).State)
	assert.True(t, b.claim(second), "there is room again")

	rated := b.operation("welcome", 3)
	b.exec(`UPDATE daybook.organizations SET max_in_flight = NULL, rate = 1, rate_seconds = 3600`)
	assert.True(t, b.claim(rated))
	assert.False(t, b.claim(b.operation("welcome", 3)), "one an hour")

	b.exec(`UPDATE daybook.organizations SET rate = NULL, rate_seconds = NULL; SELECT daybook.set_queue('narrow', max_parallel => 1), daybook.set_queue('wide')`)
	var inQueue string
	for queue, claimed := range map[string]bool{"narrow": false, "wide": true} {
		require.NoError(t, b.Pool.QueryRow(t.Context(),
			`SELECT job_id FROM daybook.enqueue_job('o', 'welcome', '{}', queue => $1)`, queue).Scan(&inQueue))
		assert.Equal(t, claimed, b.claim(inQueue), "a queue with a limit is for workers, which count it: %s", queue)
	}

	b.exec(`SELECT daybook.set_job_limit('keyed', by => 'org_id', parallel => 1)`)
	first, next := b.operation("keyed", 3), b.operation("keyed", 3)
	assert.False(t, b.claim(first), "no worker has looked at it")
	b.exec(`SELECT daybook.check_waits()`)
	assert.True(t, b.claim(first))
	assert.False(t, b.claim(next), "its key has one place")
	assert.True(t, b.asks(`daybook.complete_async_operation($1)`, first))
	assert.True(t, b.claim(next))
}

// An operation that has ended its program in each of its attempts is a dead letter when it is to be
// claimed once more, also where workers of Daybook end the claims.
func TestAsyncOperationThatEndsItsProgram(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var id string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT job_id FROM daybook.enqueue_job('o', 'welcome', '{}')`).Scan(&id))
	for range 3 {
		require.True(t, b.claim(id))
		b.expire(id)
		_, err := store.NewQueue(b.Pool, store.Jobs).ReclaimExpired(t.Context())
		require.NoError(t, err)
	}
	assert.Equal(t, models.JobPending, b.queued(id).State)
	assert.False(t, b.claim(id), "three attempts have ended with their program")
	j := b.queued(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Contains(t, *j.LastError, "in the last attempt, of 3")
}

// A worker makes no dead letters of types that a program claims by SQL.
func TestAsyncOperationTypesHaveAHandler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.operation("by-sql", 3), b.operation("also-by-sql", 3)
	require.True(t, b.claim(first))
	assert.Equal(t, 1, fixture.Count(t, b.Pool,
		`SELECT count(*) FROM daybook.get_pending_async_operations(ARRAY['also-by-sql'])`))
	var types []string
	require.NoError(t, b.Pool.QueryRow(t.Context(),
		`SELECT types FROM daybook.job_workers WHERE last_seen > now() - interval '1 minute'`).Scan(&types))
	assert.True(t, slices.Equal([]string{"also-by-sql", "by-sql"}, types), types)

	// Another program's transaction holds the row: a claim does not wait for it.
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `UPDATE daybook.job_workers SET last_seen = last_seen - interval '2 minutes'`)
	require.NoError(t, err)
	assert.True(t, b.claim(second))
}

// Notifications are counted by organization; those that were sent today by the time zone of the
// asker.
func TestNotificationStats(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
INSERT INTO daybook.jobs (org_id, type, payload, state, run_count, last_error, last_error_code, finished_at)
SELECT o, y, '{}', s::daybook.job_state, 1, CASE s WHEN 'failed' THEN 'e' END, CASE s WHEN 'failed' THEN 'E' END, CASE WHEN s <> 'pending' THEN f END
  FROM (VALUES ('a', 'email', 'pending', now()), ('a', 'sms', 'failed', now()), ('a', 'notification', 'completed', now()),
               ('a', 'email', 'completed', now() - interval '3 days'), ('a', 'webhook', 'completed', now()), ('b', 'email', 'completed', now())) AS x (o, y, s, f)`)
	read := func(args string) string {
		var s json.RawMessage
		require.NoError(t, b.Pool.QueryRow(t.Context(),
			`SELECT to_jsonb(s) FROM daybook.notification_stats(`+args+`) s`).Scan(&s))
		return string(s)
	}
	assert.JSONEq(t, `{"pending": 1, "processing": 0, "completed": 2, "failed": 1, "todays_sent": 1}`, read(`'a'`))
	assert.JSONEq(t, `{"pending": 1, "processing": 0, "completed": 3, "failed": 1, "todays_sent": 2}`,
		read(`NULL, 'Pacific/Kiritimati'`))
	b.exec(`UPDATE daybook.jobs SET finished_at = date_trunc('day', now() AT TIME ZONE 'Asia/Tokyo') AT TIME ZONE 'Asia/Tokyo' - interval '1 second' WHERE state = 'completed'`)
	assert.JSONEq(t, `{"pending": 1, "processing": 0, "completed": 3, "failed": 1, "todays_sent": 0}`,
		read(`NULL, 'Asia/Tokyo'`), "a second before midnight in Tokyo")
}

// Codes by which Daybook treats jobs are not those of a program's failure, here as in Go.
func TestAsyncOperationFailsWithReservedCode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, code := range []models.ErrorCode{
		models.CodeSnoozed, models.CodeAwaitingCallback, models.CodeAwaitedCancelled, models.CodeHandlerMissing,
		models.CodeRowUnreadable, models.CodeResultNotStored, models.CodeReclaimed, models.CodeWorkerLost,
		models.CodeDatabaseError, models.CodeNotFound, models.CodeNetworkError, "CARD_DECLINED",
	} {
		id := b.operation("email", 3)
		require.True(t, b.claim(id) &&
			b.asks(`daybook.fail_async_operation($1, 'the card is refused', p_error_code => $2)`, id, string(code)))
		j := b.queued(id)
		if models.JobCodeIsReserved(code) {
			assert.Equal(t, models.CodeHandlerError, *j.LastErrorCode, code)
			assert.Equal(t, "the code "+string(code)+" is Daybook's own: the card is refused", *j.LastError)
		} else {
			assert.Equal(t, code, *j.LastErrorCode)
			assert.Equal(t, "the card is refused", *j.LastError)
		}
	}
}

// TestCodesInSQL compares what the codes of jobs mean in the database and in Go.
func TestCodesInSQL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, code := range []models.ErrorCode{
		models.CodeRateLimited, models.CodeUpstream5xx, models.CodeNetworkError, models.CodeHandlerError,
		models.CodePayloadInvalid, models.CodePayloadTooLarge, models.CodeAuthenticationFailed, models.CodeNotFound,
		models.CodeHandlerMissing, models.CodeReclaimed, models.CodeSnoozed, models.CodeAwaitingCallback,
		models.CodeAwaitedCancelled, models.CodeResultNotStored, models.CodeReplaced, models.CodeNotEncrypted,
		models.CodeKeyUnknown, models.CodeStepInvalid, models.CodeStepNotStored, models.CodeStepChanged, models.CodeActivityNotStandalone,
		models.CodeJobCancelled, models.CodeTimeout, models.CodeDatabaseError, models.CodeRowUnreadable,
		models.CodeWorkerLost, "CARD_DECLINED",
	} {
		assert.Equal(t, models.JobCodeIsReserved(code), b.asks(`daybook.job_code_is_reserved($1)`, string(code)), code)
		assert.Equal(t, models.JobErrorIsFinal(code), b.asks(`daybook.job_error_is_final($1)`, string(code)), code)
	}
}

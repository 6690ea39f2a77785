package handlers

import (
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// TestWebhookWhoseDatabaseWaits has the database wait, from the moment at which the receiver has
// the request until long after the attempt's time: the webhook is sent once, and no attempt is
// charged.
func TestWebhookWhoseDatabaseWaits(t *testing.T) {
	t.Parallel()
	lock := func(tables string) func(b *bundle) (release func()) {
		return func(b *bundle) func() {
			tx, err := b.Pool.Begin(b.t.Context())
			require.NoError(b.t, err)
			_, err = tx.Exec(b.t.Context(), `LOCK TABLE `+tables+` IN ACCESS EXCLUSIVE MODE`)
			require.NoError(b.t, err)
			return func() { require.NoError(b.t, tx.Rollback(b.t.Context())) }
		}
	}
	for name, hold := range map[string]func(b *bundle) (release func()){
		"the jobs are locked":              lock(`daybook.jobs`),
		"the receipts are locked":          lock(`daybook.webhook_deliveries`),
		"the jobs and receipts are locked": lock(`daybook.jobs, daybook.webhook_deliveries`),
		// As it does while a synchronous standby is missing.
		"a commit hangs": func(b *bundle) func() {
			b.exec(`CREATE TABLE public.hangs AS SELECT 1 AS n`)
			b.exec(`CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  WHILE EXISTS (SELECT FROM public.hangs) LOOP PERFORM pg_sleep(0.02); END LOOP; RETURN NULL; END $$`)
			for _, table := range []string{"jobs", "webhook_deliveries"} {
				b.exec(`CREATE CONSTRAINT TRIGGER hang AFTER INSERT OR UPDATE ON daybook.` + table +
					` DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION hang()`)
			}
			conn, err := pgx.Connect(b.t.Context(), b.URL) // those of the pool hang, too
			require.NoError(b.t, err)
			return func() {
				_, err := conn.Exec(b.t.Context(), `DELETE FROM public.hangs`)
				require.NoError(b.t, err)
				require.NoError(b.t, conn.Close(b.t.Context()))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, answer := make(chan struct{}, 9), make(chan struct{})
			r := receive(t, func(http.ResponseWriter, *http.Request) {
				asked <- struct{}{}
				<-answer
			})
			b := setup(t)
			h, err := NewWebhook(b.Pool, WebhookConfig{AllowNetworks: loopback, Secrets: environmentSecrets(nil)})
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, h.Close()) })
			jobs.Register(b.registry, jobs.Policy{Timeout: 2 * time.Second, Base: time.Millisecond}, h.Handle)
			id := b.enqueueFor(org, Webhook{URL: r.URL}, queue.JobOptions{})
			worked := make(chan struct{})
			go func() {
				defer close(worked)
				b.work()
			}()
			<-asked
			release := hold(b)
			since := time.Now()
			close(answer)
			// Longer than the attempt may take, with its receipt, and than a handler is waited for.
			require.Eventually(t, func() bool { return time.Since(since) > 14*time.Second }, time.Minute, 50*time.Millisecond)
			release()
			<-worked

			j := b.job(id)
			assert.Equal(t, models.JobCompleted, j.State, "%s: %s", j.Code, j.Error)
			assert.Len(t, r.requests(), 1)
			assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome = 'completed' AND attempt = 1`),
				b.everything())
			assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.attempts`), b.everything())
			assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.webhook_deliveries WHERE ok AND org_id = $1`, org))
		})
	}
}

// TestDBFunctionThatMeetsALock: the function enqueues a job while the table of jobs is locked,
// until long after the attempt's time. It is called again, and no attempt is charged.
func TestDBFunctionThatMeetsALock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE SCHEMA app`)
	b.exec(`CREATE FUNCTION app.chains(argument jsonb) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_xact_lock_shared(7); PERFORM daybook.enqueue_job('org_1', 'later', '{}'); END $$`)
	h, err := NewDBFunction(DBFunctionConfig{Functions: []string{"app.chains"}})
	require.NoError(t, err)
	jobs.Register(b.registry, jobs.Policy{Timeout: 2 * time.Second, MaxAttempts: 1}, h.Handle)
	conn, err := pgx.Connect(t.Context(), b.URL)
	require.NoError(t, err)
	defer func() { assert.NoError(t, conn.Close(t.Context())) }()
	run := func(stmt string) {
		_, err := conn.Exec(t.Context(), stmt)
		require.NoError(t, err)
	}
	run(`SELECT pg_advisory_lock(7)`)
	id := b.enqueue(DBFunction{Function: "app.chains"})
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		b.work()
	}()
	require.Eventually(t, func() bool {
		return b.count(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) == 1
	}, time.Minute, time.Millisecond, "the function is called")
	run(`BEGIN`)
	run(`LOCK TABLE daybook.jobs IN ACCESS EXCLUSIVE MODE`)
	run(`SELECT pg_advisory_unlock(7)`)
	calls := func(where string) int { // without the sessions that have counted before
		return b.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query NOT LIKE '%pg_stat_activity%' AND ` + where)
	}
	const running = `query LIKE '%"chains"%' AND state = 'active'`
	require.Eventually(t, func() bool {
		return calls(running+
			` AND wait_event_type = 'Lock' AND wait_event = 'relation'`) == 1
	}, time.Minute, time.Millisecond,
		"the function waits for the table")
	require.Eventually(t, func() bool { return calls(running) == 0 }, time.Minute, time.Millisecond, "its time is over")
	// More than one question: while a connection prepares its first, the session looks as if it had
	// been answered.
	asked := map[int]bool{}
	require.Eventually(t, func() bool {
		asked[b.count(`SELECT coalesce(max(extract(epoch FROM query_start) * 1000000), 0)::bigint FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%to_regclass($1)%' AND query NOT LIKE '%pg_stat_activity%'`)] = true
		return len(asked) > 4
	}, time.Minute, time.Millisecond, "the worker has seen that the table is locked")
	run(`COMMIT`)
	<-worked
	j := b.job(id)
	assert.Equal(t, models.JobCompleted, j.State, "%s: %s", j.Code, j.Error)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE type = 'later'`))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.attempts WHERE job_id = '`+id+`'`), b.everything())
}

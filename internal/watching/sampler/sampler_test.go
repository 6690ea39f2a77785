package sampler_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store/figures"
	"github.com/daybook-dev/daybook/internal/watching/sampler"
	"github.com/daybook-dev/daybook/models/locks"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type bundle struct {
	*pgtest.DB
	t *testing.T
}

func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	return &bundle{pgtest.New(t), t}
}

func (b *bundle) exec(stmt string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), stmt, args...)
	require.NoError(b.t, err)
}

func (b *bundle) sampler(name string, standby bool) *sampler.Sampler {
	return sampler.New(sampler.Options{
		Pool: b.Pool, Name: name, Standby: standby, Organizations: true,
		Log: slog.New(slog.DiscardHandler),
	})
}

// publishes samples and says whether the process is the one that publishes then.
func (b *bundle) publishes(s *sampler.Sampler) bool {
	b.t.Helper()
	require.NoError(b.t, s.Sample(b.t.Context()))
	_, ok := s.Gauges()
	return ok
}

func (b *bundle) holder() string {
	b.t.Helper()
	g, err := figures.ReadGauges(b.t.Context(), b.Pool)
	require.NoError(b.t, err)
	return g.Holder
}

// TestTemporalThatDoesNotAnswerCostsNoSample: the pause after a sample is measured by the time that
// it had the database work. So an outage of Temporal is seen in time, and so is what comes meanwhile.
func TestTemporalThatDoesNotAnswerCostsNoSample(t *testing.T) {
	b := setup(t)
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // takes connections, and never answers
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, silent.Close()) })
	temporal, err := client.NewLazyClient(client.Options{HostPort: silent.Addr().String()})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	s := sampler.New(sampler.Options{Pool: b.Pool, Name: "one", Temporal: temporal, Log: slog.New(slog.DiscardHandler)})
	began := time.Now()
	require.True(t, b.publishes(s))
	took := time.Since(began)
	g, err := figures.ReadGauges(t.Context(), b.Pool)
	require.NoError(t, err)
	assert.Greater(t, took, 2*time.Second, "Temporal was waited for")
	assert.Less(t, g.Database.TookSeconds, took.Seconds()/2)
}

// TestOneSamples has two processes run, of which the first publishes until it ends.
func TestOneSamples(t *testing.T) {
	b := setup(t)
	first, second := b.sampler("first", false), b.sampler("second", false)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); first.Run(ctx) }()
	require.Eventually(t, func() bool { _, ok := first.Gauges(); return ok }, pgtest.Patience, 10*time.Millisecond)
	assert.False(t, b.publishes(second), "the other process samples")
	assert.Equal(t, "first", b.holder())

	cancel()
	<-ended
	_, ok := first.Gauges()
	assert.False(t, ok, "what has ended publishes nothing")
	assert.True(t, b.publishes(second), "it samples at once")
	assert.Equal(t, "second", b.holder())
	assert.False(t, b.publishes(first), "and keeps it")
}

// TestSilent has another process sample in place of one that hangs.
func TestSilent(t *testing.T) {
	b := setup(t)
	hangs, other := b.sampler("hangs", false), b.sampler("other", false)
	require.True(t, b.publishes(hangs))
	require.False(t, b.publishes(other))
	// More than the pauses that a sample leads to which took seconds.
	b.exec(`UPDATE daybook.gauges SET sampled_at = sampled_at - interval '1 hour'`)
	assert.True(t, b.publishes(other))
	assert.False(t, b.publishes(hangs), "when it goes on, it publishes nothing more")
	b.exec(`UPDATE daybook.gauges SET sampled_at = sampled_at + interval '1 day'`)
	assert.True(t, b.publishes(hangs), "the clock was set back since the other one sampled")
}

// TestKilled has another process sample at once in place of a worker that was killed, also while a
// new one of its name runs.
func TestKilled(t *testing.T) {
	b := setup(t)
	killed := sampler.New(sampler.Options{
		Pool: b.Pool, Name: "killed", Worker: "host-1", Log: slog.New(slog.DiscardHandler),
	})
	lives := b.showsLife("host-1")
	server := b.sampler("server", true)
	require.True(t, b.publishes(killed))
	assert.False(t, b.publishes(server), "the worker lives")

	b.showsLife("host-1")
	assert.False(t, b.publishes(server), "both live")
	require.NoError(t, lives.Close(t.Context()))
	require.Eventually(t, func() bool {
		var n int
		err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE classid = $1::integer::oid AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
			locks.Workers).Scan(&n)
		return err == nil && n == 1
	}, pgtest.Patience, 10*time.Millisecond)
	assert.True(t, b.publishes(server), "at once, and not when the last sample is old")
}

// TestNoLife leaves sampling to a process that does not show that it lives, until it is silent.
func TestNoLife(t *testing.T) {
	b := setup(t)
	o := sampler.Options{Pool: b.Pool, Name: "shy", Worker: "host-1", Log: slog.New(slog.DiscardHandler)}
	require.True(t, b.publishes(sampler.New(o)))
	assert.False(t, b.publishes(b.sampler("other", false)))
}

// showsLife is the session of a worker, as package wake has one.
func (b *bundle) showsLife(worker string) *pgx.Conn {
	b.t.Helper()
	conn, err := pgx.ConnectConfig(b.t.Context(), b.Pool.Config().ConnConfig)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(b.t.Context())) })
	_, err = conn.Exec(b.t.Context(), `SELECT pg_advisory_lock_shared($1, hashtext($2))`, locks.Workers, worker)
	require.NoError(b.t, err)
	return conn
}

// TestStandby has a process that knows less sample only while no other does.
func TestStandby(t *testing.T) {
	b := setup(t)
	server, worker := b.sampler("server", true), b.sampler("worker", false)
	require.True(t, b.publishes(server))
	assert.True(t, b.publishes(worker), "a worker goes before")
	assert.False(t, b.publishes(server))
}

// TestLocked leaves a sample out that another process is about to write.
func TestLocked(t *testing.T) {
	b := setup(t)
	s := b.sampler("s", false)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(daybook.lock_class('sampler'), 1)`)
	require.NoError(t, err)
	assert.False(t, b.publishes(s))
	require.NoError(t, tx.Rollback(t.Context()))
	assert.True(t, b.publishes(s))
}

// TestSample looks what the sample says of each kind.
func TestSample(t *testing.T) {
	b := setup(t)
	b.exec(`INSERT INTO daybook.organizations (id, paused_at) VALUES ('paused', now()), ('shop', NULL)`)
	b.exec(`UPDATE daybook.organizations SET source = 'shop' WHERE id = 'shop'`)
	b.exec(`INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{email,idle}')`)
	b.exec(`INSERT INTO daybook.job_types (kind, type, owner, worker) VALUES ('jobs', 'email', 'growth', 'w'), ('accounting', '', 'finance', 'w'), ('tasks', 'sms', '', 'w')`)
	b.exec(`
INSERT INTO daybook.jobs (org_id, type, payload, ready_at) VALUES
  ('paused', 'email', '{}', now() - interval '1 day'), ('o', 'email', '{}', now() - interval '1 hour'), ('o', 'email', '{}', now() + interval '1 hour'),
  ('o', 'sms', '{}', now() - interval '1 minute')`)
	b.exec(`SELECT daybook.set_queue('bulk'), daybook.set_queue('q', 'other')`)
	b.exec(`SELECT daybook.pause_queue('bulk')`)
	b.exec(`INSERT INTO daybook.jobs (org_id, type, payload, queue, ready_at) VALUES ('o', 'email', '{}', 'bulk', now() - interval '2 days')`)
	b.exec(`INSERT INTO daybook.jobs (org_id, type, payload, state, last_error, last_error_code, finished_at) VALUES ('o', 'email', '{}', 'failed', 'e', 'TIMEOUT', now())`)
	b.exec(`INSERT INTO daybook.jobs (org_id, type, payload, state, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at, run_count)
VALUES ('o', 'email', '{}', 'leased', 't', 1, 0, now(), now() - interval '1 hour', 1)`)
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at) VALUES ('shop', 'd', 1, now() - interval '5 minutes')`)
	b.exec(`SELECT queues.enqueue('report', '{}'), queues.enqueue('report', '{}', now() + interval '1 day')`)
	b.exec(`SELECT queues.limit_tasks('report', true)`)

	s := b.sampler("s", false)
	require.True(t, b.publishes(s))
	published, _ := s.Gauges()
	g, err := figures.ReadGauges(t.Context(), b.Pool)
	require.NoError(t, err)
	require.True(t, g.Fresh())

	jobs := g.Kind("jobs")
	assert.Equal(t, figures.Counts{Due: 4, Waiting: 1, Leased: 1, Failed: 1}, jobs.Counts)
	assert.Empty(t, jobs.Estimated)
	assert.InDelta(t, time.Hour, jobs.OldestDueAge, float64(time.Minute), "what is paused does not age")
	assert.InDelta(t, time.Hour, published.Kind("jobs").OldestDueAge, float64(time.Minute))
	assert.EqualValues(t, 1, jobs.StaleLeases)
	assert.EqualValues(t, 1, jobs.Unhandled)
	assert.EqualValues(t, 2, jobs.HeldBack.Paused, "of the paused organization, and of the paused queue")
	assert.Contains(t, jobs.HeldQueues, figures.HeldQueue{Queue: "bulk", Reason: figures.HeldPaused, Jobs: 1})
	types := map[string]figures.Type{}
	for _, ty := range jobs.Types {
		types[ty.Type] = ty
	}
	assert.Equal(t, figures.Counts{Due: 3, Waiting: 1, Leased: 1, Failed: 1}, types["email"].Counts)
	assert.EqualValues(t, 1, types["sms"].Unhandled)
	assert.Equal(t, "growth", types["email"].Owner)
	assert.Equal(t, "finance", g.Kind("accounting").Types[0].Owner)
	assert.Equal(t, "sms", g.Kind("tasks").Types[1].Type, "a type with a worker and no task")
	assert.Contains(t, types, "idle", "a type with a worker and no job")
	assert.Equal(t, []figures.DeadLetters{{Type: "email", Code: "TIMEOUT", Count: 1}}, jobs.DeadLetters)
	assert.Equal(t, "o", jobs.Organizations[0].OrgID)

	assert.EqualValues(t, 1, g.Kind("accounting").HeldBack.Source)
	tasks := g.Kind("tasks")
	assert.Equal(t, figures.Counts{Due: 1, Waiting: 1}, tasks.Counts)
	assert.Zero(t, tasks.OldestDueAge)
	assert.EqualValues(t, 1, tasks.HeldBack.Paused)
	assert.EqualValues(t, 1, g.Database.PausedOrganizations)
	assert.NotEmpty(t, g.Database.Findings)
	assert.Nil(t, g.Database.TemporalUp, "Temporal was not asked")

	b.exec(`UPDATE daybook.jobs SET state = 'cancelled', finished_at = now(), turn_id = NULL, fence = NULL, leased_generation = NULL, attempt_started_at = NULL`)
	require.True(t, b.publishes(s))
	g, _ = s.Gauges()
	assert.Zero(t, g.Kind("jobs").Counts)
	assert.Zero(t, g.Kind("jobs").OldestDueAge)
}

// What named queues hold back is told queue by queue, and sequences that a dead letter or a late
// job holds up are counted.
func TestHeldQueuesAndSequences(t *testing.T) {
	b := setup(t)
	b.exec(`
SELECT daybook.set_queue('narrow', NULL, 1), daybook.set_queue('print', 'printers');
INSERT INTO daybook.job_workers (id, name, types) VALUES ('w', 'w', '{mail}');
INSERT INTO daybook.jobs (id, org_id, type, payload, queue, fleet, ready_at) VALUES
  ('a', 'o', 'mail', '{}', 'narrow', 0, now() - interval '1 minute'), ('b', 'o', 'press', '{}', 'print', daybook.queue_fleet('print'), now() - interval '1 hour'),
  ('c', 'o', 'press', '{}', 'print', daybook.queue_fleet('print'), now() - interval '1 hour');
INSERT INTO daybook.jobs (id, org_id, type, payload, queue, state, run_count, turn_id, fence, leased_generation, attempt_started_at, last_attempted_at)
  VALUES ('held', 'o', 'mail', '{}', 'narrow', 'leased', 1, 't', 1, 0, now(), now())`)
	b.exec(`SELECT daybook.enqueue_job('o', 'mail', '{}', sequence => s) FROM unnest(ARRAY['x', 'x', 'y', 'y', 'alone']) AS s`)
	b.exec(`SELECT daybook.check_waits()`)
	b.exec(`UPDATE daybook.jobs j SET state = 'failed', run_count = 3, last_error = 'no', last_error_code = 'TIMEOUT', finished_at = clock_timestamp() FROM daybook.job_sequences s WHERE s.holder = j.id`)
	b.exec(`SELECT daybook.enqueue_job('o', 'mail', '{}', sequence => 'late', ready_at => r) FROM unnest(ARRAY[now() + interval '90 days', now()]) AS r`)
	b.exec(`SELECT daybook.check_waits()`)
	s := b.sampler("s", false)
	require.True(t, b.publishes(s))
	g, err := figures.ReadGauges(t.Context(), b.Pool)
	require.NoError(t, err)
	jobs := g.Kind("jobs")
	assert.Equal(t, []figures.HeldQueue{
		{Queue: "print", Reason: figures.HeldUnworked, Jobs: 2}, {Queue: "narrow", Reason: figures.HeldCapped, Jobs: 1},
	}, jobs.HeldQueues)
	assert.EqualValues(t, 3, jobs.HeldSequences, "a sequence in which nothing waits is held up by nothing")
}

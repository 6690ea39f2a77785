// Package moving_test runs the statements of docs/from-*.md that adopt jobs which wait, each on the
// real schema of the other queue, beside a worker of it.
package moving_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/internal/dev/pages"
	"github.com/daybook-dev/daybook/internal/dev/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// jobsOfEach is how many jobs a test makes that are due; half as many wait for a day.
const jobsOfEach = 300

// moved is a database with another queue in it, and the statement of a page.
type moved struct {
	*pgtest.DB
	t *testing.T
	// app is a pool that finds the other queue's tables in public.
	app       *pgxpool.Pool
	statement string
}

func setup(t *testing.T, page string, schema ...string) *moved {
	t.Helper()
	blocks, err := pages.Of("docs/"+page, "sql")
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	m := &moved{DB: pgtest.New(t), t: t, statement: blocks[0].Text}
	config, err := pgxpool.ParseConfig(m.URL)
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["search_path"] = "public"
	config.MaxConns = 12
	m.app, err = pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(m.app.Close)
	for _, file := range schema {
		ddl, err := os.ReadFile("testdata/" + file)
		require.NoError(t, err)
		m.exec(string(ddl))
	}
	m.exec(`CREATE TABLE worked (id text)`)
	return m
}

func (m *moved) exec(stmt string) {
	m.t.Helper()
	conn, err := m.app.Acquire(m.t.Context())
	require.NoError(m.t, err)
	defer conn.Release()
	_, err = conn.Conn().PgConn().Exec(m.t.Context(), stmt).ReadAll()
	require.NoError(m.t, err)
}

func (m *moved) count(query string) (n int) {
	m.t.Helper()
	require.NoError(m.t, m.app.QueryRow(m.t.Context(), query).Scan(&n), query)
	return n
}

// take runs the statement until it answers 0, from two sessions at once, while a few runs are
// killed.
func (m *moved) take() {
	m.t.Helper()
	for range 3 {
		killed, kill := context.WithTimeout(m.t.Context(), 5*time.Millisecond)
		_, _ = m.app.Exec(killed, m.statement) // it is to fail, mostly
		kill()
	}
	// The server notices a moment later that a client has gone, and holds the rows until then.
	require.Eventually(m.t, func() bool {
		return m.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle' AND query LIKE 'WITH taken%'`) == 0
	}, time.Minute, 5*time.Millisecond)
	var group errgroup.Group
	for range 2 {
		group.Go(func() error {
			for {
				var n int
				if err := m.app.QueryRow(m.t.Context(), m.statement).Scan(&n); err != nil || n == 0 {
					return err
				}
			}
		})
	}
	require.NoError(m.t, group.Wait())
}

// work claims by one statement and completes by another, as the other queue's worker does, until
// the context ends.
func (m *moved) work(ctx context.Context, claim, complete string) error {
	for ctx.Err() == nil {
		rows, _ := m.app.Query(context.WithoutCancel(ctx), claim)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, id := range ids {
			if _, err := m.app.Exec(context.WithoutCancel(ctx), `INSERT INTO worked VALUES ($1)`, id); err != nil {
				return err
			}
		}
		if _, err := m.app.Exec(context.WithoutCancel(ctx), complete, ids); err != nil {
			return err
		}
	}
	return nil
}

// requireOnce requires that each of the jobs was worked by the other queue or is Daybook's, and
// none is both.
func (m *moved) requireOnce(prefix string, total int) {
	m.t.Helper()
	worked, held := m.count(`SELECT count(*) FROM worked`),
		m.count(`SELECT count(*) FROM daybook.jobs WHERE idempotency_key LIKE '`+prefix+`/%'`)
	assert.Equal(m.t, total, worked+held)
	assert.Zero(m.t, m.count(`SELECT count(*) FROM worked w JOIN daybook.jobs j ON j.idempotency_key = '`+prefix+
		`/' || w.id`), "both")
	assert.Equal(m.t, worked, m.count(`SELECT count(DISTINCT id) FROM worked`))
	assert.GreaterOrEqual(m.t, held, jobsOfEach/2, "those that wait for a day are Daybook's")
	assert.Equal(m.t, held, m.count(`SELECT count(*) FROM daybook.job_links WHERE kind = '`+prefix+`'`))
	assert.Equal(m.t, jobsOfEach/2,
		m.count(`SELECT count(*) FROM daybook.jobs WHERE first_ready_at > now() + interval '23 hours'`),
		"their time is kept")
}

// noop is a job of River.
type noop struct {
	N int `json:"n"`
}

func (noop) Kind() string { return "noop" }

// noopWorker notes which jobs it has worked.
type noopWorker struct {
	river.WorkerDefaults[noop]
	pool *pgxpool.Pool
}

func (w *noopWorker) Work(ctx context.Context, job *river.Job[noop]) error {
	_, err := w.pool.Exec(ctx, `INSERT INTO worked VALUES ($1)`, strconv.FormatInt(job.ID, 10))
	return err
}

func TestFromRiver(t *testing.T) {
	t.Parallel()
	m := setup(t, "from-river.md")
	driver := riverpgxv5.New(m.app)
	migrator, err := rivermigrate.New(driver, nil)
	require.NoError(t, err)
	_, err = migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)
	require.NoError(t, err)
	workers := river.NewWorkers()
	river.AddWorker(workers, &noopWorker{pool: m.app})
	client, err := river.NewClient(driver,
		&river.Config{Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}}})
	require.NoError(t, err)
	var jobs []river.InsertManyParams
	for i := range jobsOfEach {
		jobs = append(jobs, river.InsertManyParams{Args: noop{N: i}})
		if i%2 == 0 {
			jobs = append(jobs, river.InsertManyParams{
				Args:       noop{N: i},
				InsertOpts: &river.InsertOpts{ScheduledAt: time.Now().Add(24 * time.Hour), Priority: 3},
			})
		}
	}
	_, err = client.InsertMany(t.Context(), jobs)
	require.NoError(t, err)
	require.NoError(t, client.Start(t.Context()))
	require.Eventually(t, func() bool { return m.count(`SELECT count(*) FROM worked`) > 0 }, time.Minute,
		time.Millisecond)
	m.take()
	require.NoError(t, client.Stop(context.WithoutCancel(t.Context())))
	m.take()
	assert.Zero(t, m.count(`SELECT count(*) FROM river_job WHERE state IN ('available', 'scheduled', 'retryable')`))
	m.requireOnce("river", len(jobs))
	assert.Equal(t, jobsOfEach/2,
		m.count(`SELECT count(*) FROM daybook.jobs WHERE priority = 3 AND max_attempts = 25 AND type = 'noop'`))
}

func TestFromGraphileWorker(t *testing.T) {
	t.Parallel()
	m := setup(t, "from-graphile-worker.md", "graphile-worker-0.18.0.sql")
	m.exec(`
SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
    SELECT ROW('noop', json_build_object('n', i), NULL, now() + CASE WHEN i > 300 THEN interval '1 day' ELSE interval '0' END, NULL, NULL, NULL, NULL)::graphile_worker.job_spec
      FROM generate_series(1, 450) i));
SELECT graphile_worker.add_job('noop', '{}', queue_name => 'one-by-one');
SELECT graphile_worker.add_job('two words', '{}'), graphile_worker.add_job('noop', '[]')`)
	ctx, stop := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error {
		return m.work(ctx, `
WITH j AS (SELECT id FROM graphile_worker._private_jobs WHERE is_available AND job_queue_id IS NULL AND run_at <= now() AND payload::text LIKE '%"n"%'
            ORDER BY priority, run_at LIMIT 3 FOR UPDATE SKIP LOCKED)
UPDATE graphile_worker._private_jobs jobs SET attempts = attempts + 1, locked_by = 'w', locked_at = now() FROM j WHERE jobs.id = j.id RETURNING jobs.id::text`,
			`DELETE FROM graphile_worker._private_jobs WHERE id = ANY ($1::text[]::bigint[]) AND locked_by = 'w'`)
	})
	require.Eventually(t, func() bool { return m.count(`SELECT count(*) FROM worked`) > 0 }, time.Minute,
		time.Millisecond)
	m.take()
	stop()
	require.NoError(t, group.Wait())
	m.take()
	assert.Equal(t, 2, m.count(`SELECT count(*) FROM graphile_worker._private_jobs`), "what Daybook would refuse stays")
	m.requireOnce("graphile-worker", 451)
	assert.Equal(t, 1, m.count(`SELECT count(*) FROM daybook.jobs WHERE sequence = 'one-by-one'`))
}

func TestFromPgBoss(t *testing.T) {
	t.Parallel()
	m := setup(t, "from-pg-boss.md", "pg-boss-12.38.0.sql")
	m.exec(`
SELECT pgboss.create_queue('noop', '{"policy": "standard", "retryLimit": 2, "partition": false}'::jsonb),
       pgboss.create_queue('alone', '{"policy": "standard", "retryLimit": 2, "partition": true}'::jsonb);
INSERT INTO pgboss.job (name, data, start_after, policy)
SELECT CASE WHEN i % 3 = 0 THEN 'alone' ELSE 'noop' END, jsonb_build_object('n', i), now() + CASE WHEN i > 300 THEN interval '1 day' ELSE interval '0' END, 'standard'
  FROM generate_series(1, 450) i;
INSERT INTO pgboss.job (name, data, policy, blocked) VALUES ('noop', '{}', 'standard', true), ('noop', '[]', 'standard', false)`)
	ctx, stop := context.WithCancel(t.Context())
	var group errgroup.Group
	group.Go(func() error {
		return m.work(ctx, `
WITH next AS (SELECT name, id FROM pgboss.job j WHERE state < 'active' AND NOT blocked AND start_after < now() AND data ? 'n'
               ORDER BY priority DESC, created_on, id LIMIT 3 FOR UPDATE OF j SKIP LOCKED)
UPDATE pgboss.job j SET state = 'active', started_on = now() FROM next WHERE j.name = next.name AND j.id = next.id RETURNING j.id::text`,
			`UPDATE pgboss.job SET state = 'completed', completed_on = now() WHERE id = ANY ($1::text[]::uuid[])`)
	})
	require.Eventually(t, func() bool { return m.count(`SELECT count(*) FROM worked`) > 0 }, time.Minute,
		time.Millisecond)
	m.take()
	stop()
	require.NoError(t, group.Wait())
	m.take()
	assert.Equal(t, 2, m.count(`SELECT count(*) FROM pgboss.job WHERE state < 'active'`),
		"what waits for others, or Daybook would refuse, stays")
	m.requireOnce("pg-boss", 450)
	assert.Equal(t, m.count(`SELECT count(*) FROM daybook.jobs`),
		m.count(`SELECT count(*) FROM daybook.jobs WHERE max_attempts = 3`))
}

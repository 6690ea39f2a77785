package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/daybooktest/queuetest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/ledger"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/internal/store/ledgerdb"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
	"github.com/daybook-dev/daybook/tasks"
)

// reconnect returns a pool whose sessions begin with the settings, which target (the database, or
// the role in it) gets.
func (b *bundle) reconnect(target string, settings ...string) *pgxpool.Pool {
	b.t.Helper()
	for _, s := range settings {
		b.exec(target + ` SET ` + s)
	}
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(b.t, err)
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(b.t.Context(), config)
	require.NoError(b.t, err)
	b.t.Cleanup(pool.Close)
	return pool
}

// decoys makes a schema in which everything that Daybook has bears the same name and is of no use.
func (b *bundle) decoys() {
	b.exec(`
DO $$
DECLARE
    r record;
BEGIN
    CREATE SCHEMA decoy;
    FOR r IN SELECT relname FROM pg_class WHERE relnamespace IN ('daybook'::regnamespace, 'queues'::regnamespace) AND relkind IN ('r', 'v', 'S') LOOP
        EXECUTE format('CREATE TABLE decoy.%I (nothing integer)', r.relname);
    END LOOP;
    FOR r IN SELECT t.typname FROM pg_type t WHERE t.typnamespace = 'daybook'::regnamespace AND t.typtype = 'e' LOOP
        EXECUTE format('CREATE TYPE decoy.%I AS ENUM (''nothing'')', r.typname);
    END LOOP;
    FOR r IN SELECT oid, proname, pg_get_function_identity_arguments(oid) AS arguments FROM pg_proc
              WHERE pronamespace IN ('daybook'::regnamespace, 'queues'::regnamespace, 'internal'::regnamespace) AND prorettype <> 'trigger'::regtype AND proargmodes IS NULL LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION decoy.%I(%s) RETURNS void LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION ''''a decoy was called''''; END''', r.proname, r.arguments);
    END LOOP;
END
$$`)
}

// hostile are defaults that an application may have reasons for, and that must not matter to
// Daybook.
var hostile = []string{
	`search_path = decoy, public`, `"TimeZone" = 'Pacific/Kiritimati'`, `"DateStyle" = 'SQL, DMY'`,
	`"IntervalStyle" = 'sql_standard'`,
	`statement_timeout = '5s'`, `lock_timeout = '5s'`, `bytea_output = 'escape'`, `extra_float_digits = 0`,
	`enable_indexscan = off`,
	`default_transaction_deferrable = on`, `check_function_bodies = off`,
}

type ping struct {
	N int `json:"n"`
}

func (ping) JobType() string { return "ping" }

// The whole way of a document and of a background job, under defaults of the database, or of the
// role, that are not PostgreSQL's.
func TestNoDefaultOfTheDatabaseMatters(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		for _, kind := range []string{"database", "role"} {
			t.Run(kind+", "+level, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				b.decoys()
				target := `ALTER DATABASE ` + b.Name
				if kind == "role" {
					target = `ALTER ROLE CURRENT_USER IN DATABASE ` + b.Name
				}
				pool := b.reconnect(target, append(hostile, `default_transaction_isolation = '`+level+`'`)...)
				b.walk(pool)
			})
		}
	}
}

// walk enqueues, posts, closes a period, and works jobs, all on one pool.
func (b *bundle) walk(pool *pgxpool.Pool) {
	t := b.t
	const other = "org_2"
	fixture.Organization(t, pool, other)
	fixture.Ready(t, pool, fixture.Invoice(other, "inv-1", 1000), fixture.Invoice(other, "inv-2", 2000))
	most := 1
	require.NoError(t, store.Begin(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := store.CapOrganization(t.Context(), tx, other, &most)
		return err
	}))
	e := engine.New(store.New(pool), ledger.New(nil), engine.Options{Direct: true, Log: slog.New(slog.DiscardHandler)})
	defer e.Close()
	report, err := e.Process(t.Context(), request(1))
	require.NoError(t, err)
	assert.Equal(t, 2, report.Completed, "%+v", report)
	assert.EqualValues(t, 3570, fixture.Balance(t, pool, other, "1200", "EUR"))

	require.NoError(t, store.Begin(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := ledgerdb.AddPeriods(t.Context(), tx, other,
			[]models.Period{{StartsOn: models.NewDate(2026, 3, 1), EndsOn: models.NewDate(2026, 3, 31)}})
		if err != nil {
			return err
		}
		return ledgerdb.ClosePeriod(t.Context(), tx, other, models.NewDate(2026, 3, 1))
	}))
	fixture.Ready(t, pool, fixture.Invoice(other, "inv-3", 1000))
	report, err = e.Process(t.Context(), request(2))
	require.NoError(t, err)
	assert.Equal(t, 1, report.Failed, "%+v", report)
	assert.Equal(t, models.CodePeriodClosed, *fixture.Job(t, pool, other, "inv-3").LastErrorCode)

	registry := jobs.NewRegistry()
	jobs.Register(registry, jobs.Policy{}, func(ctx context.Context, j *jobs.Job[ping]) error {
		return j.Progress(ctx, map[string]bool{"half": true})
	})
	for n := range 3 {
		_, err := queue.EnqueueJob(t.Context(), pool, other, ping{N: n},
			queue.JobOptions{IdempotencyKey: fmt.Sprint("key ", n)})
		require.NoError(t, err)
	}
	assert.Equal(t, 3, queuetest.DrainJobs(t, pool, registry, queuetest.JobsOptions{}).Completed)

	b.walkTasks(pool)

	audit, err := audit.Run(t.Context(), pool, audit.Options{})
	require.NoError(t, err)
	assert.Zero(t, audit.Wrong(), "%+v", audit)
}

// walkTasks works tasks of a supervisor, of a processor with handlers, and of an SQL client, and
// one that fails.
func (b *bundle) walkTasks(pool *pgxpool.Pool) {
	t := b.t
	b.exec(`
CREATE SCHEMA shop;
CREATE TABLE shop.facts (what text);
CREATE FUNCTION shop.supervise(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM shop.facts WHERE what = 'printed') THEN
        PERFORM queues.enqueue('print', '{"before_handler": "shop.before", "success_handler": "shop.printed"}');
        PERFORM queues.enqueue('db_function', '{"db_function": "shop.supervise"}', now() + interval '1 hour');
    END IF;
    RETURN '{"status": "succeeded"}';
END $$;
CREATE FUNCTION shop.before(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN INSERT INTO shop.facts VALUES ('before'); RETURN '{"status": "succeeded", "payload": {"n": 7}}'; END $$;
CREATE FUNCTION shop.printed(_payload jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN INSERT INTO shop.facts VALUES ('printed'); RETURN '{"status": "succeeded"}'; END $$;
REVOKE ALL ON FUNCTION shop.supervise, shop.before, shop.printed FROM PUBLIC`)
	registry := tasks.NewRegistry()
	tasks.Register(registry, "print", tasks.Policy{}, func(_ context.Context, k *tasks.Task[ping]) (any, error) {
		assert.Equal(t, 7, k.Payload.N)
		return nil, nil
	})
	tasks.Register(registry, "fail", tasks.Policy{},
		func(context.Context, *tasks.Task[ping]) (any, error) { return nil, errors.New("it fails") })
	for _, k := range []queue.RawTask{
		{Type: "db_function", Data: []byte(`{"db_function": "shop.supervise"}`)},
		{Type: "fail"},
	} {
		_, err := queue.EnqueueTask(t.Context(), pool, k, queue.TaskOptions{})
		require.NoError(t, err)
	}
	_, err := queue.EnqueueTasks(t.Context(), pool,
		[]queue.NewTask{{Payload: queue.RawTask{Type: "by_hand"}}, {Payload: queue.RawTask{Type: "by_hand"}}})
	require.NoError(t, err)
	drained := queuetest.DrainTasks(t, pool, registry, queuetest.TasksOptions{Advance: 2 * time.Hour})
	assert.Equal(t, queuetest.Counts{Completed: 3, Failed: 1}, drained.Counts)
	assert.Equal(t, 2, fixture.Count(t, b.Pool, `SELECT count(*) FROM shop.facts`))

	call := func(sql string, args ...any) (n int) {
		require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&n), sql)
		return n
	}
	const byHand = `WITH c AS (SELECT task_id, task_lease_id FROM queues.dequeue_available_tasks(10, '{by_hand}')) SELECT count(*) FROM `
	assert.Equal(t, 2, call(byHand+`c`))
	const held = `(SELECT array_agg(task_id ORDER BY task_id) AS ids, array_agg(task_lease_id ORDER BY task_id) AS leases FROM queues.leased_tasks) h`
	assert.Equal(t, 2, call(`SELECT count(*) FROM `+held+`, queues.renew_task_leases(h.ids, h.leases)`))
	assert.Equal(t, 2, call(`SELECT count(*) FROM `+held+`, queues.give_back_tasks(h.ids, h.leases)`))
	assert.Equal(t, 2, call(byHand+`c`))
	assert.Equal(t, 2, call(`SELECT count(*) FROM `+held+`, queues.complete_tasks(h.ids, h.leases)`))
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM queues.open_task`))
}

// Lanes that lease, post and complete side by side disturb each other no more than under READ
// COMMITTED.
func TestLanesUnderStricterIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			fixture.ManyReady(t, b.Pool, org, "doc-", 900)
			pool := b.reconnect(`ALTER DATABASE `+b.Name, `default_transaction_isolation = '`+level+`'`)
			e := engine.New(store.New(pool), ledger.New(nil),
				engine.Options{Direct: true, ChunkSize: 50, Log: slog.New(slog.DiscardHandler)})
			defer e.Close()
			var lanes sync.WaitGroup
			for lane := range 3 {
				lanes.Go(func() {
					for k := range 40 {
						tn := store.Turn{ID: fmt.Sprintf("run/%d/%d", lane, k), Worker: "test", WorkflowRunID: "run"}
						n, err := e.Lease(t.Context(), tn, 20, nil)
						if !assert.NoError(t, err) || n == 0 {
							return
						}
						_, err = e.Process(t.Context(), engine.TurnRequest{Turn: tn, Batch: 20, Length: time.Second})
						assert.NoError(t, err)
					}
				})
			}
			lanes.Wait()
			assert.Equal(t, 900, fixture.Count(t, b.Pool,
				`SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'completed' AND run_count = 1`))
			assert.Equal(t, 900, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
		})
	}
}

// between stops in the chunk's transaction, after its first statement and before the ledger reads.
type between struct {
	inner   engine.Processor
	reached chan struct{}
	proceed chan struct{}
}

func (g *between) Prepare(ctx context.Context, jobs []engine.Job) (engine.Commit, error) {
	inner, err := g.inner.Prepare(ctx, jobs)
	return func(ctx context.Context, tx pgx.Tx, jobs []engine.Job) ([]error, error) {
		g.reached <- struct{}{}
		select {
		case <-g.proceed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return inner(ctx, tx, jobs)
	}, err
}

func TestNothingIsPostedIntoAPeriodThatWasClosedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			first := models.NewDate(2026, 3, 1)
			fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
				_, err := ledgerdb.AddPeriods(ctx, tx, org,
					[]models.Period{{StartsOn: first, EndsOn: models.NewDate(2026, 3, 31)}})
				require.NoError(t, err)
			})
			fixture.Ready(t, b.Pool, fixture.Invoice(org, "inv", 1000))
			pool := b.reconnect(`ALTER DATABASE `+b.Name, `default_transaction_isolation = '`+level+`'`)
			g := &between{inner: ledger.New(nil), reached: make(chan struct{}, 100), proceed: make(chan struct{})}
			e := engine.New(store.New(pool), g, engine.Options{Direct: true, Log: slog.New(slog.DiscardHandler)})
			defer e.Close()
			done := b.processing(e, request(1))
			<-g.reached
			fixture.Tx(t, b.Pool, func(ctx context.Context,
				tx pgx.Tx,
			) {
				require.NoError(t, ledgerdb.ClosePeriod(ctx, tx, org, first))
			})
			close(g.proceed)
			<-done
			assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.impacts`))
			assert.Equal(t, models.CodePeriodClosed, *b.job("inv").LastErrorCode)
		})
	}
}

package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/engine"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const org = "org_1"

type greet struct {
	Name string `json:"name"`
}

func (greet) JobType() string { return "greet" }

// bundle is a database and an engine of background jobs on it.
type bundle struct {
	*pgtest.DB
	t        *testing.T
	store    *store.Store
	registry *jobs.Registry
	engine   *engine.Engine
	log      *strings.Builder
	turns    int
}

func setup(t *testing.T) *bundle {
	t.Helper()
	db := pgtest.New(t)
	b := &bundle{
		DB: db, t: t, store: store.NewQueue(db.Pool, store.Jobs), registry: jobs.NewRegistry(),
		log: &strings.Builder{},
	}
	b.engine = engine.NewJobs(b.store, b.registry, engine.Options{Log: slog.New(slog.NewTextHandler(b.log, nil))})
	t.Cleanup(b.engine.Close)
	return b
}

// engineOn is another engine with the bundle's handlers, on a pool.
func (b *bundle) engineOn(pool *pgxpool.Pool) *engine.Engine {
	e := engine.NewJobs(store.NewQueue(pool, store.Jobs), b.registry, engine.Options{Log: slog.New(slog.DiscardHandler)})
	b.t.Cleanup(e.Close)
	return e
}

func (b *bundle) enqueue(p queue.Payload, o queue.JobOptions) string {
	b.t.Helper()
	e, err := queue.EnqueueJob(b.t.Context(), b.Pool, org, p, o)
	require.NoError(b.t, err)
	return e.ID
}

func (b *bundle) turn() store.Turn {
	b.turns++
	return store.Turn{ID: fmt.Sprintf("run/0/%d", b.turns), Worker: "test", WorkflowRunID: "run"}
}

// work works everything that is due.
func (b *bundle) work() engine.Report {
	b.t.Helper()
	r, err := b.engine.Process(b.t.Context(), engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: time.Minute})
	require.NoError(b.t, err)
	return r
}

// row is what is stored of a job.
type row struct {
	State    models.JobState
	RunCount int
	Code     string
	Error    string
	Result   string
	// Wait is how long after its last attempt the job is due again.
	Wait     time.Duration
	Attempts int
}

func (b *bundle) row(id string) row {
	b.t.Helper()
	var r row
	var wait float64
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), `
SELECT state, run_count, coalesce(last_error_code, ''), coalesce(last_error, ''), coalesce(result::text, ''),
       extract(epoch FROM ready_at - coalesce(updated_at, ready_at)), (SELECT count(*) FROM daybook.attempts a WHERE a.job_id = j.id)
  FROM daybook.jobs j WHERE id = $1`, id).Scan(&r.State, &r.RunCount, &r.Code, &r.Error, &r.Result, &wait, &r.Attempts))
	r.Wait = time.Duration(wait * float64(time.Second))
	return r
}

func (b *bundle) exec(query string, args ...any) {
	b.t.Helper()
	_, err := b.Pool.Exec(b.t.Context(), query, args...)
	require.NoError(b.t, err)
}

// due makes every pending job due now.
func (b *bundle) due() {
	b.exec(`UPDATE daybook.jobs SET ready_at = clock_timestamp() WHERE state = 'pending'`)
}

func (b *bundle) count(query string, args ...any) int {
	b.t.Helper()
	var n int
	require.NoError(b.t, b.Pool.QueryRow(b.t.Context(), query, args...).Scan(&n))
	return n
}

func TestJobIsWorked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var got *jobs.Job[greet]
	jobs.Register(b.registry, jobs.Policy{Owner: "growth"}, func(_ context.Context, job *jobs.Job[greet]) error {
		got = job
		job.SetResult(map[string]int{"sent": 1})
		return nil
	})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{IdempotencyKey: "ada-1", MaxAttempts: 7})

	r := b.work()

	assert.Equal(t, 1, r.Completed)
	require.NotNil(t, got)
	assert.Equal(t, "Ada", got.Payload.Name)
	assert.Equal(t, "ada-1", got.IdempotencyKey)
	assert.Equal(t, 1, got.Attempt)
	assert.Equal(t, 7, got.MaxAttempts)
	assert.Equal(t, org, got.OrgID)
	j := b.row(id)
	assert.Equal(t, models.JobCompleted, j.State)
	assert.JSONEq(t, `{"sent": 1}`, j.Result)
	assert.Equal(t, 1, j.Attempts)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.attempts WHERE kind = 'jobs' AND type = 'greet' AND outcome = 'completed' AND worker = 'test'`))
}

// TestOutcomes has a handler say each thing that it can say.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	failure := errors.New("no luck")
	for name, c := range map[string]struct {
		err      error
		state    models.JobState
		code     models.ErrorCode
		runCount int
		// low and high bound when the job is due again.
		low, high time.Duration
	}{
		"any error": {
			failure, models.JobPending, models.CodeHandlerError, 1, 9 * time.Minute,
			11 * time.Minute,
		},
		"rate limited": {
			jobs.WithCode(models.CodeRateLimited, failure), models.JobPending, models.CodeRateLimited,
			1, 9 * time.Minute, 11 * time.Minute,
		},
		"upstream": {
			jobs.WithCode(models.CodeUpstream5xx, failure), models.JobPending, models.CodeUpstream5xx,
			1, 9 * time.Minute, 11 * time.Minute,
		},
		"timeout": {
			jobs.WithCode(models.CodeTimeout, failure), models.JobPending, models.CodeTimeout, 1,
			9 * time.Minute, 11 * time.Minute,
		},
		"network": {
			jobs.WithCode(models.CodeNetworkError, failure), models.JobPending,
			models.CodeNetworkError, 1, 9 * time.Minute, 11 * time.Minute,
		},
		"retry after": {
			jobs.RetryAfter(42*time.Second, jobs.WithCode(models.CodeRateLimited, failure)),
			models.JobPending, models.CodeRateLimited, 1, 42 * time.Second, 42 * time.Second,
		},
		"snooze": {jobs.Snooze(time.Hour), models.JobPending, models.CodeSnoozed, 0, time.Hour, time.Hour},
		"cancel": {jobs.Cancel("nothing to do"), models.JobCancelled, models.CodeJobCancelled, 1, 0, 0},
		"final":  {jobs.Final(failure), models.JobFailed, models.CodeHandlerError, 1, 0, 0},
		"payload invalid": {
			jobs.WithCode(models.CodePayloadInvalid, failure), models.JobFailed,
			models.CodePayloadInvalid, 1, 0, 0,
		},
		"authentication failed": {
			jobs.WithCode(models.CodeAuthenticationFailed, failure), models.JobFailed,
			models.CodeAuthenticationFailed, 1, 0, 0,
		},
		"not found": {jobs.WithCode(models.CodeNotFound, failure), models.JobFailed, models.CodeNotFound, 1, 0, 0},
		"not found, wrapped": {
			fmt.Errorf("ask: %w", jobs.WithCode(models.CodeNotFound, failure)), models.JobFailed,
			models.CodeNotFound, 1, 0, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			jobs.Register(b.registry, jobs.Policy{Base: 10 * time.Minute},
				func(context.Context, *jobs.Job[greet]) error { return c.err })
			id := b.enqueue(greet{}, queue.JobOptions{})
			b.work()
			j := b.row(id)
			assert.Equal(t, c.state, j.State)
			assert.Equal(t, string(c.code), j.Code)
			assert.Equal(t, c.runCount, j.RunCount)
			if c.high > 0 {
				assert.GreaterOrEqual(t, j.Wait, c.low-time.Second)
				assert.LessOrEqual(t, j.Wait, c.high+time.Second)
			}
			assert.Equal(t, 1, j.Attempts, "each is logged")
		})
	}
}

// TestRetriesUntilDead fails a job until no attempt is left, and looks at each delay.
func TestRetriesUntilDead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 5, Base: 100 * time.Second, Factor: 3, Cap: 1000 * time.Second},
		func(context.Context, *jobs.Job[greet]) error { return errors.New("no luck") })
	id := b.enqueue(greet{}, queue.JobOptions{})
	for n, want := range []time.Duration{100 * time.Second, 300 * time.Second, 900 * time.Second, 1000 * time.Second} {
		b.work()
		j := b.row(id)
		require.Equal(t, models.JobPending, j.State, "after attempt %d", n+1)
		assert.Equal(t, n+1, j.RunCount)
		assert.InDelta(t, want.Seconds(), j.Wait.Seconds(), want.Seconds()/10+0.5)
		b.due()
	}
	b.work()
	j := b.row(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, 5, j.Attempts)
	assert.Equal(t, "no luck", j.Error)
}

func TestPanicIsAnAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { panic("oh no") })
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	j := b.row(id)
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, string(models.CodeHandlerError), j.Code)
	assert.Contains(t, j.Error, "panic: oh no")
	assert.Contains(t, j.Error, "jobs_test.go", "the stack")
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{Timeout: 50 * time.Millisecond},
		func(ctx context.Context, _ *jobs.Job[greet]) error {
			<-ctx.Done()
			return ctx.Err()
		})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.work()
	j := b.row(id)
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, string(models.CodeTimeout), j.Code)
}

func TestInvalidPayloadIsFinal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	jobs.Register(b.registry, jobs.Policy{}, func(context.Context, *jobs.Job[greet]) error { return nil })
	id := b.enqueue(queue.RawPayload{Type: "greet", Data: json.RawMessage(`{"name": 7}`)},
		queue.JobOptions{SkipValidation: true})
	b.work()
	j := b.row(id)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Equal(t, string(models.CodePayloadInvalid), j.Code)
	assert.Contains(t, j.Error, "name")
}

// TestInTx commits a handler's rows with the completion, or not at all.
func TestInTx(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text PRIMARY KEY)`)
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(_ context.Context, job *jobs.Job[greet]) error {
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ($1)`, job.Payload.Name)
			return err
		})
		return nil
	})
	ada := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	b.work()
	again := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	b.work()
	assert.Equal(t, models.JobCompleted, b.row(ada).State)
	j := b.row(again)
	assert.Equal(t, models.JobFailed, j.State)
	assert.Contains(t, j.Error, "greeted_pkey")
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
}

// TestInTxOfALostLeaseCommitsNothing lets another turn take a job over while its handler runs.
func TestInTxOfALostLeaseCommitsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text)`)
	var calls atomic.Int32
	reached, proceed := make(chan struct{}), make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		if calls.Add(1) == 1 {
			close(reached)
			<-proceed
		}
		job.InTx(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ($1)`, job.Payload.Name)
			return err
		})
		return nil
	})
	id := b.enqueue(greet{Name: "Ada"}, queue.JobOptions{})
	turn := b.turn()
	request := engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute}
	done := make(chan engine.Report)
	go func() {
		r, err := b.engine.Process(context.Background(), request)
		assert.NoError(t, err)
		done <- r
	}()
	<-reached
	// The worker is thought dead: its turn is reclaimed, charged, and worked again.
	request.Crashed = true
	r, err := b.engine.Process(t.Context(), request)
	require.NoError(t, err)
	assert.Equal(t, 1, r.Completed)
	assert.Equal(t, 1, r.Lost)
	close(proceed)
	zombie := <-done
	assert.Zero(t, zombie.Completed)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
	j := b.row(id)
	assert.Equal(t, models.JobCompleted, j.State)
	assert.Equal(t, 2, j.RunCount, "the crash counts")
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.attempts WHERE outcome = 'lost' AND error_code = 'JOB_LOCK_TIMEOUT_RECLAIMED'`))
}

func TestBulk(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE greeted (name text PRIMARY KEY)`)
	calls := 0
	var mu sync.Mutex
	jobs.RegisterBulk(b.registry, jobs.Policy{MaxAttempts: 1},
		func(ctx context.Context, tx pgx.Tx, all []*jobs.Job[greet]) ([]error, error) {
			mu.Lock()
			calls++
			mu.Unlock()
			errs := make([]error, len(all))
			for i, j := range all {
				if j.Payload.Name == "Unknown" {
					errs[i] = jobs.Final(errors.New("there is no such user"))
					continue
				}
				if _, err := tx.Exec(ctx, `INSERT INTO greeted VALUES ($1)`, j.Payload.Name); err != nil {
					return nil, err
				}
			}
			return errs, nil
		})
	for i := range 100 {
		b.enqueue(greet{Name: fmt.Sprint("person ", i)}, queue.JobOptions{})
	}
	unknown := b.enqueue(greet{Name: "Unknown"}, queue.JobOptions{})
	r := b.work()
	assert.Equal(t, 100, r.Completed)
	assert.Equal(t, 1, r.Failed)
	assert.Less(t, calls, 20)
	assert.Equal(t, 100, b.count(`SELECT count(*) FROM greeted`))
	assert.Equal(t, models.JobFailed, b.row(unknown).State)
	// One that spoils the transaction ends alone.
	for i := range 20 {
		b.enqueue(greet{Name: fmt.Sprint("late ", i)}, queue.JobOptions{})
	}
	spoiler := b.enqueue(greet{Name: "person 1"}, queue.JobOptions{})
	r = b.work()
	assert.Equal(t, 20, r.Completed)
	assert.Equal(t, models.JobFailed, b.row(spoiler).State)
	assert.Equal(t, 120, b.count(`SELECT count(*) FROM greeted`))
}

// TestParallel never works more jobs of a type at once than its policy allows, and lets other types
// pass.
func TestParallel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var now, most atomic.Int32
	jobs.Register(b.registry, jobs.Policy{Parallel: 3}, func(context.Context, *jobs.Job[greet]) error {
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(20 * time.Millisecond)
		now.Add(-1)
		return nil
	})
	for range 40 {
		b.enqueue(greet{}, queue.JobOptions{})
	}
	for completed := 0; completed < 40; {
		b.due()
		completed += b.work().Completed
	}
	assert.LessOrEqual(t, most.Load(), int32(3))
	assert.Equal(t, 40, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND run_count = 1`))
}

func TestProgressAndCancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reached, proceed := make(chan struct{}), make(chan struct{})
	jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[greet]) error {
		if err := job.Progress(ctx, map[string]int{"percent": 40}); err != nil {
			return err
		}
		close(reached)
		<-proceed
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	done := make(chan engine.Report)
	go func() { done <- b.work() }()
	<-reached
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE progress = '{"percent": 40}'`))
	_, err := queue.CancelJob(t.Context(), b.Pool, id)
	require.NoError(t, err)
	close(proceed)
	assert.Equal(t, 1, (<-done).Cancelled)
	assert.Equal(t, models.JobCancelled, b.row(id).State)
}

// TestManyShortJobs drains a queue of jobs that do nothing, by several turns at once.
func TestManyShortJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	jobs.Register(b.registry, jobs.Policy{Parallel: 200}, func(context.Context, *jobs.Job[greet]) error {
		calls.Add(1)
		return nil
	})
	many := make([]queue.NewJob, 3000)
	for i := range many {
		many[i] = queue.NewJob{OrgID: fmt.Sprint("org_", i%7), Payload: greet{Name: fmt.Sprint(i)}}
	}
	_, err := queue.EnqueueJobs(t.Context(), b.Pool, many)
	require.NoError(t, err)
	var wg sync.WaitGroup
	var completed atomic.Int32
	for range 3 {
		turn := b.turn()
		wg.Go(func() {
			r, err := b.engine.Process(context.Background(), engine.TurnRequest{Turn: turn, Batch: 50, Length: time.Minute})
			assert.NoError(t, err)
			completed.Add(int32(r.Completed))
		})
	}
	wg.Wait()
	completed.Add(int32(b.work().Completed))
	assert.EqualValues(t, 3000, completed.Load())
	assert.EqualValues(t, 3000, calls.Load(), "each once")
}

// TestStopGivesBack stops a turn whose handlers do not end by themselves.
func TestStopGivesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := engine.NewJobs(b.store, b.registry,
		engine.Options{Log: slog.New(slog.NewTextHandler(b.log, nil)), Grace: 20 * time.Millisecond})
	t.Cleanup(e.Close)
	reached := make(chan struct{}, 10)
	jobs.Register(b.registry, jobs.Policy{Parallel: 2}, func(ctx context.Context, _ *jobs.Job[greet]) error {
		reached <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	for range 4 {
		b.enqueue(greet{}, queue.JobOptions{})
	}
	stop := make(chan struct{})
	done := make(chan engine.Report)
	go func() {
		r, err := e.Process(context.Background(),
			engine.TurnRequest{Turn: b.turn(), Batch: 50, Length: time.Minute, Stop: stop})
		assert.NoError(t, err)
		done <- r
	}()
	<-reached
	<-reached
	close(stop)
	r := <-done
	// A lease that was under way may have had the others as well, in the room of the handlers that
	// have ended.
	assert.GreaterOrEqual(t, r.Released, 2)
	assert.Contains(t, b.log.String(), "handlers that still run are interrupted")
	assert.Equal(t, 4, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND run_count = 0`))
}

// TestDueLater: an idle turn begins what falls due, without being called: a job for later, and the
// next attempt of one that failed.
func TestDueLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	jobs.Register(b.registry, jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		if calls.Add(1) == 1 {
			return jobs.RetryAfter(300*time.Millisecond, errors.New("not yet"))
		}
		return nil
	})
	done := make(chan engine.Report)
	stop := make(chan struct{})
	turn := b.turn()
	go func() {
		r, err := b.engine.Process(context.Background(),
			engine.TurnRequest{Turn: turn, Batch: 50, Wait: time.Hour, Length: time.Hour, Linger: true, Stop: stop})
		assert.NoError(t, err)
		done <- r
	}()
	b.enqueue(greet{Name: "fails once"}, queue.JobOptions{})
	b.enqueue(greet{Name: "later"}, queue.JobOptions{RunAt: time.Now().Add(700 * time.Millisecond)})
	require.Eventually(t, func() bool {
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`) == 2
	}, pgtest.Patience, 10*time.Millisecond)
	close(stop)
	assert.Equal(t, 2, (<-done).Completed)
}

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/internal/store/audit"
	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

// check decides what is on record about jobs that wait, as a worker does.
func (b *bundle) check() {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		_, err := b.store.CheckWaits(b.t.Context())
		require.NoError(b.t, err)
		return b.count(`SELECT count(*) FROM daybook.job_wait_checks`) == 0 // also by an engine, which has committed
	}, long, 5*time.Millisecond)
}

// waits reports whether a job waits for its turn or for other jobs.
func (b *bundle) waits(id string) bool {
	b.t.Helper()
	return b.count(`SELECT count(*) FROM daybook.jobs j WHERE id = $1 AND daybook.is_waiting(j)`, id) == 1
}

// However a job ends, what waits for it learns of it: the jobs after it, and the next one of its
// sequence.
func TestEveryEndOfAnAwaitedJob(t *testing.T) {
	t.Parallel()
	fails := errors.New("no")
	for name, c := range map[string]struct {
		// handler is what the awaited job's handler does; leased: it is worked under a lease; end: how
		// the job ends otherwise.
		handler func(context.Context) error
		leased  bool
		end     func(b *bundle, id string)
		// goesOn says what becomes of the next job of the sequence, after of the job that waits for
		// this one.
		goesOn bool
		after  models.JobState
		// ended is how the job ended for one that waits for any end; empty: it was removed.
		ended models.JobState
	}{
		"completed in the transaction that picked it": {
			ended:   models.JobCompleted,
			handler: func(context.Context) error { return nil }, goesOn: true, after: models.JobCompleted,
		},
		"completed under a lease": {
			ended: models.JobCompleted, handler: func(context.Context) error { return nil },
			leased: true, goesOn: true, after: models.JobCompleted,
		},
		"dead letter": {
			ended:   models.JobFailed,
			handler: func(context.Context) error { return jobs.Final(fails) }, after: models.JobPending,
		},
		"dead letter under a lease": {
			ended:   models.JobFailed,
			handler: func(context.Context) error { return jobs.Final(fails) }, leased: true, after: models.JobPending,
		},
		"cancelled by its handler": {
			ended:   models.JobCancelled,
			handler: func(context.Context) error { return jobs.Cancel("no") }, goesOn: true, after: models.JobFailed,
		},
		"cancelled": {ended: models.JobCancelled, goesOn: true, after: models.JobFailed, end: func(b *bundle, id string) {
			_, err := queue.CancelJob(b.t.Context(), b.Pool, id)
			require.NoError(b.t, err)
		}},
		"cancelled by a transaction that sees the past": {
			ended: models.JobCancelled, goesOn: true, after: models.JobFailed,
			end: func(b *bundle, id string) {
				require.NoError(b.t, pgx.BeginTxFunc(b.t.Context(), b.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead},
					func(tx pgx.Tx) error {
						_, err := queue.CancelJob(b.t.Context(), tx, id)
						return err
					}))
			},
		},
		"dead letter that is cancelled": {
			ended: models.JobFailed, goesOn: true, after: models.JobFailed,
			end: func(b *bundle, id string) {
				b.exec(`UPDATE daybook.jobs SET state = 'failed', last_error = 'e', last_error_code = 'TIMEOUT', finished_at = now() WHERE id = $1`, id)
				_, err := queue.CancelJob(b.t.Context(), b.Pool, id)
				require.NoError(b.t, err)
			},
		},
		"removed": {
			goesOn: true, after: models.JobFailed,
			end: func(b *bundle, id string) { b.exec(`DELETE FROM daybook.jobs WHERE id = $1`, id) },
		},
		"completed by hand": {
			ended: models.JobCompleted, goesOn: true, after: models.JobCompleted,
			end: func(b *bundle, id string) {
				b.exec(`UPDATE daybook.jobs SET state = 'completed', finished_at = now() WHERE id = $1`, id)
			},
		},
		"reclaimed in its last attempt": {
			ended: models.JobFailed, after: models.JobPending,
			end: func(b *bundle, id string) {
				b.exec(`
UPDATE daybook.jobs SET state = 'leased', working = true, run_count = 1, max_attempts = 1, turn_id = 't', fence = 1, leased_generation = generation, worker = 'w',
       attempt_started_at = now() - interval '1 hour', last_attempted_at = now() - interval '1 hour' WHERE id = $1`, id)
				_, err := b.store.ReclaimExpired(b.t.Context())
				require.NoError(b.t, err)
				require.Equal(b.t, models.JobFailed, b.row(id).State)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var ended []jobs.AwaitedJob
			jobs.Register(b.registry, jobs.Policy{}, func(ctx context.Context, job *jobs.Job[greet]) (err error) {
				switch job.Payload.Name {
				case "any":
					ended, err = job.Awaited(ctx)
					return err
				case "next", "after":
					return nil
				}
				if c.leased {
					time.Sleep(100 * time.Millisecond) // longer than a pick lasts
				}
				return c.handler(ctx)
			})
			first := b.enqueue(greet{Name: "first"}, queue.JobOptions{Sequence: "s"})
			next := b.enqueue(greet{Name: "next"}, queue.JobOptions{Sequence: "s"})
			after := b.enqueue(greet{Name: "after"}, queue.JobOptions{After: []string{first}})
			anyEnd := b.enqueue(greet{Name: "any"}, queue.JobOptions{After: []string{first}, AfterAnyEnd: true})
			b.check()
			assert.False(t, b.waits(first))
			assert.True(t, b.waits(next) && b.waits(after) && b.waits(anyEnd))
			if c.end != nil {
				c.end(b, first)
			} else {
				b.work()
			}
			b.check()
			assert.Equal(t, c.goesOn, !b.waits(next), "the next of its sequence")
			b.work()
			assert.Equal(t, c.after, b.row(after).State)
			if c.after == models.JobFailed {
				assert.EqualValues(t, models.CodeAwaitedCancelled, b.row(after).Code)
			}
			assert.Equal(t, models.JobCompleted, b.row(anyEnd).State)
			assert.Equal(t, []jobs.AwaitedJob{{ID: first, State: c.ended, Removed: c.ended == ""}}, ended)
		})
	}
}

// A job that waits for any end is due when all have ended, also those that had ended when it was
// enqueued, one by one or many at once. It stays due when a dead letter among them is tried again.
func TestAfterAnyEndOfSeveralJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	states := map[string]models.JobState{}
	for _, state := range []models.JobState{models.JobCompleted, models.JobFailed, models.JobCancelled} {
		id := b.enqueue(ping{}, queue.JobOptions{})
		b.exec(`UPDATE daybook.jobs SET state = $2::text::daybook.job_state, last_error = 'e', last_error_code = 'TIMEOUT', finished_at = now() WHERE id = $1`, id, string(state))
		states[id] = state
	}
	ended := slices.Sorted(maps.Keys(states))
	dead := ended[slices.IndexFunc(ended, func(id string) bool { return states[id] == models.JobFailed })]
	open := b.enqueue(ping{}, queue.JobOptions{})
	options := queue.JobOptions{After: append([]string{open}, ended...), AfterAnyEnd: true}
	many, err := queue.EnqueueJobs(t.Context(), b.Pool, []queue.NewJob{
		{OrgID: org, Payload: greet{}, Options: options},
		{OrgID: org, Payload: greet{}, Options: queue.JobOptions{After: []string{dead}}},
		{OrgID: org, Payload: greet{}, Options: queue.JobOptions{After: ended, AfterAnyEnd: true, IdempotencyKey: "k"}},
	})
	require.NoError(t, err)
	one, completion, atOnce := b.enqueue(greet{}, options), many[1].ID, many[2].ID
	b.check()
	assert.True(t, b.waits(one) && b.waits(many[0].ID) && b.waits(completion))
	assert.False(t, b.waits(atOnce), "all have ended")

	b.exec(`UPDATE daybook.jobs SET state = 'failed', last_error = 'e', last_error_code = 'TIMEOUT', finished_at = now() WHERE id = $1`, open)
	assert.False(t, b.waits(one) || b.waits(many[0].ID))
	_, err = queue.RetryJob(t.Context(), b.Pool, open, queue.RetryOptions{})
	require.NoError(t, err)
	b.check()
	assert.False(t, b.waits(one) || b.waits(many[0].ID))
	awaited, err := store.AwaitedJobs(t.Context(), b.Pool, one)
	require.NoError(t, err)
	assert.Contains(t, awaited, store.AwaitedJob{ID: open, EndedAs: "failed"})
	for _, id := range ended {
		assert.Contains(t, awaited, store.AwaitedJob{ID: id, EndedAs: string(states[id])})
	}
	assert.True(t, b.waits(completion), "a dead letter is waited for by a job that needs its completion")
}

// A dead letter holds its sequence up until it is tried again and completed; what waits for it is
// worked then.
func TestADeadLetterHoldsItsSequenceUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var worked []string
	broken := true
	jobs.Register(b.registry, jobs.Policy{MaxAttempts: 1}, func(_ context.Context, job *jobs.Job[greet]) error {
		if job.Payload.Name != "after" { // which may run beside a job of the sequence
			worked = append(worked, job.Payload.Name)
		}
		if broken {
			return errors.New("no")
		}
		return nil
	})
	var ids []string
	for i := range 3 {
		ids = append(ids, b.enqueue(greet{Name: strconv.Itoa(i)}, queue.JobOptions{Sequence: "s"}))
	}
	after := b.enqueue(greet{Name: "after"}, queue.JobOptions{After: ids[:1]})
	b.check()
	b.work()
	b.check()
	b.work()
	assert.Equal(t, []string{"0"}, worked)

	broken = false
	for _, mode := range []queue.RetryMode{queue.RetryNow, queue.RetryReset} {
		r, err := queue.RetryJob(t.Context(), b.Pool, ids[1], queue.RetryOptions{Mode: mode})
		require.NoError(t, err)
		assert.Equal(t, queue.Rescheduled, r.Result)
	}
	b.check()
	assert.True(t, b.waits(ids[1]), "a person who tries a waiting job again does not change the order")
	_, err := queue.RetryJob(t.Context(), b.Pool, ids[0], queue.RetryOptions{})
	require.NoError(t, err)
	for range 4 {
		b.check()
		b.work()
	}
	assert.Equal(t, []string{"0", "0", "1", "2"}, worked)
	assert.Equal(t, models.JobCompleted, b.row(after).State)
}

// A cancelled job of a sequence that is tried again waits for its turn; a job whose awaited one was
// cancelled is worked when it is tried again.
func TestCancelledJobsThatAreTriedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.enqueue(greet{}, queue.JobOptions{Sequence: "s"})
	second := b.enqueue(greet{}, queue.JobOptions{Sequence: "s"})
	after := b.enqueue(greet{}, queue.JobOptions{After: []string{first}})
	b.check()
	_, err := queue.CancelJob(t.Context(), b.Pool, first)
	require.NoError(t, err)
	b.check()
	assert.False(t, b.waits(second))
	b.exec(`SELECT daybook.retry_jobs(ARRAY[$1, $2], '{cancelled,failed}')`, first, after)
	b.check()
	assert.True(t, b.waits(first), "another one has the turn")
	assert.Equal(t, models.JobPending, b.row(after).State)
	assert.False(t, b.waits(after))
	b.exec(`UPDATE daybook.jobs SET state = 'completed', finished_at = now() WHERE id = $1`, second)
	assert.False(t, b.waits(first))
}

// A job is due at its own time, and not before, when what it waited for has ended; one that waits
// for completed jobs does not wait.
func TestWaitingJobsKeepTheirTimes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.enqueue(greet{}, queue.JobOptions{})
	later := b.enqueue(greet{}, queue.JobOptions{After: []string{first}, RunAt: time.Now().Add(time.Hour)})
	unique := b.enqueue(greet{Name: "unique"},
		queue.JobOptions{After: []string{first}, Unique: true, RunAt: time.Now().Add(time.Hour)})
	e, err := queue.EnqueueJob(t.Context(), b.Pool, org, greet{Name: "unique"}, queue.JobOptions{Unique: true})
	require.NoError(t, err)
	assert.Equal(t, queue.EnqueuedJob{ID: unique, Duplicate: true, Result: queue.Rescheduled}, e)
	assert.True(t, b.waits(unique), "it is to be due earlier, and waits as before")
	b.check()
	b.exec(`UPDATE daybook.jobs SET state = 'completed', finished_at = now() WHERE id = $1`, first)
	const due = `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND ready_at <= clock_timestamp()`
	assert.Zero(t, b.count(due, later))
	assert.False(t, b.waits(later))
	assert.Equal(t, 1, b.count(due, unique))
	assert.Equal(t, 1, b.count(due, b.enqueue(greet{}, queue.JobOptions{After: []string{first}})))
}

// Ten thousand jobs of one sequence, enqueued at once, are worked in the order of the call;
// thousands that wait for one job are released.
func TestManyWaitingJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const total = 10_000
	first := b.enqueue(ping{}, queue.JobOptions{})
	all := make([]queue.NewJob, 0, total+2000)
	for i := range total {
		all = append(all, queue.NewJob{
			OrgID: org, Payload: greet{Name: strconv.Itoa(i)},
			Options: queue.JobOptions{Sequence: "s"},
		})
	}
	for range 2000 {
		all = append(all, queue.NewJob{OrgID: org, Payload: ping{}, Options: queue.JobOptions{After: []string{first}}})
	}
	_, err := queue.EnqueueJobs(t.Context(), b.Pool, all)
	require.NoError(t, err)
	b.check()
	b.exec(`UPDATE daybook.jobs SET state = 'completed', finished_at = now() WHERE id = $1`, first)
	assert.Equal(t, 1900, b.count(`SELECT count(*) FROM daybook.job_waits`),
		"the transaction that ends a job releases a bounded number")
	b.check()
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.job_waits`))
	for i := range 100 {
		assert.Equal(t, 1, b.count(`
SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND sequence = 's' AND ready_at <= clock_timestamp() AND payload ->> 'name' = $1`, strconv.Itoa(i)))
		b.exec(`UPDATE daybook.jobs SET state = 'completed', finished_at = now() WHERE id = (SELECT holder FROM daybook.job_sequences)`)
	}
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'pending' AND sequence = 's' AND ready_at <= clock_timestamp()`))
}

// Many transactions enqueue, cancel and end jobs of the same sequences, and jobs that wait for each
// other, while two turns work them: nothing deadlocks, nothing is left waiting, and the jobs of a
// sequence never run side by side.
func TestWaitingJobsUnderLoad(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var mu sync.Mutex
	running := map[string]int{}
	jobs.Register(b.registry, jobs.Policy{Base: time.Millisecond, MaxAttempts: 1000},
		func(_ context.Context, job *jobs.Job[greet]) error {
			mu.Lock()
			running[job.Payload.Name]++
			beside := running[job.Payload.Name]
			mu.Unlock()
			if rand.IntN(20) == 0 {
				time.Sleep(50 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			running[job.Payload.Name]--
			if job.Payload.Name != "" && beside > 1 {
				return jobs.Final(errors.New("two jobs of a sequence run at once"))
			}
			if rand.IntN(10) == 0 {
				return errors.New("again")
			}
			return nil
		})
	turns := []*lingering{b.linger(b.engine), b.linger(b.engine)}
	const callers, rounds, keys = 4, 40, 5
	g, ctx := errgroup.WithContext(t.Context())
	for caller := range callers {
		g.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(caller), 1))
			var known []string
			for range rounds {
				var some []queue.NewJob
				for range 5 {
					key := fmt.Sprint("k", random.IntN(keys))
					some = append(some, queue.NewJob{
						OrgID: org, Payload: greet{Name: key},
						Options: queue.JobOptions{Sequence: key},
					},
						queue.NewJob{OrgID: org, Payload: greet{}, Options: queue.JobOptions{After: pickSome(random, known)}})
				}
				var done []queue.EnqueuedJob
				err := pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) (err error) {
					if len(known) > 0 && random.IntN(4) == 0 {
						if _, err := queue.CancelJob(ctx, tx, known[len(known)-1-random.IntN(len(known)/2)]); err != nil {
							return err
						}
					}
					done, err = queue.EnqueueJobs(ctx, tx, some)
					return err
				})
				switch {
				case errors.Is(err, queue.ErrJobCompleted): // nothing was committed
				case err != nil:
					return err
				default:
					for _, d := range done {
						known = append(known, d.ID)
					}
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait(), "a deadlock is SQLSTATE 40P01")
	// What waited for a cancelled job is a dead letter; without it, nothing is left.
	require.Eventually(t, func() bool {
		b.exec(`SELECT daybook.cancel_jobs(ARRAY(SELECT id FROM daybook.jobs WHERE last_error_code = 'AWAITED_CANCELLED'), '{failed}')`)
		return b.count(`SELECT count(*) FROM daybook.jobs WHERE state IN ('pending', 'leased')`) == 0
	}, 2*long, 50*time.Millisecond)
	for _, l := range turns {
		l.end()
	}
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.jobs WHERE last_error LIKE 'two jobs%'`))
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.job_waits`))
	b.check()
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.job_sequences`))
	assert.Zero(t, b.count(`SELECT count(*) FROM daybook.job_wait_checks`))
	assert.Positive(t, b.count(`SELECT count(*) FROM daybook.jobs WHERE state = 'completed'`))
}

// pickSome returns up to three of the ids.
func pickSome(random *rand.Rand, ids []string) []string {
	var some []string
	for range random.IntN(4) {
		if len(ids) > 0 {
			some = append(some, ids[random.IntN(len(ids))])
		}
	}
	return some
}

// The audit finds a job that waits for nothing, and a person who tries it again has it released.
func TestTheAuditFindsJobsThatWaitForNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.enqueue(greet{}, queue.JobOptions{Sequence: "s"})
	found := func() (n int64) {
		r, err := audit.Run(t.Context(), b.Pool, audit.Options{})
		require.NoError(t, err)
		for _, c := range r.Checks {
			n += c.Count
		}
		return n
	}
	after := b.enqueue(greet{}, queue.JobOptions{After: []string{first}})
	assert.Zero(t, found(), "it is about to be decided")
	b.check()
	assert.Zero(t, found())
	b.exec(`DELETE FROM daybook.job_waits`)
	assert.EqualValues(t, 1, found())
	_, err := queue.RetryJob(t.Context(), b.Pool, after, queue.RetryOptions{})
	require.NoError(t, err)
	assert.Zero(t, found())
	assert.False(t, b.waits(after))
}

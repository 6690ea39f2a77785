package jobs_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/models"
	"github.com/daybook-dev/daybook/queue"
)

var errLater = errors.New("not now")

const (
	stepsKept = `SELECT count(*) FROM daybook.job_steps`
	byHand    = `INSERT INTO greeted VALUES ($1)`
)

// ran notes which steps were run.
type ran struct {
	mu    sync.Mutex
	names []string
}

func (r *ran) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names = append(r.names, name)
}

func (r *ran) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.names, " ")
}

// step runs a step that notes its name and returns it.
func (r *ran) step(ctx context.Context, job *jobs.Job[greet], name string) (string, error) {
	return jobs.Step(ctx, job, name, func(context.Context) (string, error) {
		r.add(name)
		return name + "!", nil
	})
}

// stepping registers a handler, whose attempts follow each other when the test has them due.
func (b *bundle) stepping(f func(ctx context.Context, job *jobs.Job[greet]) error) {
	b.exec(`CREATE TABLE IF NOT EXISTS greeted (name text)`)
	jobs.Register(b.registry, jobs.Policy{Base: time.Hour}, f)
}

// attempt works the job once.
func (b *bundle) attempt(id string) row {
	b.t.Helper()
	b.due()
	b.work()
	return b.row(id)
}

// TestStepsAreNotRunAgain: an attempt goes on behind the steps that the one before it has kept, and
// so does one that a person asks for. One that is to begin as if never tried runs all of them.
func TestStepsAreNotRunAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var r ran
	fails := true
	b.stepping(func(ctx context.Context, job *jobs.Job[greet]) error {
		one, err := r.step(ctx, job, "one")
		if err != nil {
			return err
		}
		two, err := r.step(ctx, job, "two")
		if err != nil {
			return err
		}
		if _, err = jobs.Step(ctx, job, "three", func(context.Context) (struct{}, error) {
			r.add("three")
			if fails {
				return struct{}{}, jobs.Final(errLater)
			}
			return struct{}{}, nil
		}); err != nil {
			return err
		}
		job.SetResult(one + two)
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	assert.Equal(t, models.JobFailed, b.attempt(id).State)
	assert.Equal(t, "one two three", r.all())
	assert.Equal(t, 2, b.count(stepsKept+` WHERE job_id = $1 AND attempt = 1 AND done AND times = 1`, id))
	_, err := queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{})
	require.NoError(t, err)
	assert.Equal(t, models.JobFailed, b.attempt(id).State)
	assert.Equal(t, "one two three three", r.all())

	fails = false
	_, err = queue.RetryJob(t.Context(), b.Pool, id, queue.RetryOptions{Mode: queue.RetryReset})
	require.NoError(t, err)
	assert.Zero(t, b.count(stepsKept))
	j := b.attempt(id)
	assert.Equal(t, models.JobCompleted, j.State)
	assert.JSONEq(t, `"one!two!"`, j.Result)
	assert.Equal(t, "one two three three one two three", r.all())
	assert.Equal(t, 3, b.count(stepsKept))
	b.exec(`DELETE FROM daybook.jobs`)
	assert.Zero(t, b.count(stepsKept), "they go with their job")
}

// TestStepInTx: what a step writes and its result commit together, or neither does.
func TestStepInTx(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.stepping(func(ctx context.Context, job *jobs.Job[greet]) error {
		n, err := jobs.StepInTx(ctx, job, "book", func(ctx context.Context, tx pgx.Tx) (int64, error) {
			tag, err := tx.Exec(ctx, byHand, "book")
			return tag.RowsAffected(), err
		})
		if err != nil {
			return err
		}
		_, err = jobs.StepInTx(ctx, job, "check", func(ctx context.Context, tx pgx.Tx) (int64, error) {
			if _, err := tx.Exec(ctx, byHand, "check"); err != nil {
				return 0, err
			}
			if job.Attempt == 1 {
				return 0, errLater
			}
			return n + 1, nil
		})
		return err
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	j := b.attempt(id)
	assert.Equal(t, models.JobPending, j.State)
	assert.Equal(t, "not now", j.Error)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted`))
	assert.Equal(t, 1, b.count(stepsKept))
	assert.Equal(t, models.JobCompleted, b.attempt(id).State)
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted WHERE name = 'book'`))
	assert.Equal(t, 1, b.count(`SELECT count(*) FROM greeted WHERE name = 'check'`))
	assert.Equal(t, 1, b.count(stepsKept+` WHERE name = 'check' AND attempt = 2 AND position = 2 AND result = '2'`))
}

// TestLoopGoesOn: a loop that an attempt has left goes on from its last round.
func TestLoopGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	round := func(job *jobs.Job[greet], done int) (int, bool, error) {
		if done == 30 && job.Attempt == 1 {
			return 0, false, errLater
		}
		return done + 10, done+10 < 50, nil
	}
	b.stepping(func(ctx context.Context, job *jobs.Job[greet]) error {
		rows, err := jobs.LoopInTx(ctx, job, "rows", func(ctx context.Context, tx pgx.Tx, done int) (int, bool, error) {
			if _, err := tx.Exec(ctx, byHand, "row"); err != nil {
				return 0, false, err
			}
			return round(job, done)
		})
		if err != nil {
			return err
		}
		files, err := jobs.Loop(ctx, job, "files", func(_ context.Context, done int) (int, bool, error) {
			return round(job, done)
		})
		job.SetResult(rows + files)
		return err
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	assert.Equal(t, models.JobPending, b.attempt(id).State)
	assert.Equal(t, 1, b.count(stepsKept+` WHERE name = 'rows' AND NOT done AND times = 3 AND result = '30'`))
	j := b.attempt(id)
	assert.Equal(t, models.JobCompleted, j.State)
	assert.JSONEq(t, `100`, j.Result)
	assert.Equal(t, 5, b.count(`SELECT count(*) FROM greeted`), "each round once")
	assert.Equal(t, 1, b.count(stepsKept+` WHERE name = 'rows' AND done AND times = 5 AND attempt = 2`))
}

// TestLostLeaseKeepsNoStep: a worker whose job another one has reclaimed keeps nothing, and is told.
func TestLostLeaseKeepsNoStep(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var plain, inTx error
	b.stepping(func(ctx context.Context, job *jobs.Job[greet]) error {
		b.exec(`UPDATE daybook.jobs SET fence = fence + 1 WHERE id = $1`, job.ID)
		_, plain = jobs.Step(ctx, job, "one", func(context.Context) (int, error) { return 1, nil })
		_, inTx = jobs.StepInTx(ctx, job, "two", func(ctx context.Context, tx pgx.Tx) (int, error) {
			_, err := tx.Exec(ctx, byHand, "two")
			return 2, err
		})
		b.exec(`UPDATE daybook.jobs SET fence = fence - 1 WHERE id = $1`, job.ID)
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.attempt(id)
	require.ErrorContains(t, plain, "lease")
	require.ErrorContains(t, inTx, "lease")
	assert.Zero(t, b.count(stepsKept))
	assert.Zero(t, b.count(`SELECT count(*) FROM greeted`))
}

// TestStepsOfAPickedJob: a job that is worked in an open transaction is leased when it has a step to
// keep.
func TestStepsOfAPickedJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var r ran
	b.shortly(jobs.Policy{}, func(ctx context.Context, job *jobs.Job[greet]) error {
		_, err := r.step(ctx, job, "one")
		return err
	})
	turn := b.linger(b.engine)
	b.learn()
	id := b.enqueue(greet{Name: "special"}, queue.JobOptions{})
	b.until(1, `SELECT count(*) FROM daybook.jobs WHERE id = $1 AND state = 'completed'`, id)
	turn.end()
	assert.Equal(t, "one", r.all())
	assert.Equal(t, 1, b.count(stepsKept))
}

// TestStepsThatCannotBe have codes and texts of their own, and are not run, or not kept.
func TestStepsThatCannotBe(t *testing.T) {
	t.Parallel()
	plain := func(v any) func(ctx context.Context, job *jobs.Job[greet]) error {
		return func(ctx context.Context, job *jobs.Job[greet]) error {
			_, err := jobs.Step(ctx, job, "one", func(context.Context) (any, error) { return v, nil })
			return err
		}
	}
	var twice ran
	for name, c := range map[string]struct {
		f    func(ctx context.Context, job *jobs.Job[greet]) error
		code models.ErrorCode
		says string
		is   error
	}{
		"U+0000":  {plain("\x00"), models.CodeStepNotStored, `character \u0000`, jobs.ErrStepNotStored},
		"no JSON": {plain(func() {}), models.CodeStepNotStored, "unsupported type", jobs.ErrStepNotStored},
		"large":   {plain(strings.Repeat("x", models.MaxStepBytes)), models.CodeStepNotStored, "may have 1048576", jobs.ErrStepNotStored},
		"no name": {func(ctx context.Context, job *jobs.Job[greet]) error {
			_, err := twice.step(ctx, job, "")
			return err
		}, models.CodeStepInvalid, "1 to 64 bytes", jobs.ErrStepInvalid},
		"twice": {func(ctx context.Context, job *jobs.Job[greet]) error {
			_, first := twice.step(ctx, job, "one")
			_, err := twice.step(ctx, job, "one")
			return errors.Join(first, err)
		}, models.CodeStepInvalid, "has asked for it before", jobs.ErrStepInvalid},
		"in the completing transaction": {func(_ context.Context, job *jobs.Job[greet]) error {
			job.InTx(func(ctx context.Context, _ pgx.Tx) error {
				_, err := twice.step(ctx, job, "one")
				return err
			})
			return nil
		}, models.CodeHandlerError, "Job.InTx", jobs.ErrNoSteps},
		"changed": {func(ctx context.Context, job *jobs.Job[greet]) error {
			if job.Attempt == 1 {
				return errors.Join(plain("text")(ctx, job), errLater)
			}
			_, err := jobs.Step(ctx, job, "one", func(context.Context) (int, error) { return 1, nil })
			return err
		}, models.CodeStepChanged, "kept by attempt 1", jobs.ErrStepChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var last error
			b.stepping(func(ctx context.Context, job *jobs.Job[greet]) error {
				last = c.f(ctx, job)
				return last
			})
			id := b.enqueue(greet{}, queue.JobOptions{})
			b.attempt(id)
			j := b.attempt(id)
			assert.EqualValues(t, c.code, j.Code)
			assert.Contains(t, j.Error, c.says)
			if last != nil {
				assert.ErrorIs(t, last, c.is)
			}
		})
	}
}

// TestRenamedStepIsSaid: a step under another name is run, whatever its place; what was kept and is
// not asked for any more is said when the attempt has ended well. Another order runs nothing twice.
func TestRenamedStepIsSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var r ran
	b.stepping(func(ctx context.Context, job *jobs.Job[greet]) error {
		order := []string{"three", "push", "one"}
		if job.Attempt == 1 {
			order = []string{"one", "upload", "three"}
		}
		for _, name := range order {
			if _, err := r.step(ctx, job, name); err != nil {
				return err
			}
		}
		if job.Attempt == 1 {
			return errLater
		}
		return nil
	})
	id := b.enqueue(greet{}, queue.JobOptions{})
	b.attempt(id)
	assert.NotContains(t, b.log.String(), "did not ask for")
	assert.Equal(t, models.JobCompleted, b.attempt(id).State)
	assert.Equal(t, "one upload three push", r.all())
	assert.Contains(t, b.log.String(), `kept="upload (position 2, attempt 1)" run=push`)
}

// TestStepsOfAnEarlierRequestAreForgotten: a unique job that is asked for anew does all of its work
// after the request.
func TestStepsOfAnEarlierRequestAreForgotten(t *testing.T) {
	t.Parallel()
	for name, asksIn := range map[string]int{"while it is worked": 1, "while it waits": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var r ran
			attempts := 0
			b.stepping(func(ctx context.Context, job *jobs.Job[greet]) error {
				_, err := r.step(ctx, job, "one")
				if attempts++; attempts == asksIn {
					b.enqueue(greet{}, queue.JobOptions{Unique: true})
				}
				if attempts == 1 {
					return errLater
				}
				return err
			})
			id := b.enqueue(greet{}, queue.JobOptions{Unique: true})
			j := b.attempt(id)
			if asksIn == 0 {
				require.Equal(t, models.JobPending, j.State)
				b.enqueue(greet{}, queue.JobOptions{Unique: true})
				assert.Zero(t, b.count(stepsKept))
				j = b.attempt(id)
			}
			assert.Equal(t, models.JobCompleted, j.State)
			assert.Equal(t, "one one", r.all())
		})
	}
}

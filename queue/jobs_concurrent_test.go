package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/queue"
)

// atOnce calls f a hundred times at the same moment, and returns the answers.
func atOnce(t *testing.T, f func() (queue.EnqueuedJob, error)) (ids map[string]int, duplicates int) {
	t.Helper()
	const calls = 100
	answers := make([]queue.EnqueuedJob, calls)
	begin := make(chan struct{})
	var g errgroup.Group
	for i := range calls {
		g.Go(func() (err error) {
			<-begin
			answers[i], err = f()
			return err
		})
	}
	close(begin)
	require.NoError(t, g.Wait())
	ids = map[string]int{}
	for _, a := range answers {
		ids[a.ID]++
		if a.Duplicate {
			duplicates++
		}
	}
	return ids, duplicates
}

func TestAHundredCallsWithOneKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, o := range map[string]queue.JobOptions{
		"key":            {IdempotencyKey: "k"},
		"unique":         {Unique: true},
		"key and unique": {IdempotencyKey: "l", Unique: true},
	} {
		p := welcome{UserID: name}
		ids, duplicates := atOnce(t,
			func() (queue.EnqueuedJob, error) { return queue.EnqueueJob(t.Context(), b.Pool, org, p, o) })
		assert.Len(t, ids, 1, name)
		assert.Equal(t, 99, duplicates, name)
		p.Note = "many"
		o.IdempotencyKey += "many"
		ids, duplicates = atOnce(t, func() (queue.EnqueuedJob, error) {
			rs, err := queue.EnqueueJobs(t.Context(), b.Pool, []queue.NewJob{{OrgID: org, Payload: p, Options: o}})
			if err != nil {
				return queue.EnqueuedJob{}, err
			}
			return rs[0], nil
		})
		assert.Len(t, ids, 1, "%s, in bulk", name)
		assert.Equal(t, 99, duplicates, "%s, in bulk", name)
	}
	assert.Equal(t, 6, b.queuedJobs())
}

// A caller that rolls back leaves the key to the next one, who waits for that.
func TestAKeyThatIsRolledBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := queue.JobOptions{IdempotencyKey: "k"}
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	gone, err := queue.EnqueueJob(t.Context(), tx, org, welcome{UserID: "u_1"}, o)
	require.NoError(t, err)
	var next queue.EnqueuedJob
	var g errgroup.Group
	g.Go(func() (err error) {
		next, err = queue.EnqueueJob(t.Context(), b.Pool, org, welcome{UserID: "another payload"}, o)
		return err
	})
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, g.Wait())
	assert.False(t, next.Duplicate)
	assert.NotEqual(t, gone.ID, next.ID)
}

// Callers have keys and unique payloads in an order of their own, some new, some not, some twice.
func TestEnqueueJobsDoesNotDeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const keys, callers, rounds = 40, 8, 15
	var mu sync.Mutex
	ids := map[string]map[string]bool{}
	var g errgroup.Group
	for caller := range callers {
		g.Go(func() error {
			random := rand.New(rand.NewPCG(3, uint64(caller)))
			for round := range rounds {
				var jobs []queue.NewJob
				for _, k := range random.Perm(keys)[:30] {
					name := fmt.Sprintf("%d/%d", round, k)
					o := queue.JobOptions{IdempotencyKey: name}
					if k%2 == 0 {
						o = queue.JobOptions{Unique: true}
					}
					jobs = append(jobs, queue.NewJob{OrgID: fmt.Sprint("org_", k%3), Payload: welcome{UserID: name}, Options: o})
				}
				jobs = append(jobs, jobs[0], jobs[7], queue.NewJob{OrgID: org, Payload: welcome{UserID: "plain"}})
				err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
					rs, err := queue.EnqueueJobs(t.Context(), tx, jobs)
					mu.Lock()
					defer mu.Unlock()
					for i, r := range rs {
						name := jobs[i].Payload.(welcome).UserID
						if name == "plain" {
							continue
						}
						if ids[name] == nil {
							ids[name] = map[string]bool{}
						}
						ids[name][r.ID] = true
					}
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait(), "a deadlock is SQLSTATE 40P01")
	for name, of := range ids {
		assert.Len(t, of, 1, "ids of %s", name)
	}
	assert.Equal(t, len(ids)+callers*rounds, b.queuedJobs())
}

// Under REPEATABLE READ a key that another transaction committed meanwhile is SQLSTATE 40001, as
// any conflict.
func TestAKeyUnderRepeatableRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM daybook.jobs`)
	require.NoError(t, err)
	b.newJob(welcome{}, queue.JobOptions{IdempotencyKey: "k"})
	_, err = queue.EnqueueJob(t.Context(), tx, org, welcome{}, queue.JobOptions{IdempotencyKey: "k"})
	assert.ErrorContains(t, err, "40001")
}

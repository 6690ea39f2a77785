package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/jobs"
	"github.com/daybook-dev/daybook/queue"
)

// TestUniqueIsAskedForWhileItsPickIsLost: the transaction that has picked a unique job is lost
// while its handler, which has read what is old by then, goes on. A request that comes meanwhile
// meets a pending row, and leaves it as it is. The attempt that has read what is old does not
// complete the job.
func TestUniqueIsAskedForWhileItsPickIsLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`CREATE TABLE source (v int); CREATE TABLE read (v int)`)
	b.exec(`INSERT INTO source VALUES (0)`)
	var asked atomic.Value
	var first atomic.Bool
	b.shortly(jobs.Policy{}, func(_ context.Context, job *jobs.Job[greet]) error {
		ctx := context.Background()
		var v int
		if err := b.Pool.QueryRow(ctx, `SELECT v FROM source`).Scan(&v); err != nil {
			return err
		}
		if first.CompareAndSwap(true, false) {
			if _, err := b.Pool.Exec(ctx, `
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle in transaction'`); err != nil {
				return err
			}
			if _, err := b.Pool.Exec(ctx, `UPDATE source SET v = v + 1`); err != nil {
				return err
			}
			e, err := queue.EnqueueJob(ctx, b.Pool, org, greet{Name: "special"}, queue.JobOptions{Unique: true})
			if err != nil {
				return err
			}
			asked.Store(string(e.Result))
		}
		_, err := b.Pool.Exec(ctx, `INSERT INTO read VALUES ($1)`, v)
		return err
	})
	turn := b.linger(b.engine)
	var tries []any
	for try := 0; ; try++ {
		require.Less(t, try, 30, "the request has come after the rescue each time")
		b.learn()
		first.Store(true)
		b.enqueue(greet{Name: "special"}, queue.JobOptions{Unique: true})
		b.until(0, `SELECT count(*) FROM daybook.jobs WHERE state IN ('pending', 'leased')`)
		tries = append(tries, asked.Load())
		if asked.Load() == string(queue.Unchanged) {
			break
		}
	}
	turn.end()
	t.Log("tries", tries)
	assert.Equal(t, b.count(`SELECT v FROM source`), b.count(`SELECT max(v) FROM read`),
		"the request said %v: an attempt that begins after it sees what its caller wrote", asked.Load())
}

package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/queue"
)

// TestClaimsKeepLimits: claims by SQL get no more jobs of a key than its limit says, and the next
// ones when those have ended, also by a lost lease.
func TestClaimsKeepLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.set_job_limit('w', parallel => 2)`)
	b.exec(`SELECT daybook.start_job_worker('a', '{w}'), daybook.start_job_worker('b', '{w}')`)
	for range 5 {
		b.enqueued("o", queue.JobOptions{LimitKey: "k"})
	}
	b.enqueued("o", queue.JobOptions{LimitKey: "other"})
	first := b.claims("a", 10)
	require.Len(t, first, 3, "two of the key, and the other one")
	assert.Empty(t, b.claims("b", 10))
	b.exec(`SELECT daybook.complete_job($1, $2)`, first[0].JobID, first[0].Fence)
	next := b.claims("b", 10)
	require.Len(t, next, 1, "it has the place of the one that ended")
	assert.NotContains(t, []string{first[0].JobID, first[1].JobID, first[2].JobID}, next[0].JobID)
	b.exec(`SELECT daybook.stop_job_worker('a')`)
	assert.Len(t, b.claims("b", 10), 2, "the other key's job, and one for the place of what was given back")
	assert.Empty(t, b.claims("b", 10))
}

// TestLimitKeyFollowsThePayload: an edited job, and a debounced one with a newer payload, has the
// limit of its payload.
func TestLimitKeyFollowsThePayload(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.set_job_limit('w', by => 'payload.account', parallel => 1)`)
	key := func(id string) (key string) {
		const read = `SELECT coalesce(limit_key, '') FROM daybook.jobs WHERE id = $1`
		require.NoError(t, b.Pool.QueryRow(t.Context(), read, id).Scan(&key))
		return key
	}
	enqueue := func(payload string, o queue.JobOptions) string {
		job, err := queue.EnqueueJob(t.Context(), b.Pool, "o", queue.RawPayload{Type: "w", Data: []byte(payload)}, o)
		require.NoError(t, err)
		return job.ID
	}
	later := queue.JobOptions{RunAt: time.Now().Add(time.Hour)}
	plain := enqueue(`{"account": "a"}`, later)
	assert.Equal(t, "a", key(plain))
	b.exec(`SELECT daybook.edit_job($1, '{"account": "b"}')`, plain)
	assert.Equal(t, "b", key(plain))
	later.LimitKey = "own"
	own := enqueue(`{"account": "a"}`, later)
	b.exec(`SELECT daybook.edit_job($1, '{"account": "b"}')`, own)
	assert.Equal(t, "own", key(own), "a key that the request gave stays")

	debounce := queue.JobOptions{Debounce: queue.Debounce{Key: "d", Wait: time.Minute}}
	waits := enqueue(`{"account": "a"}`, debounce)
	assert.Equal(t, "a", key(waits))
	assert.Equal(t, waits, enqueue(`{"account": "b"}`, debounce))
	assert.Equal(t, "b", key(waits))
	debounce.LimitKey = "own"
	assert.Equal(t, waits, enqueue(`{"account": "c"}`, debounce))
	assert.Equal(t, "own", key(waits))
	debounce.LimitKey = ""
	assert.Equal(t, waits, enqueue(`{"other": 1}`, debounce))
	assert.Empty(t, key(waits), "neither the request nor its payload gives one")
	assert.Equal(t, waits, enqueue(`{"account": "d"}`, debounce))
	assert.Equal(t, "d", key(waits))
	b.exec(`SELECT daybook.set_job_limit('w')`)
	assert.Equal(t, waits, enqueue(`{"account": "e"}`, debounce))
	assert.Empty(t, key(waits), "its type has no limit any more")
}

// TestQueueWithALimit: a program declares a queue's limit by key, a person's goes before it, and it goes
// with the queue.
func TestQueueWithALimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	set := func(l queue.Limit) error {
		return second(queue.SetQueue(t.Context(), b.Pool, queue.NamedQueue{Name: "bank", Limit: l}))
	}
	limits := func() (found string) {
		const read = `SELECT coalesce(string_agg(concat_ws(' ', scope, by, parallel, rate, rate_seconds, declared), ', '), '') FROM daybook.job_limits`
		require.NoError(t, b.Pool.QueryRow(t.Context(), read).Scan(&found))
		return found
	}
	for _, l := range []queue.Limit{
		{By: "payload.account"},
		{By: "account", Parallel: 1},
		{Parallel: -1},
		{Parallel: 1, Per: time.Second},
		{Rate: 1, Per: time.Microsecond},
		{Parallel: 1 << 40},
	} {
		require.ErrorIs(t, set(l), queue.ErrInvalid, "%+v", l)
	}
	require.NoError(t, set(queue.Limit{By: "payload.account", Parallel: 2, Rate: 10}))
	assert.Equal(t, "queue/bank payload.account 2 10 1 t", limits())
	for _, c := range []struct {
		parallel int
		changes  bool
	}{{2, false}, {3, true}} {
		changed, err := queue.SetQueue(t.Context(), b.Pool, queue.NamedQueue{
			Name: "bank", Limit: queue.Limit{By: "payload.account", Parallel: c.parallel, Rate: 10},
		})
		require.NoError(t, err)
		assert.Equal(t, c.changes, changed, "with %d at a time", c.parallel)
	}
	b.exec(`SELECT daybook.set_job_limit(queue => 'bank', by => 'org_id', parallel => 3)`)
	require.NoError(t, set(queue.Limit{By: "payload.account", Parallel: 2}))
	assert.Equal(t, "queue/bank org_id 3 f", limits(), "a person's stays")
	b.exec(`SELECT daybook.set_job_limit(queue => 'bank')`)
	require.NoError(t, set(queue.Limit{By: "payload.account", Parallel: 2}))
	assert.Equal(t, "queue/bank payload.account 2 t", limits())
	require.NoError(t, set(queue.Limit{}))
	assert.Empty(t, limits())
	require.NoError(t, set(queue.Limit{Parallel: 2}))
	require.NoError(t, queue.DeleteQueue(t.Context(), b.Pool, "bank"))
	assert.Empty(t, limits())
	_, err := b.Pool.Exec(t.Context(), `SELECT daybook.set_job_limit(queue => 'bank', parallel => 3)`)
	require.ErrorContains(t, err, "DB023")
}

// TestClaimsKeepLimitsOfQueues: claims by SQL of several types get no more jobs of a key than the limit
// of their queue says.
func TestClaimsKeepLimitsOfQueues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.set_queue('bank'), daybook.set_job_limit(queue => 'bank', parallel => 2)`)
	b.exec(`SELECT daybook.start_job_worker('a', '{v,w}')`)
	b.exec(`SELECT daybook.enqueue_job('o', t, '{}', queue => 'bank', limit_key => 'k') FROM unnest('{v,w,v,w}'::text[]) t`)
	first := b.claims("a", 10)
	require.Len(t, first, 2)
	b.exec(`SELECT daybook.complete_job($1, $2)`, first[0].JobID, first[0].Fence)
	assert.Len(t, b.claims("a", 10), 1)
}

// TestEditedJobFreesItsPlace: a job that holds a place of a key and gets another one leaves it to the
// next.
func TestEditedJobFreesItsPlace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`SELECT daybook.set_job_limit('w', by => 'payload.account', parallel => 1)`)
	var ids []string
	for range 2 {
		payload := queue.RawPayload{Type: "w", Data: []byte(`{"account": "a"}`)}
		job, err := queue.EnqueueJob(t.Context(), b.Pool, "o", payload, queue.JobOptions{})
		require.NoError(t, err)
		ids = append(ids, job.ID)
	}
	fleet := func(id string) (fleet int) {
		require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT fleet FROM daybook.jobs WHERE id = $1`, id).Scan(&fleet))
		return fleet
	}
	b.exec(`SELECT daybook.check_waits()`)
	assert.Equal(t, []int{0, -2}, []int{fleet(ids[0]), fleet(ids[1])})
	b.exec(`SELECT daybook.edit_job($1, '{"account": "b"}')`, ids[0])
	assert.Equal(t, []int{-1, 0}, []int{fleet(ids[0]), fleet(ids[1])})
}

package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// queues is room for everything but named queues that are full.
type queues struct {
	mu     sync.Mutex
	closed map[string]time.Duration
	used   map[string]int
	// everywhere is the limit of each type over all workers.
	everywhere int
}

func newQueues() *queues { return &queues{closed: map[string]time.Duration{}, used: map[string]int{}} }

func (*queues) Handles(jobType string, _ int) bool { return jobType != "unhandled" }
func (*queues) Free(string) bool                   { return true }

func (r *queues) Reserve(jobType string, most int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used[jobType] += most
	return most
}

func (r *queues) Return(jobType string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used[jobType] -= n
}

func (r *queues) Everywhere(string) int { return r.everywhere }
func (*queues) Full(string)             {}

func (r *queues) Open(queue string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, closed := r.closed[queue]
	return !closed
}

func (r *queues) QueueFull(queue string, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed[queue] = wait
}

// open has the queues asked again.
func (r *queues) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.closed)
}

// inQueue enqueues n jobs of the type noop in a named queue; "" is none.
func (b *bundle) inQueue(org, queue string, n int) {
	b.t.Helper()
	b.exec(`SELECT daybook.enqueue_job($1, 'noop', '{}', queue => nullif($2, '')) FROM generate_series(1, $3)`, org,
		queue, n)
}

func (b *bundle) setQueue(q store.NamedQueue) {
	b.t.Helper()
	_, err := store.SetQueue(b.t.Context(), b.Pool, q)
	require.NoError(b.t, err)
}

// leaseAll leases what may be leased, and counts it by queue.
func leaseAll(t *testing.T, s *store.Store, turn store.Turn, room store.Room, limit int) map[string]int {
	t.Helper()
	leased, err := s.LeaseFor(t.Context(), turn, limit, room)
	require.NoError(t, err)
	n := map[string]int{}
	for _, j := range leased.Jobs {
		n[j.Queue]++
	}
	return n
}

// TestPausedQueue: nothing of a paused queue is leased or picked, and its neighbours are.
func TestPausedQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "slow"})
	b.inQueue("o", "slow", 3)
	b.inQueue("o", "", 3)
	changed, err := store.PauseQueue(t.Context(), b.Pool, "slow", true)
	require.NoError(t, err)
	assert.True(t, changed)
	s := store.NewQueue(b.Pool, store.Jobs)
	assert.Equal(t, map[string]int{"": 3}, leaseAll(t, s, b.turn("run/0/1"), newQueues(), 10))

	_, err = store.PauseQueue(t.Context(), b.Pool, "slow", false)
	require.NoError(t, err)
	assert.Eventually(t, func() bool {
		return leaseAll(t, s, b.turn("run/0/2"), newQueues(), 10)["slow"] == 3
	}, pgtest.Patience, 20*time.Millisecond, "it is found when it is resumed")
	_, err = store.PauseQueue(t.Context(), b.Pool, "none", true)
	assert.ErrorIs(t, err, store.ErrQueueNotFound)
}

// TestPauseMeetsThePick: a queue that is paused after a scan has found its jobs gives nothing to
// the lock that follows.
func TestPauseMeetsThePick(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "slow"})
	b.inQueue("o", "slow", 3)
	s := store.NewQueue(b.Pool, store.Jobs)
	pick, err := s.PickTypes(t.Context(), 10, func(string) bool { return true }, newQueues())
	require.NoError(t, err)
	require.False(t, pick.Empty())
	_, err = store.PauseQueue(t.Context(), b.Pool, "slow", true)
	require.NoError(t, err)
	require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
		jobs, err := pick.Lock(t.Context(), tx)
		assert.Empty(t, jobs)
		return err
	}))
}

// TestQueueWithoutLimitsIsPicked: its jobs are picked as others are, also by recent picks.
func TestQueueWithoutLimitsIsPicked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "plain"})
	s := store.NewQueue(b.Pool, store.Jobs)
	room := newQueues()
	for i := range 3 {
		b.inQueue("o", "plain", 2)
		b.inQueue("o", "", 2)
		pick, err := s.PickTypes(t.Context(), 10, func(string) bool { return true }, room)
		require.NoError(t, err)
		require.NoError(t, s.InTx(t.Context(), func(tx pgx.Tx) error {
			jobs, err := pick.Lock(t.Context(), tx)
			if err != nil {
				return err
			}
			assert.Len(t, jobs, 4, "pick %d", i)
			_, err = tx.Exec(t.Context(),
				`UPDATE daybook.jobs SET state = 'completed', finished_at = clock_timestamp() WHERE state = 'pending'`)
			return err
		}))
	}
	room.mu.Lock()
	defer room.mu.Unlock()
	assert.Equal(t, 12, room.used["noop"], "room is reserved for what was picked, and for nothing else")
}

// TestPickReturnsRoom: a pick takes nothing of a type with a limit over all workers, and keeps no
// room for it, also where several organizations have jobs of it.
func TestPickReturnsRoom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, org := range []string{"a", "b", "c"} {
		b.inQueue(org, "", 2)
	}
	s, room := store.NewQueue(b.Pool, store.Jobs), newQueues()
	room.everywhere = 2
	pick, err := s.PickTypes(t.Context(), 10, func(string) bool { return true }, room)
	require.NoError(t, err)
	assert.True(t, pick.Empty())
	room.mu.Lock()
	defer room.mu.Unlock()
	assert.Zero(t, room.used["noop"])
}

// TestJobsAreGathered: a job that was enqueued for the old fleet of its queue comes to the new one.
func TestJobsAreGathered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "orders", Fleet: "shop"})
	b.inQueue("o", "orders", 1)
	b.exec(`UPDATE daybook.jobs SET fleet = 0`)
	s := store.NewQueue(b.Pool, store.JobsOf("shop"))
	require.NoError(t, s.Join(t.Context()))
	_, err := s.Tend(t.Context(), store.JobWorker{ID: "w", Name: "w"})
	require.NoError(t, err)
	_, err = s.CheckWaits(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"orders": 1}, leaseAll(t, s, b.turn("run/0/1"), newQueues(), 10))
}

// TestManyJobsMoveInBatches: however many open jobs a queue has, its change of fleet holds few of
// them, and a batch reads those that it moves. Workers move the others, and those that were locked.
func TestManyJobsMoveInBatches(t *testing.T) {
	t.Parallel()
	const jobs, atOnce = 2500, 1000
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "orders"})
	b.inQueue("o", "orders", jobs)
	moved := func() int { return fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE fleet <> 0`) }
	s := store.NewQueue(b.Pool, store.Jobs)
	b.setQueue(store.NamedQueue{Name: "orders", Fleet: "shop"})
	require.Equal(t, atOnce, moved(), "at once")
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM daybook.jobs WHERE fleet = 0 ORDER BY id LIMIT 1 FOR UPDATE`)
	require.NoError(t, err)
	for _, want := range []int{2 * atOnce, jobs - 1, jobs - 1} {
		checked, err := s.CheckWaits(t.Context())
		require.NoError(t, err)
		assert.Equal(t, store.CheckedWaits{Again: 1}, checked)
		assert.Equal(t, want, moved())
	}
	require.NoError(t, tx.Rollback(t.Context()))
	checked, err := s.CheckWaits(t.Context())
	require.NoError(t, err)
	assert.Equal(t, store.CheckedWaits{Decided: 1}, checked)
	assert.Equal(t, jobs, moved())
	_, err = store.SetQueue(t.Context(), b.Pool, store.NamedQueue{Name: "orders"})
	require.NoError(t, err)
	b.exec(`UPDATE daybook.jobs SET state = 'cancelled', finished_at = clock_timestamp() WHERE state = 'pending'`)
	require.NoError(t, store.DeleteQueue(t.Context(), b.Pool, "orders"))
	checked, err = s.CheckWaits(t.Context())
	require.NoError(t, err)
	assert.Equal(t, store.CheckedWaits{Decided: 1}, checked, "of a queue that is deleted nothing is left to do")
}

// TestQueueIsLeasedUpToItsLimit: over all workers, organizations and types together.
func TestQueueIsLeasedUpToItsLimit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "two", MaxParallel: 2})
	for _, org := range []string{"a", "b", "c"} {
		b.inQueue(org, "two", 3)
	}
	b.inQueue("a", "", 2)
	first, second := store.NewQueue(b.Pool, store.Jobs), store.NewQueue(b.Pool, store.Jobs)
	room := newQueues()
	assert.Equal(t, map[string]int{"two": 2, "": 2}, leaseAll(t, first, b.turn("run/0/1"), room, 100))
	assert.False(t, room.Open("two"))
	room.mu.Lock()
	assert.Equal(t, 4, room.used["noop"], "room is reserved for what was leased, and for nothing else")
	room.mu.Unlock()
	assert.Empty(t, leaseAll(t, second, b.turn("run/1/1"), newQueues(), 100), "another worker's lease counts")
	b.exec(`UPDATE daybook.jobs SET state = 'pending', turn_id = NULL, fence = NULL, leased_generation = NULL, attempt_started_at = NULL, worker = NULL, working = false, detached = false
	 WHERE id = (SELECT id FROM daybook.jobs WHERE queue = 'two' AND state = 'leased' LIMIT 1)`)
	room.open()
	assert.Equal(t, map[string]int{"two": 1}, leaseAll(t, first, b.turn("run/0/2"), room, 100))
}

// TestRateOfAQueue: as many attempts begin as the rate allows, in all workers together, and what
// has begun at once is not more than the burst.
func TestRateOfAQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "slow", Rate: 6, RateSeconds: 3600, RateBurst: 3})
	b.inQueue("a", "slow", 5)
	b.inQueue("b", "slow", 5)
	b.inQueue("b", "", 1)
	s, room := store.NewQueue(b.Pool, store.Jobs), newQueues()
	assert.Equal(t, map[string]int{"slow": 3, "": 1}, leaseAll(t, s, b.turn("run/0/1"), room, 100))
	assert.InDelta(t, 10*time.Minute, room.closed["slow"], float64(time.Minute), "until one more may begin")
	room.open()
	assert.Empty(t, leaseAll(t, s, b.turn("run/0/2"), room, 100))
	b.exec(`UPDATE daybook.queue_rates SET at = at - interval '20 minutes'`)
	room.open()
	assert.Equal(t, map[string]int{"slow": 2}, leaseAll(t, s, b.turn("run/0/3"), room, 100), "a third of an hour later")
}

// TestLimitMeetsTheLease: a limit that is set after a scan has found the queue's jobs holds for the
// lease that follows.
func TestLimitMeetsTheLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "slow"})
	b.inQueue("o", "slow", 1)
	s := store.NewQueue(b.Pool, store.Jobs)
	assert.Len(t, leaseAll(t, s, b.turn("run/0/1"), newQueues(), 1), 1)
	b.inQueue("o", "slow", 9)
	b.setQueue(store.NamedQueue{Name: "slow", MaxParallel: 3})
	assert.Eventually(t, func() bool {
		return leaseAll(t, s, b.turn("run/0/2"), newQueues(), 100)["slow"] == 2
	}, pgtest.Patience, 20*time.Millisecond, "one was leased before")
	assert.Empty(t, leaseAll(t, s, b.turn("run/0/3"), newQueues(), 100))
}

// TestFleetsShareNothing: each fleet leases the jobs of its queues, and is woken for those alone; a
// queue that changes its fleet takes its jobs along.
func TestFleetsShareNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fleet, err := store.FleetOf(t.Context(), b.Pool, "shop")
	require.NoError(t, err)
	again, err := store.FleetOf(t.Context(), b.Pool, "shop")
	require.NoError(t, err)
	assert.Equal(t, fleet, again)
	_, err = store.FleetOf(t.Context(), b.Pool, "No Name")
	require.ErrorIs(t, err, store.ErrInvalid)
	b.setQueue(store.NamedQueue{Name: "orders", Fleet: "shop"})
	b.inQueue("o", "orders", 3)
	b.inQueue("o", "", 2)
	mine, theirs := store.NewQueue(b.Pool, store.Jobs), store.NewQueue(b.Pool, store.JobsOf("shop"))
	require.NoError(t, theirs.Join(t.Context()))
	assert.Equal(t, map[string]int{"": 2}, leaseAll(t, mine, b.turn("run/0/1"), newQueues(), 10))
	assert.Equal(t, map[string]int{"orders": 3}, leaseAll(t, theirs, b.turn("run/1/1"), newQueues(), 10))

	b.inQueue("o", "orders", 4)
	b.setQueue(store.NamedQueue{Name: "orders"})
	assert.Eventually(t, func() bool {
		return leaseAll(t, mine, b.turn("run/0/2"), newQueues(), 10)["orders"] == 4
	}, pgtest.Patience, 20*time.Millisecond)
}

// TestUnknownQueueIsRefused: a misspelt name would go around the limits of the queue that was
// meant.
func TestUnknownQueueIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, stmt := range []string{
		`SELECT daybook.enqueue_job('o', 'noop', '{}', queue => 'ordres')`,
		`SELECT daybook.enqueue_jobs(ARRAY['o'], ARRAY['noop'], ARRAY['{}'::jsonb], queues => ARRAY['ordres'])`,
	} {
		_, err := b.Pool.Exec(t.Context(), stmt)
		assert.ErrorContains(t, err, "there is no queue 'ordres'")
	}
	b.exec(`SELECT daybook.enqueue_job('o', 'noop', '{}', queue => 'default')`)
	var queue *string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT queue FROM daybook.jobs`).Scan(&queue))
	assert.Nil(t, queue, "default is no named queue")
}

// The functions say what is wrong with what they are given, and none of them is done without doing
// anything.
func TestQueuesThatCannotBe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, stmt := range []string{
		`SELECT daybook.set_queue('bank', owner => repeat('x', 256))`, `SELECT daybook.set_queue('bank', set_by => '')`,
		`SELECT daybook.set_queue('bank', set_by => repeat('x', 256))`,
		`SELECT daybook.pause_queue(NULL)`, `SELECT daybook.release_queue(NULL)`, `SELECT daybook.delete_queue(NULL)`,
	} {
		_, err := b.Pool.Exec(t.Context(), stmt)
		assert.Equal(t, "DB010", store.SQLState(err), stmt)
	}
}

// TestNamedQueues: a queue is made, listed and deleted.
func TestNamedQueues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{
		Name: "a", Fleet: "shop", MaxParallel: 2, Rate: 10, RateSeconds: 60, RateBurst: 4,
		Owner: "team",
	})
	b.inQueue("o", "a", 2)
	list, err := store.NamedQueues(t.Context(), b.Pool, store.QueuesPage{})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NotNil(t, list[0].OldestDue)
	list[0].OldestDue = nil
	assert.Equal(t, store.NamedQueue{
		Name: "a", Fleet: "shop", MaxParallel: 2, Rate: 10, RateSeconds: 60, RateBurst: 4, Owner: "team", Pending: 2,
		Due: 2,
	}, list[0])
	require.ErrorIs(t, store.DeleteQueue(t.Context(), b.Pool, "a"), store.ErrQueueNotEmpty)
	b.exec(`DELETE FROM daybook.jobs`)
	require.NoError(t, store.DeleteQueue(t.Context(), b.Pool, "a"))
	require.ErrorIs(t, store.DeleteQueue(context.Background(), b.Pool, "a"), store.ErrQueueNotFound)
	for _, wrong := range []store.NamedQueue{
		{Name: "default"},
		{Name: "a/b"},
		{Name: "a", MaxParallel: -1},
		{Name: "a", RateBurst: 2},
		{Name: "a", Fleet: "A B"},
	} {
		_, err := store.SetQueue(t.Context(), b.Pool, wrong)
		assert.ErrorIs(t, err, store.ErrInvalid, "%+v", wrong)
	}
}

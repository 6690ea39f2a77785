package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// recentBundle is a store of jobs whose next pick finds and locks in one statement.
type recentBundle struct {
	*bundle
	jobs *store.Store
	n    int
}

func setupRecent(t *testing.T) *recentBundle {
	t.Helper()
	b := setup(t)
	return &recentBundle{bundle: b, jobs: store.NewQueue(b.Pool, store.Jobs)}
}

// enqueue enqueues a job, and returns its id.
func (b *recentBundle) enqueue(org, jobType string, priority models.Priority) string {
	b.t.Helper()
	b.n++
	j, err := store.EnqueueJob(b.t.Context(), b.Pool,
		store.NewJob{
			OrgID: org, Type: jobType, Priority: priority,
			Payload: json.RawMessage(fmt.Sprintf(`{"n": %d}`, b.n)),
		})
	require.NoError(b.t, err)
	return j.JobID
}

// short are the types that are picked.
func short(jobType string) bool { return jobType == "short" || jobType == "quick" }

// pick picks without a scan before it, after scans that found jobs of both short types.
func (b *recentBundle) pick() *store.Pick {
	b.t.Helper()
	for {
		pick, err := b.jobs.PickTypes(b.t.Context(), 100, short, pgtest.Unbounded())
		require.NoError(b.t, err)
		if pick.Recently(time.Minute) {
			return pick
		}
		if !pick.Empty() {
			b.complete(pick)
			continue
		}
		b.enqueue("org_0", "short", 0)
		b.enqueue("org_0", "quick", 0)
	}
}

// complete completes what a pick locks, and returns the ids in their order.
func (b *recentBundle) complete(pick *store.Pick) (ids []string) {
	b.t.Helper()
	require.NoError(b.t, b.jobs.InTx(b.t.Context(), func(tx pgx.Tx) error {
		jobs, err := pick.Lock(b.t.Context(), tx)
		if err != nil || len(jobs) == 0 {
			return err
		}
		completions := make([]store.Completion, len(jobs))
		for i, j := range jobs {
			ids = append(ids, j.ID)
			completions[i] = store.Completion{Job: j, Outcome: models.OutcomeCompleted}
		}
		_, err = store.Jobs.Complete(b.t.Context(), tx, store.Turn{ID: "run/0/1", Fence: 1}, completions,
			store.Access{Picked: true, Commit: true})
		return err
	}))
	return ids
}

// next is what a pick after a scan takes.
func (b *recentBundle) next() (pick *store.Pick, ids []string) {
	b.t.Helper()
	pick, err := b.jobs.PickTypes(b.t.Context(), 100, short, pgtest.Unbounded())
	require.NoError(b.t, err)
	require.False(b.t, pick.Recently(time.Minute), "it scans")
	if pick.Empty() {
		return pick, nil
	}
	return pick, b.complete(pick)
}

// TestRecentPick: jobs that have just fallen due are found and locked in one statement, and begin
// in the order of every pick.
func TestRecentPick(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	pick := b.pick()
	first := b.enqueue("org_1", "short", 0)
	second := b.enqueue("org_1", "short", 0)
	quick := b.enqueue("org_1", "quick", 0)
	other := b.enqueue("org_2", "short", 0)
	high := b.enqueue("org_3", "quick", models.PriorityHigh)
	assert.Equal(t, []string{high, first, other, quick, second}, b.complete(pick),
		"priorities, then organizations in turn, then types in turn, then age")
}

// TestRecentPickReadsWhatIsDue: a recent pick finds, locks and completes what is due, however many
// jobs the table has.
func TestRecentPickReadsWhatIsDue(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	b.exec(`INSERT INTO daybook.jobs (org_id, type, payload, state, finished_at) SELECT 'org_9', 'short', '{}', 'completed', now() FROM generate_series(1, 3000)`)
	b.exec(`ANALYZE daybook.jobs`)
	pool, reads := fixture.Reads(t, b.Pool)
	b.jobs = store.NewQueue(pool, store.Jobs)
	pick := b.pick()
	id := b.enqueue("org_1", "short", 0)
	before, _ := reads("daybook.jobs")
	assert.Equal(t, []string{id}, b.complete(pick))
	after, sequential := reads("daybook.jobs")
	assert.Zero(t, sequential)
	assert.LessOrEqual(t, after-before, int64(20))
}

// TestRecentPickUndone: what a recent pick had locked is found again when its transaction fails.
func TestRecentPickUndone(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	pick := b.pick()
	id := b.enqueue("org_1", "short", 0)
	errFails := errors.New("it fails")
	require.ErrorIs(t, b.jobs.InTx(t.Context(), func(tx pgx.Tx) error {
		jobs, err := pick.Lock(t.Context(), tx)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		return errFails
	}), errFails)
	pick.Undo()
	_, ids := b.next()
	assert.Equal(t, []string{id}, ids)
}

// TestRecentPickLeavesOthers: a recent pick takes no job that is to be leased, and the next pick
// tells of those.
func TestRecentPickLeavesOthers(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	limit := 1
	require.NoError(t, b.jobs.InTx(t.Context(), func(tx pgx.Tx) error {
		_, err := store.CapOrganization(t.Context(), tx, "capped", &limit)
		require.NoError(t, err)
		_, err = store.PauseOrganization(t.Context(), tx, "paused")
		return err
	}))
	pick := b.pick()
	b.enqueue("org_1", "long", 0)
	b.enqueue("capped", "short", 0)
	b.enqueue("paused", "short", 0)
	id := b.enqueue("org_1", "short", 0)
	assert.Equal(t, []string{id}, b.complete(pick))
	pick, ids := b.next()
	assert.Empty(t, ids)
	assert.True(t, pick.Others)
	assert.True(t, pick.Capped)
}

// TestRecentPickLeavesMany: when there is more than one pick takes, what comes first is decided by
// a scan.
func TestRecentPickLeavesMany(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	pick := b.pick()
	var want []string
	for range store.MostRecent + 1 {
		want = append(want, b.enqueue("org_1", "short", 0))
	}
	assert.Empty(t, b.complete(pick))
	assert.True(t, pick.Empty(), "the caller looks again at once")
	_, ids := b.next()
	assert.Equal(t, want, ids)
}

// older is the room of a worker whose handlers have no version.
type older struct{ store.Room }

func (o older) Handles(jobType string, version int) bool {
	return version == 0 && o.Room.Handles(jobType, version)
}

// TestRecentPickLeavesLaterVersionsAlone: a scan of an older worker sees jobs that need a later version,
// and the pick after it takes none of them.
func TestRecentPickLeavesLaterVersionsAlone(t *testing.T) {
	t.Parallel()
	b := setupRecent(t)
	for range 20 {
		for _, version := range []int{0, 2} {
			b.n++
			_, err := store.EnqueueJob(t.Context(), b.Pool, store.NewJob{
				OrgID: "org", Type: "short", MinVersion: version, Payload: json.RawMessage(fmt.Sprintf(`{"n": %d}`, b.n)),
			})
			require.NoError(t, err)
		}
		pick, err := b.jobs.PickTypes(t.Context(), 100, short, older{pgtest.Unbounded()})
		require.NoError(t, err)
		b.complete(pick)
	}
	const of = `SELECT count(*) FROM daybook.jobs WHERE state = 'completed' AND coalesce(min_version, 0) = $1`
	assert.Positive(t, fixture.Count(t, b.Pool, of, 0))
	assert.Zero(t, fixture.Count(t, b.Pool, of, 2))
}

package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/daybook-dev/daybook/internal/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
	"github.com/daybook-dev/daybook/models"
)

// pending inserts n jobs of an organization, due for some seconds, oldest first.
func (b *bundle) pending(org string, priority, n int) {
	b.t.Helper()
	b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, priority, ready_at, first_ready_at)
SELECT $1, $1 || '_' || $2::int || '_' || lpad(i::text, 8, '0'), 1, $2::int, at, at
  FROM generate_series(1, $3::int) i, LATERAL (SELECT clock_timestamp() - interval '10 s' + i * interval '1 us' AS at) t`, org, priority, n)
}

// byOrg counts jobs by organization and priority.
func byOrg(jobs []store.Job) map[string]int {
	counts := map[string]int{}
	for _, j := range jobs {
		counts[strings.TrimSuffix(j.DocumentID, j.DocumentID[strings.LastIndex(j.DocumentID, "_"):])]++
	}
	return counts
}

// TestOrganizationsTakeTurns has one organization with a hundred times the work of the others.
func TestOrganizationsTakeTurns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("big", 2, 5000)
	for i := range 9 {
		b.pending(fmt.Sprintf("small%d", i), 2, 50)
	}
	turn := b.turn("run/0/1")
	first := byOrg(b.lease(turn, 100))
	require.Len(t, first, 10, "every organization got something: %v", first)
	for org, n := range first {
		assert.Equal(t, 10, n, org)
	}
	// Fewer than there are organizations: over the rounds all get the same.
	total := map[string]int{}
	for range 10 {
		for org, n := range byOrg(b.lease(turn, 4)) {
			total[org] += n
		}
	}
	for org, n := range total {
		assert.Equal(t, 4, n, org)
	}
	// What the small ones leave over is the big one's.
	rest := byOrg(b.lease(turn, 2000))
	assert.Equal(t, 36, rest["small0_2"])
	assert.Equal(t, 2000-9*36, rest["big_2"])
}

// TestPriorities has high work first, and never all of it at the cost of the rest.
func TestPriorities(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, org := range []string{"a", "b"} {
		for p := 1; p <= 3; p++ {
			b.pending(org, p, 1000)
		}
	}
	got := byOrg(b.lease(b.turn("run/0/1"), 100))
	assert.Equal(t, map[string]int{"a_1": 40, "b_1": 40, "a_2": 8, "b_2": 8, "a_3": 2, "b_3": 2}, got)
	assert.Len(t, b.lease(b.turn("run/0/2"), 1), 1)
}

// TestOldestOfAnOrganizationFirst leases in order across many leases.
func TestOldestOfAnOrganizationFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 100)
	turn := b.turn("run/0/1")
	var got []string
	for range 10 {
		jobs := b.lease(turn, 10)
		require.Len(t, jobs, 10)
		batch := documents(jobs)
		for _, d := range batch {
			for _, before := range got {
				require.Less(t, before, d)
			}
		}
		got = append(got, batch...)
	}
	assert.Empty(t, b.lease(turn, 10))
}

// TestNewWorkIsFoundWhileOthersWork adds an organization, and a job of high priority, while a long queue is drained.
func TestNewWorkIsFoundWhileOthersWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 20000)
	turn := b.turn("run/0/1")
	require.Len(t, b.lease(turn, 10), 10)
	b.pending("b", 2, 1)
	b.pending("a", 1, 1)
	want := map[string]bool{"b_2": true, "a_1": true}
	deadline := time.Now().Add(10 * time.Second)
	for len(want) > 0 {
		require.True(t, time.Now().Before(deadline), "not found: %v", want)
		for org := range byOrg(b.lease(turn, 10)) {
			delete(want, org)
		}
	}
}

// TestLateCommitIsFound commits a job that became due before others that have been leased since.
func TestLateCommitIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	late, err := b.Pool.Begin(ctx)
	require.NoError(t, err)
	defer func() { _ = late.Rollback(context.WithoutCancel(ctx)) }()
	_, err = store.EnqueueAccountingJob(ctx, late, "a", "late", 1, nil, 0)
	require.NoError(t, err)
	turn := b.turn("run/0/1")
	for i := range 20 {
		_, err := store.EnqueueAccountingJob(ctx, b.Pool, "a", fmt.Sprintf("doc-%d", i), 1, nil, 0)
		require.NoError(t, err)
		require.Len(t, b.lease(turn, 10), 1)
	}
	require.NoError(t, late.Commit(ctx))
	deadline := time.Now().Add(10 * time.Second)
	for {
		if jobs := b.lease(turn, 10); len(jobs) > 0 {
			assert.Equal(t, []string{"late"}, documents(jobs))
			return
		}
		require.True(t, time.Now().Before(deadline), "the late job is not found")
	}
}

// TestRaisedPriorityIsFound asks for a waiting document again with a higher priority, at which later ones were worked already.
func TestRaisedPriorityIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.pending("a", 2, 5000)
	_, err := store.EnqueueAccountingJob(ctx, b.Pool, "a", "click", 1, nil, 2)
	require.NoError(t, err)
	b.pending("a", 1, 1)
	turn := b.turn("run/0/1")
	require.Equal(t, 1, byOrg(b.lease(turn, 2))["a_1"], "the mark of the high priority has moved on")
	r, err := store.EnqueueAccountingJob(ctx, b.Pool, "a", "click", 1, nil, 1)
	require.NoError(t, err)
	require.Equal(t, "unchanged", r.Result)
	for round := 0; ; round++ {
		require.Less(t, round, 100, "what was raised is not leased")
		if slices.Contains(documents(b.lease(turn, 2)), "click") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestPausedOrganization pauses and resumes in the middle of the work.
func TestPausedOrganization(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pending("a", 2, 100)
	b.pending("b", 2, 100)
	turn := b.turn("run/0/1")
	require.Equal(t, map[string]int{"a_2": 5, "b_2": 5}, byOrg(b.lease(turn, 10)))
	b.change(func(tx pgx.Tx) error { _, err := store.PauseOrganization(t.Context(), tx, "a"); return err })
	for range 5 {
		got := byOrg(b.lease(turn, 10))
		require.NotContains(t, got, "a_2")
	}
	for len(b.lease(turn, 10)) > 0 {
	}
	assert.Equal(t, 95, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE state = 'pending' AND org_id = 'a'`))
	b.change(func(tx pgx.Tx) error { _, err := store.ResumeOrganization(t.Context(), tx, "a"); return err })
	// The rows are old: a scan finds them, which is not made again at once.
	require.Eventually(t, func() bool { return byOrg(b.lease(turn, 10))["a_2"] == 10 }, time.Minute, time.Millisecond)
}

func (b *bundle) change(f func(tx pgx.Tx) error) {
	b.t.Helper()
	require.NoError(b.t, pgx.BeginFunc(b.t.Context(), b.Pool, f))
}

// TestCapHoldsOverAllWorkers leases with several workers at once, each with a memory of its own, and settles in between.
func TestCapHoldsOverAllWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	limit := 7
	b.change(func(tx pgx.Tx) error { _, err := store.CapOrganization(t.Context(), tx, "a", &limit); return err })
	b.pending("a", 2, 300)
	b.pending("a", 1, 100)
	b.pending("b", 2, 300)
	var mu sync.Mutex
	leased, most := map[string]int{}, 0
	group, ctx := errgroup.WithContext(t.Context())
	for w := range 4 {
		s := store.New(b.Pool)
		turn := b.turn(fmt.Sprintf("run/%d/1", w))
		group.Go(func() error {
			for empty := 0; empty < 20; {
				got, err := s.Lease(ctx, turn, 10)
				if err != nil {
					return err
				}
				if len(got.Jobs) == 0 {
					empty++
					time.Sleep(5 * time.Millisecond)
					continue
				}
				empty = 0
				mu.Lock()
				for _, j := range got.Jobs {
					leased[j.OrgID]++
				}
				most = max(most, leased["a"])
				mu.Unlock()
				ids := make([]string, len(got.Jobs))
				for i, j := range got.Jobs {
					ids[i] = j.ID
				}
				time.Sleep(time.Millisecond)
				mu.Lock()
				for _, j := range got.Jobs {
					leased[j.OrgID]--
				}
				mu.Unlock()
				// A lease of somebody else may hold a row for a moment, until it sees that it came too late.
				for done := 0; done < len(ids); {
					n, err := settleAll(ctx, b.Pool, turn, ids)
					if err != nil {
						return err
					}
					done += n
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	assert.LessOrEqual(t, most, limit)
	assert.Greater(t, most, limit/2, "the cap was used")
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.accounting_work_queue WHERE state <> 'completed'`))
}

// settleAll completes those of the jobs that it can lock, and says how many these were.
func settleAll(ctx context.Context, pool *pgxpool.Pool, turn store.Turn, ids []string) (n int, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		locked, err := store.Accounting.LockChunk(ctx, tx, turn, ids)
		if err != nil || len(locked) == 0 {
			return err
		}
		settlements := make([]store.Settlement, len(locked))
		for i, j := range locked {
			settlements[i] = store.Settlement{Job: j, Outcome: models.OutcomeCompleted}
		}
		n = len(locked)
		_, err = store.Accounting.Settle(ctx, tx, turn, settlements)
		return err
	})
	return n, err
}

// TestMarksSpareTheDead holds an old snapshot, so that no dead row can be removed, and counts what a lease reads late in a
// long queue. Without marks it would read all that was leased before.
func TestMarksSpareTheDead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.exec(`ALTER TABLE daybook.accounting_work_queue SET (autovacuum_enabled = false)`)
	b.pending("a", 2, 6000)
	old, err := b.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	defer func() { _ = old.Rollback(context.WithoutCancel(ctx)) }()
	_, err = old.Exec(ctx, `SELECT count(*) FROM daybook.organizations`)
	require.NoError(t, err)

	turn := b.turn("run/0/1")
	for range 50 {
		require.Len(t, b.lease(turn, 100), 100)
	}
	shares, marks := b.store.Marks()
	require.Equal(t, 1, shares)
	read := func(from string, args ...any) int64 {
		stmt := `EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) SELECT id FROM daybook.accounting_work_queue
 WHERE state = 'pending' AND priority = 2 AND org_id = 'a' AND (ready_at, id) >= ` + from + ` ORDER BY ready_at, id LIMIT 100`
		rows, err := b.Pool.Query(ctx, stmt, args...)
		require.NoError(t, err)
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		text := strings.Join(lines, "\n")
		var hit int64
		_, figure, _ := strings.Cut(text, "shared hit=")
		_, err = fmt.Sscanf(figure, "%d", &hit)
		require.NoError(t, err, text)
		return hit
	}
	from := read(`($1::timestamptz, $2::text)`, marks[0].At, marks[0].ID)
	all := read(`('-infinity'::timestamptz, '')`)
	assert.Less(t, from*5, all, "pages read from the mark on, and from the beginning")
}

// TestOutlook: who finds nothing due is told when there will be something.
func TestOutlook(t *testing.T) {
	t.Parallel()
	b := setup(t)
	leased, err := b.store.Lease(t.Context(), b.turn("run/0/1"), 10)
	require.NoError(t, err)
	assert.Zero(t, leased.Wait(), "nothing is known of")
	b.pending("a", 2, 1)
	b.pending("b", 3, 2)
	b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() + interval '1 hour' WHERE org_id = 'a'`)
	b.exec(`UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp() + interval '5 minutes' WHERE org_id = 'b'`)
	// A scan is not made again at once; the outlook says when.
	require.Eventually(t, func() bool {
		leased, err = b.store.Lease(t.Context(), b.turn("run/0/1"), 10)
		require.NoError(t, err)
		return leased.Due > 0 && leased.Again == 0
	}, 10*time.Second, 10*time.Millisecond)
	assert.Empty(t, leased.Jobs)
	assert.Less(t, leased.Due, 5*time.Minute+time.Second)
	assert.Greater(t, leased.Due, 4*time.Minute)
	assert.Equal(t, leased.Due, leased.Wait())
}

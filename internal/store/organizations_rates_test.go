package store_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

func (b *bundle) rate(org string, rate int, seconds float64) store.Limits {
	b.t.Helper()
	return rules(b, func(ctx context.Context, tx pgx.Tx) (store.Limits, error) {
		return store.RateOrganization(ctx, tx, org, rate, seconds)
	})
}

// leaseByOrg leases what may be leased, and counts it by organization.
func leaseByOrg(t *testing.T, s *store.Store, turn store.Turn, limit int) (map[string]int, store.Leased) {
	t.Helper()
	leased, err := s.LeaseFor(t.Context(), turn, limit, newQueues())
	require.NoError(t, err)
	n := map[string]int{}
	for _, j := range leased.Jobs {
		n[j.OrgID]++
	}
	return n, leased
}

// passes moves what is left of the rates so far into the past.
func (b *bundle) passes(interval string) {
	b.t.Helper()
	b.exec(`UPDATE daybook.organization_rates SET at = at - $1::interval`, interval)
}

func TestRateOfAnOrganizationSaysWhatChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	assert.Equal(t, store.Limits{Changed: true, Added: true, Rate: new(5), RateSeconds: new(1.0)}, b.rate(org, 5, 0))
	assert.Equal(t, store.Limits{Rate: new(5), RateSeconds: new(1.0)}, b.rate(org, 5, 1))
	assert.Equal(t, store.Limits{Changed: true, MaxInFlight: new(3), Rate: new(5), RateSeconds: new(1.0)},
		b.limit(new(3)))
	assert.Equal(t, store.Limits{Changed: true, MaxInFlight: new(3), Rate: new(1), RateSeconds: new(60.0)},
		b.rate(org, 1, 60))
	assert.Equal(t, store.Limits{Changed: true, MaxInFlight: new(3)}, b.rate(org, 0, 0), "the cap stays")
	assert.Equal(t, store.Limits{MaxInFlight: new(3)}, b.rate(org, 0, 0))
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		for _, of := range []struct {
			rate    int
			seconds float64
		}{{-1, 0}, {1 << 31, 1}, {1, -1}, {1, 0.0001}, {1, 31536001}, {0, 1}} {
			_, err := store.RateOrganization(ctx, tx, org, of.rate, of.seconds)
			assert.ErrorIs(t, err, store.ErrInvalid, "%v", of)
		}
	})
}

// TestRateOfAnOrganization: as many attempts begin as the rate allows, over all workers, types and
// queues; others of its process go on, and nothing is left behind when the rate goes.
func TestRateOfAnOrganization(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.rate("slow", 10, 3600)
	b.setQueue(store.NamedQueue{Name: "bank", MaxParallel: 100})
	b.inQueue("slow", "", 10)
	b.inQueue("slow", "bank", 10)
	b.inQueue("free", "", 5)
	b.exec(`SELECT daybook.enqueue_job('slow', 'other', '{}') FROM generate_series(1, 10)`)
	first, second := store.NewQueue(b.Pool, store.Jobs), store.NewQueue(b.Pool, store.Jobs)
	n, _ := leaseByOrg(t, first, b.turn("run/0/1"), 100)
	assert.Equal(t, map[string]int{"slow": 1, "free": 5}, n, "what it allows in 50 ms, at least one")
	n, leased := leaseByOrg(t, second, b.turn("run/1/1"), 100)
	assert.Empty(t, n)
	assert.InDelta(t, 5*time.Second, leased.Wait(), float64(time.Second), "when it looks again")
	for _, turn := range []string{"run/0/2", "run/0/3"} {
		n, _ = leaseByOrg(t, first, b.turn(turn), 100)
		assert.Empty(t, n)
	}
	b.passes("7 minutes") // of 6 minutes each
	fresh := store.NewQueue(b.Pool, store.Jobs)
	n, _ = leaseByOrg(t, fresh, b.turn("run/2/1"), 100)
	assert.Equal(t, map[string]int{"slow": 1}, n)

	b.rate("slow", 0, 0)
	left := 28
	require.Eventually(t, func() bool {
		n, _ = leaseByOrg(t, first, b.turn("run/0/4"), 100)
		left -= n["slow"]
		return left == 0
	}, 20*time.Second, 50*time.Millisecond, "all of it is leased without the rate")
}

// TestRateBeginsAtOnce: a high rate lets begin at once what it allows in 50 ms.
func TestRateBeginsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.rate("o", 200, 1)
	b.exec(`INSERT INTO daybook.organization_rates (org_id, starts, at) VALUES ('o', 1, now() + interval '1 hour')`)
	b.inQueue("o", "", 30)
	s := store.NewQueue(b.Pool, store.Jobs)
	n, _ := leaseByOrg(t, s, b.turn("run/0/1"), 100)
	assert.Equal(t, map[string]int{"o": 1}, n, "a clock that was set back allows nothing more")
	b.exec(`UPDATE daybook.organization_rates SET at = now() - interval '1 day'`)
	fresh := store.NewQueue(b.Pool, store.Jobs)
	n, _ = leaseByOrg(t, fresh, b.turn("run/1/1"), 5)
	assert.Equal(t, map[string]int{"o": 5}, n)
	assert.Equal(t, 5, fixture.Count(t, b.Pool, `SELECT round(starts)::integer FROM daybook.organization_rates`), "of 10")
}

// TestRateWithACap: the lower of the two holds.
func TestRateWithACap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.rate(org, 2000, 1) // at once: 100
	b.limit(new(3))
	b.inQueue(org, "", 10)
	s := store.NewQueue(b.Pool, store.Jobs)
	n, _ := leaseByOrg(t, s, b.turn("run/0/1"), 100)
	assert.Equal(t, map[string]int{org: 3}, n, "the cap")
	b.rate(org, 1, 3600)
	b.limit(new(8))
	fresh := store.NewQueue(b.Pool, store.Jobs)
	n, _ = leaseByOrg(t, fresh, b.turn("run/1/1"), 100)
	assert.Equal(t, map[string]int{org: 1}, n, "the rate")
}

// TestRateMeetsTheLease: a rate that is set after a scan has found the organization's jobs holds for
// the lease that follows.
func TestRateMeetsTheLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.inQueue(org, "", 10)
	s := store.NewQueue(b.Pool, store.Jobs)
	n, _ := leaseByOrg(t, s, b.turn("run/0/1"), 1)
	assert.Equal(t, map[string]int{org: 1}, n)
	b.rate(org, 1, 3600)
	total := 0
	assert.Eventually(t, func() bool {
		n, _ = leaseByOrg(t, s, b.turn("run/0/2"), 100)
		total += n[org]
		return total > 0
	}, 20*time.Second, 20*time.Millisecond)
	n, _ = leaseByOrg(t, s, b.turn("run/0/3"), 100)
	assert.Equal(t, 1, total+n[org])
}

// TestRateIsOfBackgroundJobs: documents are leased as if there were none.
func TestRateIsOfBackgroundJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Organization(t, b.Pool, org)
	b.rate(org, 1, 3600)
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint) SELECT 'org_1', i, 1 FROM generate_series(1, 5) i`)
	n, _ := leaseByOrg(t, store.NewQueue(b.Pool, store.Accounting), b.turn("run/0/1"), 100)
	assert.Equal(t, map[string]int{org: 5}, n)
	assert.Zero(t, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.organization_rates`))
}

// TestRateOverProcesses: two processes that lease at once keep a rate together, leave none of its
// jobs behind, and do not let others wait.
func TestRateOverProcesses(t *testing.T) {
	t.Parallel()
	const jobs, rate = 60, 40
	b := setup(t)
	b.rate("slow", rate, 1) // at once: 2
	b.inQueue("slow", "", jobs)
	b.inQueue("free", "", jobs)
	var all sync.WaitGroup
	done := time.Now().Add(30 * time.Second)
	for _, turn := range []string{"run/0/1", "run/1/1"} {
		s, of := store.NewQueue(b.Pool, store.Jobs), b.turn(turn)
		all.Go(func() {
			for time.Now().Before(done) {
				leased, err := s.LeaseFor(t.Context(), of, 10, newQueues())
				var left int
				if err == nil {
					err = b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM daybook.jobs WHERE state = 'pending'`).Scan(&left)
				}
				if !assert.NoError(t, err) || left == 0 {
					return
				}
				time.Sleep(min(leased.Wait(), 50*time.Millisecond))
			}
		})
	}
	all.Wait()
	assert.Equal(t, 2*jobs, fixture.Count(t, b.Pool, `SELECT count(*) FROM daybook.jobs WHERE state = 'leased' AND run_count = 1`))
	assert.Zero(t, fixture.Count(t, b.Pool, `
SELECT count(*) FROM (SELECT attempt_started_at - lag(attempt_started_at, 23) OVER (ORDER BY attempt_started_at) AS took FROM daybook.jobs WHERE org_id = 'slow') x
 WHERE took < interval '0.4 seconds'`), "in half a second begin 20, and 2 at once")
	assert.Positive(t, fixture.Count(t, b.Pool, `
SELECT count(*) FROM daybook.jobs WHERE org_id = 'slow' AND attempt_started_at > (SELECT max(attempt_started_at) FROM daybook.jobs WHERE org_id = 'free')`))
}

// TestRateStarvesNoType: what a rate allows goes to higher priorities first, and types of one priority
// take turns, however many jobs one of them has.
func TestRateStarvesNoType(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.rate(org, 100, 1)
	b.inQueue(org, "", 60)
	b.exec(`SELECT daybook.enqueue_job($1, 'other', '{}', priority => p) FROM (VALUES (1), (1), (2), (2)) AS x (p)`, org)
	s := store.NewQueue(b.Pool, store.Jobs)
	var order []string
	require.Eventually(t, func() bool {
		leased, err := s.LeaseFor(t.Context(), b.turn("run/0/1"), 1, newQueues())
		require.NoError(t, err)
		for _, j := range leased.Jobs {
			order = append(order, j.Type)
		}
		return len(order) == 64
	}, 30*time.Second, time.Millisecond)
	assert.Equal(t, []string{"other", "other"}, order[:2], "those of the higher priority")
	last := slices.Index(order[2:], "other") // the first of the two that remain
	assert.True(t, last >= 0 && last < 10, "%v", order)
	assert.Contains(t, order[last+3:20], "other")
}

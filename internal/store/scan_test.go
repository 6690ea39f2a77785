package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// traced returns a store whose statements are captured, on a pool of its own.
func (b *bundle) traced() (*store.Store, *capture) {
	b.t.Helper()
	var got capture
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(b.t, err)
	config.ConnConfig.Tracer = tracer(got.keep)
	pool, err := pgxpool.NewWithConfig(b.t.Context(), config)
	require.NoError(b.t, err)
	b.t.Cleanup(pool.Close)
	return store.New(pool), &got
}

// later inserts jobs of organizations that are due tomorrow.
func (b *bundle) later(organizations, each int) {
	b.t.Helper()
	b.exec(`
INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at, first_ready_at)
SELECT 'later_' || o, 'doc_' || i, 1, at, at
  FROM generate_series(1, $1::int) o, generate_series(1, $2::int) i, LATERAL (SELECT clock_timestamp() + interval '1 day' AS at) t`, organizations, each)
	b.exec(`ANALYZE daybook.accounting_work_queue`)
}

// leaseSoon leases one job as a waiting worker does: it scans again when it is told to, and at
// nothing else.
func (b *bundle) leaseSoon(s *store.Store, turn store.Turn) (scans int, job store.Job) {
	b.t.Helper()
	scans, jobs := b.leaseSome(b.t.Context(), s, turn, 1)
	return scans, jobs[0]
}

// leaseSome is leaseSoon for up to limit jobs.
func (b *bundle) leaseSome(ctx context.Context, s *store.Store, turn store.Turn, limit int) (scans int,
	jobs []store.Job,
) {
	b.t.Helper()
	for scans = 1; ; scans++ {
		leased, err := s.LeaseFor(ctx, turn, limit, pgtest.Unbounded())
		require.NoError(b.t, err)
		if len(leased.Jobs) > 0 {
			return scans, leased.Jobs
		}
		require.Positive(b.t, leased.Wait(), "it would sleep although a job is due")
		time.Sleep(min(leased.Wait(), 100*time.Millisecond))
	}
}

// TestWorkIsFoundBesideMuchThatIsDueLater: a new job is found by the first scan, which does not
// read what is due later, and no scan reads more than its part of the partitions.
func TestWorkIsFoundBesideMuchThatIsDueLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.later(3000, 20)
	s, got := b.traced()
	turn := b.turn("run/0/1")
	// The worker has seen all partitions before.
	for {
		leased, err := s.LeaseFor(t.Context(), turn, 10, pgtest.Unbounded())
		require.NoError(t, err)
		require.Empty(t, leased.Jobs)
		if leased.Again == 0 {
			break
		}
		time.Sleep(leased.Again)
	}
	for i := range 20 {
		_, err := store.EnqueueAccountingJob(t.Context(), b.Pool, fmt.Sprintf("later_%d", 1+i*100), fmt.Sprint("now_", i),
			1, nil, 0)
		require.NoError(t, err)
		scans, job := b.leaseSoon(s, turn)
		assert.Equal(t, 1, scans, "the job is found by the first scan")
		assert.Equal(t, fmt.Sprint("now_", i), job.DocumentID)
	}
	for name, one := range map[string]sent{"recent scan": got.recent, "scan": got.scan} {
		rows := 0.0
		for _, n := range b.explainFreely(one) {
			if n.Table == "accounting_work_queue" {
				rows += (n.Rows + n.Removed) * max(n.Loops, 1)
			}
		}
		assert.LessOrEqual(t, rows, 4096.0+1, "rows that one %s reads, of 60,000", name)
	}
}

// TestScanGoesOnWhereItEnded finds one old row that no recent scan sees, of the last of many
// organizations.
func TestScanGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.later(3000, 1)
	s, got := b.traced()
	turn := b.turn("run/0/1")
	leased, err := s.LeaseFor(t.Context(), turn, 10, pgtest.Unbounded())
	require.NoError(t, err)
	require.Empty(t, leased.Jobs)
	require.Positive(t, leased.Again, "one scan is not enough for all partitions")
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at) VALUES ('zzz', 'old', 1, clock_timestamp() - interval '1 hour')`)
	scans, job := b.leaseSoon(s, turn)
	assert.Equal(t, "old", job.DocumentID)
	assert.Greater(t, scans, 1)
	assert.NotEmpty(t, got.scan.args[1], "the scan did not begin anew")
}

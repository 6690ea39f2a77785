package store_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// asked counts what is sent by itself and as a batch: each is a transaction.
type asked struct {
	slowScan
	n atomic.Int64
}

func (a *asked) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	a.n.Add(1)
	return a.slowScan.TraceBatchStart(ctx, conn, data)
}

func (a *asked) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if !strings.HasPrefix(data.SQL, "-- ping") {
		a.n.Add(1)
	}
	return ctx
}

// polling returns a store of a kind that has read its queue, and what it asks from now on.
func (b *bundle) polling(kind *store.Kind) (*store.Store, *asked) {
	b.t.Helper()
	a := &asked{slowScan: slowScan{begun: make(chan struct{}, 10), opened: make(chan struct{})}}
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(b.t, err)
	config.ConnConfig.Tracer = a
	pool, err := pgxpool.NewWithConfig(b.t.Context(), config)
	require.NoError(b.t, err)
	b.t.Cleanup(pool.Close)
	b.t.Cleanup(func() { close(a.opened) })
	s := store.NewQueue(pool, kind)
	require.NoError(b.t, s.Partitions().ReadAll(b.t.Context(), pgtest.Unbounded()))
	s.Partitions().HurryPoll()
	a.n.Store(0)
	return s, a
}

const dueNow = `UPDATE daybook.accounting_work_queue SET ready_at = clock_timestamp()`

// fetched polls, and leases what the poll has seen.
func (b *bundle) fetched(s *store.Store) (store.Turn, store.Leased) {
	b.t.Helper()
	polled, err := s.Poll(b.t.Context(), pgtest.Unbounded())
	require.NoError(b.t, err)
	turn := store.Turn{ID: "run/0/1", Worker: "w", Fence: polled.Fence}
	leased, err := s.LeaseFor(b.t.Context(), turn, 10, pgtest.Unbounded())
	require.NoError(b.t, err)
	return turn, leased
}

// TestPollIsOneTransaction: what an idle fetch asks is asked in one, and what comes after it is
// found by the next scan.
func TestPollIsOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, a := b.polling(store.Accounting)
	turn, leased := b.fetched(s)
	assert.Empty(t, leased.Jobs)
	assert.Zero(t, leased.Wait())
	left, err := s.HasLeft(t.Context())
	require.NoError(t, err)
	assert.False(t, left)
	assert.EqualValues(t, 1, a.n.Load())

	b.pending("a", 2, 1)
	b.exec(dueNow)
	leased, err = s.LeaseFor(t.Context(), turn, 10, pgtest.Unbounded())
	require.NoError(t, err)
	assert.Len(t, leased.Jobs, 1, "the poll's word holds for one lease")
	later, err := b.store.NextFence(t.Context())
	require.NoError(t, err)
	assert.Greater(t, later, turn.Fence)
}

// TestPollSees what a recent scan or a full one would, and what they say of later jobs.
func TestPollSees(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, kind := range []*store.Kind{store.Accounting, store.Jobs} {
		s, a := b.polling(kind)
		insert := `INSERT INTO daybook.jobs (org_id, type, payload, ready_at) VALUES ('o', 'email', '{}', $1)`
		if kind == store.Accounting {
			insert = `INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at) VALUES ('o', 'd' || $1::timestamptz, 1, $1)`
		}
		b.exec(insert, time.Now().Add(20*time.Minute))
		_, leased := b.fetched(s)
		assert.Empty(t, leased.Jobs, kind.Name)
		assert.InDelta(t, 20*time.Minute, leased.Due, float64(time.Minute), kind.Name)
		assert.EqualValues(t, 1, a.n.Load(), kind.Name)

		b.exec(insert, time.Now().Add(-20*time.Minute))
		s.Partitions().HurryPoll()
		_, leased = b.fetched(s)
		assert.Len(t, leased.Jobs, 1, kind.Name)
	}
}

// TestPollSeesWhatIsLeft to other workers: then it is asked for, as it is after the next scan.
func TestPollSeesWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kind, err := store.AccountingFor(store.Abilities{Sources: []string{"daybook"}})
	require.NoError(t, err)
	s, _ := b.polling(kind)
	turn, _ := b.fetched(s)
	b.needy()
	b.exec(dueNow)
	leased, err := s.LeaseFor(t.Context(), turn, 10, pgtest.Unbounded())
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"plain_2": 1}, byOrg(leased.Jobs))
	left, err := s.HasLeft(t.Context())
	require.NoError(t, err)
	assert.True(t, left, "a scan since the poll has the worker ask")

	s.Partitions().HurryPoll()
	_, leased = b.fetched(s)
	assert.Empty(t, leased.Jobs)
	left, err = s.HasLeft(t.Context())
	require.NoError(t, err)
	assert.True(t, left, "the poll has seen it")
}

// TestPollSeesWhatHasBeenLeft since the poll before, when no scan came between the two: what was
// not announced, as that an organization is paused no longer.
func TestPollSeesWhatHasBeenLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kind, err := store.AccountingFor(store.Abilities{Sources: []string{"daybook"}})
	require.NoError(t, err)
	s, _ := b.polling(kind)
	b.fetched(s)
	left, err := s.HasLeft(t.Context())
	require.NoError(t, err)
	require.False(t, left)
	b.needy()
	b.exec(dueNow + ` WHERE org_id <> 'plain_2'`)
	b.exec(`DELETE FROM daybook.accounting_work_queue WHERE org_id = 'plain_2'`)
	s.Partitions().HurryPoll()
	b.fetched(s)
	left, err = s.HasLeft(t.Context())
	require.NoError(t, err)
	assert.True(t, left)
}

// TestPollSeesWaits that are on record to be decided.
func TestPollSeesWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, _ := b.polling(store.Jobs)
	polled, err := s.Poll(t.Context(), pgtest.Unbounded())
	require.NoError(t, err)
	assert.Equal(t, store.Polled{Fence: polled.Fence, Looked: true}, polled)
	b.exec(`INSERT INTO daybook.job_wait_checks (job_id) VALUES ('gone')`)
	s.Partitions().HurryPoll()
	polled, err = s.Poll(t.Context(), pgtest.Unbounded())
	require.NoError(t, err)
	assert.True(t, polled.Waits)
	checked, err := s.CheckWaits(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, checked.Decided)
}

// TestSlowScanHoldsNoPollUp: a fence is drawn all the same, and the lease scans by itself.
func TestSlowScanHoldsNoPollUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, a := b.polling(store.Accounting)
	b.pending("a", 2, 1)
	b.exec(dueNow)
	a.closed.Store(true)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, leased := b.fetched(s)
		assert.Len(t, leased.Jobs, 1)
	}()
	<-a.begun
	<-ended
	polled, err := s.Poll(t.Context(), pgtest.Unbounded())
	require.NoError(t, err)
	assert.False(t, polled.Looked, "a scan that was slow is not polled by")
}

package store_test

import (
	"context"
	"fmt"
	"slices"
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

// slowScan keeps full scans from being sent, as long as it is closed: as if dead rows made them
// slow.
type slowScan struct {
	closed atomic.Bool
	// begun gets a token for each that waits, opened lets one go on.
	begun, opened chan struct{}
	// answered counts those that waited and are answered.
	answered atomic.Int32
}

// waited marks the context of a full scan that waited.
type waited struct{}

func (s *slowScan) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	full := slices.ContainsFunc(data.Batch.QueuedQueries, func(q *pgx.QueuedQuery) bool {
		return strings.Contains(q.SQL, "WITH RECURSIVE parts")
	})
	if !full || !s.closed.Load() {
		return ctx
	}
	s.begun <- struct{}{}
	select {
	case <-s.opened:
	case <-ctx.Done():
	}
	return context.WithValue(ctx, waited{}, true)
}

func (s *slowScan) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (s *slowScan) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	if ctx.Value(waited{}) != nil {
		s.answered.Add(1)
	}
}

func (s *slowScan) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (s *slowScan) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// withSlowScan returns a store whose full scans can be kept from being sent.
func (b *bundle) withSlowScan() (*store.Store, *slowScan) {
	b.t.Helper()
	slow := &slowScan{begun: make(chan struct{}), opened: make(chan struct{})}
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(b.t, err)
	config.ConnConfig.Tracer = slow
	pool, err := pgxpool.NewWithConfig(b.t.Context(), config)
	require.NoError(b.t, err)
	b.t.Cleanup(pool.Close)
	return store.New(pool), slow
}

// scanAll has a store of an empty queue scan until no scan is due at once.
func (b *bundle) scanAll(s *store.Store, turn store.Turn) {
	b.t.Helper()
	for wait := time.Duration(1); wait > 0; time.Sleep(wait) {
		leased, err := s.LeaseFor(b.t.Context(), turn, 10, pgtest.Unbounded())
		require.NoError(b.t, err)
		wait = leased.Wait()
	}
}

// TestNewWorkDoesNotWaitForASlowScan: an old snapshot that keeps dead rows makes the full scan
// slow, for as long as seconds.
func TestNewWorkDoesNotWaitForASlowScan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, slow := b.withSlowScan()
	turn := b.turn("run/0/1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	b.scanAll(s, turn)

	slow.closed.Store(true)
	running := make(chan struct{})
	go func() {
		<-slow.begun
		close(running)
	}()
	for waiting := true; waiting; {
		leased, err := s.LeaseFor(ctx, turn, 10, pgtest.Unbounded())
		require.NoError(t, err)
		require.Empty(t, leased.Jobs)
		require.Positive(t, leased.Wait(), "not everything is read")
		select {
		case <-running:
			waiting = false
		case <-time.After(min(leased.Wait(), 100*time.Millisecond)):
		}
	}
	for i := range 3 {
		id := fmt.Sprint("new_", i)
		_, err := store.EnqueueAccountingJob(ctx, b.Pool, "org_1", id, 1, nil, 0)
		require.NoError(t, err)
		// The slow scan runs on until it is let go on below: one that waited for it would end with ctx.
		// A recent scan that needs more than recentLag to be sent, as on a busy machine, may begin
		// behind the job; the next one that reaches far back finds it.
		_, leased := b.leaseSome(ctx, s, turn, 10)
		require.Len(t, leased, 1)
		assert.Equal(t, id, leased[0].DocumentID)
	}

	// What only a full scan can find is committed behind the one that runs, and found all the same.
	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at) VALUES ('a', 'old', 1, clock_timestamp() - interval '1 hour')`)
	leased, err := s.LeaseFor(ctx, turn, 10, pgtest.Unbounded())
	require.NoError(t, err)
	require.Empty(t, leased.Jobs)
	slow.closed.Store(false)
	close(slow.opened)
	_, job := b.leaseSoon(s, turn)
	assert.Equal(t, "old", job.DocumentID)

	// When everything has been read there is nothing to come back for.
	require.Eventually(t, func() bool {
		leased, err := s.LeaseFor(ctx, turn, 10, pgtest.Unbounded())
		return assert.NoError(t, err) && assert.Empty(t, leased.Jobs) && leased.Wait() == 0
	}, time.Minute, 10*time.Millisecond)
}

// TestBurstNeedsNoFullScan: an idle worker finds what falls due at once by a recent scan, also
// where a full scan has just turned out to be slow.
func TestBurstNeedsNoFullScan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, slow := b.withSlowScan()
	turn := b.turn("run/0/1")
	b.scanAll(s, turn)
	var begun atomic.Int32
	ctx := t.Context()
	go func() {
		for {
			select {
			case <-slow.begun:
			case <-ctx.Done():
				return
			}
			begun.Add(1)
			time.Sleep(2 * time.Second) // another one is allowed after 49 times that
			slow.opened <- struct{}{}
		}
	}()
	slow.closed.Store(true)
	require.Eventually(t, func() bool {
		_, err := s.LeaseFor(t.Context(), turn, 10, pgtest.Unbounded())
		return assert.NoError(t, err) && slow.answered.Load() == 1
	}, time.Minute, 10*time.Millisecond)

	b.exec(`INSERT INTO daybook.accounting_work_queue (org_id, document_id, version_hint, ready_at) SELECT 'org_1', 'd_' || i, 1, clock_timestamp() FROM generate_series(1, 2000) AS i`)
	for n := 0; n < 2000; {
		leased, err := s.LeaseFor(ctx, turn, 500, pgtest.Unbounded())
		require.NoError(t, err)
		n += len(leased.Jobs)
	}
	assert.EqualValues(t, 1, begun.Load())
}

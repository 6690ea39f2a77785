package wake_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// forgotten is a transaction that has enqueued a document and stays open until the test ends.
func (b *bundle) forgotten(document string) pgx.Tx {
	b.t.Helper()
	tx, err := b.Pool.Begin(b.t.Context())
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(b.t.Context())) })
	_, err = store.EnqueueAccountingJob(b.t.Context(), tx, org, document, 1, nil, 0)
	require.NoError(b.t, err)
	return tx
}

// While a transaction that has enqueued stays open, nothing notifies: the waiters of every process
// look by themselves.
func TestOpenEnqueuingTransactionSlowsNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.forgotten("forgotten")
	for process := range 2 {
		w := b.waker()
		for n := range 3 {
			document := fmt.Sprintf("doc_%d_%d", process, n)
			found := make(chan bool, 1)
			turn := b.turn("run/0/" + document)
			go func() {
				ok, err := waitForJob(t.Context(), b.store, w, turn)
				found <- ok && err == nil
			}()
			require.Eventually(t, func() bool {
				return fixture.Count(t, b.Pool,
					`SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND query ~ '^\s*SELECT CASE WHEN pg_try_advisory_lock'`, b.Name) == process+1
			}, pgtest.Patience, 5*time.Millisecond, "the waker has tried for the lock")
			b.exec(`SELECT daybook.enqueue_accounting_job('org_1', $1, 1)`, document)
			require.True(t, <-found, "document %s was not found in %s, beside a transaction that stays open", document,
				wakeLimit)
		}
		sub := w.Subscribe() // this process goes on waiting beside the next one
		defer sub.Close()
	}
	assert.Empty(t, b.holders(), "the open transaction holds the lock off all the time")
}

// Ten transactions that overlap and each stay open for a moment after they enqueued are found soon
// after their commits.
func TestOverlappingEnqueuingTransactions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	const writers = 10
	ended := make(chan error, writers)
	for w := range writers {
		go func() {
			ended <- func() error {
				for n := 0; ctx.Err() == nil; n++ {
					err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
						if _, err := store.EnqueueAccountingJob(t.Context(), tx, org, fmt.Sprintf("w%d-%d", w, n), 1, nil,
							0); err != nil {
							return err
						}
						<-time.After(80 * time.Millisecond)
						return nil
					})
					if err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	w := b.waker()
	sub := w.Subscribe()
	for range 20 {
		b.woken(sub)
	}
	sub.Close()
	cancel()
	for range writers {
		require.NoError(t, <-ended)
	}
}

// When a process gives the lock up, a process that waits on takes it without waiting for its next
// try.
func TestLockIsHandedOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.waker().Subscribe()
	pid := b.waitsNow(first)
	second := b.waker().Subscribe()
	defer second.Close()
	b.woken(second)
	first.Close()
	require.Eventually(t, func() bool {
		pids := b.holders()
		return len(pids) == 1 && pids[0] != pid
	}, pgtest.Patience, 5*time.Millisecond, "the second process holds the lock")
	b.woken(second)
	b.drain(second)
	b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'a', 1)`)
	b.woken(second)
}

// A transaction that is to be prepared must not notify.
func TestNotifyCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.listener()
	sub := b.waker().Subscribe()
	defer sub.Close()
	b.waitsNow(sub)
	fixture.Tx(t, b.Pool, func(ctx context.Context, tx pgx.Tx) {
		_, err := tx.Exec(ctx, `SET LOCAL daybook.notify = 'off'`)
		require.NoError(t, err)
		_, err = store.EnqueueAccountingJob(ctx, tx, org, "quiet", 1, nil, 0)
		require.NoError(t, err)
	})
	assert.Zero(t, b.heard(conn))
	b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'loud', 1)`)
	assert.Equal(t, 1, b.heard(conn))
}

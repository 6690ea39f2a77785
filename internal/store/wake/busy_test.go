package wake_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// busyInterval is long enough for several enqueues, and short enough for a few scans that find
// nothing.
const busyInterval = 250 * time.Millisecond

// busyWaiter is a waiter of a process of its own. While it finds work, as find says, it takes its
// tokens and says that each led to work.
type busyWaiter struct {
	*store.Subscription
	waker *store.Waker
	stop  func()
}

func (b *bundle) busyWaiter() *busyWaiter {
	b.t.Helper()
	w := store.New(b.Pool).NewWaker("", busyInterval, slog.New(slog.DiscardHandler))
	b.t.Cleanup(w.Close)
	return &busyWaiter{Subscription: w.Subscribe(), waker: w, stop: func() {}}
}

// find has the waiter find work whenever it is told to scan, until stop is called.
func (w *busyWaiter) find() {
	finding, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			w.Found()
			select {
			case <-finding:
				return
			case <-w.C:
			case <-time.After(busyInterval / 10):
			}
		}
	}()
	w.stop = func() {
		close(finding)
		<-over
		w.stop = func() {}
	}
}

// enqueueNew enqueues a new version of a document.
func (b *bundle) enqueueNew() {
	b.t.Helper()
	b.version++
	b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'often', $1)`, b.version)
}

// enqueueOften enqueues until no process holds the lock: then no enqueuer notifies.
func (b *bundle) enqueueOften() {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		b.enqueueNew()
		return len(b.holders()) == 0
	}, time.Minute, time.Millisecond, "the lock is given up")
}

// notNotified enqueues often, and then once more without a notification. It tries again, as waiters
// that a crowded machine keeps from finding work want to be notified.
func (b *bundle) notNotified(conn *pgx.Conn, why string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		b.enqueueOften()
		b.heard(conn)
		b.enqueueNew()
		return b.heard(conn) == 0
	}, time.Minute, time.Millisecond, why)
}

func (b *bundle) held(why string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return len(b.holders()) == 1 }, time.Minute, 5*time.Millisecond, why)
}

// While work comes faster than an interval, enqueuers do not notify, and the waiters scan every
// interval; then they notify again.
func TestBusyQueueIsScannedWithoutNotifications(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.listener()
	w := b.busyWaiter()
	defer w.Close()
	b.waitsNow(w.Subscription)
	w.find()
	b.notNotified(conn, "no enqueuer notifies")
	w.stop()
	b.drain(w.Subscription)
	b.woken(w.Subscription)

	b.held("the lock is taken again when scans find nothing")
	b.woken(w.Subscription)
	b.drain(w.Subscription)
	b.heard(conn)
	b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'b', 1)`)
	assert.Equal(t, 1, b.heard(conn), "enqueuers notify again")
	b.woken(w.Subscription)
}

// Notifications that lead to no work do not make the waiters scan every interval.
func TestLockIsKeptWhileNothingIsFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.busyWaiter()
	defer w.Close()
	pid := b.waitsNow(w.Subscription)
	for version := range 30 {
		b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'a', $1)`, version)
	}
	assert.Equal(t, []int{pid}, b.holders())
}

// A transaction that enqueued before the lock was given up, and commits after it, is found: its
// notification is heard by no process.
func TestTransactionOpenWhileTheLockIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.busyWaiter()
	defer w.Close()
	b.waitsNow(w.Subscription)
	tx := b.forgotten("open")
	w.find()
	b.enqueueOften()
	w.stop()
	b.drain(w.Subscription)
	require.NoError(t, tx.Commit(t.Context()))
	b.woken(w.Subscription)
}

// A transaction that did not notify, and is open when the lock is wanted again, is found when it
// commits.
func TestTransactionOpenWhileTheLockIsWantedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.busyWaiter()
	defer w.Close()
	b.waitsNow(w.Subscription)
	w.find()
	b.enqueueOften()
	tx := b.forgotten("open")
	w.stop()
	require.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND query ~ '^\s*SELECT CASE WHEN pg_try_advisory_lock'`, b.Name) == 1
	}, time.Minute, 5*time.Millisecond, "the waker has tried for the lock")
	require.Empty(t, b.holders())
	b.drain(w.Subscription)
	require.NoError(t, tx.Commit(context.WithoutCancel(t.Context())))
	b.woken(w.Subscription)
	b.held("the lock is taken when the transaction is over")
}

// Of two processes each gives the lock up for itself. One that is told of work takes it from the
// other; one that dies leaves nothing waiting.
func TestTwoBusyProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.listener()
	first := b.busyWaiter()
	pid := b.waitsNow(first.Subscription)
	second := b.busyWaiter()
	defer second.Close()
	b.woken(second.Subscription)
	first.find()
	require.Eventually(t, func() bool {
		b.enqueueNew()
		pids := b.holders()
		return len(pids) == 1 && pids[0] != pid
	}, time.Minute, time.Millisecond, "the second process, which finds nothing, has the lock")
	b.woken(second.Subscription)
	b.drain(second.Subscription)
	b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'a', 1)`)
	b.woken(second.Subscription)

	second.find()
	b.notNotified(conn, "both scan every interval")
	first.stop()
	first.waker.Close() // its process is gone
	second.stop()
	b.drain(second.Subscription)
	b.woken(second.Subscription)
	b.held("one process is left, and wants to be notified")
}

package wake_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/dev/pgtest/fixture"
	"github.com/daybook-dev/daybook/internal/store"
)

// wakeLimit is far below a poll interval, and far above what a wake-up takes.
const wakeLimit = 20 * time.Second

func (b *bundle) waker() *store.Waker {
	b.t.Helper()
	w := store.New(b.Pool).NewWaker("", 5*time.Millisecond, slog.New(slog.DiscardHandler))
	b.t.Cleanup(w.Close)
	return w
}

// holders are the sessions that wait for work: they hold the exclusive lock.
func (b *bundle) holders() []int {
	b.t.Helper()
	rows, err := b.Pool.Query(b.t.Context(), `
SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
 WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND l.granted AND l.classid = daybook.lock_class('wakers')::oid AND l.objid = 1 AND d.datname = $1`, b.Name)
	require.NoError(b.t, err)
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(b.t, err)
	return pids
}

// waitsNow returns when a waker holds the lock and its first token, which tells waiters to look,
// was taken.
func (b *bundle) waitsNow(sub *store.Subscription) int {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return len(b.holders()) == 1 }, pgtest.Patience, 5*time.Millisecond,
		"the waker holds the lock")
	b.woken(sub)
	return b.holders()[0]
}

func (b *bundle) woken(sub *store.Subscription) {
	b.t.Helper()
	select {
	case <-sub.C:
	case <-time.After(wakeLimit):
		require.Fail(b.t, "no wake-up")
	}
}

// enqueueIn enqueues a document in a transaction of an isolation level, whose snapshot is as old as
// it can be, and commits after a moment. It returns when it committed.
func (b *bundle) enqueueIn(level pgx.TxIsoLevel, document string, before, after time.Duration) error {
	ctx := b.t.Context()
	return pgx.BeginTxFunc(ctx, b.Pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT count(*) FROM daybook.accounting_work_queue`); err != nil {
			return err
		}
		<-time.After(before)
		if _, err := store.EnqueueAccountingJob(ctx, tx, org, document, 1, nil, 0); err != nil {
			return err
		}
		<-time.After(after)
		return nil
	})
}

// waitForJob does what a fetch does: subscribe, look, wait for a token or for as long as the look
// asks for that could not read all, look again.
func waitForJob(ctx context.Context, s *store.Store, w *store.Waker, turn store.Turn) (bool, error) {
	sub := w.Subscribe()
	defer sub.Close()
	limit := time.NewTimer(wakeLimit)
	defer limit.Stop()
	for {
		leased, err := s.LeaseFor(ctx, turn, 1, pgtest.Unbounded())
		if err != nil || len(leased.Jobs) > 0 {
			return len(leased.Jobs) > 0, err
		}
		var again <-chan time.Time
		if leased.Again > 0 {
			again = time.After(leased.Again)
		}
		select {
		case <-sub.C:
		case <-again:
		case <-limit.C:
			return false, nil
		}
	}
}

// Commits at any moment of a wait that begins, goes on or has just ended wake the waiter.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	for name, level := range map[string]pgx.TxIsoLevel{
		"read committed":  pgx.ReadCommitted,
		"repeatable read": pgx.RepeatableRead,
	} {
		t.Run("waker that is there, "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			w := b.waker()
			b.trials(200, level, func() (*store.Waker, func()) { return w, func() {} })
		})
		// The first steps of a waker: it connects, listens, and tries for the lock.
		t.Run("new waker, "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.trials(120, level, func() (*store.Waker, func()) {
				w := store.New(b.Pool).NewWaker("", 5*time.Millisecond, slog.New(slog.DiscardHandler))
				return w, w.Close
			})
		})
		// Another process waits, and has the lock; it is not the one that looks.
		t.Run("new waker beside another process, "+name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			other := b.waker().Subscribe()
			defer other.Close()
			b.waitsNow(other)
			b.trials(120, level, func() (*store.Waker, func()) {
				w := store.New(b.Pool).NewWaker("", 5*time.Millisecond, slog.New(slog.DiscardHandler))
				return w, w.Close
			})
		})
	}
}

// trials waits for jobs that are each committed at a random moment.
func (b *bundle) trials(n int, level pgx.TxIsoLevel, waker func() (*store.Waker, func())) {
	b.t.Helper()
	random := rand.New(rand.NewPCG(3, uint64(len(level))))
	moment := func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(limit))) }
	for trial := range n {
		w, end := waker()
		committed := make(chan error, 1)
		start, before, after := moment(12*time.Millisecond), moment(4*time.Millisecond), moment(4*time.Millisecond)
		go func() {
			<-time.After(start)
			committed <- b.enqueueIn(level, fmt.Sprint("doc_", trial), before, after)
		}()
		found, err := waitForJob(b.t.Context(), b.store, w, b.turn(fmt.Sprint("run/0/", trial)))
		require.NoError(b.t, <-committed)
		require.NoError(b.t, err)
		require.True(b.t, found, "trial %d: start %s, before %s, after %s: the wake-up was lost", trial, start, before,
			after)
		end()
	}
}

// Everything that makes work wakes a waiter.
func TestWhatWakes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fixture.Ready(t, b.Pool, fixture.Invoice(org, "doc_1", 1000))
	sub := b.waker().Subscribe()
	defer sub.Close()
	b.waitsNow(sub)
	for _, stmt := range []string{
		`SELECT daybook.enqueue_accounting_job('org_1', 'new', 1)`,
		`SELECT daybook.enqueue_accounting_job('org_1', 'new', 2)`,
		`SELECT daybook.enqueue_accounting_jobs(ARRAY['org_1'], ARRAY['many'], ARRAY[1])`,
		`SELECT daybook.enqueue_accounting_jobs(ARRAY['org_1'], ARRAY['many'], ARRAY[2])`,
		`SELECT daybook.mark_accounting_job_pending('org_1', 'new')`,
		`SELECT daybook.mark_document_ready('org_1', 'doc_1')`,
		`SELECT daybook.mark_document_not_ready('org_1', 'doc_1')`,
		`SELECT daybook.mark_document_deleted('org_1', 'doc_1')`,
	} {
		b.exec(stmt)
		select {
		case <-sub.C:
		case <-time.After(wakeLimit):
			assert.Fail(t, "no wake-up", stmt)
		}
	}
}

// listener is a connection that hears what enqueuers send.
func (b *bundle) listener() *pgx.Conn {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.URL)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { assert.NoError(b.t, conn.Close(context.WithoutCancel(b.t.Context()))) })
	_, err = conn.Exec(b.t.Context(), `LISTEN daybook_accounting`)
	require.NoError(b.t, err)
	return conn
}

// heard returns what was sent before a marker that is sent now.
func (b *bundle) heard(conn *pgx.Conn) (n int) {
	b.t.Helper()
	b.exec(`SELECT pg_notify('daybook_accounting', 'marker')`)
	for b.hears(conn) != "marker" {
		n++
	}
	return n
}

// hears returns the next notification.
func (b *bundle) hears(conn *pgx.Conn) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), pgtest.Patience)
	defer cancel()
	got, err := conn.WaitForNotification(ctx)
	require.NoError(b.t, err)
	return got.Payload
}

// NOTIFY takes a lock of the whole server at commit: it is sent while a worker waits, and to say
// that there is work now.
func TestNotifyOnlyWhileSomebodyWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.listener()
	const now, later = `SELECT daybook.enqueue_accounting_job('org_1', 'a', $1)`,
		`SELECT daybook.enqueue_accounting_job('org_1', 'a', $1, now() + interval '1 hour')`

	b.exec(now, 1)
	b.exec(`SELECT daybook.mark_accounting_job_pending('org_1', 'a')`)
	b.exec(`SELECT daybook.enqueue_accounting_jobs(ARRAY['org_1'], ARRAY['b'], ARRAY[1])`)
	assert.Zero(t, b.heard(conn), "no worker waits")

	w := b.waker()
	sub := w.Subscribe()
	b.waitsNow(sub)
	b.exec(now, 2)
	assert.Equal(t, 1, b.heard(conn), "a worker waits")
	b.exec(now, 2)
	b.exec(now, 1)
	assert.Zero(t, b.heard(conn), "nothing has changed")
	b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'c', 1, now() + interval '1 hour')`)
	b.exec(later, 1)
	assert.Zero(t, b.heard(conn), "it is due later")
	b.exec(`SELECT daybook.enqueue_accounting_jobs(ARRAY['org_1'], ARRAY['d'], ARRAY[1], ARRAY[now() + interval '1 hour'])`)
	assert.Zero(t, b.heard(conn), "all of many are due later")

	sub.Close()
	// The lock is gone before the statement that gives it up has committed, and with that notified.
	for b.hears(conn) != "free" { // a waiter that leaves may have others look, before
	}
	assert.Empty(t, b.holders())
	b.exec(now, 3)
	assert.Zero(t, b.heard(conn), "no worker waits any more")
}

// A rolled-back request wakes no worker.
func TestRollbackWakesNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn := b.listener()
	sub := b.waker().Subscribe()
	defer sub.Close()
	b.waitsNow(sub)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = store.EnqueueAccountingJob(t.Context(), tx, org, "a", 1, nil, 0)
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))
	assert.Zero(t, b.heard(conn))
}

func TestWakerRecoversItsConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.waker().Subscribe()
	defer sub.Close()
	for round := range 3 {
		pid := b.waitsNow(sub)
		b.exec(`SELECT pg_terminate_backend($1)`, pid)
		// No worker listens at this moment: the work is found by the scan that the next token asks
		// for.
		b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'lost', $1)`, round)
		require.Eventually(t, func() bool {
			pids := b.holders()
			return len(pids) == 1 && pids[0] != pid
		}, pgtest.Patience, 5*time.Millisecond, "another connection holds the lock")
		b.woken(sub)
		b.drain(sub)
		b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'heard', $1)`, round)
		b.woken(sub)
		// The next round begins with a token, as waitsNow wants it.
		b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'next', $1)`, round)
	}
}

func (b *bundle) drain(sub *store.Subscription) {
	select {
	case <-sub.C:
	default:
	}
}

// A process that waits does not keep another one from being woken.
func TestTwoProcessesWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.waker().Subscribe()
	defer first.Close()
	b.waitsNow(first)
	second := b.waker().Subscribe()
	defer second.Close()
	require.Eventually(t, func() bool {
		b.exec(`SELECT daybook.mark_accounting_job_pending(org_id, document_id) FROM daybook.enqueue_accounting_job('org_1', 'a', 1), (VALUES ('org_1', 'a')) AS k (org_id, document_id)`)
		select {
		case <-second.C:
			return true
		case <-time.After(10 * time.Millisecond):
			return false
		}
	}, pgtest.Patience, time.Millisecond)
	b.woken(first)
}

// An open transaction that has enqueued holds the lock off; when it commits, its work is found.
func TestLongEnqueuingTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = store.EnqueueAccountingJob(t.Context(), tx, org, "a", 1, nil, 0)
	require.NoError(t, err)
	found := make(chan bool, 1)
	failed := make(chan error, 1)
	w := b.waker()
	turn := b.turn("run/0/1")
	go func() {
		ok, err := waitForJob(t.Context(), b.store, w, turn)
		found <- ok
		failed <- err
	}()
	// The waiter has tried and failed when its session has been seen asking for the lock.
	require.Eventually(t, func() bool {
		return fixture.Count(t, b.Pool,
			`SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND query ~ '^\s*SELECT CASE WHEN pg_try_advisory_lock'`, b.Name) == 1
	}, pgtest.Patience, 5*time.Millisecond)
	assert.Empty(t, b.holders())
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-failed)
	assert.True(t, <-found)
}

// The waiter that has waited longest is told of work, and the next one of what it leaves.
func TestWaitersAreToldOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.waker()
	first, second := w.Subscribe(), w.Subscribe()
	defer first.Close()
	defer second.Close()
	b.waitsNow(first)
	b.drain(second)
	b.exec(`SELECT daybook.enqueue_accounting_job('org_1', 'a', 1)`)
	b.woken(first)
	// It leaves work: the second one is told. In which order they are told is what TestOneWaiterIsTold
	// says.
	first.Pass()
	b.woken(second)
}

func TestWakerClose(t *testing.T) {
	t.Parallel()
	b := setup(t)
	unused := b.waker()
	unused.Close()
	w := b.waker()
	sub := w.Subscribe()
	b.waitsNow(sub)
	w.Close()
	require.Eventually(t, func() bool { return len(b.holders()) == 0 }, pgtest.Patience, 5*time.Millisecond,
		"the lock goes with the connection")
	w.Close()
	sub.Close()
}

package kindtest

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/dev/pgtest"
	"github.com/daybook-dev/daybook/internal/store"
)

// wakerContracts are about how a process learns of new work.
var wakerContracts = []contract{
	{"every enqueue wakes a waiter", everyEnqueueWakes, nil},
	{"an open transaction that enqueues holds up no other", openTransaction, nil},
	{"reminding tells those that wait", reminding, nil},
	{"closing ends the connection", closing, nil},
}

// wakeLimit is far below a poll interval, and far above what a wake-up takes.
const wakeLimit = 20 * time.Second

func (b *bundle) waker() *store.Waker {
	b.t.Helper()
	w := b.kind.NewWaker("", 5*time.Millisecond, slog.New(slog.DiscardHandler))
	b.t.Cleanup(w.Close)
	return w
}

// waits does what a fetch does: it looks, waits, and looks again, also when the outlook says that
// what it could not afford to read may be due. It returns the id of the first job that it leases.
func (b *bundle) waits(w *store.Waker) (string, error) {
	turn := b.turn("run/0/1")
	waiter := w.Subscribe()
	defer waiter.Close()
	limit := time.NewTimer(wakeLimit)
	defer limit.Stop()
	for {
		leased, err := b.kind.LeaseFor(b.t.Context(), turn, 1, pgtest.Unbounded())
		if err != nil || len(leased.Jobs) > 0 {
			return append(ids(leased.Jobs), "")[0], err
		}
		var again <-chan time.Time
		if leased.Again > 0 {
			again = time.After(leased.Again)
		}
		select {
		case <-waiter.C:
		case <-again:
		case <-limit.C:
			return "", nil
		}
	}
}

func everyEnqueueWakes(b *bundle) {
	w := b.waker()
	for i := range 30 {
		enqueued := make(chan string, 1)
		go func() {
			<-time.After(time.Duration(i) * time.Millisecond)
			id, err := b.enqueue(b.t.Context(), b.Pool, org, fmt.Sprint("key-", i), 2, 0)
			assert.NoError(b.t, err)
			enqueued <- id
		}()
		id, err := b.waits(w)
		require.NoError(b.t, err)
		require.Equal(b.t, <-enqueued, id, "trial %d: the wake-up was lost", i)
	}
}

func openTransaction(b *bundle) {
	ctx := b.t.Context()
	tx, err := b.Pool.Begin(ctx)
	require.NoError(b.t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	forgotten, err := b.enqueue(ctx, tx, "z", "forgotten", 2, 0)
	require.NoError(b.t, err)
	w := b.waker()
	found := make(chan string, 1)
	go func() {
		id, err := b.waits(w)
		assert.NoError(b.t, err)
		found <- id
	}()
	<-time.After(100 * time.Millisecond)
	assert.Equal(b.t, b.one(org, "key", 2, 0), <-found)
	require.NoError(b.t, tx.Commit(ctx))
	id, err := b.waits(w)
	require.NoError(b.t, err)
	assert.Equal(b.t, forgotten, id)
}

func reminding(b *bundle) {
	w := b.waker()
	waiter := w.Subscribe()
	defer waiter.Close()
	w.Remind()
	select {
	case <-waiter.C:
	case <-time.After(wakeLimit):
		assert.Fail(b.t, "no wake-up")
	}
}

func closing(b *bundle) {
	sessions := func() (n int) {
		err := b.Pool.QueryRow(b.t.Context(), `SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
 WHERE d.datname = $1 AND l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND l.granted`, b.Name).Scan(&n)
		require.NoError(b.t, err)
		return n
	}
	unused := b.waker()
	unused.Close()
	w := b.waker()
	waiter := w.Subscribe()
	b.eventually(func() bool { return sessions() == 1 }, "it waits")
	w.Close()
	b.eventually(func() bool { return sessions() == 0 }, "nothing is left of it")
	w.Close()
	waiter.Close()
}

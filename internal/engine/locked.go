package engine

import (
	"context"
	"time"

	"github.com/daybook-dev/daybook/internal/store"
)

const (
	// maxLockWait is how long a chunk's transaction waits for a lock at most. Documents and jobs are locked without waiting, so
	// what is waited for is a table, or a row of an application's own.
	maxLockWait = 3 * time.Second
	// lockedPause is how long jobs are left alone whose tables another transaction holds locked.
	lockedPause = 2 * time.Second
	// sayLockedEvery is the pause between two log lines about that.
	sayLockedEvery = time.Minute
)

// lockWait is how long a statement of a chunk's transaction may wait for a lock: well below the time that the chunk has, so that
// the lock is told from a job that is slow. A processor of an application has more time, and may have locks of its own.
func (e *Engine) lockWait() time.Duration {
	wait := e.options.ChunkTimeout / 3
	if e.options.Slow {
		return wait
	}
	return min(wait, maxLockWait)
}

// giveBackLocked gives jobs back, uncounted, whose chunk waited in vain for a table: no document is to blame for a LOCK TABLE or an
// ALTER TABLE. They come back until the lock is gone; each time they hold a connection for no longer than lockWait.
func (t *turn) giveBackLocked(ctx context.Context, jobs []store.Job, cause error) error {
	t.engine.sayLocked(cause)
	n, err := t.engine.store.Release(ctx, t.identity(), idsOf(jobs), lockedPause)
	t.mu.Lock()
	t.report.Released += n
	t.mu.Unlock()
	return unlessStopped(ctx, err)
}

// sayLocked logs once in a while that a table is locked.
func (e *Engine) sayLocked(cause error) {
	now := time.Now().UnixNano()
	said := e.saidLocked.Load()
	if now-said < int64(sayLockedEvery) || !e.saidLocked.CompareAndSwap(said, now) {
		return
	}
	e.options.Log.Warn("another transaction holds a table locked; its jobs wait, uncounted (pg_locks names the session)", "error", cause)
}

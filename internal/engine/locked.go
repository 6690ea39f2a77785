package engine

import "time"

const (
	// lockedPause is how long jobs are left alone whose tables another transaction holds locked. They are given back, uncounted: no job is
	// to blame for a LOCK TABLE or an ALTER TABLE. They come back until the lock is gone; each time they hold a connection for no longer
	// than their Handling's LockWait.
	lockedPause = 2 * time.Second
	// sayLockedEvery is the pause between two log lines about that.
	sayLockedEvery = time.Minute
)

// sayLocked logs once in a while that a table is locked.
func (e *Engine) sayLocked(cause error) {
	now := time.Now().UnixNano()
	said := e.saidLocked.Load()
	if now-said < int64(sayLockedEvery) || !e.saidLocked.CompareAndSwap(said, now) {
		return
	}
	e.options.Log.Warn("another transaction holds a table locked; its jobs wait, uncounted (pg_locks names the session)", "error", cause)
}

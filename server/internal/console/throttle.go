package console

import (
	"sync"
	"time"
)

const (
	// signInAttempts is how many attempts to sign in may fail in signInWindow for each address that
	// they come from.
	signInAttempts = 10
	signInWindow   = time.Minute
	// signInAddresses bounds how many addresses are remembered.
	signInAddresses = 10_000
)

// throttle counts failed attempts to sign in. Tokens cannot be guessed; it keeps attempts from
// being work for the database.
type throttle struct {
	mu       sync.Mutex
	failures map[string]*failures
}

type failures struct {
	n     int
	since time.Time
}

// begin counts an attempt, which counts as failed until succeeded is called. It returns how long to
// wait when there were too many.
func (t *throttle) begin(from string, now time.Time) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.failures[from]
	if f == nil || now.Sub(f.since) >= signInWindow {
		if t.failures == nil || len(t.failures) >= signInAddresses {
			t.failures = map[string]*failures{}
		}
		f = &failures{since: now}
		t.failures[from] = f
	}
	if f.n >= signInAttempts {
		return f.since.Add(signInWindow).Sub(now)
	}
	f.n++
	return 0
}

func (t *throttle) succeeded(from string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.failures[from]; f != nil && f.n > 0 {
		f.n--
	}
}

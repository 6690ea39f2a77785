package engine

import (
	"context"
	"maps"
	"sync"
	"time"
)

// A job whose handler asked for the completing transaction needs a commit of its own. Where the
// policy of its type says so, it shares one with others of its type that are ready to complete. What
// goes wrong there charges no job, unless its function has failed by itself: then the jobs that are
// not done are completed one by one (completion.run).

const (
	// shareJobs bounds a shared transaction, and so do Options.ShareFor and shareSavepoints: PostgreSQL
	// keeps 64 subtransactions of a session where others find them quickly.
	shareJobs       = 32
	shareSavepoints = 48
	// gatherStep is the pause before it is read anew how many are ready.
	gatherStep = 200 * time.Microsecond
	// shareFunction is how long a function, or a statement of it, may take: its neighbours wait for it.
	shareFunction = 200 * time.Millisecond
	// sharePause is for how long jobs of a type are completed one by one after a function took longer.
	sharePause = time.Second
)

// sharing has the jobs of a turn that wait to share a transaction with others of their type. It is
// safe for concurrent use.
type sharing struct {
	*turn
	mu      sync.Mutex
	waiting map[shareKey][]*sharer
	// active are the keys for which a goroutine works what waits.
	active map[shareKey]bool
}

// shareKey is what jobs have in common that share a transaction: their type, and the function of the
// database that they call, if it is that (Attempt.Call).
type shareKey struct{ jobType, function string }

func keyOf(c *completion) shareKey {
	key := shareKey{jobType: c.job.Type}
	if c.attempt.Call != nil {
		key.function = c.attempt.Call.Function
	}
	return key
}

// sharer is a job that shares a transaction.
type sharer struct {
	*completion
	// decided is told once how that has ended.
	decided chan struct{}
	// err is why the attempt has failed, if it is not to be completed alone.
	err   error
	alone bool
	// after: the function goes on, and is to end before it is called again.
	after <-chan error
}

// decide says how it has ended for the job.
func (s *sharer) decide(alone bool, err error) {
	s.alone, s.err = alone, err
	close(s.decided)
}

// run completes a job in a transaction that it shares. alone: it is to be completed by itself.
func (s *sharing) run(work context.Context, c *completion) (alone bool, err error) {
	key := keyOf(c)
	if s.engine.unshared.has(key) {
		return true, nil
	}
	s.calls.ready(c.call)
	m := &sharer{completion: c, decided: make(chan struct{})}
	s.mu.Lock()
	s.waiting[key] = append(s.waiting[key], m)
	if !s.active[key] {
		s.active[key] = true
		go s.loop(work, key)
	}
	s.mu.Unlock()
	<-m.decided
	if m.after != nil {
		<-m.after //nolint:errcheck // what it says has no effect any more
	}
	if m.alone {
		s.calls.spare(c.call)
	}
	return m.alone, m.err
}

// loop works the jobs of a key that wait, until there are none.
func (s *sharing) loop(work context.Context, key shareKey) {
	for {
		s.gather(work, key)
		some := s.take(key)
		switch {
		case len(some) == 0:
			return
		case len(some) == 1, s.engine.unshared.has(key), work.Err() != nil:
			for _, m := range some {
				m.decide(true, nil)
			}
		default:
			again := sharedWork{turn: s.turn, key: key}.run(work, some)
			s.mu.Lock()
			s.waiting[key] = append(again, s.waiting[key]...)
			s.mu.Unlock()
		}
	}
}

// gather waits a moment while handlers of the type are running that may be ready soon.
func (s *sharing) gather(work context.Context, key shareKey) {
	limit := s.engine.options.GatherShared
	if key.function != "" {
		rest(work, gatherStep) // what was leased together is ready within microseconds
	}
	for began := time.Now(); time.Since(began) < limit && work.Err() == nil; rest(work, gatherStep) {
		running := 0
		s.calls.each(func(c *call) {
			if c.jobType == key.jobType && !c.abandoned && !c.ready {
				running++
			}
		})
		s.mu.Lock()
		ready := len(s.waiting[key])
		s.mu.Unlock()
		if running == 0 || ready >= shareJobs {
			return
		}
	}
}

// take takes jobs that share the next transaction. When there are none the key is not active any
// more.
func (s *sharing) take(key shareKey) []*sharer {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.waiting[key]
	n := min(len(all), shareJobs)
	if s.waiting[key] = all[n:]; n == 0 {
		delete(s.waiting, key)
		delete(s.active, key)
	}
	return all[:n:n]
}

// unshared are the keys whose jobs share no transaction: for a while, or for as long as the process
// lives. It is safe for concurrent use.
type unshared struct {
	mu    sync.Mutex
	until map[shareKey]time.Time
	// does is what a function of a type did that is out for as long as the process lives.
	does map[string]string
}

// has reports whether jobs of the key are completed one by one.
func (u *unshared) has(key shareKey) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Now().Before(u.until[key])
}

// add adds a key for so long, and reports whether it was not among them.
func (u *unshared) add(key shareKey, d time.Duration) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil {
		u.until = map[shareKey]time.Time{}
	}
	now, until := time.Now(), u.until[key]
	if again := now.Add(d); again.After(until) {
		u.until[key] = again
	}
	return !now.Before(until)
}

// unshare takes a type, or a function of the database, out of sharing for as long as the process
// lives, because of what a function of its job has done.
func (e *Engine) unshare(key shareKey, does string) {
	if !e.unshared.add(key, never) {
		return
	}
	told := []any{"event", "transaction_unshared", "type", key.jobType, "does", does}
	if key.function != "" {
		e.options.Log.Warn("tasks that call a function do not share transactions any more in this process, because it did "+
			"what its neighbours would notice; no task is charged: change the function, or take SharedTransaction from "+
			"the policy of db_function", append(told, "function", key.function)...)
		return
	}
	e.unshared.because(key.jobType, does)
	e.options.Log.Warn("jobs of a type do not share transactions any more in this process, because a function that "+
		"was given to InTx did what its neighbours would notice; no job is charged: take SharedTransaction from the "+
		"type's policy, or change the function", told...)
}

// because notes what a function of the type did.
func (u *unshared) because(jobType, does string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.does == nil {
		u.does = map[string]string{}
	}
	u.does[jobType] = does
}

// Unshared returns the types that were taken out of sharing for as long as the engine lives, each
// with what a function of its jobs did.
func (e *Engine) Unshared() map[string]string {
	e.unshared.mu.Lock()
	defer e.unshared.mu.Unlock()
	return maps.Clone(e.unshared.does)
}

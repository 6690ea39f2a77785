package wake

import (
	"context"
	"time"
)

const (
	// otherDelay is for how long the first waiter of a process may leave its token before the
	// others are told: it is busy then.
	otherDelay = 20 * time.Millisecond
	// allEvery is the longest pause between two times that all waiters are told, while work comes.
	allEvery = 250 * time.Millisecond
	// remindAfter is for how long calls of Remind are gathered into one, passAfter the same for
	// Pass.
	remindAfter = 20 * time.Millisecond
	passAfter   = 5 * time.Millisecond
	// wakeTimeout bounds the statement that tells other processes.
	wakeTimeout = time.Second
)

// broadcast tells the first waiter at once. The others are told when that one does not take its
// token, and now and then in any case: several that scan at once only stand in each other's way,
// and one that scans finds jobs that it can pick together.
func (w *Waker) broadcast() {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.first()
	if first == nil {
		return
	}
	w.fresh = true
	first.signal()
	if len(w.subs) > 1 && !w.checking {
		w.checking = true
		time.AfterFunc(otherDelay, w.check)
	}
}

// first is the waiter that is told first: the one that has waited longest, so that it stays the same
// one.
func (w *Waker) first() (first *Subscription) {
	for s := range w.subs {
		if first == nil || s.number < first.number {
			first = s
		}
	}
	return first
}

// check tells the waiters that were not told, if the first one has not taken its token, or if they
// have long not been told.
func (w *Waker) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checking = false
	if first := w.first(); first != nil && len(first.C) == 0 && time.Since(w.told) < allEvery {
		return
	}
	w.tellOthers(nil)
}

// tellOthers is called with mu held.
func (w *Waker) tellOthers(not *Subscription) {
	w.told, w.fresh = time.Now(), false
	for s := range w.subs {
		if s != not {
			s.signal()
		}
	}
}

// Decline is Pass for a waiter that was told and does not scan. It does nothing when the others
// were told since work last came: otherwise waiters without room would tell each other again and
// again.
func (s *Subscription) Decline() {
	s.waker.mu.Lock()
	fresh := s.waker.fresh
	s.waker.mu.Unlock()
	if fresh {
		s.Pass()
	}
}

// Pass tells the other waiters, after passAfter: this one was told, and has found more than it
// takes.
func (s *Subscription) Pass() {
	w := s.waker
	if w.passing.CompareAndSwap(false, true) {
		time.AfterFunc(passAfter, func() {
			w.passing.Store(false)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tellOthers(s)
		})
	}
}

// Remind tells the waiters, after remindAfter, that jobs were put off: a waiter that scans learns
// when they are due. Without a waiter here those of other processes are told.
func (w *Waker) Remind() {
	if w.reminding.CompareAndSwap(false, true) {
		time.AfterFunc(remindAfter, w.remind)
	}
}

// remind ends what Remind began, if that is not done yet.
func (w *Waker) remind() {
	w.telling.Lock()
	defer w.telling.Unlock()
	if !w.reminding.Swap(false) {
		return
	}
	if n, _ := w.waiters(); n > 0 {
		w.broadcast()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), wakeTimeout)
	defer cancel()
	w.queue.Wake(ctx)
}

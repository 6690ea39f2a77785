package wake

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// quiet is a waker that is not connected, with waiters that have no token.
func quiet(waiters int) (*Waker, []*Subscription) {
	w := &Waker{subs: map[*Subscription]struct{}{}, changed: make(chan struct{}), started: true, told: time.Now()}
	subs := make([]*Subscription, waiters)
	for i := range subs {
		subs[i] = w.Subscribe()
	}
	return w, subs
}

// told empties the waiters' channels, and says which of them had a token.
func told(subs []*Subscription) []bool {
	had := make([]bool, len(subs))
	for i, s := range subs {
		select {
		case <-s.C:
			had[i] = true
		default:
		}
	}
	return had
}

func TestOneWaiterIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, subs := quiet(3)
		for range 5 {
			w.broadcast()
			synctest.Wait()
			assert.Equal(t, []bool{true, false, false}, told(subs), "the one that has waited longest, each time")
			time.Sleep(otherDelay + time.Millisecond)
			assert.Equal(t, []bool{false, false, false}, told(subs), "it took its token: the others are left alone")
		}
		time.Sleep(allEvery)
		w.broadcast()
		time.Sleep(otherDelay + time.Millisecond)
		assert.Equal(t, []bool{true, true, true}, told(subs), "now and then all are told")
	})
}

func TestOthersAreToldOfWhatTheFirstWaiterLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, subs := quiet(2)
		w.broadcast()
		time.Sleep(otherDelay + time.Millisecond)
		assert.Equal(t, []bool{true, true}, told(subs), "it did not take its token")

		subs[0].Pass()
		time.Sleep(passAfter + time.Millisecond)
		assert.Equal(t, []bool{false, true}, told(subs), "it passed on what it was told")

		w.broadcast()
		<-subs[0].C
		subs[0].Close()
		time.Sleep(remindAfter + time.Millisecond)
		assert.Equal(t, []bool{false, true}, told(subs), "it took its token and left")
	})
}

// TestWaitersWithoutRoomDoNotTellEachOther has two waiters decline whatever they are told: a third
// one is told once each time that work comes.
func TestWaitersWithoutRoomDoNotTellEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, subs := quiet(3)
		for range 3 {
			w.broadcast()
			got := make([]int, len(subs))
			for range 100 {
				time.Sleep(passAfter)
				for i, had := range told(subs) {
					if had {
						got[i]++
					}
					if had && i < 2 {
						subs[i].Decline()
					}
				}
			}
			assert.GreaterOrEqual(t, got[2], 1, "it has room")
			assert.LessOrEqual(t, got[0]+got[1]+got[2], 6, "no more than the work, what is passed on, and one check")
		}
	})
}

func TestOthersAreToldOfAWaiterThatLeaves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(w *Waker, s *Subscription)
		told   bool
	}{
		"it has not scanned":             {func(*Waker, *Subscription) {}, true},
		"it found work, or some to come": {func(_ *Waker, s *Subscription) { s.Scanned(false); s.Scanned(true) }, true},
		"it found nothing":               {func(_ *Waker, s *Subscription) { s.Scanned(false) }, false},
		"it took a token and scanned":    {func(w *Waker, s *Subscription) { w.broadcast(); <-s.C; s.Scanned(false) }, false},
		"it took a token":                {func(w *Waker, s *Subscription) { s.Scanned(false); w.broadcast(); <-s.C }, true},
		"it took no token":               {func(w *Waker, s *Subscription) { s.Scanned(false); w.broadcast() }, true},
		"it was told while it scanned, and took the token": {
			func(w *Waker, s *Subscription) { w.broadcast(); s.Scanned(false); <-s.C }, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, subs := quiet(2)
				c.before(w, subs[0])
				subs[0].Close()
				time.Sleep(remindAfter + time.Millisecond)
				synctest.Wait()
				assert.Equal(t, c.told, told(subs[1:])[0])
			})
		})
	}
}

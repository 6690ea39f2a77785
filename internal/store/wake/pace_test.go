package wake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPaceOfNotifications(t *testing.T) {
	t.Parallel()
	const interval = 5 * time.Millisecond
	now := time.Now()
	hear := func(p *pace, gap time.Duration, n int) (fast bool) {
		for range n {
			now = now.Add(gap)
			fast = p.notified(now)
		}
		return fast
	}
	p := newPace(interval)
	assert.False(t, hear(&p, interval, 100), "one an interval: a scan for each is no more work than scans without them")
	p.held()
	assert.False(t, hear(&p, 0, busyAfter), "as many at once as it takes, and none before")
	assert.True(t, hear(&p, interval/2, busyAfter))
	p.held()
	assert.False(t, hear(&p, 0, busyAfter), "what came before the lock was held does not count")
	assert.True(t, hear(&p, 0, 1))
}

func TestPaceOfScans(t *testing.T) {
	t.Parallel()
	const interval = 5 * time.Millisecond
	p := newPace(interval)
	assert.True(t, p.scanned(false), "it begins with wanting to be notified")
	p.left()
	for range 3 {
		for range quietAfter - 1 {
			assert.False(t, p.scanned(false))
			assert.Equal(t, interval, p.pause(), "nothing notifies: work waits for an interval at most")
		}
		assert.False(t, p.scanned(true), "work was found: all begins anew")
	}
	for range quietAfter {
		assert.Equal(t, interval, p.pause())
		p.scanned(false)
	}
	var pauses []time.Duration
	for range 6 {
		assert.True(t, p.scanned(false))
		pauses = append(pauses, p.pause()/time.Millisecond)
	}
	assert.Equal(t, []time.Duration{10, 20, 40, 75, 75, 75}, pauses, "another transaction keeps the lock from being had")
	slow := newPace(time.Second)
	slow.scanned(false)
	assert.Equal(t, time.Second, slow.pause(), "never shorter than the interval")
}

package workers

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/daybook-dev/daybook/internal/telemetry/events"
	"github.com/daybook-dev/daybook/queue"
)

// TestSubscribersAreNotWaitedFor: what a full buffer cannot take is counted, and told before the
// next event.
func TestSubscribersAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	var h hub
	slow, cancel := h.subscribe(queue.EventFilter{Buffer: 2})
	defer cancel()
	one := []events.Event{{Name: events.Completed, Kind: "jobs"}}
	for range 5 {
		h.Observe(one)
	}
	assert.Equal(t, queue.EventCompleted, (<-slow).Name)
	assert.Equal(t, queue.EventCompleted, (<-slow).Name)
	h.Observe([]events.Event{{Name: events.Failed, Kind: "jobs"}})
	missed := <-slow
	assert.Equal(t, queue.EventMissed, missed.Name)
	assert.Equal(t, 3, missed.Missed)
	assert.Equal(t, queue.EventFailed, (<-slow).Name)
}

// TestSubscriptionsFilter by name, kind, type and organization.
func TestSubscriptionsFilter(t *testing.T) {
	t.Parallel()
	var h hub
	all, endAll := h.subscribe(queue.EventFilter{})
	dead, endDead := h.subscribe(queue.EventFilter{
		Names: []queue.EventName{queue.EventFailed},
		Types: []string{"webhook"}, OrgID: "acme", Kinds: []queue.Kind{"jobs"},
	})
	h.Observe([]events.Event{
		{Name: events.Leased, Kind: "jobs", Type: "webhook", OrgID: "acme"},
		{Name: events.Failed, Kind: "jobs", Type: "webhook", OrgID: "globex"},
		{Name: events.Failed, Kind: "jobs", Type: "email", OrgID: "acme"},
		{Name: events.Failed, Kind: "jobs", Type: "webhook", OrgID: "acme", JobID: "j1"},
	})
	endAll()
	endDead()
	endDead()
	n := 0
	for range all {
		n++
	}
	assert.Equal(t, 3, n, "every end of an attempt")
	assert.Equal(t, "j1", (<-dead).JobID)
	_, open := <-dead
	assert.False(t, open)
}

// TestSubscriptionsEndWithTheWorker while others subscribe and leave.
func TestSubscriptionsEndWithTheWorker(t *testing.T) {
	t.Parallel()
	var h hub
	var busy sync.WaitGroup
	for range 8 {
		busy.Go(func() {
			c, cancel := h.subscribe(queue.EventFilter{Buffer: 1})
			defer cancel()
			for range c {
			}
		})
		busy.Go(func() { h.Observe([]events.Event{{Name: events.Completed}}) })
	}
	require.Eventually(t, func() bool { return len(h.all()) == 8 }, time.Minute, time.Millisecond)
	h.close()
	busy.Wait()
	c, cancel := h.subscribe(queue.EventFilter{})
	cancel()
	_, open := <-c
	assert.False(t, open)
}

// TestPayloadsFit: each notification holds what PostgreSQL takes.
func TestPayloadsFit(t *testing.T) {
	t.Parallel()
	many := make([]queue.Event, 500)
	for i := range many {
		many[i] = queue.Event{
			Name: queue.EventCompleted, Kind: "jobs", OrgID: "organization", Type: "webhook",
			JobID: "01a202b8-b7c5-7944-8830-99520387d49c", At: time.Now(),
		}
	}
	lists, tooLong := payloads(many)
	assert.Zero(t, tooLong)
	assert.Greater(t, len(lists), 1)
	for _, l := range lists {
		assert.Less(t, len(l), 8000)
	}
}

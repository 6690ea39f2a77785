package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestJobsThatWaitForRoomComeFirst: what is leased and waits has the room that is left before what
// is not leased yet.
func TestJobsThatWaitForRoomComeFirst(t *testing.T) {
	t.Parallel()
	r := newRoom(work(done))
	r.wait(&turn{}, map[string]int{"named": 7})
	assert.Equal(t, 3, r.Reserve("named", 10))
	assert.Zero(t, r.Reserve("named", 10))
	for range 7 {
		assert.True(t, r.take("named"))
	}
	assert.False(t, r.take("named"))
}

// TestFullQueuesOpen: a named queue that is full is passed over until one of its jobs ends; one
// that has used up its rate until the rate allows the next.
func TestFullQueuesOpen(t *testing.T) {
	t.Parallel()
	r := newRoom(work(done))
	told, leave := r.subscribe()
	defer leave()
	r.QueueFull("full", 0)
	r.QueueFull("rated", time.Hour)
	assert.False(t, r.Open("rated"))
	assert.True(t, r.Open("another"))
	r.completed("rated")
	require.False(t, r.Open("rated"))
	r.completed("full")
	assert.True(t, r.Open("full"))
	<-told
	r.QueueFull("left alone", time.Millisecond)
	<-told
	assert.True(t, r.Open("left alone"))
}

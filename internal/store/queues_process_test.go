package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestPerProcess: two processes each lease as many jobs of a queue as one may, and no more than the
// limit over all workers.
func TestPerProcess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.setQueue(store.NamedQueue{Name: "narrow", PerProcess: 2, MaxParallel: 3})
	b.inQueue("o", "narrow", 9)
	b.inQueue("o", "", 2)
	first, second := store.NewQueue(b.Pool, store.Jobs), store.NewQueue(b.Pool, store.Jobs)
	one, other := b.turn("run/0/1"), b.turn("run/0/2")
	one.Worker, other.Worker = "host:1", "host:2"
	assert.Equal(t, map[string]int{"narrow": 2, "": 2}, leaseAll(t, first, one, newQueues(), 10))
	assert.Empty(t, leaseAll(t, first, one, newQueues(), 10), "the process is at its limit")
	assert.Equal(t, map[string]int{"narrow": 1}, leaseAll(t, second, other, newQueues(), 10),
		"another process has room, and the limit over all workers holds")
}

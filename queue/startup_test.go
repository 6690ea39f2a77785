package queue_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/queue"
)

// TestReplicasThatStartTogether has twelve programs make the same named queue and fleet, and name
// the same source and hooks at once, as they do at their start.
func TestReplicasThatStartTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			_, err := queue.SetSource(t.Context(), b.Pool, org, "shop")
			assert.NoError(t, err)
			_, err = queue.SetHooks(t.Context(), b.Pool, org, []string{"stock"})
			assert.NoError(t, err)
			_, err = queue.SetQueue(t.Context(), b.Pool, queue.NamedQueue{Name: "bank", Fleet: "shop"})
			assert.NoError(t, err)
		})
	}
	all.Wait()
}

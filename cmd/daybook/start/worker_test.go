package start

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/daybook-dev/daybook/internal/store"
)

// TestEveryQueueHasAWorker: `daybook worker` works what the list of kinds names.
func TestEveryQueueHasAWorker(t *testing.T) {
	t.Parallel()
	var worked []string
	for _, w := range newWorkers {
		worked = append(worked, w.kind)
	}
	for _, q := range store.Queues() {
		assert.Contains(t, worked, q.Name)
	}
}
